"""Regret against the norm, the bound, d, d* and T, beside the curves of the theorems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from albatross.bounds import Condition
from albatross.intervals import slope
from albatross.report.conditions import THEOREMS, conditions
from albatross.report.figures import plots, style
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.rows import by_policy
from albatross.report.figures.style import Look
from albatross.report.wording import short

# Those who adapt, those who do not and those who need not have one colour each throughout.
LOOKS = {
    "alb-norm": Look("ALB-Norm", style.RED),
    "oful-plus": Look("OFUL+ given the bound", style.BLUE),
    "oracle": Look("oracle", style.GREEN),
    "osom": Look("OSOM given the bound", style.SKY, quiet=True),
    "osom-scaled": Look("OSOM, test at the scale of OFUL+", style.colour("osom-scaled"), quiet=True),
    "lints": Look("LinTS", style.PINK, quiet=True),
    "albatross": Look("Albatross", style.WINE, quiet=True),
    "alb-norm-no-biases": Look("ALB-Norm, all biases 0", style.RED, "dash", quiet=True),
    "alb-dim": Look("ALB-Dim", style.RED),
    "oful": Look("OFUL on all coordinates", style.BLUE),
    "albatross-dim": Look("AlbatrossDim, far fewer rounds", style.WINE, quiet=True),
    "alb-dim-suplinrel": Look("ALB-Dim", style.RED),
    "suplinrel-full": Look("SupLinRel on all features", style.BLUE),
    "suplinrel-oracle": Look("oracle", style.GREEN),
}


class Part(NamedTuple):
    """One quantity against which regret is measured."""

    name: str
    axis: str  # in print
    title: str  # on the page
    problem: str  # whose settings
    at_values: bool = True  # whether ticks stand at the values of x; otherwise x is the round


PARTS = {
    "norm": Part("the norm", r"norm of $\theta^*$, given {norm_bound:g}", "norm of theta*", "mixture"),
    "bound": Part(
        "the bound", "bound that is given, for a norm of {theta_norm:g}", "bound on the norm that is given", "mixture"
    ),
    "rounds-mixture": Part("T, arms with biases", "round", "rounds, arms with biases", "mixture", False),
    "dim": Part("d", "$d$, with {sparsity} coordinates in use", "d, all coordinates", "ball"),
    "sparsity": Part("d*", "$d^*$, of {dim} coordinates", "d*, coordinates in use", "ball"),
    "gamma": Part("gamma", r"$\gamma$, regret of the last phase", "gamma, regret of the last phase", "ball"),
    "rounds-ball": Part("T, unit ball", "round", "rounds, unit ball", "ball", False),
    "rounds-nested": Part("T, nested maps", "round", "rounds, nested maps", "nested", False),
}


class Sweep(NamedTuple):
    """Regret of each policy at several values of one quantity, and the theorem's curve, scaled."""

    x: np.ndarray  # (n,)
    regret: dict[str, np.ndarray]  # (trials, n)
    theorem: str
    curve: np.ndarray | None  # (n,)


def sweeps(rows: Mapping[str, np.ndarray]) -> dict[str, Sweep]:
    """Return the curves by part, in the order of the table."""
    found = {}
    for part in dict.fromkeys(rows["part"].tolist()):
        own = {name: column[rows["part"] == part] for name, column in rows.items()}
        regret, theorem = by_policy(own, along="x", value="regret"), THEOREMS[PARTS[part].problem]
        curve = regret.pop(theorem, None)
        found[part] = Sweep(np.unique(own["x"]), regret, theorem, None if curve is None else curve[0])
    return found


