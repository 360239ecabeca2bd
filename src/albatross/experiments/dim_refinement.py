"""Panel (f): the active coordinates of ALB-Dim, phase by phase, on the problems of panels (d) and (e).

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1: "within 4-5 epochs ALB-Dim finds the sparsity". Beside it plays
its monotone ablation, which keeps dropped coordinates dropped; regret says what taking them back is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from albatross import simulate
from albatross.experiments import dim_regret
from albatross.experiments.monotone import MonotoneALBDim
from albatross.experiments.panel import Outcome, Panel

SETTINGS: dict[str, Any] = {"panels": {name: dict(panel.settings) for name, panel in dim_regret.PANELS.items()}}


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run ALB-Dim and its ablation, with the seeds of panels (d) and (e)."""
    policies: dict[str, Any] = {}
    columns = []
    for here in settings["panels"].values():
        dim, phases = here["dim"], here["phases"]
        ends = dim_regret.phase_ends(here)
        alb_dim = dim_regret.contenders(here)["alb-dim"]
        runs = simulate(
            {"alb-dim": alb_dim, "monotone": MonotoneALBDim(**asdict(alb_dim))},
            dim_regret.problem(here),
            horizon=int(ends[-1]),
            trials=trials,
            seed=seed,
            record=ends,
        )
        for name, played in runs.items():
            found = {**dim_regret.refinement(played, phases), "regret": played.regret}
            entry = {**dim_regret.describe(name, played, phases), "dim": dim}
            policies[name if dim == 500 else f"{name}-{dim}"] = entry
            for trial in range(trials):
                for phase in range(phases):
                    columns.append((name, dim, trial, phase, *(rows[trial, phase].item() for rows in found.values())))
    names = ("policy", "dim", "trial", "phase", "support_size", "missed", "false", "regret")
    return Outcome(
        policies=policies,
        curves={name: np.array(column) for name, column in zip(names, zip(*columns, strict=True), strict=True)},
    )


PANELS = {
    "f": Panel("f", __name__, SETTINGS, run, trials=6, quick_trials=1, seconds=95.0),
}
