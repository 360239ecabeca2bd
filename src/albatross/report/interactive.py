"""Figures that a reader can hover over and zoom into, as plotly's JSON, from the tables on disk.

Which figures a panel gets follows from the columns of its table, so a new panel with a known table needs nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from albatross.intervals import exponents
from albatross.report.figures import style as figures
from albatross.store.results import MODES, SOURCES, Stored

_POINTS = 160  # of a curve; more cannot be told apart on a screen
_USERS = 400  # dots of a policy
_BLUE, _RED, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#8a8a8a"
_SERIES = (_RED, _BLUE, _GREEN, "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = {"uniform": "dot", "literal": "dash", "paper": "dot", "suplinucb": "dash", "linucb": "dot", "biases": "dash"}


class Figure(NamedTuple):
    """One plot: its title stands above it in the page, where it can wrap."""

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def panel_figures(stored: Stored, panel: str) -> list[Figure]:
    """The figures of a panel; none where its table is of a kind that nobody knows how to draw."""
    rows = stored.table(panel)
    labels = {name: entry["label"] for name, entry in stored.summaries[panel]["policies"].items()}
    for columns, draw in _KINDS.items():
        if columns <= set(rows):
            return draw(rows, labels)
    return []


# ------------------------------------------------------------------------------------------------------------- parts


def _numbers(values: Any) -> list[float | None]:
    """Five digits: what a screen shows, and a smaller page. What is not finite is left out of a line."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "automargin": True, "zeroline": False, **more}


def _log_axis(title: str, values: Any, **more: Any) -> dict[str, Any]:
    """Labelled at powers of ten; at 2 and 5 as well where they are few, and at every third where they are many.

    >>> _log_axis("d", [50, 400])["ticktext"]
    ['50', '100', '200', '500']
    >>> _log_axis("round", [400, 5e13])["ticktext"]
    ['1k', '1M', '1B', '1T']
    """
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found) & (found > 0.0)]
    low, high = (float(found.min()), float(found.max())) if found.size else (1.0, 10.0)
    digits = (1, 2, 5) if high < 100.0 * low else (1,)
    every = 1 if high < 1e8 * low else 3  # more than eight labels do not fit on a phone
    powers = range(every * math.floor(math.log10(low) / every - 1), math.ceil(math.log10(high)) + 2, every)
    ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
    inside = [tick for tick in ticks if low / 1.3 <= tick <= 1.3 * high]
    return _axis(title, type="log", tickvals=inside, ticktext=[_in_words(tick) for tick in inside], **more)


def _in_words(value: float) -> str:
    """A tick's label: 0.1, 500, 20k, 5M."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _layout(x: dict[str, Any], y: dict[str, Any], **more: Any) -> dict[str, Any]:
    legend = {"orientation": "h", "x": 0, "xref": "container", "y": 0, "yref": "container", "yanchor": "bottom"}
    legend["tracegroupgap"] = 0
    return {"xaxis": x, "yaxis": y, "legend": legend, "margin": {"l": 8, "r": 12, "t": 8, "b": 8}, **more}


def _line(x: Any, y: Any, *, name: str, colour: str, dash: str = "solid", markers: bool = False) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers" if markers else "lines",
        "x": _numbers(x),
        "y": _numbers(y),
        "name": name,
        "legendgroup": name,
        "line": {"color": colour, "dash": dash, "width": 2},
    }


def _band(
    x: np.ndarray, curves: np.ndarray, *, name: str, colour: str, dash: str = "solid", markers: bool = False
) -> list[dict[str, Any]]:
    """The mean over trials (rows of `curves`) and a band of one standard deviation; no band for one trial."""
    mean = curves.mean(axis=0)
    line = _line(x, mean, name=name, colour=colour, dash=dash, markers=markers)
    if len(curves) < 2:
        return [line]
    sd = curves.std(axis=0, ddof=1)
    edge = {"showlegend": False, "hoverinfo": "skip", "mode": "lines"}
    low = {**_line(x, mean - sd, name=name, colour=colour), **edge, "line": {"width": 0}}
    high = {**_line(x, mean + sd, name=name, colour=colour), **edge, "line": {"width": 0}}
    return [low, {**high, "fill": "tonexty", "fillcolor": _faint(colour)}, line]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _constant(y: float, ends: tuple[float, float], *, name: str, colour: str) -> dict[str, Any]:
    return _line(ends, (y, y), name=name, colour=colour, dash="dot")


def _thinned(length: int, *, log: bool) -> np.ndarray:
    """Positions of the points that are drawn, the first and the last among them."""
    if length <= _POINTS:
        return np.arange(length)
    spaced = np.linspace(0, length - 1, _POINTS)
    early = np.geomspace(1, length, 24) - 1 if log else ()  # on a log axis the first points are far apart
    return np.unique(np.concatenate([spaced, early]).astype(int))


def _style(name: str, position: int) -> dict[str, Any]:
    """A policy's colour and dash: what plays the same part looks the same."""
    if name == "oful" or name.endswith("-full"):
        colour = _BLUE
    elif name.endswith("oracle"):
        colour = _GREEN
    elif name.startswith("alb-"):
        colour = _RED
    elif name.startswith("albatross"):
        colour = "#882255"
    elif name == "uniform":
        colour = _GREY  # black would vanish on a dark page
    else:
        colour = figures.colour(name.removesuffix("-literal"), position)
    dash = next((_DASHES[part] for part in name.split("-") if part in _DASHES), "solid")
    return {"colour": colour, "dash": dash}


