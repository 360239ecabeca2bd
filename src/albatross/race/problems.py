"""The problems of the race, and the policies that race on each, given what they ask for.

No policy wins everywhere, and users do not know in advance which problem they have. The measure is therefore the
*ratio* of a policy's mean final regret to that of the best policy on the problem: the worst ratio, and the geometric
mean over problems.

Policies are given the noise level if they ask for it (a wrong one in two problems), a bound of 10 on the norm, and
whether there are biases. Albatross and AlbatrossDim are given nothing. Problems are data, one line each: add a line, or
use `albatross race --problem`. Where rewards drift, policies that forget race beside those that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from albatross import checks, own_files, policies
from albatross.environments import Ball, Drifting, FixedArms, Mixture, Nested
from albatross.policies import in_words
from albatross.protocol import begin, on_ball

_SD = 0.5**0.5
_BOUND = 10.0  # on the norm, for those who ask
QUICK_SECONDS = 60.0  # that the quick race is expected to take on two cores
_LEAST = 1e-9  # the noise level given to policies if there is no noise


class Problem(NamedTuple):
    """A line of the catalogue."""

    env: Any
    horizon: int
    quick: bool = False  # whether it is part of the quick race
    trials: int = 20  # 10 where they are long
    given_sigma: float = 1.0  # the noise level given to policies, in units of the true one
    biases: bool = False  # whether arms may have biases


def _correlated(dim: int, correlation: float) -> np.ndarray:
    return correlation ** np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))


def _of_rank(dim: int, rank: int) -> np.ndarray:
    root = np.random.default_rng(0).standard_normal((dim, rank)) / np.sqrt(rank)
    return root @ root.T


def _sparse(dim: int, size: int) -> np.ndarray:
    return np.r_[np.full(size, 1.0 / np.sqrt(size)), np.zeros(dim - size)]


def _random_direction(dim: int) -> np.ndarray:
    direction = np.abs(np.random.default_rng(0).standard_normal(dim))
    return direction / (1.0 + 1e-9) / np.linalg.norm(direction)


# fmt: off
ARMS: dict[str, Problem] = {
    "75 x 50, norm 0": Problem(
        Mixture(n_arms=75, dim=50, theta_norm=0.0, noise_sd=_SD), 12_775, trials=10, biases=True),
    "75 x 50, norm 0.1": Problem(
        Mixture(n_arms=75, dim=50, theta_norm=0.1, noise_sd=_SD), 12_775, trials=10, biases=True),
    "75 x 50, norm 1": Problem(
        Mixture(n_arms=75, dim=50, theta_norm=1.0, noise_sd=_SD), 12_775, trials=10, biases=True),
    "10 x 10, norm 0": Problem(Mixture(n_arms=10, dim=10, theta_norm=0.0, noise_sd=_SD), 12_775, True, biases=True),
    "10 x 10, norm 0.3": Problem(Mixture(n_arms=10, dim=10, theta_norm=0.3, noise_sd=_SD), 12_775, biases=True),
    "10 x 10, norm 1": Problem(Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 12_775, True, biases=True),
    "10 x 10, norm 3": Problem(Mixture(n_arms=10, dim=10, theta_norm=3.0, noise_sd=_SD), 12_775, biases=True),
    "5 x 100, norm 1": Problem(Mixture(n_arms=5, dim=100, theta_norm=1.0, noise_sd=_SD), 5_000, trials=10, biases=True),
    "correlated contexts": Problem(
        Mixture(n_arms=20, dim=20, theta_norm=1.0, noise_sd=_SD, covariance=_correlated(20, 0.9)), 5_000, biases=True),
    "contexts of rank 3": Problem(
        Mixture(n_arms=20, dim=30, theta_norm=1.0, noise_sd=_SD, covariance=_of_rank(30, 3)), 5_000, True, biases=True),
    "heavy noise": Problem(Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=5.0), 5_000, biases=True),
    "given half the noise level": Problem(
        Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 5_000, given_sigma=0.5, biases=True),
    "given three times the noise level": Problem(
        Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 5_000, given_sigma=3.0, biases=True),
    "10 fixed arms in a cube": Problem(
        FixedArms(n_arms=10, dim=5, arms="cube", theta=[-5.0, 1.0, 1.0, 1.5, 2.0]), 5_000, True),
    "20 fixed arms, norm 0.3": Problem(FixedArms(n_arms=20, dim=10, theta_norm=0.3, noise_sd=_SD), 5_000),
    "500 fixed arms": Problem(FixedArms(n_arms=500, dim=50, noise_sd=_SD), 5_000, trials=10),
    "lock-in: 10 arms alone": Problem(
        FixedArms(n_arms=10, dim=10, arms="axes", theta=np.linspace(0.0, 1.0, 10)), 5_000, True),
    "200 fixed arms in two dimensions": Problem(FixedArms(n_arms=200, dim=2, noise_sd=_SD), 5_000),
    "3 of 50 features": Problem(
        Mixture(n_arms=10, dim=50, theta=_sparse(50, 3), biases=np.zeros(10), noise_sd=_SD), 5_000),
    "10 of 50 features": Problem(
        Mixture(n_arms=10, dim=50, theta=_sparse(50, 10), biases=np.zeros(10), noise_sd=_SD), 5_000),
    "nested, 5 of 20": Problem(Nested(n_arms=10, dims=(5, 10, 20), true_dim=5, noise_sd=_SD), 5_000),
    "nested, 10 of 20": Problem(Nested(n_arms=10, dims=(5, 10, 20), true_dim=10, noise_sd=_SD), 5_000),
    "nested, 20 of 20": Problem(Nested(n_arms=10, dims=(5, 10, 20), true_dim=20, noise_sd=_SD), 5_000),
}
DRIFT: dict[str, Problem] = {
    "redrawn every 2000": Problem(Drifting(n_arms=10, dim=5, drift="redrawn", rounds=2_000, noise_sd=_SD), 6_000, True),
    "redrawn every 600": Problem(Drifting(n_arms=10, dim=5, drift="redrawn", rounds=600, noise_sd=_SD), 6_000),
    "one turn in 6000": Problem(Drifting(n_arms=10, dim=5, drift="turn", rounds=6_000, noise_sd=_SD), 6_000),
    "random walk, 2000": Problem(Drifting(n_arms=10, dim=5, drift="walk", rounds=2_000, noise_sd=_SD), 6_000),
    "redrawn with biases": Problem(
        Drifting(n_arms=10, dim=5, drift="redrawn", rounds=2_000, noise_sd=_SD, biases=True), 6_000, biases=True),
    "no drift": Problem(Mixture(n_arms=10, dim=5, biases=np.zeros(10), noise_sd=_SD), 6_000),
}
BALL: dict[str, Problem] = {
    "20 of 200, evenly": Problem(
        Ball(dim=200, magnitudes=np.linspace(0.12, 0.30, 20), noise_sd=0.1), 100_000, trials=5),
    "20 of 200, all small": Problem(Ball(dim=200, magnitudes=np.full(20, 0.12), noise_sd=0.1), 100_000, trials=5),
    "one large of 200": Problem(
        Ball(dim=200, magnitudes=np.r_[0.9, np.full(9, 0.1)], noise_sd=0.1), 100_000, trials=5),
    "all of 200": Problem(Ball(dim=200, magnitudes=_random_direction(200), noise_sd=0.1), 100_000, trials=5),
    "5 of 50": Problem(Ball(dim=50, sparsity=5, smallest=0.3, noise_sd=0.3), 20_000, True),
}
# fmt: on
FAMILIES = {"finitely many arms": ARMS, "rewards that drift": DRIFT, "the unit ball": BALL}

# By name, how they are written. Corral and the balancing policies race over bases that a user would take.
ARM_POLICIES = {
    "albatross": "albatross(biases=True)",
    **{
        name: name
        for name in (
            *("alb-norm", "oful-plus", "osom", "oful", "linucb", "lints", "greedy", "ucb", "na-oful", "sf-oful"),
            *("eb-ucb", "eb-lints", "threshold-lasso", "sa-lasso", "ed2rb", "uniform"),
        )
    },
}
# Their memories are those that are best on average over these problems, which no user would know.
DRIFT_POLICIES = {
    "albatross": "albatross(biases=True)",
    "albatross-learnt": "albatross(biases=True, memory='learnt')",
    "d-linucb": "linucb(memory=70, alpha=0.35)",
    "sw-linucb": "sw-linucb(window=200, alpha=0.35)",
    **{name: name for name in ("linucb", "lints", "greedy", "uniform")},
}
BALL_POLICIES = {
    "albatross-dim": "albatross-dim",
    "ball-lints": "ball-lints(switch=0.01)",
    "ball-oful": "ball-oful(switch=0.1)",
    "alb-dim": "alb-dim(switch=0.1)",
    "sl-ucb": "sl-ucb",
    "explore-then-commit": "explore-then-commit",
}


def contenders(problem: Problem, chosen: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the policies that race on a problem, by name, given what they ask for."""
    written = racing(problem)
    if chosen is not None:
        written = {text: written.get(text, text) for text in chosen}
    known = given_to_policies(problem)
    built = {name: in_words.build(text, known, files=True) for name, text in written.items()}
    return {name: policy for name, policy in built.items() if on_ball(policy) == isinstance(problem.env, Ball)}


