"""theta* = 0: regret of ALB-Norm and of UCB at several sizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import norm, plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.regret import regret_plots
from albatross.report.figures.rows import by_policy, groups
from albatross.report.figures.style import Look

LOOKS = {
    "alb-norm": Look("ALB-Norm", style.RED),
    "alb-norm-paper": Look(f"ALB-Norm, {norm.READINGS['-paper']}", style.RED, "dash", quiet=True),
    "alb-norm-literal": Look(f"ALB-Norm, {norm.READINGS['-literal']}", style.ORANGE, "dot", quiet=True),
    "ucb": Look("UCB, blind to contexts", style.SILVER),
}


def _sizes(content: Content) -> Iterator[tuple[str, Content]]:
    """The results at each size."""
    for (n_arms, dim), chosen in groups(content.rows, "n_arms", "dim").items():
        yield f"K = {n_arms}, d = {dim}", content.only(chosen)


def draw(content: Content) -> Figure:
    """One plot per size."""
    sizes = dict(_sizes(content))
    figure, places = style.new_figure(len(sizes), height=3.8)
    for axes, (size, here) in zip(places, sizes.items(), strict=True):
        curves = by_policy(here.rows, along="round", value="regret")
        style.draw_regret(axes, np.unique(here.rows["round"]), curves, LOOKS)
        axes.set_ylim(0, 1.6 * max(values[:, -1].mean() for values in curves.values()))
        axes.set_title(size)
        style.explain_band(axes, content.trials, loc="upper left")
    return figure


def size_plots(content: Content) -> list[plots.Plot]:
    """The same on the page."""
    return [plot._replace(title=size) for size, here in _sizes(content) for plot in regret_plots(here, LOOKS)]


DRAWINGS = {
    "simple": Drawing(
        "theta* = 0, a bandit without contexts",
        lambda entry: f"{LOOKS[entry['policy']].label}, {entry['n_arms']} x {entry['dim']}",
        draw,
        size_plots,
    )
}
