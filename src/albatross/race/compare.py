"""Compare policies, written as text, on one problem."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from albatross import environments, policies
from albatross.intervals import margin
from albatross.race import problems
from albatross.runs import Run


class Problem(NamedTuple):
    """A problem to race policies on."""

    env: Any
    title: str
    known: dict[str, Any]  # default keywords of the policies, and how to make an oracle
    policies: str  # raced where none are named


def mixture(*, arms: int, dim: int, theta_norm: float, noise_sd: float, norm_bound: float) -> Problem:
    """Arms with biases and contexts; the oracle is OFUL+ given the norm."""
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
    """The unit ball; the oracle is OFUL given the support."""
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
    """Nested feature maps; the oracle is LinUCB given the map, and the bases are one LinUCB per map."""
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


def in_words(text: str, problem: problems.Problem) -> Problem:
    """Return the problem of a text, without an oracle: nothing is known of its true parameters."""
    known = problems.given_to_policies(problem)
    on_ball = isinstance(problem.env, environments.Ball)
    usual = "albatross-dim,alb-dim,ball-oful,ball-lints" if on_ball else "albatross,alb-norm,lints,greedy"
    return Problem(problem.env, text, known, usual)


def _likely_range(bias_variance: float, theta_norm: float, noise_sd: float) -> tuple[float, float]:
    """Three standard deviations of a reward about 0, for contexts N(0, I)."""
    reach = 3.0 * math.sqrt(bias_variance + theta_norm**2 + noise_sd**2)
    return -reach, reach


class Line(NamedTuple):
    """A policy in a comparison: mean final regret and its difference from the first policy, with 95 % margins."""

    name: str
    mean: float
    margin: float
    difference: float
    difference_margin: float
    microseconds: float  # of playing, a round


def lines(runs: Mapping[str, Run]) -> list[Line]:
    """Return one row per policy; differences from the first policy are paired by trial."""
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
