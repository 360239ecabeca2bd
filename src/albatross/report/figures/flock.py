"""A flock beside bandits that learn alone: newcomers, families of users, and the users that it tells apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import groups
from albatross.report.figures.style import Look

LOOKS = {
    "flock": Look("flock: every user learns from all", style.RED),
    "albatross": Look("every user alone (Albatross)", style.BLUE),
    "shared": Look("one bandit for all users (Albatross)", style.GREY),
    "hier-ts": Look("HierTS, given the variances", style.GREEN, quiet=True),
}
SHORT = {"flock": "flock", "albatross": "one each", "shared": "one for all", "hier-ts": "HierTS"}  # in the table
FAMILIES = {
    "users": "a quarter of the users\nchooses by outlet",
    "equal": "all users equal",
    "opposed": "half want the opposite\nof the others",
    "independent": "nothing in common",
    "two groups": "outlet readers and\ntopic readers",
    "five types": "five types of users",
    "low rank": "tastes of low rank",
    "rare visits": "similar users, most\ncome rarely",
    "newcomers": "newcomers among\nsimilar users",
    "your data": "your data",
    "your data, newcomers": "your data, newcomers",
}
_KINDS = {"outlet reader": style.BLUE, "not sure": style.SILVER, "topic reader": style.RED}
_SURE = 0.8  # probability from which a user counts as of a kind
_DOTS = 600


def regrets(content: Content, family: str) -> dict[str, np.ndarray]:
    """Return the regret of a user by visits, (populations, visits) for each policy."""
    rows = content.rows
    here = np.flatnonzero((rows["family"] == family) & (rows["visit"] >= 0))
    own = {name: rows[name][here] for name in ("policy", "population", "regret")}
    found: dict[str, list[np.ndarray]] = {}
    for (policy, _), chosen in groups(own, "policy", "population").items():
        found.setdefault(policy, []).append(own["regret"][chosen])
    return {policy: np.array(curves) for policy, curves in found.items()}


def families(content: Content) -> list[str]:
    """Return the families that were played, in order."""
    return list(dict.fromkeys(content.rows["family"].tolist()))


def newcomers(content: Content) -> str:
    """Return the family of the newcomers."""
    return next(family for family in families(content) if family.endswith("newcomers"))


def readers(content: Content) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return true and found norms of the users of the first family, and who is of which kind, as the flock sees it."""
    rows = content.rows
    here = np.flatnonzero((rows["family"] == families(content)[0]) & (rows["user"] >= 0))
    here = here[:: max(1, len(here) // _DOTS)]
    topics = rows["topic_reader"][here]
    kinds = {
        "outlet reader": topics <= 1.0 - _SURE,
        "not sure": (topics > 1.0 - _SURE) & (topics < _SURE),
        "topic reader": topics >= _SURE,
    }
    return rows["norm"][here], rows["norm_found"][here], kinds


def draw(content: Content) -> Figure:
    """Draw the regret of newcomers, that of all families beside users who learn alone, and who the users are."""
    figure, (left, middle, right) = style.new_figure(3, widths=(1.0, 1.2, 1.0), height=4.2)
    curves = regrets(content, newcomers(content))
    visits = np.arange(1, next(iter(curves.values())).shape[1] + 1)
    for policy, values in curves.items():
        style.draw_policy(left, visits, values, LOOKS[policy])
    left.set_xlim(0, visits[-1])
    left.set_ylim(bottom=0)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.set_xlabel("visits of a newcomer")
    left.set_ylabel("regret of a newcomer so far")
    left.set_title("What a newcomer costs")
    draw_families(middle, content)
    norms, found, kinds = readers(content)
    for kind, chosen in kinds.items():
        right.plot(norms[chosen], found[chosen], ".", color=_KINDS[kind], markersize=4, alpha=0.6, label=kind)
    right.plot([0.0, norms.max()], [0.0, norms.max()], ":", color="#555555", linewidth=1.2)
    right.set_xlabel(r"how much the user cares for topics: norm of $\theta$")
    right.set_ylabel("as the flock finds it")
    right.set_title(f"Who the users are, after {content.settings['events']} visits")
    right.legend(title="the flock says", title_fontsize=8, alignment="left", loc="upper left", markerscale=2)
    title = f"mean of {content.trials} populations, band: one sd" if content.trials > 1 else "one population"
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, title=title)
    return figure


def draw_families(axes: Axes, content: Content) -> None:
    """Draw for every family the regret as a share of that of users who learn alone."""
    names = families(content)[::-1]
    for place, family in enumerate(names):
        curves = regrets(content, family)
        alone = curves["albatross"][:, -1]
        for policy in ("shared", "hier-ts", "flock"):
            shares = curves[policy][:, -1] / alone
            look = LOOKS[policy]
            axes.plot(shares, np.full(len(shares), place), ".", color=look.colour, markersize=3, alpha=0.4)
            axes.plot(curves[policy][:, -1].mean() / alone.mean(), place, "o" if policy == "flock" else "D",
                      color=look.colour, markersize=7 if policy == "flock" else 4)  # fmt: skip
    axes.axvline(1.0, color=LOOKS["albatross"].colour, linewidth=1.5)
    axes.set_yticks(range(len(names)), [FAMILIES[name] for name in names], fontsize=7)
    axes.set_ylim(-0.5, len(names) - 0.5)
    axes.set_xscale("log")
    style.plain_log_ticks(axes.xaxis)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("regret / regret of users who learn alone")
    axes.set_title("Whom it helps")


def flock_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page."""
    curves = regrets(content, newcomers(content))
    visits = np.arange(1, next(iter(curves.values())).shape[1] + 1)
    lines = [trace for policy, each in curves.items() for trace in plots.policy_band(visits, each, LOOKS[policy])]
    axes = plots.axis("visits of a newcomer", rangemode="tozero"), plots.axis("regret so far", rangemode="tozero")
    found = [plots.Plot("What a newcomer costs", lines, plots.layout(*axes, hovermode="x"))]

    names = families(content)[::-1]
    words = [FAMILIES[name].replace("\n", "<br>") for name in names]
    shares: list[dict[str, Any]] = []
    for policy in ("flock", "shared", "hier-ts"):
        values = []
        for family in names:
            ends = regrets(content, family)
            values.append(ends[policy][:, -1].mean() / ends["albatross"][:, -1].mean())
        dots = {
            "type": "scatter",
            "mode": "markers",
            "name": LOOKS[policy].label,
            "x": plots.numbers(values),
            "y": words,
        }
        shares.append({**dots, "marker": {"color": LOOKS[policy].colour, "size": 9}})
    alone = LOOKS["albatross"]
    line = {"type": "scatter", "mode": "lines", "name": alone.label, "x": [1.0] * len(words), "y": words}
    shares.append({**line, "line": {"color": alone.colour, "width": 2}})
    every = [value for trace in shares for value in trace["x"]]
    x = plots.log_axis("regret / alone", every)  # a longer title does not fit beside the names
    y = plots.axis("", tickfont={"size": 10})
    found.append(plots.Plot("Whom it helps", shares, plots.layout(x, y, height=430)))

    norms, norms_found, kinds = readers(content)
    who: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "markers", "name": kind, "x": plots.numbers(norms[chosen])}
        | {"y": plots.numbers(norms_found[chosen]), "marker": {"color": _KINDS[kind], "size": 5, "opacity": 0.6}}
        for kind, chosen in kinds.items()
    ]
    largest = float(norms.max())
    who.append(plots.line((0, largest), (0, largest), name="the norm itself", colour=style.GREY, dash="dot"))
    layout = plots.layout(plots.axis("norm of the user's theta"), plots.axis("as the flock finds it"))
    found.append(plots.Plot("Who the users are", who, layout))
    return found


DRAWINGS = {
    "flock": Drawing(
        "users who learn from each other",
        lambda entry: SHORT[entry["policy"]],
        draw,
        flock_plots,
        "regret of a user, all families",
    )
}
