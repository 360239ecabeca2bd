"""A comparison of policies on one problem."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import style
from albatross.runs import Run, runs_by_name


def plot_regret(runs: Mapping[str, Run] | Run, title: str = "") -> Figure:
    """Draw the cumulative regret of all policies: the mean over trials, and a band of one standard deviation.

    Notebooks show the figure; `figure.savefig(path)` writes it.
    """
    by_name = runs_by_name(runs)
    first, *others = by_name.values()
    if any(not np.array_equal(run.rounds, first.rounds) or len(run.regret) != len(first.regret) for run in others):
        raise ValueError("runs must have the same recorded rounds and the same number of trials to be drawn together")
    return style.styled(lambda: _draw(by_name, title))


def _draw(runs: Mapping[str, Run], title: str) -> Figure:
    figure, (axes,) = style.new_figure(1, widths=(1.5,), height=4.2)
    curves = {name: run.regret for name, run in runs.items()}
    first = next(iter(runs.values()))
    looks = {name: _look(name, position) for position, name in enumerate(runs)}
    style.draw_regret(axes, first.rounds, curves, looks)
    axes.set_title(title)
    style.explain_band(axes, len(first.regret), loc="upper left")
    return figure


def _look(name: str, position: int) -> style.Look:
    """Return the look of a policy: dashed where the colours of policies without their own have been used up."""
    used_up = name not in style.COLOURS and position >= len(style.OTHER_COLOURS)
    return style.Look(name, style.colour(name, position), quiet=used_up)
