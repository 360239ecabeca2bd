"""Panels (a), (b), (c): regret of ALB-Norm between OFUL+ and the oracle, and its estimates of the norm."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.regret import regret_plots
from albatross.report.figures.rows import by_policy, groups, matrix
from albatross.report.figures.style import Look

_LITERAL = ", Appendix A to the letter"
LOOKS = {
    **style.norm_looks(10),
    "alb-norm-literal": Look(f"ALB-Norm{_LITERAL}", style.RED, "dash"),
    "oful-plus-literal": Look(f"OFUL+ given 10{_LITERAL}", style.BLUE, "dash"),
}
LITERAL = {"alb-norm-literal": "ALB-Norm", "oful-plus-literal": "OFUL+ given 10"}  # as the plot of their own calls them
READINGS = {
    "alb-norm": "ALB-Norm",
    "alb-norm-paper": "the paper's estimator",
    "alb-norm-literal": "Appendix A to the letter",
}


def draw_regret(content: Content) -> Figure:
    """Draw the regret of all policies, and beside it that with the literal constants."""
    figure, (left, right) = style.new_figure(2, widths=(1.35, 1.0), height=3.9)
    curves = by_policy(content.rows, along="round", value="regret")
    rounds, settings = np.unique(content.rows["round"]), content.settings

    style.draw_regret(left, rounds, {name: each for name, each in curves.items() if name not in LITERAL}, LOOKS)
    # UCB runs off the scale where contexts matter; the paper's three set it.
    left.set_ylim(0, 1.5 * curves["oful-plus"][:, -1].mean())
    left.set_title(f"norm {settings['theta_norm']:g}, first bound {settings['norm_bound']:g}")
    style.explain_band(left, content.trials, loc="upper left", ncols=2)

    for name, label in LITERAL.items():
        style.draw_band(right, rounds, curves[name], label=label, colour=LOOKS[name].colour)
    beside = Look("oracle, default reading", style.GREEN, quiet=True)
    style.draw_policy(right, rounds, curves["oracle"], beside)
    right.set_xlim(0, rounds[-1])
    right.set_ylim(0, 1.3 * max(curves[name].mean(axis=0)[-1] for name in LITERAL))
    right.set_xlabel("round")
    style.thousands(right.xaxis)
    style.thousands(right.yaxis)
    right.set_title("Appendix A to the letter")
    style.explain_band(right, content.trials, loc="upper left")
    return figure


def draw_estimates(content: Content) -> Figure:
    """Draw b_i against i: the default, and the two readings that do not reproduce the paper."""
    rows = content.rows
    figure, axes = style.new_figure(len(READINGS), height=3.5)
    places = dict(zip(READINGS, axes, strict=True))
    colours = dict(zip(np.unique(rows["theta_norm"]).tolist(), (style.BLUE, style.RED), strict=False))
    for (policy, norm), chosen in groups(rows, "policy", "theta_norm").items():
        bounds, place, colour = matrix(rows, chosen, "trial", "epoch", "norm_bound"), places[policy], colours[norm]
        epochs = np.arange(1, bounds.shape[1] + 1)
        style.draw_band(place, epochs, bounds, label=f"estimates, norm {norm:g}", colour=colour, marker="o")
        place.axhline(norm, color=colour, linestyle=":", linewidth=1.2, label=f"truth, {norm:g}")
        place.set_title(READINGS[policy])
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
    norms = np.unique(rows["theta_norm"]).tolist()
    for (policy, norm), chosen in groups(rows, "policy", "theta_norm").items():
        colour = style.SERIES[norms.index(norm) % len(style.SERIES)]
        values = matrix(rows, chosen, "trial", "epoch", "norm_bound")
        epochs = np.arange(1, values.shape[1] + 1)
        traces = found.setdefault(policy, [])
        traces += plots.band(epochs, values, name=f"estimates, norm {norm:g}", colour=colour, markers=True)
        traces.append(plots.constant(norm, (1, len(epochs)), name=f"truth, {norm:g}", colour=colour))
    layout = plots.layout(plots.axis("epoch", dtick=1), plots.axis("bound on the norm", type="log", dtick=1))
    return [plots.Plot(READINGS[policy], data, layout) for policy, data in found.items()]


DRAWINGS = {
    **{
        panel: Drawing(
            f"regret, norm {norm}, b_1 = 10",
            lambda entry: LOOKS[entry["policy"]].label,
            draw_regret,
            lambda content: regret_plots(content, LOOKS),
        )
        for panel, norm in {"a": "0.1", "b": "1"}.items()
    },
    "c": Drawing(
        "estimates of the norm",
        lambda entry: f"{READINGS[entry['policy']]}, norm {entry['theta_norm']:g}",
        draw_estimates,
        estimate_plots,
    ),
}
