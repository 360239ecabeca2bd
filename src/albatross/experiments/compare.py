"""Race policies that are named in words on a problem of one's own."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from albatross import checks, environments, policies
from albatross.report import figures
from albatross.report.intervals import margin
from albatross.simulation import Run

_LONGEST = 10_000  # characters of a policy or a problem in words


class Problem(NamedTuple):
    """What policies are raced on."""

    env: Any
    title: str
    known: dict[str, Any]  # what a policy is told unless it is told otherwise; how to make an oracle
    policies: str  # raced where none are named


def mixture(*, arms: int, dim: int, theta_norm: float, noise_sd: float, norm_bound: float) -> Problem:
    """Arms with biases and contexts; the oracle is OFUL+ told the norm."""
    return Problem(
        environments.Mixture(n_arms=arms, dim=dim, theta_norm=theta_norm, noise_sd=noise_sd),
        f"{arms} arms, {dim} features, norm {theta_norm:g}",
        {
            "sigma": noise_sd,
            "norm_bound": norm_bound,
            "bases": (policies.LinUCB(), policies.LinTS(sigma=noise_sd), policies.UCB(sigma=noise_sd)),
            "reward_range": _likely_range(1.0 / 3.0, theta_norm, noise_sd),
            "oracle": lambda make: make("oful-plus", norm_bound=theta_norm),
        },
        "albatross,alb-norm,lints,greedy",
    )


def ball(*, dim: int, sparsity: int, smallest: float, noise_sd: float) -> Problem:
    """The unit ball; the oracle is OFUL told the support."""
    return Problem(
        environments.Ball(dim=dim, sparsity=sparsity, smallest=smallest, noise_sd=noise_sd),
        f"the ball, {sparsity} of {dim} coordinates",
        {
            "sigma": noise_sd,
            "oracle": lambda make: lambda truth: dataclasses.replace(make("ball-oful"), support=truth["support"]),
        },
        "albatross-dim,alb-dim,ball-oful,ball-lints,sl-ucb,explore-then-commit,oracle",
    )


def nested(*, arms: int, dims: tuple[int, ...], true_dim: int, theta_norm: float, noise_sd: float) -> Problem:
    """Nested feature maps; the oracle is LinUCB told the map, and bases are one LinUCB a map."""
    parameter: dict[str, Any] = {"true_dim": true_dim, "magnitude": theta_norm / math.sqrt(true_dim)}
    if theta_norm == 0.0:
        parameter = {"theta": np.zeros(dims[-1])}
    env = environments.Nested(n_arms=arms, dims=dims, noise_sd=noise_sd, **parameter)
    linucb = policies.LinUCB(biases=False)
    several = {"bases": tuple(policies.FirstFeatures(policy=linucb, dim=dim) for dim in env.dims)}
    return Problem(
        env,
        f"{arms} arms, maps of dimension {', '.join(map(str, env.dims))}, {true_dim} is enough",
        {
            "sigma": noise_sd,
            "dims": env.dims,
            "biases": False,
            **(several if len(env.dims) > 1 else {}),
            "reward_range": _likely_range(0.0, theta_norm, noise_sd),
            "oracle": lambda make: lambda truth: policies.FirstFeatures(policy=make("linucb"), dim=truth["dim"]),
        },
        "alb-dim-finite(inner='linucb'),linucb,mod-cb," + "corral,ed2rb," * (len(env.dims) > 1) + "oracle",
    )


def _likely_range(bias_variance: float, theta_norm: float, noise_sd: float) -> tuple[float, float]:
    """Three standard deviations of a reward about 0, for contexts N(0, I)."""
    reach = 3.0 * math.sqrt(bias_variance + theta_norm**2 + noise_sd**2)
    return -reach, reach


# --------------------------------------------------------------------------------------------- policies in words


class Unreadable(Exception):
    """Not a call with literals and policies for its keywords."""


def call_parts(text: str) -> tuple[str, str]:
    """The name of a call, and what follows its opening parenthesis."""
    if len(text) > _LONGEST:
        raise ValueError(f"{checks.shown(text)} has {len(text):,} characters: at most {_LONGEST:,} are read")
    name, _, rest = text.partition("(")
    return name, rest


def split_names(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses.

    >>> split_names("alb-norm(norm_bound=10, scale=0.5), lints")
    ['alb-norm(norm_bound=10, scale=0.5)', 'lints']
    """
    names, depth, start = [], 0, 0
    for position, letter in enumerate(text + ","):
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or (depth > 0 and position == len(text)):
            raise ValueError(f"the parentheses in {checks.shown(text)} do not match")
        if letter == "," and depth == 0:
            names.append(text[start:position].strip())
            start = position + 1
    return [name for name in names if name]