def racing(problem: Problem) -> dict[str, str]:
    """Return the policies that race on a problem by default, by name, as they are written."""
    if isinstance(problem.env, Ball):
        return BALL_POLICIES
    return DRIFT_POLICIES if any(problem is each for each in DRIFT.values()) else ARM_POLICIES


def given_in_words(problem: Problem) -> dict[str, str]:
    """Return what each policy that races on a problem by default is given."""
    words = {"sigma": "noise level", "norm_bound": "norm bound", "biases": "biases or none", "bases": "bases"}
    known, found = given_to_policies(problem), {}
    for name, text in racing(problem).items():
        kind, _, options = text.partition("(")
        defaults = {field.name: field.default for field in fields(policies.CATALOGUE[kind].policy)}
        asked = [key for key in known if defaults.get(key) is not None and f"{key}=" not in options]
        tuned = [key for key in ("memory", "window") if f"{key}=" in options and "learnt" not in options]
        found[name] = ", ".join([words[key] for key in asked] + tuned) or "nothing"
    return found


def given_to_policies(problem: Problem) -> dict[str, Any]:
    """Return the keywords that policies get if they ask for them.

    The noise level is that of the environment; if a user's own has no `noise_sd`, policies keep their defaults.
    """
    noise_sd = getattr(problem.env, "noise_sd", None)
    level: dict[str, Any] = (
        {} if noise_sd is None else {"sigma": problem.given_sigma * noise_sd or _LEAST}
    )  # without noise, a little
    return {
        **level,
        "norm_bound": 1.0 if isinstance(problem.env, Ball) else _BOUND,
        "biases": problem.biases,
        "bases": (
            policies.LinTS(biases=problem.biases, **level),
            policies.Greedy(biases=problem.biases),
            policies.UCB(**level),
        ),
    }


