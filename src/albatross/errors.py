"""Errors that a caller may want to tell apart. All are ValueErrors; none leaves anything half-changed."""

from __future__ import annotations


class UnknownDecision(ValueError):
    """A reward for a decision that is not pending: already rewarded, forgotten, or made by another agent."""


class UnreadableAgent(ValueError):
    """A saved agent that is cut, is not an agent, or is of another version."""
