"""The theorems where their conditions hold: estimates of the norm, coverage, errors of exploration, and regret."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import groups, matrix
from albatross.report.figures.style import Look

LOOKS = {
    "letter": Look("to the letter", style.RED),
    "centred": Look("centred within arms", style.BLUE),
    "proved": Look("proved here", style.GREEN),
    "letter, C = 6": Look("to the letter, constant 6", style.RED),
    "letter, C = 24": Look("to the letter, constant 24", style.RED, "dash", quiet=True),
    "literal": Look("T_0 as defined", style.RED),
    "unnormalised": Look("T_0 without 1 / N", style.ORANGE),
    "isotropic": Look("T_0 of the stated order", style.SKY),
}


_LINES = "the norm, the edge of the set, or the share that is promised or allowed"


_SHARES = -0.05, 1.05  # the range of a plot of shares
_PARTS = {  # in the table of final numbers
    "norm-bound": "estimate of the norm",
    "set": "distance of theta* in radii of the set",
    "rounds": "regret after all rounds",
    "arms": "regret, by K",
    "dims": "regret, by d",
    "bounds": "regret, by b_1",
    "start-bound-pairs": "b_1 / norm, by pairs",
    "start-error-pairs": "first error / its width, by pairs",
    "start-bound-spreads": "b_1 / norm, by contexts",
    "start-error-spreads": "first error / its width, by contexts",
    "first-phase": "T_0, by d",
    "lemma-2": "error / eps of Lemma 2, by d",
    "remark-4": "error / (1/2) of Remark 4, by d",
    "lemma-3": "error / (1/16) of Lemma 3, by d",
    "gamma-all": "regret, by gamma",
    "gamma-last": "regret of the last phase, by gamma",
    "gamma-bound": "regret / bound of Theorem 2, by gamma",
}


class View(NamedTuple):
    """One plot: values of a part, or in what share of the draws they exceed 1."""

    part: str
    title: str
    x: str
    y: str
    log: bool = True  # both axes; otherwise neither
    exceeding: bool = False
    line: float | None = None  # drawn across, with its name
    line_name: str = ""


def views(content: Content) -> list[View]:
    """All plots, in the order of the paper."""
    mixture, start, samples = (content.settings[kind] for kind in ("mixture", "start", "samples"))
    share = {"log": False, "exceeding": True}
    return [
        View(
            "norm-bound", "Estimates of the norm", "epoch", "b_i", False, line=mixture["theta_norm"], line_name="norm"
        ),
        View("set", "Distance of theta* from the estimate", "epoch", "in radii of the set", line=1.0, line_name="edge"),
        View("rounds", "Regret over epochs", "round", "regret"),
        View("arms", "Regret against the number of arms", "K", "regret"),
        View("dims", "Regret against the number of features", "d", "regret"),
        View("bounds", "Regret against the first bound", "b_1", "regret"),
        *(
            View(f"start-bound-{kind}", title, x, "share of draws", False, True, 1.0 - start["delta"], "promised")
            for kind, title, x in (
                ("pairs", "b_1 is at least the norm, by pairs", "pairs per feature"),
                ("spreads", "b_1 is at least the norm, by contexts", "rho_min"),
            )
        ),
        View(
            "lemma-2",
            "Lemma 2: error too large",
            "d",
            "share of draws",
            **share,
            line=samples["delta"],
            line_name="allowed",
        ),
        View(
            "remark-4",
            "Remark 4: error above 1/2",
            "d",
            "share of draws",
            **share,
            line=samples["delta"],
            line_name="allowed",
        ),
        View("gamma-all", "Regret of ALB-Dim", "smallest magnitude", "regret"),
        View("gamma-last", "Regret of ALB-Dim in its last phase", "smallest magnitude", "regret"),
    ]


def curves(content: Content, view: View) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By reading: x, and (trials, n) values or (1, n) shares."""
    rows, found = content.rows, {}
    for (part, name), chosen in groups(rows, "part", "policy").items():
        if part != view.part:
            continue
        x = np.unique(rows["x"][chosen])
        if view.exceeding:
            at = [rows["value"][chosen][rows["x"][chosen] == each] for each in x]
            found[name] = x, np.array([[np.mean(values >= 1.0) for values in at]])
        else:
            found[name] = x, matrix(rows, chosen, "trial", "x", "value")
    return found


def draw(content: Content) -> Figure:
    """All plots for print."""
    figure, cells = style.new_figure(4, rows=3, widths=(0.82,) * 4, height=10.2)
    for axes, view in zip(cells, views(content), strict=True):
        found = curves(content, view)
        for name, (x, values) in found.items():
            style.draw_policy(axes, x, values, LOOKS[name], marker="o")
        if view.line is not None:
            axes.axhline(view.line, color="#333333", linestyle=":", linewidth=1.2, label=_LINES)
        if view.log:
            axes.set_xscale("log")
            axes.set_yscale("log")
            style.plain_log_ticks(axes.yaxis)
            at = np.unique(np.concatenate([np.empty(0), *(x for x, _ in found.values())]))
            axes.set_xticks(at, [plots.in_words(float(f"{each:.3g}")) for each in at])
            axes.minorticks_off()
        if view.exceeding:
            axes.set_ylim(_SHARES)
        axes.set(xlabel=view.x, ylabel=view.y)
        axes.set_title(view.title, fontsize=9)
    named = dict(pair[::-1] for axes in cells for pair in zip(*axes.get_legend_handles_labels(), strict=True))
    title = f"{style.about_band(content.trials)}; shares are of more draws"
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=5, title=title)
    return figure


def part_plots(content: Content) -> list[plots.Plot]:
    """All plots for the page."""
    found = []
    for view in views(content):
        data: list[dict[str, Any]] = []
        every_x, every_y = [], []
        for name, (x, values) in curves(content, view).items():
            data += plots.policy_band(x, values, LOOKS[name], markers=True)
            every_x.append(x)
            every_y.append(values.ravel())
        if not data:
            continue
        xs, ys = np.concatenate(every_x), np.concatenate(every_y)
        if view.line is not None:
            ends = (float(xs.min()), float(xs.max()))
            data.append(plots.constant(view.line, ends, name=view.line_name, colour=style.GREY))
        both = (
            (plots.log_axis(view.x, xs), plots.log_axis(view.y, ys))
            if view.log
            else (plots.axis(view.x), plots.axis(view.y, **{"range": list(_SHARES)} if view.exceeding else {}))
        )
        found.append(plots.Plot(view.title, data, plots.layout(*both)))
    return found


DRAWINGS = {
    "theorems": Drawing(
        "the theorems where their conditions hold",
        lambda entry: f"{LOOKS[entry['policy']].label}: {_PARTS[entry['part']]}",
        draw,
        part_plots,
        "value at the largest x",
    )
}
