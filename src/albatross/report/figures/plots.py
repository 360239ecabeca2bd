"""Parts of interactive plots, as plotly's JSON."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from albatross.report.figures.style import Look

_POINTS = 160  # of a curve; more cannot be told apart on a screen


class Plot(NamedTuple):
    """One plot; the page shows its title above it, where it can wrap."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def numbers(values: Any) -> list[float | None]:
    """Round to five digits, enough for a screen; numbers that are not finite are left out of a line."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title, "standoff": 8}, "automargin": True, "zeroline": False, **more}


def log_axis(title: str, values: Any, **more: Any) -> dict[str, Any]:
    """Label powers of ten; also 2 and 5 if they are few, only every third if they are many; else round numbers.

    >>> log_axis("d", [50, 400])["ticktext"]
    ['50', '100', '200', '500']
    >>> log_axis("round", [400, 5e13])["ticktext"]
    ['1k', '1M', '1B', '1T']
    >>> log_axis("regret", [3510, 3790])["ticktext"]
    ['3.5k', '3.6k', '3.7k', '3.8k']
    >>> log_axis("round", [560e3, 1.68e6])["ticktext"]
    ['500k', '1M', '1.5M', '2M']
    >>> log_axis("regret", [137, 137])["ticktext"]
    ['137']
    """
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found) & (found > 0.0)]
    low, high = (float(found.min()), float(found.max())) if found.size else (1.0, 10.0)
    digits = (1, 2, 5) if high < 100.0 * low else (1,)
    every = 1 if high < 1e8 * low else 3  # more than eight labels do not fit on a phone
    powers = range(every * math.floor(math.log10(low) / every - 1), math.ceil(math.log10(high)) + 2, every)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    inside = [tick for tick in ticks if low / 1.3 <= tick <= 1.3 * high]
    if low == high:
        inside = [low]
    elif sum(low <= tick <= high for tick in inside) < 2:  # a single label gives no scale
        inside = [float(tick) for tick in MaxNLocator(nbins=4, steps=(1, 2, 5, 10)).tick_values(low, high)]
    return axis(title, type="log", tickvals=inside, ticktext=[in_words(tick) for tick in inside], **more)


def in_words(value: float) -> str:
    """Return a tick's label: 0.1, 500, 20k, 5M."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def layout(x: dict[str, Any], y: dict[str, Any], **more: Any) -> dict[str, Any]:
    legend = {"orientation": "h", "x": 0, "xref": "container", "y": 0, "yref": "container", "yanchor": "bottom"}
    legend["tracegroupgap"] = 0
    return {"xaxis": x, "yaxis": y, "legend": legend, "margin": {"l": 8, "r": 12, "t": 8, "b": 8}, **more}


def line(x: Any, y: Any, *, name: str, colour: str, dash: str = "solid", markers: bool = False) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if markers else "lines",
        "x": numbers(x),
        "y": numbers(y),
        "name": name,
        "legendgroup": name,
        "line": {"color": colour, "dash": dash, "width": 2},
    }


def band(
    x: np.ndarray, curves: np.ndarray, *, name: str, colour: str, dash: str = "solid", markers: bool = False
) -> list[dict[str, Any]]:
    """Return the mean over trials (rows of `curves`) and a band of one standard deviation; no band for one trial."""
    mean = curves.mean(axis=0)
    middle = line(x, mean, name=name, colour=colour, dash=dash, markers=markers)
    if len(curves) < 2:
        return [middle]
    sd = curves.std(axis=0, ddof=1)
    edge = {"showlegend": False, "hoverinfo": "skip", "mode": "lines"}
    low = {**line(x, mean - sd, name=name, colour=colour), **edge, "line": {"width": 0}}
    high = {**line(x, mean + sd, name=name, colour=colour), **edge, "line": {"width": 0}}
    return [low, {**high, "fill": "tonexty", "fillcolor": _faint(colour)}, middle]


def policy_band(x: np.ndarray, curves: np.ndarray, look: Look, *, markers: bool = False) -> list[dict[str, Any]]:
    """Return a policy's band in its look."""
    return band(x, curves, name=look.label, colour=look.colour, dash=look.dash, markers=markers)


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def constant(y: float, ends: tuple[float, float], *, name: str, colour: str) -> dict[str, Any]:
    return line(ends, (y, y), name=name, colour=colour, dash="dot")


def thinned(length: int, *, log: bool) -> np.ndarray:
    """Return the positions of the drawn points, including the first and the last."""
    if length <= _POINTS:
        return np.arange(length)
    spaced = np.linspace(0, length - 1, _POINTS)
    early = np.geomspace(1, length, 24) - 1 if log else ()  # on a log axis the first points are far apart
    return np.unique(np.concatenate([spaced, early]).astype(int))
