"""A comparison of policies on one problem."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from albatross.report.figures import style
from albatross.runs import Run, runs_by_name


def plot_regret(runs: Mapping[str, Run] | Run, title: str = "") -> Figure:
    """Draw the cumulative regret of all policies: the mean over trials, and a band of one standard deviation.

    Notebooks show the figure; `figure.savefig(path)` writes it.
    """
    by_name = runs_by_name(runs)
    return style.styled(lambda: _draw(by_name, title))


def _draw(runs: Mapping[str, Run], title: str) -> Figure:
    figure, (axes,) = style.new_figure(1, widths=(1.5,), height=4.2)
    curves = {name: run.regret for name, run in runs.items()}
    first = next(iter(runs.values()))
    looks = {name: style.Look(name, style.colour(name, position)) for position, name in enumerate(runs)}
    style.draw_regret(axes, first.rounds, curves, looks)
    axes.set_title(title)
    style.explain_band(axes, len(first.regret), loc="upper left")
    return figure