def own_families(texts: Iterable[str]) -> dict[str, dict[str, Problem]]:
    """Parse problems and number them, with arms and on the ball apart: they have different policies."""
    problems = {f"{number}: {text.partition('(')[0]}": read_problem(text) for number, text in enumerate(texts, 1)}
    ball = {name: problem for name, problem in problems.items() if isinstance(problem.env, Ball)}
    arms = {name: problem for name, problem in problems.items() if name not in ball}
    both = {"your problems": arms, "your problems on the ball": ball}
    return {title: family for title, family in both.items() if family}


def read_problem(text: str) -> Problem:
    """Parse a problem: an environment with its parameters, and optionally a horizon.

    The environment may be one of a user's own file, `my_file.py:MyEnv(speed=0.1)`, which is run.

    >>> read_problem("Mixture(n_arms=5, dim=3, theta_norm=2, horizon=500)").horizon
    500
    """
    kinds: dict[str, Any] = {each.__name__: each for each in (Mixture, FixedArms, Nested, Drifting, Ball)}
    name, rest = in_words.call_parts(text)
    own = own_files.is_own(name)
    try:
        if own:
            kinds[name] = own_files.find_class(name, "environment", _is_environment_class)
        kind, given = kinds[name], in_words.keywords(rest or ")" * own, in_words.literal)
    except (KeyError, in_words.Unreadable):
        raise ValueError(
            f"cannot read {checks.shown(text)}: write an environment ({', '.join(kinds)}) with its parameters, as in "
            "Mixture(n_arms=20, dim=5, theta_norm=2.0, horizon=5000)"
        ) from None
    horizon = given.pop("horizon", 5_000)
    try:
        env = kind(**given)
    except ValueError:
        raise
    except Exception as error:  # a number too large for a float, say; a user's own class may raise anything
        raise ValueError(f"{checks.shown(text)}: {error}") from None
    for size in ("n_arms", "dim"):
        checks.whole(f"{size} of {name}", getattr(env, size, None), least=1)
    return Problem(env, horizon, quick=True, biases=own or isinstance(env, Mixture))


def _is_environment_class(kind: type) -> bool:
    return begin.dispatch(kind) is not begin.dispatch(object)


def catalogue(*, quick: bool) -> dict[str, dict[str, Problem]]:
    """Return all problems by family; with `quick`, a few of them with fewer rounds."""
    if not quick:
        return dict(FAMILIES)
    shortened = {title: in_short(problems) for title, problems in FAMILIES.items()}
    return {title: problems for title, problems in shortened.items() if problems}


def in_short(problems: Mapping[str, Problem]) -> dict[str, Problem]:
    """Return the problems of the quick race, with fewer rounds."""
    return {
        name: problem._replace(horizon=min(problem.horizon, 2_000), trials=10)
        for name, problem in problems.items()
        if problem.quick
    }
