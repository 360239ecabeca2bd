"""The numbers that a seed gives stay what they are, for every panel.

Version 0.1 computed them, except those of policies and panels that are newer, and of SupLinRel, which was corrected;
`python tests/experiments/test_pinned_panels.py` prints today's. On one machine they are the same bit for bit; on
another, sums in another order may differ in the last digits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from albatross.experiments import PANELS

PINNED = json.loads((Path(__file__).parent / "pinned_panels.json").read_text())

# Of every problem as little as its policies take.
MIXTURE = {"n_arms": 5, "dim": 4, "horizon": 405, "epoch_length": 50}
BALL = {"dim": 20, "sparsity": 4, "first_phase": 400, "phases": 4}
MAPS = {"dims": [2, 4], "true_dim": 2, "first_phase": 100, "horizon": 600}
ROWS = {"epochs": 3, "epoch_length": 50}
PARTS = {
    "mixture": {**MIXTURE, "theta_norms": [0.5, 2.0], "norm_bounds": [1.0, 10.0], "epochs": 4},
    "ball": {**BALL, "dims": [10, 20], "sparsities": [2, 4], "points": 4, "horizon_without_blocks": 300},
    "nested": {**MAPS, "points": 3},
}
SHORT: dict[str, dict[str, Any]] = {
    "a": MIXTURE,
    "b": MIXTURE,
    "c": MIXTURE,
    "d": BALL,
    "e": BALL,
    "e-literal": {**BALL, "first_phase": 4_000},
    "f": {"panels": {name: {**PANELS[name].settings, **BALL} for name in ("d", "e")}},
    "g": ROWS,
    "h": ROWS,
    "nested": MAPS,
    "users": {"users": 10, "rounds": 100},
    "news": {"dim": 4, "supports": [2, 4], "norms": [0.0, 0.3, 2.0], "horizon": 300, "points": 5},
    "scaling": {part: {**PANELS["scaling"].settings[part], **settings} for part, settings in PARTS.items()},
}


def numbers(name: str) -> dict[str, list[float]]:
    """Mean and standard deviation of the final number of every policy, over two trials."""
    panel = PANELS[name]
    found = panel.run({**panel.settings, **SHORT[name]}, trials=2, seed=7).policies
    return {policy: [entry["final_mean"], entry["final_sd"]] for policy, entry in found.items()}


@pytest.mark.parametrize("name", PINNED)
def test_a_seed_gives_the_numbers_that_it_always_gave(name):
    found = numbers(name)  # also of policies that joined later
    for policy, wanted in PINNED[name].items():
        last_digits = 1e-9 * max(abs(wanted[0]), 1.0)  # a standard deviation has as many digits as its mean
        assert found[policy] == pytest.approx(wanted, rel=1e-9, abs=last_digits), policy


if __name__ == "__main__":
    print(json.dumps({name: numbers(name) for name in sys.argv[1:] or PINNED}, indent=1))