def build(text: str, known: Mapping[str, Any]) -> Any:
    """A policy from its name in the catalogue and, in parentheses, what differs from its defaults.

    `known` fills in what the problem tells (sigma, norm_bound), where the policy asks for it and the text does not say.
    A parameter that is itself a policy, or a tuple of them, is written with the policies' classes:
    `ed2rb(bases=(LinUCB(), UCB(scale=0.5)))`.

    >>> build("ucb(scale=0.5)", {"sigma": 0.7})
    UCB(sigma=0.7, delta=0.1, form='appendix', scale=0.5, ties='random')
    """
    name, rest = call_parts(text)
    if name == "oracle":
        if "oracle" not in known:
            raise ValueError("there is no oracle here: only `albatross compare` knows what to tell one")
        return known["oracle"](lambda like, **more: build(like + text.removeprefix("oracle"), {**known, **more}))
    if name not in policies.CATALOGUE:
        raise ValueError(f"there is no policy {checks.shown(name)}{_instead(name)}")
    kind = policies.CATALOGUE[name].policy
    given: dict[str, Any] = {}
    if rest:
        try:
            given = keywords(rest, lambda node: _value(node, known))
        except Unreadable:
            raise ValueError(f"cannot read {checks.shown(text)}: write it as {name}(parameter=value, ...)") from None
    return _make(name, kind, given, known)


def _instead(name: str) -> str:
    """What a name that no policy has was meant to be, or else all names."""
    names = [*policies.CATALOGUE, "oracle"]
    spellings = {entry.policy.__name__.lower(): known for known, entry in policies.CATALOGUE.items()}
    spellings.update({known: known for known in names})
    words = [spellings.get(word) for word in name.lower().split()]
    if len(words) > 1 and None not in words:
        return f": separate names by commas, {','.join(map(str, words))}"
    close = difflib.get_close_matches(name.lower(), spellings, n=1, cutoff=0.7)
    if close:
        return f": did you mean {spellings[close[0]]}? `albatross policies` lists all"
    return f"; known are {', '.join(names[:-1])} and {names[-1]}"


def _make(name: str, kind: type, given: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(fields) or 'none'}")
    filled = {key: value for key, value in known.items() if key in fields and fields[key].default is not None}
    missing = [
        key for key, field in fields.items() if field.default is dataclasses.MISSING and key not in {**filled, **given}
    ]
    if missing:
        raise ValueError(f"{name} must be told {missing[0]!r}: write {name}({missing[0]}=...)")
    try:
        return kind(**{**filled, **given})
    except (TypeError, OverflowError) as error:  # a number too large for a float, say
        raise ValueError(f"cannot make {name} of these parameters: {error}") from None


def keywords(text: str, value: Callable[[ast.expr], Any]) -> dict[str, Any]:
    """What stands in the parentheses of a call, the closing one included: keywords, each of which `value` reads.

    >>> keywords("n_arms=2, theta=[1.0, -1.0])", literal)
    {'n_arms': 2, 'theta': [1.0, -1.0]}
    """
    try:
        call = ast.parse(f"dict({text}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of a text that is nested too deeply
        raise Unreadable from None
    return _keywords(call, value)


def _keywords(call: ast.expr, value: Callable[[ast.expr], Any]) -> dict[str, Any]:
    """The keywords of a call, which has nothing else."""
    if not isinstance(call, ast.Call) or call.args:
        raise Unreadable
    given = {keyword.arg: value(keyword.value) for keyword in call.keywords if keyword.arg is not None}
    if len(given) < len(call.keywords):  # one twice, or **
        raise Unreadable
    return given


def literal(node: ast.expr) -> Any:
    """A number, a text, or a list, tuple or dict of these."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise Unreadable from None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A literal, a policy by its class, or a tuple of these."""
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(part, known) for part in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for entry in policies.CATALOGUE.values():
            if entry.policy.__name__ == node.func.id:
                given = _keywords(node, lambda part: _value(part, known))
                return _make(node.func.id, entry.policy, given, known)
    return literal(node)


# ----------------------------------------------------------------------------------------------------- the result


class Line(NamedTuple):
    """A policy in a comparison: mean final regret with its 95 % margin, and the same of the difference to the first."""

    name: str
    mean: float
    margin: float
    difference: float
    difference_margin: float
    microseconds: float  # of playing, a round


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
                margin(final),
                float(paired.mean()),
                margin(paired),
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
