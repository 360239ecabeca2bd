"""Panels (g) and (h): rated rows as arms, cumulative reward and the estimates of the norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import groups
from albatross.report.figures.style import COLOURS, Look

SOURCES = {
    "yandex": "Yandex sample",
    "generated": "generated stand-in",
    "yahoo": "Yahoo!'s set2.test.txt",
    "data": "your data",
}
MODES = {
    "bootstrap": "rows, with a true model and fresh noise",
    "rating": "ill-posed: a row's own rating",
    "centroid": "ill-posed: the paper's centroids",
}
LOOKS = {
    "alb-norm": Look("ALB-Norm", style.RED),
    "oful-plus": Look("OFUL+ given 25", style.BLUE),
    "oracle": Look("oracle: OFUL+ given the norm", style.GREEN),
    **{
        name: Look(label, style.colour(name), quiet=True)
        for name, label in {
            "osom": "OSOM given 25",
            "osom-scaled": "OSOM given 25, test at the scale of OFUL+",
            "ucb": "UCB, blind to contexts",
            "lints": "LinTS",
            "greedy": "ridge greedy",
            "albatross": "Albatross, given nothing",
        }.items()
    },
    "uniform": Look("uniform", COLOURS["uniform"], "dot", quiet=True),
}
_ON_PAGE = {**LOOKS, "uniform": LOOKS["uniform"]._replace(colour=style.GREY)}  # black would vanish on a dark page
Rows = Mapping[str, np.ndarray]


def _title(source: str, mode: str) -> str:
    return f"{SOURCES[source]}: {MODES[mode]}"


def _label(entry: Mapping[str, Any]) -> str:
    return f"{LOOKS[entry['policy']].label}, {_title(entry['source'], entry['mode'])}"


def _places(rows: Rows) -> dict[tuple[str, str], str]:
    """Return the title of every source in every mode."""
    return {(source, mode): _title(source, mode) for source, mode in groups(rows, "source", "mode")}


def _rewards(rows: Rows, source: str, mode: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return rounds, and for each policy (draws, rounds) the cumulative reward.

    Horizons differ by a few arms from draw to draw: the rounds of the first are used for all.
    """
    here = (rows["source"] == source) & (rows["mode"] == mode)
    own = {name: rows[name][here] for name in ("policy", "draw", "round", "reward")}
    rounds = own["round"][next(iter(groups(own, "policy", "draw").values()))]
    rewards: dict[str, list[np.ndarray]] = {}
    for (policy, _), chosen in groups(own, "policy", "draw").items():
        rewards.setdefault(policy, []).append(np.interp(rounds, own["round"][chosen], own["reward"][chosen]))
    return rounds, {policy: np.array(values) for policy, values in rewards.items()}


def _with_band(policy: str, values: np.ndarray) -> np.ndarray:
    """Only ALB-Norm has a band: draws differ more than policies, and the bands of all would hide the lines."""
    return values if policy == "alb-norm" else values.mean(axis=0, keepdims=True)


def _grid_of_plots(
    content: Content, height: float, draw: Callable[[Axes, str, str], None]
) -> tuple[Figure, list[Axes]]:
    """Draw one row of plots per source, one column per mode."""
    titles = _places(content.rows)
    n_sources = len({source for source, _ in titles})
    figure, axes = style.new_figure(len(MODES), rows=n_sources, height=height * n_sources)
    for place, ((source, mode), title) in zip(axes, titles.items(), strict=True):
        draw(place, source, mode)
        place.set_title(title, fontsize=8)
    return figure, axes


def draw_rewards(content: Content) -> Figure:
    """Draw cumulative reward, as the paper's panel does."""

    def draw(place: Axes, source: str, mode: str) -> None:
        rounds, rewards = _rewards(content.rows, source, mode)
        for policy, values in rewards.items():
            style.draw_policy(place, rounds, _with_band(policy, values), LOOKS[policy])
        place.set_xlim(0, rounds[-1])
        place.set_ylim(bottom=0)
        place.set_xlabel("round")
        place.set_ylabel("cumulative reward")
        style.thousands(place.xaxis)
        style.thousands(place.yaxis)

    figure, axes = _grid_of_plots(content, 3.3, draw)
    handles, labels = axes[0].get_legend_handles_labels()
    title = f"mean of {content.trials} draws, band: one sd of ALB-Norm" if content.trials > 1 else "one draw"
    figure.legend(handles, labels, loc="outside lower center", ncols=5, title=title)
    return figure


def reward_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page, one plot per source and mode."""
    found = []
    for (source, mode), title in _places(content.rows).items():
        rounds, rewards = _rewards(content.rows, source, mode)
        kept = plots.thinned(len(rounds), log=False)
        data = [
            trace
            for policy, each in rewards.items()
            for trace in plots.policy_band(rounds[kept], _with_band(policy, each[:, kept]), _ON_PAGE[policy])
        ]
        x, y = plots.axis("round", rangemode="tozero"), plots.axis("cumulative reward", rangemode="tozero")
        found.append(plots.Plot(title, data, plots.layout(x, y, hovermode="x")))
    return found


def draw_estimates(content: Content) -> Figure:
    """Draw b_i, one line per draw, and the norm of each draw."""

    def draw(place: Axes, source: str, mode: str) -> None:
        for number, (epochs, bounds, norm) in enumerate(_estimates(content.rows, source, mode)):
            labels = _OF_DRAW if number == 0 else (None, None)
            place.plot(epochs, bounds, "o-", markersize=3, linewidth=1.1, color=style.RED, label=labels[0])
            place.axhline(norm, color="#555555", linestyle=":", linewidth=1.0, label=labels[1])
        place.set_yscale("log")
        place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        place.set_xticks(epochs)
        place.set_xlabel("epoch")
        place.set_ylabel(r"estimate $b_i$ of $\Vert\theta^*\Vert$")

    figure, axes = _grid_of_plots(content, 3.2, draw)
    axes[0].legend(loc="upper right")
    return figure


_OF_DRAW = "ALB-Norm, one line per draw", "the norm, one line per draw"


def _estimates(rows: Rows, source: str, mode: str) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return epochs, estimates and the norm, for every draw."""
    of_draws = groups(rows, "source", "mode", "draw").items()
    chosen = [each[np.argsort(rows["epoch"][each])] for (*where, _), each in of_draws if where == [source, mode]]
    return [(rows["epoch"][each], rows["norm_bound"][each], float(rows["norm"][each[0]])) for each in chosen]


def estimate_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page, one plot per source and mode."""
    found = []
    for (source, mode), title in _places(content.rows).items():
        draws = _estimates(content.rows, source, mode)
        data = []
        for number, (epochs, bounds, norm) in enumerate(draws):
            ends = int(epochs[0]), int(epochs[-1])
            pair = (
                plots.line(epochs, bounds, name=_OF_DRAW[0], colour=style.RED, markers=True),
                plots.constant(norm, ends, name=_OF_DRAW[1], colour=style.GREY),
            )
            data += [{**each, "showlegend": number == 0} for each in pair]
        shown = np.concatenate([[*bounds, norm] for _, bounds, norm in draws])
        y = plots.log_axis("estimate of the norm", shown)
        found.append(plots.Plot(title, data, plots.layout(plots.axis("epoch", dtick=1), y)))
    return found


DRAWINGS = {
    "g": Drawing("rated rows as arms: reward", _label, draw_rewards, reward_plots, "reward"),
    "h": Drawing("rated rows as arms: estimates of the norm", _label, draw_estimates, estimate_plots, "reward"),
}
