"""The motivating example on real headlines: what readers cost, and what the adaptive policies find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import groups
from albatross.report.figures.style import Look

NORM_LOOKS = {
    "alb-norm": Look("ALB-Norm", style.RED),
    "oful-plus": Look("OFUL+, one bound for all", style.BLUE),
    "oracle": Look("oracle: OFUL+ given each norm", style.GREEN),
    "alb-norm-paper": Look("ALB-Norm, the paper's estimator", style.RED, "dash", quiet=True),
    "oful-plus-paper": Look("OFUL+, the paper's estimator", style.BLUE, "dash", quiet=True),
    "oracle-paper": Look("oracle, the paper's estimator", style.GREEN, "dash", quiet=True),
    "osom": Look("OSOM, one bound for all", style.SKY),
    "osom-scaled": Look("OSOM, test at the scale of OFUL+", style.colour("osom-scaled"), quiet=True),
    "lints": Look("LinTS", style.PINK),
    "albatross": Look("Albatross, given nothing", style.WINE),
}
DIM_LOOKS = {
    "alb-dim": Look("ALB-Dim, LinUCB inside", style.ORANGE),
    "linucb-full": Look("LinUCB, all topics", style.SILVER),
    "linucb-oracle": Look("oracle: LinUCB given each map", style.colour("linucb-oracle", 4)),
}
LOOKS = {**NORM_LOOKS, **DIM_LOOKS}
Rows = Mapping[str, np.ndarray]


def _regrets(rows: Rows, along: str, looks: Mapping[str, Look]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the values of a column, and for each policy (populations, values) the mean regret of a reader."""
    points, populations = np.unique(rows[along]), np.unique(rows["population"])
    found = groups(rows, "policy", "population", along)
    return points, {
        policy: np.array([[rows["regret"][found[policy, each, x]].mean() for x in points] for each in populations])
        for policy in looks
    }


def _only(rows: Rows, chosen: np.ndarray) -> Rows:
    return {name: column[chosen] for name, column in rows.items()}


def _kinds(rows: Rows) -> list[tuple[str, str, np.ndarray, dict[str, np.ndarray]]]:
    """Return title, axis label, kinds of readers and final regrets: by norm, and by support where there is one."""
    last = _only(rows, rows["round"] == rows["round"].max())
    interested = _only(last, last["norm"] > 0.0)
    return [
        ("What a reader costs, by norm", "norm of the reader's theta", *_regrets(last, "norm", NORM_LOOKS)),
        (
            "What a reader of norm > 0 costs, by support",
            "topics in the reader's theta",
            *_regrets(interested, "support", DIM_LOOKS),
        ),
    ]


def _bounds(rows: Rows) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return norms and ALB-Norm's bounds of all readers: the first and the last."""
    chosen = (rows["policy"] == "alb-norm") & (rows["round"] == rows["round"].max())
    names = {"first_bound": "first bound, estimated", "last_bound": "last bound"}
    return {label: (rows["norm"][chosen], rows[column][chosen]) for column, label in names.items()}


_BOUND_LOOKS = {"first bound, estimated": style.ORANGE, "last bound": style.RED}


def draw_print(content: Content) -> Figure:
    """Draw regret by norm, by support and by round, and the bounds that ALB-Norm finds."""
    figure, (by_norm, by_support, along, bounds) = style.new_figure(2, rows=2, height=8.4)
    for axes, (title, label, kinds, regrets) in zip((by_norm, by_support), _kinds(content.rows), strict=True):
        places = np.arange(len(kinds))
        for policy, values in regrets.items():  # dots, because on a log axis a band of one sd may have no lower end
            axes.plot(places, values.T, ".", color=LOOKS[policy].colour, markersize=4, alpha=0.4, markeredgewidth=0)
            style.draw_policy(axes, places, values.mean(axis=0, keepdims=True), LOOKS[policy])
        axes.set_xticks(places, [f"{kind:g}" for kind in kinds])
        axes.set_xlabel(label)
        axes.set_ylabel("regret of a reader")
        axes.set_title(title)
        _log_scale(axes)
    rounds, curves = _regrets(content.rows, "round", LOOKS)
    style.draw_regret(along, rounds, curves, LOOKS)
    _log_scale(along)
    along.set_ylim(bottom=0.7 * min(values[:, len(rounds) // 20].mean() for values in curves.values()))
    along.set_title("Cumulative regret, mean of all readers")
    for label, (norms, found) in _bounds(content.rows).items():
        bounds.plot(norms, found, "o", color=_BOUND_LOOKS[label], markersize=4, alpha=0.6, label=label)
    ends = [0.0, float(content.rows["norm"].max())]
    bounds.plot(ends, ends, ":", color="#555555", linewidth=1.2, label="the norm itself")
    bounds.set_xlabel("norm of the reader's theta")
    bounds.set_ylabel("ALB-Norm's bound on the norm")
    bounds.set_title("What ALB-Norm finds")
    bounds.legend(loc="upper left")
    means = f"mean of {content.trials} populations, dots: each of them, band: one sd"
    title = means if content.trials > 1 else "one population"
    figure.legend(*along.get_legend_handles_labels(), loc="outside lower center", ncols=3, title=title)
    return figure


def _log_scale(axes: Axes) -> None:
    """Make the axis of regret logarithmic, with labels at 1, 2 and 5."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    style.thousands(axes.yaxis)


def page_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page."""
    found = []
    for title, label, kinds, regrets in _kinds(content.rows):
        ticks = {"tickvals": [*range(len(kinds))], "ticktext": [f"{kind:g}" for kind in kinds]}
        means = {policy: each.mean(axis=0, keepdims=True) for policy, each in regrets.items()}
        found.append(_plot(title, plots.axis(label, **ticks), np.arange(len(kinds)), means, markers=True))
    rounds = plots.axis("round", rangemode="tozero")
    found.append(
        _plot("Cumulative regret, mean of all readers", rounds, *_regrets(content.rows, "round", LOOKS), markers=False)
    )
    dots: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label,
            "x": plots.numbers(norms),
            "y": plots.numbers(bounds),
            "marker": {"color": _BOUND_LOOKS[label], "size": 6, "opacity": 0.6},
        }
        for label, (norms, bounds) in _bounds(content.rows).items()
    ]
    ends = 0.0, float(content.rows["norm"].max())
    dots.append(plots.line(ends, ends, name="the norm itself", colour=style.GREY, dash="dot"))
    axes = plots.axis("norm of the reader's theta"), plots.axis("bound on the norm", rangemode="tozero")
    found.append(plots.Plot("What ALB-Norm finds", dots, plots.layout(*axes)))
    return found


def _plot(
    title: str, x: dict[str, Any], places: np.ndarray, regrets: Mapping[str, np.ndarray], *, markers: bool
) -> plots.Plot:
    data = [
        trace
        for policy, each in regrets.items()
        for trace in plots.policy_band(places, each, LOOKS[policy], markers=markers)
    ]
    means = np.concatenate([each.mean(axis=0)[len(places) // 20 :] for each in regrets.values()])
    ends = [0.7 * means.min(), 1.3 * means.max()]
    y = plots.log_axis("regret of a reader", ends, range=plots.numbers(np.log10(ends)))
    return plots.Plot(title, data, plots.layout(x, y, hovermode="x"))


DRAWINGS = {
    "news": Drawing(
        "the motivating example on real headlines",
        lambda entry: LOOKS[entry["policy"]].label,
        draw_print,
        page_plots,
        "regret of a reader",
    )
}
