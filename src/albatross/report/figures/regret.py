"""Cumulative regret of several policies, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross.report.figures import plots
from albatross.report.figures.drawing import Content
from albatross.report.figures.rows import by_policy
from albatross.report.figures.style import Look


def regret_plots(content: Content, looks: Mapping[str, Look]) -> list[plots.Plot]:
    """Return a plot of cumulative regret; on log axes if horizons are very long or policies far apart."""
    curves = by_policy(content.rows, along="round", value="regret")
    rounds = np.unique(content.rows["round"])
    last = [values[:, -1].mean() for values in curves.values()]
    far, apart = rounds[-1] > 1e6, max(last) > 20.0 * max(min(last), 1e-9)
    kept = plots.thinned(len(rounds), log=far)
    data: list[dict[str, Any]] = []
    for name, values in curves.items():
        data += plots.policy_band(rounds[kept], values[:, kept], looks[name])
    x, y = plots.axis("round", rangemode="tozero"), plots.axis("cumulative regret", rangemode="tozero")
    if far:
        shown = rounds[kept[[len(kept) // 8, -1]]]
        x = plots.log_axis("round", shown, range=plots.numbers(np.log10(shown)))
    if far or apart:  # from where the curves have come apart
        lowest = min(values[:, kept[len(kept) // 8]].mean() for values in curves.values())
        ends = [max(lowest, 1e-9) / 2.0, 1.5 * max(last)]
        y = plots.log_axis("cumulative regret", ends, range=plots.numbers(np.log10(ends)))
    buttons = [
        {
            "label": kind,
            "method": "relayout",
            "args": [{"yaxis.type": kind, "yaxis.autorange": True, "yaxis.tickmode": "auto"}],
        }
        for kind in (("log", "linear") if far or apart else ("linear", "log"))
    ]
    menu = {"type": "buttons", "direction": "left", "buttons": buttons, "x": 1, "xanchor": "right", "y": 1.02}
    menu |= {"yanchor": "bottom", "pad": {"t": 0, "b": 2}, "showactive": True}
    layout = plots.layout(x, y, updatemenus=[menu], hovermode="x")
    return [plots.Plot("Cumulative regret", data, {**layout, "margin": {**layout["margin"], "t": 40}})]
