"""Panel (f): the active coordinates of ALB-Dim, phase by phase, on the problems of panels (d) and (e).

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1: "within 4-5 epochs ALB-Dim finds the sparsity".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from albatross import simulate
from albatross.experiments import dim_regret
from albatross.experiments.panel import Outcome, Panel, claim
from albatross.report.figures import style as figures
from albatross.simulation import Run

SETTINGS: dict[str, Any] = {"panels": {name: dict(panel.settings) for name, panel in dim_regret.PANELS.items()}}
_COLOURS = {500: "#0072B2", 200: "#D55E00"}


def plot(found: Mapping[int, Mapping[str, np.ndarray]], truth: int) -> Figure:
    """Sizes of the active sets on the left; on the right what is missed and what is there by mistake."""
    figure, (left, right) = figures.new_figure(2, height=3.6)
    for dim, rows in found.items():
        phases = np.arange(rows["missed"].shape[1])
        figures.draw_band(left, phases, rows["support_sizes"], label=f"d = {dim}", colour=_COLOURS[dim], marker="o")
        figures.draw_band(right, phases, rows["missed"], label=f"missed, d = {dim}", colour=_COLOURS[dim], marker="o")
        figures.draw_band(
            right, phases, rows["false"], label=f"false, d = {dim}", colour=_COLOURS[dim], marker="s", quiet=True
        )
        for axes in (left, right):
            axes.set_xticks(phases)
            axes.set_xlabel("phase")
    left.axhline(truth, color="#555555", linestyle=":", linewidth=1.2, label=f"truth, {truth}")
    left.set_yscale("log")
    left.set_yticks([truth, 10, 20, 50, 100, 200, 500])
    left.yaxis.set_minor_locator(NullLocator())
    figures.thousands(left.yaxis)
    left.set_ylabel("active coordinates, $|D_i|$")
    left.set_title("Active coordinates, exploration outside the ball")
    right.set_yscale("symlog", linthresh=1)
    figures.thousands(right.yaxis)
    right.set_ylim(-0.1, 1.5 * max(found))
    right.set_ylabel("coordinates")
    right.set_title("Missed and false coordinates")
    trials = len(next(iter(found.values()))["missed"])
    figures.explain_band(left, trials, loc="upper right")
    figures.explain_band(right, trials, loc="upper right")
    return figure


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """ALB-Dim alone, with the seeds of panels (d) and (e)."""
    policies: dict[str, Any] = {}
    claims, columns = [], []
    found: dict[int, dict[str, np.ndarray]] = {}
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
        found[dim] = rows
        entry = {**dim_regret.describe("alb-dim", played, phases), "label": f"ALB-Dim, d = {dim}"}
        policies["alb-dim" if dim == 500 else f"alb-dim-{dim}"] = entry
        exact = (rows["missed"] + rows["false"] == 0).all(axis=0)
        lasting = np.logical_and.accumulate(exact[::-1])[::-1]
        first = int(np.argmax(lasting)) if lasting.any() else -1
        claims.append(
            claim(
                f"within 4 to 5 epochs ALB-Dim finds the support at d = {dim}",
                0 <= first <= 4,
                f"exact in every trial from phase {first} on" if first >= 0 else "not in every trial",
                "phase 4 at the latest (the fifth)",
            )
        )
        for trial in range(trials):
            for phase in range(phases):
                columns.append((dim, trial, phase, *(int(rows[key][trial, phase]) for key in rows)))
    names = ("dim", "trial", "phase", "support_size", "missed", "false")
    return Outcome(
        policies=policies,
        claims=claims,
        curves={name: np.array(column) for name, column in zip(names, zip(*columns, strict=True), strict=True)},
        draw=lambda: plot(found, next(iter(settings["panels"].values()))["sparsity"]),
    )


PANELS = {
    "f": Panel("f", "active coordinates phase by phase", SETTINGS, run, trials=6, quick_trials=1, seconds=60.0),
}
