"""One bandit per user: the regret of each user, and the norm that ALB-Norm estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import groups
from albatross.report.figures.style import Look

_DOTS = 400  # of a policy on the page
LOOKS = {
    name: Look(label, style.colour(name))
    for name, label in {
        "alb-norm": "ALB-Norm",
        "oful-plus": "OFUL+, one bound for all",
        "osom": "OSOM, one bound for all",
        "osom-scaled": "OSOM, test at the scale of OFUL+",
        "lints": "LinTS",
        "ucb": "UCB, blind to contexts",
        "albatross": "Albatross, given nothing",
    }.items()
}


def draw(content: Content) -> Figure:
    """Draw regret against the user's norm, and the estimated norm against the true one."""
    figure, (left, right) = style.new_figure(2, widths=(1.25, 1.0), height=4.2)
    rows = content.rows
    chosen = {policy: each for (policy,), each in groups(rows, "policy").items()}
    for policy, each in chosen.items():
        norms, regret, look = rows["norm"][each], rows["regret"][each], LOOKS[policy]
        left.plot(norms, regret, ".", color=look.colour, markersize=2.5, alpha=0.3, markeredgewidth=0)
        width = 2.2 if policy == "alb-norm" else 1.5
        left.plot(*smoothed(norms, regret), color=look.colour, linewidth=width, label=look.label)
    left.set_yscale("log")
    left.set_xlabel(r"norm of the user's $\theta$")
    left.set_ylabel("regret of the user")
    left.set_title("What a user costs")
    title = f"dots: {len(norms):,} users, lines: means"
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, title=title)
    style.thousands(left.yaxis)
    norms, estimates = (rows[name][chosen["alb-norm"]] for name in ("norm", "norm_bound"))
    right.plot(norms, estimates, ".", color=style.RED, markersize=3, alpha=0.5, markeredgewidth=0)
    right.plot([0.0, norms.max()], [0.0, norms.max()], ":", color="#555555", linewidth=1.2, label="the norm itself")
    right.set_xlabel(r"norm of the user's $\theta$")
    right.set_ylabel("ALB-Norm's last bound")
    right.set_ylim(bottom=0.0)
    right.set_title("What ALB-Norm finds")
    right.legend(loc="lower right")
    return figure


def smoothed(norms: np.ndarray, regret: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean regret of the users without interest, and of the others in eight groups of similar norm."""
    order = np.argsort(norms, kind="stable")
    parts = [part for part in (order[norms[order] == 0.0], *np.array_split(order[norms[order] > 0.0], 8)) if part.size]
    return np.array([norms[part].mean() for part in parts]), np.array([regret[part].mean() for part in parts])


def user_plots(content: Content) -> list[plots.Plot]:
    """Return plots with one dot per user: the regret, and ALB-Norm's estimate."""
    rows = content.rows
    costs: list[dict[str, Any]] = []
    finds: list[dict[str, Any]] = []
    for (policy,), chosen in groups(rows, "policy").items():
        shown, look = chosen[:: max(1, len(chosen) // _DOTS)], LOOKS[policy]
        dots: dict[str, Any] = {"type": "scatter", "mode": "markers", "name": look.label}
        dots |= {"x": plots.numbers(rows["norm"][shown]), "marker": {"color": look.colour, "size": 4, "opacity": 0.55}}
        costs.append({**dots, "y": plots.numbers(rows["regret"][shown])})
        if policy == "alb-norm":
            finds.append({**dots, "y": plots.numbers(rows["norm_bound"][shown])})
    largest = float(rows["norm"].max())
    finds.append(plots.line((0, largest), (0, largest), name="the norm itself", colour=style.GREY, dash="dot"))
    norm = plots.axis("norm of the user's theta")
    layouts = (
        plots.layout(norm, plots.log_axis("regret of the user", rows["regret"])),
        plots.layout(norm, plots.axis("last bound on the norm", rangemode="tozero")),
    )
    for layout in layouts:
        layout["legend"]["itemsizing"] = "constant"  # dots are too small to tell their colour
    return [plots.Plot("What a user costs", costs, layouts[0]), plots.Plot("What ALB-Norm finds", finds, layouts[1])]


DRAWINGS = {
    "users": Drawing(
        "a bandit for every user", lambda entry: LOOKS[entry["policy"]].label, draw, user_plots, "regret of all users"
    )
}
