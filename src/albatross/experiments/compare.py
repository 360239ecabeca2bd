"""Race policies that are named in words on a problem of one's own."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from albatross import policies
from albatross.report import figures
from albatross.simulation import Run


def split_names(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses.

    >>> split_names("alb-norm(norm_bound=10, scale=0.5), lints")
    ['alb-norm(norm_bound=10, scale=0.5)', 'lints']
    """
    names, depth, start = [], 0, 0
    for position, letter in enumerate(text + ","):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or (depth > 0 and position == len(text)):
            raise ValueError(f"the parentheses in {text!r} do not match")
        if letter == "," and depth == 0:
            names.append(text[start:position].strip())
            start = position + 1
    return [name for name in names if name]


def build(text: str, known: Mapping[str, Any]) -> Any:
    """A policy from its name in the catalogue and, in parentheses, what differs from its defaults.

    `known` fills in what the problem tells (sigma, norm_bound), where the policy asks for it and the text does not say.

    >>> build("ucb(scale=0.5)", {"sigma": 0.7})
    UCB(sigma=0.7, delta=0.1, form='appendix', scale=0.5, ties='random')
    """
    name, _, rest = text.partition("(")
    if name == "oracle" and "theta_norm" in known:
        return build("oful-plus" + text.removeprefix("oracle"), {**known, "norm_bound": known["theta_norm"]})
    if name == "oracle":  # on the ball: told the support
        return lambda truth: dataclasses.replace(
            build("ball-oful" + text.removeprefix("oracle"), known), support=truth["support"]
        )
    if name not in policies.CATALOGUE:
        raise ValueError(f"there is no policy {name!r}; known are {', '.join(policies.CATALOGUE)} and oracle")
    kind = policies.CATALOGUE[name].policy
    fields = {field.name: field for field in dataclasses.fields(kind)}
    given: dict[str, Any] = {}
    if rest:
        try:
            call = ast.parse(f"dict({rest}", mode="eval").body
            if not isinstance(call, ast.Call) or call.args:
                raise ValueError("only keywords")
            given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
            if len(given) < len(call.keywords):
                raise ValueError("a keyword twice")
        except (SyntaxError, ValueError):
            raise ValueError(f"cannot read {text!r}: write it as {name}(parameter=value, ...)") from None
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(fields) or 'none'}")
    filled = {key: value for key, value in known.items() if key in fields and fields[key].default is not None}
    return kind(**{**filled, **given})


class Line(NamedTuple):
    """A policy in a comparison: mean final regret with its 95 % margin, and the same of the difference to the first."""

    name: str
    mean: float
    margin: float
    difference: float
    difference_margin: float
    microseconds: float  # of playing, a round


def _margin(values: np.ndarray) -> float:
    """Half the width of Student's 95 % interval for the mean."""
    from scipy.stats import t  # slow to import, so not before it is needed

    if len(values) < 2:
        return math.nan
    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))


def lines(runs: Mapping[str, Run]) -> list[Line]:
    """One line a policy; differences are paired, trial by trial, against the first."""
    first = next(iter(runs.values())).regret[:, -1]
    found = []
    for name, run in runs.items():
        final = run.regret[:, -1]
        paired = final - first
        found.append(
            Line(
                name,
                float(final.mean()),
                _margin(final),
                float(paired.mean()),
                _margin(paired),
                1e6 * run.seconds / (final.size * int(run.rounds[-1])),
            )
        )
    return found


def plot(runs: Mapping[str, Run], title: str) -> Figure:
    """Regret of all policies."""
    figure, (axes,) = figures.new_figure(1, widths=(1.5,), height=4.2)
    curves = {name: run.regret for name, run in runs.items()}
    first = next(iter(runs.values()))
    figures.draw_regret(axes, first.rounds, curves, {name: name for name in runs}, loud=list(runs))
    axes.set_title(title)
    figures.explain_band(axes, len(first.regret), loc="upper left")
    return figure
