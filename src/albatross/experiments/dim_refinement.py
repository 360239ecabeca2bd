"""Panel (f): the active coordinates of ALB-Dim, phase by phase, on the problems of panels (d) and (e).

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1: "within 4-5 epochs ALB-Dim finds the sparsity".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import simulate
from albatross.experiments import dim_regret
from albatross.experiments.panel import Outcome, Panel
from albatross.runs import Run

SETTINGS: dict[str, Any] = {"panels": {name: dict(panel.settings) for name, panel in dim_regret.PANELS.items()}}


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run ALB-Dim alone, with the seeds of panels (d) and (e)."""
    policies: dict[str, Any] = {}
    columns = []
    for here in settings["panels"].values():
        dim, phases = here["dim"], here["phases"]
        ends = dim_regret.phase_ends(here)
        played: Run = simulate(
            dim_regret.contenders(here)["alb-dim"],
            dim_regret.problem(here),
            horizon=int(ends[-1]),
            trials=trials,
            seed=seed,
            record=[int(ends[-1])],
        )
        rows = dim_regret.refinement(played, phases)
        entry = {**dim_regret.describe("alb-dim", played, phases), "dim": dim}
        policies["alb-dim" if dim == 500 else f"alb-dim-{dim}"] = entry
        for trial in range(trials):
            for phase in range(phases):
                columns.append((dim, trial, phase, *(int(rows[key][trial, phase]) for key in rows)))
    names = ("dim", "trial", "phase", "support_size", "missed", "false")
    return Outcome(
        policies=policies,
        curves={name: np.array(column) for name, column in zip(names, zip(*columns, strict=True), strict=True)},
    )


PANELS = {
    "f": Panel("f", __name__, SETTINGS, run, trials=6, quick_trials=1, seconds=60.0),
}
