"""Small drawings in SVG. Text and numbers are escaped; colours are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

_WIDTH, _HEIGHT = 560, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 14, 30  # room for labels, which are larger on a phone
_ASIDE = 14  # between series of one point each, of the same hour
_HOUR = 3_600


class Point(NamedTuple):
    """The mean of one stretch of time, with half the width of its interval."""

    hour: float  # middle of the stretch, in hours since 1970
    mean: float
    half: float
    n: int


class Bin(NamedTuple):
    """One bar of a histogram, of parts that stand on each other."""

    low: float
    high: float
    counts: Sequence[int]


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element; `class_` is its class, and everything is escaped but other elements.

    >>> tag("text", "a < b", x=1.25, class_="label")
    Markup('<text x="1.25" class="label">a &lt; b</text>')
    """
    pairs = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value)) for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), pairs, Markup("").join(children))


def _short(value: object) -> object:
    return f"{value:.5g}" if isinstance(value, float) else value


def lines(series: dict[str, list[Point]], *, first: float, last: float, label: str) -> Markup:
    """Draw means over time, one line for each series with its interval; times are hours since 1970."""
    points = [point for each in series.values() for point in each]
    low = min(point.mean - point.half for point in points)
    high = max(point.mean + point.half for point in points)
    ticks = nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(hour: float) -> float:
        return _LEFT + (hour - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_level(tick, y(tick)) for tick in ticks]
    parts += [_time(hour, x(hour), text) for hour, text in time_ticks(first, last)]
    for name, each in series.items():
        if len(each) > 1:
            upper = [f"{x(p.hour):.1f},{y(p.mean + p.half):.1f}" for p in each]
            lower = [f"{x(p.hour):.1f},{y(p.mean - p.half):.1f}" for p in reversed(each)]
            parts.append(tag("polygon", points=" ".join(upper + lower), class_=f"band {name}"))
    for place, (name, each) in enumerate(series.items()):
        aside = 0.0 if len(each) > 1 else _ASIDE * (place - (len(series) - 1) / 2)
        if len(each) > 1:
            parts.append(
                tag(
                    "polyline", points=" ".join(f"{x(p.hour):.1f},{y(p.mean):.1f}" for p in each), class_=f"line {name}"
                )
            )
        elif each:
            only = each[0]
            top, bottom = y(only.mean + only.half), y(only.mean - only.half)
            middle = x(only.hour) + aside
            parts.append(tag("line", x1=middle, x2=middle, y1=top, y2=bottom, class_=f"line {name}"))
        parts += [
            tag(
                "circle",
                tag("title", f"{name}: {shown(p.mean)} ± {two(p.half)} of {p.n:,}, {_moment(p.hour)}"),
                cx=x(p.hour) + aside,
                cy=y(p.mean),
                r=2.5 if len(each) > 1 else 4.5,
                class_=f"dot {name}",
            )
            for p in each
        ]
    return _svg(parts, label)


def histogram(bins: Sequence[Bin], names: Sequence[str], *, label: str, unit: str) -> Markup:
    """Draw counts by size; `names` are the classes of the parts of a bar."""
    highest = max(sum(each.counts) for each in bins)
    ticks = [tick for tick in nice_ticks(0, highest) if tick == int(tick)]
    low, high, most = bins[0].low, bins[-1].high, max(highest, ticks[-1])

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    height = _HEIGHT - _TOP - _BOTTOM
    parts = [_level(tick, _TOP + height * (1 - tick / most)) for tick in ticks]
    for each in bins:
        base = _TOP + float(height)
        for name, count in zip(names, each.counts, strict=True):
            if count:
                tall = height * count / most
                base -= tall
                text = f"{count} {name}s, {unit} {shown(each.low)} to {shown(each.high)}"
                width = max(x(each.high) - x(each.low) - 1.5, 1.0)
                parts.append(
                    tag(
                        "rect",
                        tag("title", text),
                        x=x(each.low),
                        y=base,
                        width=width,
                        height=tall,
                        class_=f"bar {name}",
                    )
                )
    for tick in nice_ticks(low, high):
        if low <= tick <= high:
            parts.append(_time(tick, x(tick), shown(tick)))
    return _svg(parts, label)


def share_bar(share: float, kind: str = "plain") -> Markup:
    """Draw a share of 1 as a bar as wide as its cell."""
    filled = tag("rect", width=round(100 * min(max(share, 0.0), 1.0), 2), height=8, class_=f"bar {kind}")
    empty = tag("rect", width=100, height=8, class_="trough")
    return tag(
        "svg", empty, filled, viewBox="0 0 100 8", preserveAspectRatio="none", class_="share", aria_hidden="true"
    )


def _svg(parts: Sequence[Markup], label: str) -> Markup:
    return tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label, class_="chart")


def _level(value: float, y: float) -> Markup:
    line = tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
    return line + tag("text", shown(value), x=_LEFT - 8, y=y, dy="0.35em", text_anchor="end")


def _time(_: float, x: float, text: str) -> Markup:
    near_edge = "start" if x < _LEFT + 12 else "end" if x > _WIDTH - _RIGHT - 12 else "middle"
    return tag("text", text, x=x, y=_HEIGHT - 8, text_anchor=near_edge)


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers that span a range.

    >>> nice_ticks(0.13, 0.41)
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> nice_ticks(2.0, 2.0)
    [1.0, 1.5, 2.0, 2.5, 3.0]
    """
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        around = abs(low) / 2 or 1.0
        low, high = low - around, high + around
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def time_ticks(first: float, last: float) -> list[tuple[float, str]]:
    """Return hours since 1970 between two others, with their labels in UTC.

    >>> time_ticks(0.0, 12.0)
    [(0, '00:00'), (3, '03:00'), (6, '06:00'), (9, '09:00'), (12, '12:00')]
    >>> time_ticks(0.0, 96.0)
    [(0, '1 Jan'), (24, '2 Jan'), (48, '3 Jan'), (72, '4 Jan'), (96, '5 Jan')]
    """
    span = last - first
    step = next((step for step in (1, 2, 3, 6, 12, 24, 48, 72, 96) if span / step <= 5), 168)
    hours = range(math.ceil(first / step) * step, math.floor(last) + 1, step)
    return [(hour, _day(hour) if step >= 24 else _clock(hour)) for hour in hours]


def _clock(hour: float) -> str:
    at = datetime.fromtimestamp(_HOUR * hour, UTC)
    return f"{at:%H:%M}"


def _day(hour: float) -> str:
    at = datetime.fromtimestamp(_HOUR * hour, UTC)
    return f"{at.day} {at:%b}"


def _moment(hour: float) -> str:
    return f"{_day(hour)} {_clock(hour)} UTC"


def shown(value: float) -> str:
    """Return a number with three digits that count.

    >>> shown(0.12345), shown(1234.5), shown(-0.0), shown(2.50), shown(1234567.0)
    ('0.123', '1,234', '0', '2.5', '1,234,567')
    """
    if abs(value) >= 1_000:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value + 0.0:.3g}"


def two(value: float) -> str:
    """Return half the width of an interval, with two digits that count.

    >>> two(0.01714), two(0.0), two(123.0)
    ('0.017', '0', '123')
    """
    return shown(float(f"{value:.2g}")) if value < 100 else shown(value)
