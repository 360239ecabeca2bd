"""How the contract plays a policy one call at a time, for the other tests."""

from __future__ import annotations

from albatross.contract.stepping import agent_on_stream, learn_block, rounds_of, same_state, state_of

__all__ = ["agent_on_stream", "learn_block", "rounds_of", "same_state", "state_of"]
