"""The race: the ratio to the best policy on every problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from albatross.report.figures import plots, style
from albatross.report.figures.plots import Plot
from albatross.report.wording import short


def draw(families: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw the ratio to the best on every problem as dots, policies sorted by their worst; one plot for each family."""
    longest = max(len(lines) for lines in families.values())
    figure, places = style.new_figure(len(families), widths=[1.2] * len(families), height=1.2 + 0.27 * longest)
    for axes, (title, lines) in zip(places, families.items(), strict=True):
        for height, line in enumerate(reversed(lines)):
            ours = line["name"].startswith("albatross")
            colour = style.RED if ours else style.BLUE
            values = np.array(list(line["ratios"].values()))
            axes.plot(values, np.full(values.size, height), "o", color=colour, markersize=4, alpha=0.55, mec="none")
            axes.plot(line["worst_interval"], [height] * 2, "-", color=colour, linewidth=1.2, alpha=0.6)
            axes.plot([line["mean"]], [height], "|", color="black", markersize=11, markeredgewidth=1.6)
            axes.annotate(
                short(line["worst"]),
                (line["worst_interval"][1], height),
                (5, -3),
                textcoords="offset points",
                fontsize=7,
                color=colour,
            )
        axes.set_xscale("log")
        if max(line["worst_interval"][1] for line in lines) < 10.0:
            style.plain_log_ticks(axes.xaxis)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(0.9, 3.0 * max(line["worst_interval"][1] for line in lines))
        axes.axvline(1.0, color="#555555", linewidth=0.8)
        axes.set_yticks(range(len(lines)), [with_given(line) for line in reversed(lines)])
        axes.set_ylim(-0.7, len(lines) - 0.3)
        axes.set_xlabel(
            "regret / that of the best policy\n(dot: a problem, bar: geometric mean,\nnumber: worst, line: its 95 %)"
        )
        axes.set_title(title)
    return figure


def with_given(line: Mapping[str, Any]) -> str:
    """Return the name of a policy and what it was given."""
    return f"{line['name']} ({line['given']})" if line.get("given") else str(line["name"])


def plot(lines: Sequence[Mapping[str, Any]]) -> Plot:
    """Return a plot of the ratios to the best as dots, the policy with the smallest worst ratio on top."""
    data = []
    for line in reversed(lines):
        colour = style.RED if line["name"].startswith("albatross") else style.BLUE
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": plots.numbers(list(line["ratios"].values())),
                "y": [line["name"]] * len(line["ratios"]),
                "text": list(line["ratios"]),
                "hovertemplate": "%{text}: %{x}<extra>%{y}</extra>",
                "marker": {"color": colour, "size": 8, "opacity": 0.55},
                "showlegend": False,
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": plots.numbers(line["worst_interval"]),
                "y": [line["name"]] * 2,
                "hovertemplate": "95 % of the worst ratio: %{x}<extra>%{y}</extra>",
                "line": {"color": colour, "width": 2},
                "showlegend": False,
            }
        )
    means = {
        "type": "scatter",
        "mode": "markers",
        "x": plots.numbers([line["mean"] for line in reversed(lines)]),
        "y": [line["name"] for line in reversed(lines)],
        "name": "geometric mean",
        "hovertemplate": "mean %{x}<extra>%{y}</extra>",
        "marker": {"color": style.GREY, "size": 14, "symbol": "line-ns-open", "line": {"width": 2}},
    }
    shown = [value for line in lines for value in (*line["ratios"].values(), *line["worst_interval"])]
    axes = plots.log_axis("regret / that of the best policy", shown), plots.axis("", type="category")
    return Plot("One dot per problem", [*data, means], {**plots.layout(*axes), "height": 150 + 26 * len(lines)})