def _groups(rows: Mapping[str, np.ndarray], *keys: str) -> dict[tuple[Any, ...], np.ndarray]:
    """The rows of every combination of the keys' values, in order of appearance."""
    columns = list(zip(*(rows[key].tolist() for key in keys), strict=True))
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, key in enumerate(columns):
        found.setdefault(key, []).append(position)
    return {key: np.array(positions) for key, positions in found.items()}


def _matrix(rows: Mapping[str, np.ndarray], chosen: np.ndarray, trial: str, along: str, value: str) -> np.ndarray:
    """(trials, points) of the chosen rows."""
    order = chosen[np.lexsort((rows[along][chosen], rows[trial][chosen]))]
    return rows[value][order].reshape(len(np.unique(rows[trial][chosen])), -1)


# --------------------------------------------------------------------------------------------------- kinds of figures


def _regret(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Cumulative regret; on log axes where horizons are astronomic or policies far apart."""
    groups = _groups(rows, "policy")
    curves = {name: _matrix(rows, chosen, "trial", "round", "regret") for (name,), chosen in groups.items()}
    rounds = np.unique(rows["round"])
    ends = [values[:, -1].mean() for values in curves.values()]
    far, apart = rounds[-1] > 1e6, max(ends) > 20.0 * max(min(ends), 1e-9)
    kept = _thinned(len(rounds), log=far)
    data = [
        trace
        for position, (name, values) in enumerate(curves.items())
        for trace in _band(rounds[kept], values[:, kept], name=labels.get(name, name), **_style(name, position))
    ]
    x, y = _axis("round", rangemode="tozero"), _axis("cumulative regret", rangemode="tozero")
    if far:
        shown = rounds[kept[[len(kept) // 8, -1]]]
        x = _log_axis("round", shown, range=_numbers(np.log10(shown)))
    if far or apart:  # from where the curves have come apart
        lowest = min(values[:, kept[len(kept) // 8]].mean() for values in curves.values())
        ends = [max(lowest, 1e-9) / 2.0, 1.5 * max(ends)]
        y = _log_axis("cumulative regret", ends, range=_numbers(np.log10(ends)))
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
    layout = _layout(x, y, updatemenus=[menu], hovermode="x")
    return [Figure("Cumulative regret", data, {**layout, "margin": {**layout["margin"], "t": 40}})]


def _estimates(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Estimates of the norm by epoch, a figure a reading."""
    found: dict[str, list[dict[str, Any]]] = {}
    norms = np.unique(rows["theta_norm"]).tolist()
    for (policy, norm), chosen in _groups(rows, "policy", "theta_norm").items():
        colour = _SERIES[norms.index(norm) % len(_SERIES)]
        values = _matrix(rows, chosen, "trial", "epoch", "norm_bound")
        epochs = np.arange(1, values.shape[1] + 1)
        traces = found.setdefault(policy, [])
        traces += _band(epochs, values, name=f"estimates, norm {norm:g}", colour=colour, markers=True)
        traces.append(_constant(norm, (1, len(epochs)), name=f"truth, {norm:g}", colour=colour))
    layout = _layout(_axis("epoch", dtick=1), _axis("bound on the norm", type="log", dtick=1))
    return [Figure(labels.get(policy, policy).split(", norm")[0], data, layout) for policy, data in found.items()]


def _refinement(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Active coordinates by phase; and those missed or active by mistake."""
    sizes: list[dict[str, Any]] = []
    mistakes: list[dict[str, Any]] = []
    for position, ((dim,), chosen) in enumerate(_groups(rows, "dim").items()):
        look: dict[str, Any] = {"colour": _SERIES[position % len(_SERIES)], "markers": True}
        for column, target in (("support_size", sizes), ("missed", mistakes), ("false", mistakes)):
            values = _matrix(rows, chosen, "trial", "phase", column)
            what = {"support_size": "", "missed": "missed, ", "false": "false, "}[column]
            dash = "dash" if column == "false" else "solid"
            target += _band(np.arange(values.shape[1]), values, name=f"{what}d = {dim}", dash=dash, **look)
    truth = (rows["support_size"] - rows["false"] + rows["missed"])[0]
    sizes.append(_constant(float(truth), (0, int(rows["phase"].max())), name=f"truth, {truth}", colour=_GREY))
    phase = _axis("phase", dtick=1)
    return [
        Figure("Active coordinates", sizes, _layout(phase, _log_axis("coordinates", rows["support_size"]))),
        Figure("Missed and false coordinates", mistakes, _layout(phase, _axis("coordinates"))),
    ]


def _rewards(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Reward so far as a multiple of uniform play's, a figure a source and mode."""
    found = []
    by_policy = _groups(rows, "source", "mode", "policy")
    for source, mode in dict.fromkeys((source, mode) for source, mode, _ in by_policy):
        chosen = {policy: each for (*where, policy), each in by_policy.items() if where == [source, mode]}
        rates: dict[str, list[np.ndarray]] = {policy: [] for policy in chosen}
        for draw in np.unique(rows["draw"][next(iter(chosen.values()))]):
            parts = {policy: each[rows["draw"][each] == draw] for policy, each in chosen.items()}
            rounds = rows["round"][parts["uniform"]]
            grid = np.geomspace(100.0, rounds[-1], 80)  # draws differ by a few rounds
            usual = rows["reward"][parts["uniform"]][-1] / rounds[-1]
            for policy, part in parts.items():
                rates[policy].append(np.interp(grid, rows["round"][part], rows["reward"][part]) / grid / usual)
        data = [
            trace
            for position, (policy, values) in enumerate(rates.items())
            for trace in _band(
                grid,
                np.array(values),
                name=labels[f"{policy}-{source}-{mode}"].removesuffix(f", {SOURCES[source]}, {mode}"),
                **_style(policy, position),
            )
        ]
        layout = _layout(_log_axis("round", grid), _axis("reward / uniform play's", rangemode="tozero"), hovermode="x")
        found.append(Figure(f"{SOURCES[source]}: {MODES[mode]}", data, layout))
    return found


def _settling(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Estimates over the norm by epoch, a line a draw, a figure a source and mode."""
    found = []
    for (source, mode), chosen in _groups(rows, "source", "mode").items():
        data = []
        for number, draw in enumerate(np.unique(rows["draw"][chosen])):
            part = chosen[rows["draw"][chosen] == draw]
            part = part[np.argsort(rows["epoch"][part])]
            ratios = rows["norm_bound"][part] / rows["norm"][part]
            line = _line(rows["epoch"][part], ratios, name="ALB-Norm, a line a draw", colour=_RED, markers=True)
            data.append({**line, "showlegend": number == 0})
        data.append(_constant(1.0, (1, int(rows["epoch"].max())), name="the norm", colour=_GREY))
        y = _log_axis("estimate / norm", rows["norm_bound"][chosen] / rows["norm"][chosen])
        layout = _layout(_axis("epoch", dtick=1), y)
        found.append(Figure(f"{SOURCES[source]}: {MODES[mode]}", data, layout))
    return found


def _users(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """A dot a user: what they cost, and what ALB-Norm finds."""
    costs, finds = [], []
    for position, ((policy,), chosen) in enumerate(_groups(rows, "policy").items()):
        shown = chosen[:: max(1, len(chosen) // _USERS)]
        colour = _style(policy, position)["colour"]
        dots: dict[str, Any] = {"type": "scatter", "mode": "markers", "name": labels.get(policy, policy)}
        dots |= {"x": _numbers(rows["norm"][shown]), "marker": {"color": colour, "size": 4, "opacity": 0.55}}
        costs.append({**dots, "y": _numbers(rows["regret"][shown])})
        if np.isfinite(rows["norm_bound"][shown]).all():
            finds.append({**dots, "y": _numbers(rows["norm_bound"][shown])})
    largest = float(rows["norm"].max())
    finds.append(_line((0, largest), (0, largest), name="the norm itself", colour=_GREY, dash="dot"))
    norm = _axis("norm of the user's theta")
    layouts = (
        _layout(norm, _log_axis("regret of the user", rows["regret"])),
        _layout(norm, _axis("last bound on the norm", rangemode="tozero")),
    )
    for layout in layouts:
        layout["legend"]["itemsizing"] = "constant"  # dots are too small to tell their colour
    return [Figure("What a user costs", costs, layouts[0]), Figure("What ALB-Norm finds", finds, layouts[1])]


_PARTS = {
    "norm": "norm of theta*",
    "bound": "bound on the norm that is given",
    "dim": "d, all coordinates",
    "sparsity": "d*, coordinates in use",
    "rounds-mixture": "rounds, arms with biases",
    "rounds-ball": "rounds, unit ball",
    "rounds-nested": "rounds, nested maps",
}


def _scaling(rows: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> list[Figure]:
    """Final regret against one property of the problem, on log axes; slopes stand after the names."""
    found = []
    by_policy = _groups(rows, "part", "policy")
    for part in dict.fromkeys(part for part, _ in by_policy):
        data = []
        for position, (policy, chosen) in enumerate(
            (p, each) for (where, p), each in by_policy.items() if where == part
        ):
            x, values = np.unique(rows["x"][chosen]), _matrix(rows, chosen, "trial", "x", "regret")
            exponent = f"{exponents(x, values).mean():z.2f}"
            if policy.startswith("Theorem"):
                name = f"{policy}, shape only: {exponent}"
                data.append(_line(x, values[0], name=name, colour=_GREY, dash="dot"))
            else:
                name = f"{labels.get(f'{policy}, {part}', policy).rsplit(', against', 1)[0]}: {exponent}"
                data += _band(x, values, name=name, markers=True, **_style(policy, position))
        title = _PARTS.get(part, part)
        here = rows["part"] == part
        layout = _layout(_log_axis(title, rows["x"][here]), _log_axis("final regret", rows["regret"][here]))
        found.append(Figure(f"Regret against {title}", data, layout))
    return found


def race_figure(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """The ratio to the best on every problem as dots, the policy with the smallest worst ratio on top."""
    data = []
    for line in reversed(lines):
        colour = _RED if line["name"].startswith("albatross") else _BLUE
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": _numbers(list(line["ratios"].values())),
                "y": [line["name"]] * len(line["ratios"]),
                "text": list(line["ratios"]),
                "hovertemplate": "%{text}: %{x}<extra>%{y}</extra>",
                "marker": {"color": colour, "size": 8, "opacity": 0.55},
                "showlegend": False,
            }
        )
    means = {
        "type": "scatter",
        "mode": "markers",
        "x": _numbers([line["mean"] for line in reversed(lines)]),
        "y": [line["name"] for line in reversed(lines)],
        "name": "geometric mean",
        "hovertemplate": "mean %{x}<extra>%{y}</extra>",
        "marker": {"color": _GREY, "size": 14, "symbol": "line-ns-open", "line": {"width": 2}},
    }
    ratios = [ratio for line in lines for ratio in line["ratios"].values()]
    axes = _log_axis("regret / that of the best policy", ratios), _axis("", type="category")
    return Figure("One dot per problem", [*data, means], {**_layout(*axes), "height": 150 + 26 * len(lines)})


_KINDS = {
    frozenset({"part", "policy", "x", "trial", "regret"}): _scaling,
    frozenset({"policy", "trial", "round", "regret"}): _regret,
    frozenset({"policy", "theta_norm", "trial", "epoch", "norm_bound"}): _estimates,
    frozenset({"dim", "trial", "phase", "support_size", "missed", "false"}): _refinement,
    frozenset({"source", "mode", "policy", "draw", "round", "reward"}): _rewards,
    frozenset({"source", "mode", "draw", "norm", "epoch", "norm_bound"}): _settling,
    frozenset({"policy", "population", "user", "norm", "regret", "norm_bound"}): _users,
}
