"""Nested feature maps with finitely many arms: regret of each inner policy alone, given the map, and in ALB-Dim."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.regret import regret_plots
from albatross.report.figures.rows import by_policy
from albatross.report.figures.style import Look

INNER = {"suplinrel": "SupLinRel", "suplinucb": "SupLinUCB", "linucb": "LinUCB"}
LOOKS = {
    **{f"{name}-full": Look(f"{label} on all features", style.BLUE) for name, label in INNER.items()},
    **{f"{name}-oracle": Look(f"oracle: {label} given the map", style.GREEN) for name, label in INNER.items()},
    **{f"alb-dim-{name}": Look(f"ALB-Dim with {label}", style.RED) for name, label in INNER.items()},
}
LITERAL = {
    name: Look(f"{label}, to the letter", colour, "dash", quiet=True)
    for name, label, colour in (
        ("suplinrel-full-literal", "SupLinRel on all features", style.BLUE),
        ("suplinrel-oracle-literal", "oracle: SupLinRel given the map", style.GREEN),
        ("alb-dim-suplinrel-literal", "ALB-Dim with SupLinRel", style.RED),
    )
}
OTHERS = {
    "mod-cb": Look("ModCB", style.PINK, quiet=True),
    "corral": Look("Corral over one LinUCB per map", style.ORANGE, quiet=True),
    "ed2rb": Look("ED2RB over one LinUCB per map", style.SKY, quiet=True),
}
LOOKS |= LITERAL | OTHERS


def _names(inner: str) -> list[str]:
    """Return the policies of one plot; that of LinUCB also shows the other ways to choose a map."""
    beside = {"suplinrel": LITERAL, "linucb": OTHERS}.get(inner, {})
    return [f"{inner}-full", f"{inner}-oracle", f"alb-dim-{inner}", *beside]


def draw(content: Content) -> Figure:
    """Draw one plot per inner policy."""
    figure, places = style.new_figure(3, height=4.4)
    curves = by_policy(content.rows, along="round", value="regret")
    rounds, first_phase = np.unique(content.rows["round"]), content.settings["first_phase"]
    for axes, (name, label) in zip(places, INNER.items(), strict=True):
        names = _names(name)
        for each in names:
            style.draw_policy(axes, rounds, curves[each], LOOKS[each])
        axes.axvline(first_phase + int(np.ceil(np.sqrt(first_phase))), color="#bbbbbb", linewidth=0.8, zorder=0)
        axes.set_xlim(0, rounds[-1])
        largest = max(curves[each][:, -1].mean() for each in names)
        axes.set_ylim(0, (1.75 if name == "suplinrel" else 1.45) * largest)  # room for the legend
        if name == "linucb":  # ModCB's exploration dwarfs the rest
            axes.set_yscale("log")
            axes.set_ylim(largest / 100, 20 * largest)
        axes.set_xlabel("round (grey line: ALB-Dim's second phase begins)")
        maps = [phases[1] for phases in content.policies[f"alb-dim-{name}"]["models"]]
        found = ", ".join(f"{dim} in {maps.count(dim)}" for dim in sorted(set(maps)))
        axes.set_title(f"{label} inside\nfeatures after phase 0: {found} of {len(maps)} trials", fontsize=8)
        style.thousands(axes.xaxis)
        style.thousands(axes.yaxis)
        style.explain_band(axes, content.trials, loc="upper left")
    places[0].set_ylabel("cumulative regret")
    return figure


def map_plots(content: Content) -> list[plots.Plot]:
    """The same on the page."""
    return [
        plot._replace(title=f"Cumulative regret: {label} inside")
        for name, label in INNER.items()
        for plot in regret_plots(content.only(np.isin(content.rows["policy"], _names(name))), LOOKS)
    ]


DRAWINGS = {
    "nested": Drawing(
        "finite arms, nested feature maps",
        lambda entry: LOOKS[entry["policy"]].label,
        draw,
        map_plots,
    )
}
