"""Panels (d), (e), (f): regret of ALB-Dim on the ball, and its active coordinates phase by phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from albatross.policies.exploration import phase_lengths
from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.regret import regret_plots
from albatross.report.figures.rows import by_policy, groups, matrix
from albatross.report.figures.style import Look
from albatross.report.wording import trials

LOOKS = {
    "alb-dim": Look("ALB-Dim", style.RED),
    "alb-dim-inside": Look("ALB-Dim inside the ball", style.ORANGE),
    "oful": Look("OFUL on all coordinates", style.BLUE),
    "oracle": Look("oracle: OFUL given the support", style.GREEN),
    "sl-ucb": Look("SL-UCB, inside the ball", style.SKY, quiet=True),
    "lints": Look("LinTS on all coordinates, redrawn at switches", style.PINK, quiet=True),
}


_WHERE = {"gaussian": "outside the ball", "sphere": "on the unit sphere"}  # ALB-Dim explores
_REFINING = {"alb-dim": "ALB-Dim", "monotone": "ALB-Dim, monotone ablation"}
_ABLATION = "missed by the monotone ablation"


def _label(entry: Mapping[str, Any]) -> str:
    """Return a policy's name, with its number of trials if the panel has more."""
    label = LOOKS[entry["policy"]].label
    return f"{label}, {trials(entry['trials'])}" if "trials" in entry else label


def _looks(content: Content) -> dict[str, Look]:
    looks = {name: LOOKS[name]._replace(label=_label(entry)) for name, entry in content.policies.items()}
    where = _WHERE[content.settings["exploration"]]
    return {**looks, "alb-dim": LOOKS["alb-dim"]._replace(label=f"ALB-Dim, exploring {where}")}


def draw_regret(content: Content) -> Figure:
    """Draw regret on log axes and mark the phases."""
    looks = _looks(content)
    figure, (axes,) = style.new_figure(1, widths=(1.6,), height=4.0)
    curves = by_policy(content.rows, along="round", value="regret")
    rounds, settings = np.unique(content.rows["round"]), content.settings
    for name, values in curves.items():
        style.draw_policy(axes, rounds, values, looks[name])
    lengths = phase_lengths(settings["first_phase"], (25, 5), 2**53).sum(axis=1)
    for end in np.cumsum(lengths[: settings["phases"] - 1]):
        axes.axvline(end, color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    first = settings["first_phase"] / 4
    axes.set_xlim(first, rounds[-1])
    axes.set_ylim(bottom=0.5 * curves["oracle"].mean(axis=0)[rounds >= first][0])
    axes.set_xlabel("round (grey lines: ends of phases)")
    axes.set_ylabel("cumulative regret")
    axes.set_title(f"{settings['sparsity']} of {settings['dim']} coordinates")
    style.explain_band(axes, content.trials, loc="best")
    return figure


_COLOURS = style.BLUE, style.RED  # of panel (f), in print and on the page


def _truth(rows: Mapping[str, np.ndarray]) -> int:
    """Return the number of coordinates that matter."""
    return int((rows["support_size"] - rows["false"] + rows["missed"])[0])


def draw_refinement(content: Content) -> Figure:
    """Draw the sizes of the active sets on the left; missed and wrongly active coordinates on the right."""
    figure, (left, right) = style.new_figure(2, height=4.2)
    rows = content.rows
    truth = _truth(rows)
    of_dims = groups(rows, "policy", "dim")
    dims = [dim for policy, dim in of_dims if policy == "alb-dim"]
    for dim, colour in zip(dims, _COLOURS, strict=False):
        chosen, ablation = of_dims["alb-dim", dim], of_dims["monotone", dim]
        found = {name: matrix(rows, chosen, "trial", "phase", name) for name in ("support_size", "missed", "false")}
        phases = np.arange(found["missed"].shape[1])
        look: dict[str, Any] = {"colour": colour, "marker": "o"}
        style.draw_band(left, phases, found["support_size"], label=f"d = {dim}", **look)
        style.draw_band(right, phases, found["missed"], label=f"missed, d = {dim}", **look)
        style.draw_band(right, phases, found["false"], label=f"false, d = {dim}", quiet=True, **{**look, "marker": "s"})
        missed = matrix(rows, ablation, "trial", "phase", "missed")
        style.draw_band(right, phases, missed, label=f"{_ABLATION}, d = {dim}", quiet=True, **{**look, "marker": "x"})
        for axes in (left, right):
            axes.set_xticks(phases)
            axes.set_xlabel("phase")
    left.axhline(truth, color="#555555", linestyle=":", linewidth=1.2, label=f"truth, {truth}")
    left.set_yscale("log")
    left.set_yticks([truth, 10, 20, 50, 100, 200, 500])
    left.yaxis.set_minor_locator(NullLocator())
    style.thousands(left.yaxis)
    left.set_ylabel("active coordinates, $|D_i|$")
    left.set_title("Active coordinates, exploration outside the ball")
    right.set_yscale("symlog", linthresh=1)
    style.thousands(right.yaxis)
    right.set_ylim(-0.1, 1.5 * rows["dim"].max())
    right.set_ylabel("coordinates")
    right.set_title("Missed and false coordinates")
    style.explain_band(left, content.trials, loc="upper right")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return figure


def refinement_plots(content: Content) -> list[plots.Plot]:
    """Return plots of the active coordinates by phase, of those missed, and of those wrongly active."""
    rows = content.rows
    sizes: list[dict[str, Any]] = []
    missed: list[dict[str, Any]] = []
    false: list[dict[str, Any]] = []
    of_dims = groups(rows, "policy", "dim")
    dims = [dim for policy, dim in of_dims if policy == "alb-dim"]
    for dim, colour in zip(dims, _COLOURS, strict=False):
        look: dict[str, Any] = {"colour": colour, "markers": True}
        for policy, column, target, what, dash in (
            ("alb-dim", "support_size", sizes, "", "solid"),
            ("alb-dim", "missed", missed, "", "solid"),
            ("monotone", "missed", missed, "monotone ablation, ", "dot"),
            ("alb-dim", "false", false, "", "solid"),
        ):
            values = matrix(rows, of_dims[policy, dim], "trial", "phase", column)
            target += plots.band(np.arange(values.shape[1]), values, name=f"{what}d = {dim}", dash=dash, **look)
    truth = _truth(rows)
    sizes.append(plots.constant(truth, (0, int(rows["phase"].max())), name=f"truth, {truth}", colour=style.GREY))
    phase = plots.axis("phase", dtick=1)
    return [
        plots.Plot(
            "Active coordinates", sizes, plots.layout(phase, plots.log_axis("coordinates", rows["support_size"]))
        ),
        plots.Plot("True coordinates that are missed", missed, plots.layout(phase, plots.axis("coordinates"))),
        plots.Plot("Active by mistake", false, plots.layout(phase, plots.axis("coordinates"))),
    ]


DRAWINGS = {
    **{
        panel: Drawing(
            f"regret on the ball, {what}",
            _label,
            draw_regret,
            lambda content: regret_plots(content, _looks(content)),
        )
        for panel, what in {
            "d": "d = 500",
            "e": "d = 200",
            "e-literal": "d = 200, exploration on the unit sphere",
        }.items()
    },
    "f": Drawing(
        "active coordinates phase by phase",
        lambda entry: f"{_REFINING[entry['policy']]}, d = {entry['dim']}",
        draw_refinement,
        refinement_plots,
    ),
}
