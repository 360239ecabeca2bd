"""theta* = 0: ALB-Norm, which does not know it, beside UCB, which ignores contexts.

Ghosh, Sankararaman and Ramchandran (2021), Remark 3, promises UCB's minimax regret provided that K > d. Theorem 1
leaves sqrt(K) + sqrt(d), so what matters is how much larger: the arms and features of panels (a) and (b), and two sizes
with far more arms than features. ALB-Norm plays in the three readings of those panels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import simulate
from albatross.experiments import norm_regret
from albatross.experiments.panel import Outcome, Panel, curve_table, spread

SETTINGS: dict[str, Any] = {
    **{key: value for key, value in norm_regret.SETTINGS.items() if key not in ("n_arms", "dim", "horizon")},
    "theta_norm": 0.0,
    "sizes": [[75, 50], [75, 5], [200, 10]],  # K and d
    "epochs": 7,
}


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """ALB-Norm in every reading, and UCB."""
    found = norm_regret.contenders(settings)
    return {name: found[name] for name in (*(f"alb-norm{reading}" for reading in norm_regret.READINGS), "ucb")}


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Play all sizes, one after the other."""
    policies: dict[str, dict[str, Any]] = {}
    tables = []
    for n_arms, dim in settings["sizes"]:
        horizon = n_arms + settings["epoch_length"] * (2 ** settings["epochs"] - 1)
        here = {**settings, "n_arms": n_arms, "dim": dim, "horizon": horizon}
        problem = norm_regret.problem(here)
        runs = simulate(contenders(here), problem, horizon=horizon, trials=trials, seed=seed, record=200)
        size = {"n_arms": n_arms, "dim": dim}
        policies |= {
            f"{name}, {n_arms} x {dim}": {"policy": name, **size, **spread(each.regret[:, -1])}
            for name, each in runs.items()
        }
        curves = curve_table(runs)
        rows = len(curves["round"])
        tables.append({**curves, **{key: np.full(rows, value) for key, value in size.items()}})
    return Outcome(policies, {name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


PANELS = {"simple": Panel("simple", __name__, SETTINGS, run, seconds=12.0)}
