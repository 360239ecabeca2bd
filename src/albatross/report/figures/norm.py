"""Panels (a), (b), (c): regret of ALB-Norm between OFUL+ and the oracle, and its estimates of the norm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.regret import regret_plots
from albatross.report.figures.rows import by_policy, groups, matrix
from albatross.report.figures.style import Look

_THREE = {
    "alb-norm": Look("ALB-Norm", style.RED),
    "oful-plus": Look("OFUL+ given 10", style.BLUE),
    "oracle": Look("oracle: OFUL+ given the norm", style.GREEN),
}
READINGS = {  # by the end of a policy's name
    "": "default reading",
    "-paper": "main text, the paper's estimator",
    "-literal": "Appendix A to the letter",
}
_BESIDE = {
    name: Look(label, style.colour(name, position), quiet=True)
    for position, (name, label) in enumerate(
        {
            "osom": "OSOM given 10",
            "osom-given-1": "OSOM given 1",
            "osom-scaled": "OSOM given 10, test at the scale of OFUL+",
            "corral": "Corral over OFUL+ given 0.1 to 10",
            "ucb": "UCB, blind to contexts",
            "lints": "LinTS",
            "greedy": "ridge greedy",
            "albatross": "Albatross, given nothing",
        }.items()
    )
}
_IN_READING = {suffix: {f"{name}{suffix}": look for name, look in _THREE.items()} for suffix in READINGS}
LOOKS = {
    name: look._replace(label=f"{look.label}, {READINGS[suffix]}") if suffix else look
    for suffix, looks in _IN_READING.items()
    for name, look in looks.items()
} | _BESIDE
_PLOTS = {  # titles, and the looks there
    READINGS[""]: _IN_READING[""],
    "others beside it": {"alb-norm": _THREE["alb-norm"], **_BESIDE},
    **{READINGS[suffix]: looks for suffix, looks in _IN_READING.items() if suffix},
}


def draw_regret(content: Content) -> Figure:
    """Regret in every reading, each with its own OFUL+ and oracle, and the others."""
    figure, places = style.new_figure(2, rows=2, height=7.4)
    curves = by_policy(content.rows, along="round", value="regret")
    rounds, settings = np.unique(content.rows["round"]), content.settings
    for axes, (title, looks) in zip(places, _PLOTS.items(), strict=True):
        style.draw_regret(axes, rounds, {name: curves[name] for name in looks}, looks)
        axes.set_title(f"norm {settings['theta_norm']:g}, b_1 = {settings['norm_bound']:g}: {title}")
        last = [curves[name][:, -1].mean() for name in looks]
        if "ucb" in looks:  # policies that ignore contexts are far above the others where these matter
            axes.set_yscale("log")
            axes.set_ylim(min(last) / 20.0, 1.6 * max(last))
            style.plain_log_ticks(axes.yaxis)
            small = {"ncols": 2, "fontsize": 6.2, "handlelength": 1.5, "columnspacing": 0.8}
            style.explain_band(axes, content.trials, loc="lower right", **small)
        else:
            axes.set_ylim(0, 1.6 * max(last))
            style.explain_band(axes, content.trials, loc="upper left")
    return figure


def reading_plots(content: Content) -> list[plots.Plot]:
    """The same on the page."""
    found = []
    for title, looks in _PLOTS.items():
        here = content.only(np.isin(content.rows["policy"], list(looks)))
        found += [plot._replace(title=f"Cumulative regret: {title}") for plot in regret_plots(here, looks)]
    return found


def _reading(policy: str) -> str:
    """Of ALB-Norm."""
    return READINGS[policy.removeprefix("alb-norm")]


def _by_norm(rows: Mapping[str, np.ndarray]) -> dict[float, str]:
    """Colours, the same in print and on the page."""
    return dict(zip(np.unique(rows["theta_norm"]).tolist(), (style.BLUE, style.RED), strict=False))


def draw_estimates(content: Content) -> Figure:
    """Draw b_i against i: the default, and the two readings that do not reproduce the paper."""
    rows = content.rows
    figure, axes = style.new_figure(len(READINGS), height=3.5)
    places = {f"alb-norm{reading}": each for reading, each in zip(READINGS, axes, strict=True)}
    colours = _by_norm(rows)
    for (policy, norm), chosen in groups(rows, "policy", "theta_norm").items():
        bounds, place, colour = matrix(rows, chosen, "trial", "epoch", "norm_bound"), places[policy], colours[norm]
        epochs = np.arange(1, bounds.shape[1] + 1)
        style.draw_band(place, epochs, bounds, label=f"estimates, norm {norm:g}", colour=colour, marker="o")
        place.axhline(norm, color=colour, linestyle=":", linewidth=1.2, label=f"truth, {norm:g}")
        place.set_title(_reading(policy))
        place.set_yscale("log")
        place.set_xticks(epochs)
        place.set_xlabel("epoch")
    axes[0].set_ylabel("bound on the norm, $b_i$")
    style.explain_band(axes[0], content.trials, loc="upper right")  # the others have the same lines
    return figure


def estimate_plots(content: Content) -> list[plots.Plot]:
    """Return plots of the estimates of the norm by epoch, one per reading."""
    rows = content.rows
    found: dict[str, list[dict[str, object]]] = {}
    colours = _by_norm(rows)
    for (policy, norm), chosen in groups(rows, "policy", "theta_norm").items():
        colour, values = colours[norm], matrix(rows, chosen, "trial", "epoch", "norm_bound")
        epochs = np.arange(1, values.shape[1] + 1)
        traces = found.setdefault(policy, [])
        traces += plots.band(epochs, values, name=f"estimates, norm {norm:g}", colour=colour, markers=True)
        traces.append(plots.constant(norm, (1, len(epochs)), name=f"truth, {norm:g}", colour=colour))
    layout = plots.layout(plots.axis("epoch", dtick=1), plots.axis("bound on the norm", type="log", dtick=1))
    return [plots.Plot(_reading(policy), data, layout) for policy, data in found.items()]


DRAWINGS = {
    **{
        panel: Drawing(
            f"regret, norm {norm}, b_1 = 10",
            lambda entry: LOOKS[entry["policy"]].label,
            draw_regret,
            reading_plots,
        )
        for panel, norm in {"a": "0.1", "b": "1"}.items()
    },
    "c": Drawing(
        "estimates of the norm",
        lambda entry: f"{_reading(entry['policy'])}, norm {entry['theta_norm']:g}",
        draw_estimates,
        estimate_plots,
    ),
}
