"""Rewards that drift: the regret of every family of policies on every problem, at its best setting."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from albatross.intervals import margin
from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.style import Look

LOOKS = {
    "never": Look("Albatross, never forgets", style.SILVER),
    "learnt": Look("Albatross, memory learnt", style.RED),
    "half-life": Look("Albatross, best half-life", style.ORANGE),
    "d-linucb": Look("D-LinUCB, best setting", style.BLUE),
    "sw-linucb": Look("SW-LinUCB, best setting", style.SKY),
}


def _dots(content: Content, family: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return problems, mean regrets and half-widths of 95 % intervals of a family at its best settings."""
    entries = [entry for entry in content.policies.values() if entry["policy"] == family]
    rows, regrets = content.rows, []
    for entry in entries:
        chosen = (rows["problem"] == entry["problem"]) & (rows["policy"] == family)
        regrets.append(rows["regret"][chosen & (rows["setting"] == entry["setting"])])
    halves = np.array([margin(each - each.mean()) if len(each) > 1 else 0.0 for each in regrets])
    return [entry["problem"] for entry in entries], np.array([each.mean() for each in regrets]), halves


def draw(content: Content) -> Figure:
    """Draw one line per problem, one dot per family, with intervals."""
    figure, (axes,) = style.new_figure(1, widths=[1.9], height=4.4)
    for number, (family, look) in enumerate(LOOKS.items()):
        problems, means, halves = _dots(content, family)
        heights = -np.arange(len(problems)) + 0.12 * (2 - number)
        axes.errorbar(
            means, heights, xerr=halves, fmt="o", markersize=5, color=look.colour, label=look.label, capsize=2
        )
    axes.set_xscale("log")
    style.plain_log_ticks(axes.xaxis)
    axes.set_yticks(-np.arange(len(problems)), problems)
    axes.set_xlabel("regret")
    title = f"mean of {content.trials} trials, bar: 95 %"
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, title=title)
    return figure


def page_plots(content: Content) -> list[plots.Plot]:
    """Return the same for the page."""
    data: list[dict[str, Any]] = []
    for family, look in LOOKS.items():
        problems, means, halves = _dots(content, family)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": plots.numbers(means),
                "y": problems,
                "error_x": {"type": "data", "array": plots.numbers(halves)},
                "name": look.label,
                "marker": {"color": look.colour, "size": 8},
            }
        )
    regrets = content.rows["regret"]
    layout = plots.layout(plots.log_axis("regret", regrets), plots.axis("", type="category", autorange="reversed"))
    return [plots.Plot("Regret where rewards drift", data, {**layout, "height": 420})]


def label(entry: Any) -> str:
    """Return family, setting and problem."""
    setting = f" ({entry['setting']})" if entry["setting"] else ""
    return f"{LOOKS[entry['policy']].label}{setting}: {entry['problem']}"


DRAWINGS = {"drift": Drawing("rewards that drift", label, draw, page_plots)}
