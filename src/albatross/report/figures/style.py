"""How figures look: one colour a policy throughout, bands that the legend explains, PNG and PDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from albatross.store.files import replacing

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = {
    "alb-norm": "#D55E00",
    "oful-plus": "#0072B2",
    "oracle": "#009E73",
    "ucb": "#999999",
    "lints": "#CC79A7",
    "greedy": "#E69F00",
    "osom": "#56B4E9",
    "uniform": "#000000",
}
_OTHER_COLOURS = ("#882255", "#332288", "#661100", "#AA4499", "#117733", "#44AA99")

_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "legend.framealpha": 0.9,
    "legend.edgecolor": "white",
    "legend.fancybox": False,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,
}


def colour(name: str, position: int = 0) -> str:
    """The colour of a policy, the same in every figure; policies without one of their own take turns."""
    return COLOURS.get(name, _OTHER_COLOURS[position % len(_OTHER_COLOURS)])


def new_figure(
    columns: int, *, rows: int = 1, widths: Sequence[float] | None = None, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """Axes in so many columns and rows, row after row."""
    ratios = list(widths or [1.0] * columns)
    figure = Figure(figsize=(4.6 * sum(ratios), height), layout="constrained")
    axes = figure.subplots(rows, columns, width_ratios=ratios, squeeze=False)
    return figure, list(axes.flat)


def thousands(axis: Any) -> None:
    """Tick labels with a comma every three digits."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def draw_band(
    axes: Axes, x: np.ndarray, curves: np.ndarray, *, label: str, colour: str, quiet: bool = False, marker: str = ""
) -> None:
    """The mean over trials (rows of `curves`) with a band of one standard deviation; `quiet` for bystanders."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1 if len(curves) > 1 else 0)
    style: Any = {"linestyle": "--", "linewidth": 1.1} if quiet else {"linewidth": 1.9}
    axes.plot(x, mean, color=colour, label=label, marker=marker, markersize=4, **style)
    axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.10 if quiet else 0.18, linewidth=0)


def draw_regret(
    axes: Axes, rounds: np.ndarray, curves: Mapping[str, np.ndarray], labels: Mapping[str, str], loud: Sequence[str]
) -> None:
    """Cumulative regret of several policies, those in `loud` in front."""
    for position, (name, values) in enumerate(curves.items()):
        draw_band(axes, rounds, values, label=labels[name], colour=colour(name, position), quiet=name not in loud)
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=0)


def explain_band(axes: Axes, trials: int, **legend: Any) -> None:
    """The legend, with a title that says what the bands are."""
    title = f"mean of {trials} trials, band: one sd" if trials > 1 else "one trial"
    axes.legend(title=title, title_fontsize=8, alignment="left", **legend)


def save(draw: Callable[[], Figure], path: Path) -> None:
    """Draw in the house style and write to `path`; a PDF carries no date, so the same results give the same file."""
    with mpl.rc_context(_STYLE):
        figure = draw()
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=metadata)
