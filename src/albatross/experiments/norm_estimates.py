"""Panel (c): ALB-Norm's estimates of the norm, epoch by epoch, on the problems of panels (a) and (b).

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1. With the paper's own estimator the estimates fall below the
true norm, and with the constants of Appendix A they explode. Both are drawn next to the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import simulate
from albatross.experiments import norm_regret
from albatross.experiments.panel import Outcome, Panel
from albatross.runs import Run

SETTINGS: dict[str, Any] = {**norm_regret.SETTINGS, "theta_norms": [0.1, 1.0]}


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """ALB-Norm three times: default, with the paper's estimator, and with all of Appendix A."""
    found = norm_regret.contenders(settings)
    return {name: found[name] for name in (f"alb-norm{reading}" for reading in norm_regret.READINGS)}


def describe(name: str, runs: Mapping[tuple[str, float], Run]) -> dict[str, Any]:
    """Return a policy's entry in the summary: the larger norm, and all norms under `by_norm`."""
    by_norm = {
        f"{truth:g}": {**norm_regret.describe(name, run), "theta_norm": truth}
        for (each, truth), run in runs.items()
        if each == name
    }
    return {**by_norm[max(by_norm, key=float)], "by_norm": by_norm}


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run the versions at both norms."""
    runs: dict[tuple[str, float], Run] = {}
    for truth in settings["theta_norms"]:
        here = {**settings, "theta_norm": truth}
        found = simulate(
            contenders(here),
            norm_regret.problem(here),
            horizon=settings["horizon"],
            trials=trials,
            seed=seed,
            record=[settings["horizon"]],
        )
        runs.update({(name, truth): each for name, each in found.items()})
    columns: dict[str, list[Any]] = {"policy": [], "theta_norm": [], "trial": [], "epoch": [], "norm_bound": []}
    for (name, truth), each in runs.items():
        for trial, bounds in enumerate(norm_regret.norm_bounds(each)):
            for epoch, bound in enumerate(bounds, start=1):
                for column, value in zip(columns.values(), (name, truth, trial, epoch, bound), strict=True):
                    column.append(value)
    return Outcome(
        policies={name: describe(name, runs) for name in dict.fromkeys(name for name, _ in runs)},
        curves={name: np.array(column) for name, column in columns.items()},
    )


PANELS = {"c": Panel("c", __name__, SETTINGS, run, seconds=30.0)}
