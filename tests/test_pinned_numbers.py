"""The numbers that a seed gives stay what they are, for every policy.

They were written down by version 0.1; `python tests/test_pinned_numbers.py` prints today's. On one machine they are the
same bit for bit; on another, sums in another order may differ in the last digits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from variants import HORIZON, VARIANTS, easy_problem, new_agent, offered

from albatross import simulate

PINNED = json.loads((Path(__file__).parent / "pinned_numbers.json").read_text())


def numbers(name: str) -> dict[str, float]:
    """The regret of the second of two short trials, and the score of an agent's 120th decision."""
    run = simulate(VARIANTS[name], easy_problem(name), horizon=HORIZON, trials=2, seed=7)
    agent, rng = new_agent(name, seed=3), np.random.default_rng(5)
    for _ in range(120):
        decision = agent.select(*offered(name, rng))
        agent.update(decision, float(rng.standard_normal()))
    return {"regret": float(run.regret[-1, -1]), "score": float(decision.score)}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_seed_gives_the_numbers_that_it_always_gave(name):
    assert name in PINNED, f"add to pinned_numbers.json what `python test_pinned_numbers.py {name}` prints"
    assert numbers(name) == pytest.approx(PINNED[name], rel=1e-9, abs=1e-9)


if __name__ == "__main__":
    print(json.dumps({name: numbers(name) for name in sys.argv[1:] or VARIANTS}, indent=1))