def _draw_part(axes: Axes, part: Part, sweep: Sweep, settings: Mapping[str, Any]) -> None:
    """Draw regret against one quantity on log axes, with the policies and slopes below."""
    for policy, regret in sweep.regret.items():
        look = LOOKS[policy]
        labelled = look._replace(label=f"{look.label}: {slope(sweep.x, regret)}")
        style.draw_policy(axes, sweep.x, regret, labelled, marker="" if look.quiet else "o")
    if sweep.curve is not None:
        label = f"{sweep.theorem}, shape only: {slope(sweep.x, sweep.curve[None])}"
        axes.plot(sweep.x, sweep.curve, ":", color="#333333", linewidth=1.4, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    if part.at_values:
        axes.set_xticks(sweep.x, [f"{x:g}" for x in sweep.x])
        axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.yaxis,) if part.at_values else (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if high < 100.0 * low:  # too short for powers of ten alone
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_minor_locator(NullLocator())
            style.thousands(axis)
    axes.set_xlabel(part.axis.format(**settings))
    axes.set_title(f"Against {part.name}")
    axes.legend(loc="upper left", bbox_to_anchor=(-0.04, -0.16), frameon=False)


def _explain(axes: Axes, content: Content) -> None:
    """Describe the numbers, and list the conditions of the theorems that hold."""
    trials, settings = content.trials, content.settings
    interval = f"with its\n95 % interval over {trials} trials; bands: one sd." if trials > 1 else "in one trial."
    lines = [f"After a name: the slope of regret on log axes, {interval}"]
    lines += ["Dotted: what of a theorem's bound grows with T,\nscaled to meet the adaptive policy's last point."]
    lines += [f"AlbatrossDim plays no blocks: {settings['ball']['horizon_without_blocks']:,} rounds."]
    for problem, theorem in THEOREMS.items():
        lines.append(f"\n{theorem} asks for")
        for each in conditions(problem, settings[problem]):
            lines.append(f"  {'✓' if each.holds else '✗'} {each.statement}\n       {_versus(each)}")
    axes.axis("off")
    axes.set_title("How to read this")
    axes.text(0.0, 0.99, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=7.2, linespacing=1.3)


def _versus(condition: Condition) -> str:
    return f"{short(condition.given)}, needs {short(condition.needed)}"


def draw(content: Content) -> Figure:
    """A plot for every part, and what the theorems ask for."""
    figure, cells = style.new_figure(3, rows=3, widths=(1.0,) * 3, height=13.4)
    _explain(cells.pop(), content)
    for axes, (part, sweep) in zip(cells, sweeps(content.rows).items(), strict=True):
        _draw_part(axes, PARTS[part], sweep, content.settings[PARTS[part].problem])
    figure.set_layout_engine("constrained", hspace=0.06, wspace=0.04)
    for axes in cells[::3]:
        axes.set_ylabel("cumulative regret")
    return figure


def part_plots(content: Content) -> list[plots.Plot]:
    """Return a plot of final regret against one property of the problem, on log axes; slopes follow the names."""
    found = []
    for part, sweep in sweeps(content.rows).items():
        data: list[dict[str, Any]] = []
        for policy, regret in sweep.regret.items():
            look = LOOKS[policy]
            named = look._replace(label=f"{look.label}: {slope(sweep.x, regret).mean:z.2f}")
            data += plots.policy_band(sweep.x, regret, named, markers=True)
        shown = list(sweep.regret.values())
        if sweep.curve is not None:
            name = f"{sweep.theorem}, shape only: {slope(sweep.x, sweep.curve[None]).mean:z.2f}"
            data.append(plots.line(sweep.x, sweep.curve, name=name, colour=style.GREY, dash="dot"))
            shown.append(sweep.curve[None])
        title, values = PARTS[part].title, np.concatenate([each.ravel() for each in shown])
        layout = plots.layout(plots.log_axis(title, sweep.x), plots.log_axis("final regret", values))
        found.append(plots.Plot(f"Regret against {title}", data, layout))
    return found


DRAWINGS = {
    "scaling": Drawing(
        "regret against norm, bound, d, d* and T",
        lambda entry: f"{LOOKS[entry['policy']].label}, against {PARTS[entry['part']].name}",
        draw,
        part_plots,
        "regret at the largest x",
    )
}
