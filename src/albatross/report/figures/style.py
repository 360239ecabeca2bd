"""The style of figures: one colour per policy, bands that the legend explains, PNG and PDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from PIL import Image  # matplotlib needs it, too

from albatross.store.files import replacing

# Okabe and Ito's palette, which colour-blind readers can tell apart.
RED, BLUE, GREEN, PINK, ORANGE, SKY = "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
WINE, VIOLET, GREY, SILVER = "#882255", "#332288", "#8a8a8a", "#999999"
COLOURS = {
    "alb-norm": RED,
    "oful-plus": BLUE,
    "oracle": GREEN,
    "ucb": SILVER,
    "lints": PINK,
    "greedy": ORANGE,
    "osom": SKY,
    "osom-scaled": VIOLET,
    "albatross": WINE,
    "uniform": "#000000",
}
OTHER_COLOURS = (VIOLET, "#661100", "#AA4499", "#117733", "#44AA99")


class Look(NamedTuple):
    """The look of a policy; policies in the same role look the same."""

    label: str
    colour: str
    dash: str = "solid"  # on the page
    quiet: bool = False  # in print: a bystander, dashed and thin


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
    """Return the colour of a policy, the same in every figure; policies without their own colour take turns."""
    return COLOURS.get(name, OTHER_COLOURS[position % len(OTHER_COLOURS)])


def new_figure(
    columns: int, *, rows: int = 1, widths: Sequence[float] | None = None, height: float = 3.6
) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes in this many columns and rows, in reading order."""
    ratios = list(widths or [1.0] * columns)
    figure = Figure(figsize=(4.6 * sum(ratios), height), layout="constrained")
    axes = figure.subplots(rows, columns, width_ratios=ratios, squeeze=False)
    return figure, list(axes.flat)


def thousands(axis: Any) -> None:
    """Label ticks with a comma every three digits."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def plain_log_ticks(axis: Any) -> None:
    """Label a log axis with plain numbers: powers of ten, also 2 and 5 times them if they are few, or equal steps."""
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < 1e4 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs) if high > 5.0 * low else MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 10.0 else f"{value:g}"))


def draw_band(
    axes: Axes, x: np.ndarray, curves: np.ndarray, *, label: str, colour: str, quiet: bool = False, marker: str = ""
) -> None:
    """Draw the mean over trials (rows of `curves`) with a band of one standard deviation; `quiet` lines are dashed."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1 if len(curves) > 1 else 0)
    style: Any = {"linestyle": "--", "linewidth": 1.1} if quiet else {"linewidth": 1.9}
    axes.plot(x, mean, color=colour, label=label, marker=marker, markersize=4, **style)
    axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.10 if quiet else 0.18, linewidth=0)


def draw_policy(axes: Axes, x: np.ndarray, curves: np.ndarray, look: Look, *, marker: str = "") -> None:
    """Draw a policy's band in its look."""
    draw_band(axes, x, curves, label=look.label, colour=look.colour, quiet=look.quiet, marker=marker)


def draw_regret(axes: Axes, rounds: np.ndarray, curves: Mapping[str, np.ndarray], looks: Mapping[str, Look]) -> None:
    """Draw the cumulative regret of several policies."""
    for name, values in curves.items():
        draw_policy(axes, rounds, values, looks[name])
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret")
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=0)


def about_band(trials: int) -> str:
    return f"mean of {trials} trials, band: one sd" if trials > 1 else "one trial"


def explain_band(axes: Axes, trials: int, **legend: Any) -> None:
    """Draw the legend, with a title that explains the bands."""
    axes.legend(title=about_band(trials), title_fontsize=8, alignment="left", **legend)


def styled(draw: Callable[[], Figure]) -> Figure:
    """Draw in the style of this module."""
    with mpl.rc_context(_STYLE):
        return draw()


def save(draw: Callable[[], Figure], *paths: Path, key: str = "") -> None:
    """Draw in the style of this module and write to each path.

    A PDF has no date, so the same results give the same file. A PNG carries the key of what it was drawn from.
    """
    carried = {".pdf": {"CreationDate": None}, ".png": {"Source": key}}
    with mpl.rc_context(_STYLE):
        figure = draw()
        for path in paths:
            with replacing(path) as file:
                figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=carried.get(path.suffix))
            figure.set_layout_engine("none")  # laid out once: it takes as long as drawing


def key_of(png: Path) -> str | None:
    """Return the key that a PNG carries; None if there is no such file."""
    try:
        with Image.open(png) as picture:
            return str(picture.info.get("Source"))
    except OSError:
        return None
