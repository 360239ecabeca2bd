"""Panels (g) and (h): rated rows as arms, cumulative reward and the estimates of the norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    **{
        name: Look(label, COLOURS[name], quiet=True)
        for name, label in {
            "osom": "OSOM given 25",
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


def _label(entry: Mapping[str, Any]) -> str:
    return f"{LOOKS[entry['policy']].label}, {SOURCES[entry['source']]}, {entry['mode']}"


def _places(rows: Rows) -> dict[tuple[str, str], str]:
    """Return the title of every source in every mode."""
    return {(source, mode): f"{SOURCES[source]}: {MODES[mode]}" for source, mode in groups(rows, "source", "mode")}


def _rates(rows: Rows, source: str, mode: str, grid: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, Any]:
    """Return rounds, and for each policy (draws, rounds) the reward so far as a multiple of uniform play's.

    Horizons differ by a few arms from draw to draw: the rounds of the first are used for all.
    """
    here = (rows["source"] == source) & (rows["mode"] == mode)
    own = {name: rows[name][here] for name in ("policy", "draw", "round", "reward")}
    by_draw = groups(own, "policy", "draw")
    draws = np.unique(own["draw"]).tolist()
    rounds = grid(own["round"][by_draw["uniform", draws[0]]])
    rates: dict[str, list[np.ndarray]] = {policy: [] for policy, _ in by_draw}
    for (policy, draw), chosen in by_draw.items():
        usual = by_draw["uniform", draw][-1]
        reward = np.interp(rounds, own["round"][chosen], own["reward"][chosen])
        rates[policy].append(reward / rounds * own["round"][usual] / own["reward"][usual])
    return rounds, {policy: np.array(values) for policy, values in rates.items()}


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
    """Draw the reward so far as a multiple of uniform play's."""

    def draw(place: Axes, source: str, mode: str) -> None:
        rounds, rates = _rates(content.rows, source, mode, lambda rounds: rounds)
        for policy, values in rates.items():
            style.draw_policy(place, rounds, values, LOOKS[policy])
        place.set_xscale("log")
        place.set_xlim(100, rounds[-1])
        place.set_xlabel("round")
        place.set_ylabel("reward so far / that of uniform play")
        place.set_ylim(bottom=0)

    figure, axes = _grid_of_plots(content, 3.3, draw)
    handles, labels = axes[0].get_legend_handles_labels()
    title = f"mean of {content.trials} draws, band: one sd"
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title=title)
    return figure


def reward_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page, one plot per source and mode."""
    found = []
    for (source, mode), title in _places(content.rows).items():
        grid, rates = _rates(content.rows, source, mode, lambda rounds: np.geomspace(100.0, rounds[-1], 80))
        data = [trace for policy, each in rates.items() for trace in plots.policy_band(grid, each, _ON_PAGE[policy])]
        reward = plots.axis("reward / uniform play's", rangemode="tozero")
        found.append(plots.Plot(title, data, plots.layout(plots.log_axis("round", grid), reward, hovermode="x")))
    return found


def draw_estimates(content: Content) -> Figure:
    """Draw b_i over the norm, one line per draw."""

    def draw(place: Axes, source: str, mode: str) -> None:
        for number, (epochs, ratios) in enumerate(_ratios(content.rows, source, mode)):
            label = "ALB-Norm, one line per draw" if number == 0 else None
            place.plot(epochs, ratios, "o-", markersize=3, linewidth=1.1, color=style.RED, label=label)
        place.axhline(1.0, color="#555555", linestyle=":", linewidth=1.2, label="the norm")
        place.set_yscale("log")
        place.set_xticks(epochs)
        place.set_xlabel("epoch")
        place.set_ylabel(r"$b_i$ / norm of $\theta^*$")

    figure, axes = _grid_of_plots(content, 3.2, draw)
    axes[0].legend(loc="upper right")
    return figure


def _ratios(rows: Rows, source: str, mode: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return epochs and estimates over the norm, for every draw."""
    of_draws = groups(rows, "source", "mode", "draw").items()
    chosen = [each[np.argsort(rows["epoch"][each])] for (*where, _), each in of_draws if where == [source, mode]]
    return [(rows["epoch"][each], rows["norm_bound"][each] / rows["norm"][each]) for each in chosen]


def estimate_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page, one plot per source and mode."""
    found = []
    for (source, mode), title in _places(content.rows).items():
        draws = _ratios(content.rows, source, mode)
        data = [
            {
                **plots.line(epochs, ratios, name="ALB-Norm, one line per draw", colour=style.RED, markers=True),
                "showlegend": number == 0,
            }
            for number, (epochs, ratios) in enumerate(draws)
        ]
        last = int(max(epochs[-1] for epochs, _ in draws))
        data.append(plots.constant(1.0, (1, last), name="the norm", colour=style.GREY))
        y = plots.log_axis("estimate / norm", np.concatenate([ratios for _, ratios in draws]))
        found.append(plots.Plot(title, data, plots.layout(plots.axis("epoch", dtick=1), y)))
    return found


DRAWINGS = {
    "g": Drawing("rated rows as arms: reward", _label, draw_rewards, reward_plots, "reward"),
    "h": Drawing("rated rows as arms: estimates of the norm", _label, draw_estimates, estimate_plots, "reward"),
}
