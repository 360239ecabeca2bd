"""What a flock has learnt, for people: of its population and of one user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.checks import shown
from albatross.flocking.looks import first_look
from albatross.models.population import MEANS, NOISE, S0, SPREADS, Population, Posterior
from albatross.notebook import html_table

KINDS = ("outlet readers", *(f"topic readers, spread {c:g}" for c in SPREADS[MEANS > 0.0]))
_FEW_USERS = 20
HISTORY = ("rewards", "users", "noise_sd", "theta_norm", "theta_spread", "bias_spread", "outlet_readers")


class PopulationReport(NamedTuple):
    """What all users have in common, in the units of contexts and rewards as they were given."""

    biases: dict[Any, float]  # mean reward of each arm at a context of 0
    bias_sds: dict[Any, float]  # spread of the users' biases
    theta: dict[str, float]  # mean of the users' thetas
    theta_sds: dict[str, float]  # spread of the users' thetas
    doubts: dict[str, float]  # standard errors of theta, from finitely many users
    kinds: dict[str, float]  # shares of outlet readers, theta = 0, and topic readers
    noise_sd: float  # of a typical user
    users: int  # how many with rewards it rests on
    rewards: int  # and how many rewards
    looks: int  # how often it was made anew
    history: dict[str, list[float]]  # of the looks
    warnings: list[str]

    def _repr_html_(self) -> str:
        rows = [(name, shown(value)) for name, value in self._asdict().items() if name != "history"]
        return html_table("Population", [("", "value"), *rows])


class UserReport(NamedTuple):
    """What is known of one user, in the units of contexts and rewards as they were given."""

    kinds: dict[str, float]  # probability of each kind
    theta: dict[str, float]
    theta_sds: dict[str, float]
    norm: float  # of theta
    biases: dict[Any, float]
    bias_sds: dict[Any, float]
    noise_sd: float
    rewards: int
    pending: int
    decisions: int

    def _repr_html_(self) -> str:
        return html_table("User", [("", "value"), *((name, shown(value)) for name, value in self._asdict().items())])


def look_summary(population: Population, dim: int, *, rewards: int, users: int, unit: float) -> list[float]:
    """Return one row of the history of looks."""
    s0, variances = population.noise[S0], np.diag(population.spread)
    return [
        rewards,
        users,
        float(np.sqrt(s0)),
        float(np.linalg.norm(population.mean[:dim])) / unit,
        float(np.sqrt(s0 * variances[:dim].sum())) / unit,
        float(np.sqrt(s0 * variances[dim:].mean())),
        float(population.shares[0]),
    ]


def population_report(
    population: Population,
    *,
    arms: list[Any],
    slots: np.ndarray,
    names: list[str],
    origin: np.ndarray,
    history: Any,
    varied: tuple[bool, bool],
) -> PopulationReport:
    """Describe a population; `names` are those of the features, `varied` says whether contexts and rewards ever did."""
    dim, (unit, first) = len(names), (origin[0] or 1.0, origin[1])
    s0, mean, variances = population.noise[S0], population.mean, population.noise[S0] * np.diag(population.spread)
    looks = {name: [row[k] for row in history] for k, name in enumerate(HISTORY)}
    users, rewards = (int(looks[name][-1]) if history else 0 for name in ("users", "rewards"))
    places = dim + slots
    return PopulationReport(
        biases=dict(zip(arms, (mean[places] + first).tolist(), strict=True)),
        bias_sds=dict(zip(arms, np.sqrt(variances[places]).tolist(), strict=True)),
        theta=dict(zip(names, (mean[:dim] / unit).tolist(), strict=True)),
        theta_sds=dict(zip(names, (np.sqrt(variances[:dim]) / unit).tolist(), strict=True)),
        doubts=dict(zip(names, (np.sqrt(np.diag(population.doubt)[:dim]) / unit).tolist(), strict=True)),
        kinds=dict(zip(KINDS, population.shares.tolist(), strict=True)),
        noise_sd=float(np.sqrt(s0)),
        users=users,
        rewards=rewards,
        looks=len(history),
        history=looks,
        warnings=list(_warnings(len(mean), users, rewards, *varied)),
    )


def _warnings(p: int, users: int, rewards: int, contexts_varied: bool, rewards_varied: bool) -> Any:
    if not rewards:
        yield f"Nothing is learnt of the population yet: its first look comes after {first_look(p):g} rewards."
        return
    if users < _FEW_USERS:
        yield f"The population rests on {users} users: what it says of a newcomer is uncertain below {_FEW_USERS}."
    if rewards < 2 * p:
        yield f"There are {rewards} rewards for {p} means: how much users differ is hardly known below {2 * p}."
    elif rewards < 2 * users:
        yield "Most users have one reward: how much users differ is hardly distinguishable from the noise."
    if not contexts_varied:
        yield "The contexts never change within an arm, so theta and the biases cannot be told apart."
    if not rewards_varied:
        yield "All rewards are equal: there is nothing to learn from them yet."


def user_report(
    posterior: Posterior,
    weights: np.ndarray,
    *,
    arms: list[Any],
    slots: np.ndarray,
    names: list[str],
    origin: np.ndarray,
    counts: Any,
) -> UserReport:
    """Describe a user by the posterior and the probabilities of the kinds."""
    dim, (unit, first) = len(names), (origin[0] or 1.0, origin[1])
    sds = np.sqrt(posterior.scalars[NOISE] * np.maximum(np.diag(posterior.covariance), 0.0))
    theta, places = posterior.mean[:dim] / unit, dim + slots
    rewards, pending, decisions = counts
    return UserReport(
        kinds=dict(zip(KINDS, weights.tolist(), strict=True)),
        theta=dict(zip(names, theta.tolist(), strict=True)),
        theta_sds=dict(zip(names, (sds[:dim] / unit).tolist(), strict=True)),
        norm=float(np.linalg.norm(theta)),
        biases=dict(zip(arms, (posterior.mean[places] + first).tolist(), strict=True)),
        bias_sds=dict(zip(arms, sds[places].tolist(), strict=True)),
        noise_sd=float(np.sqrt(posterior.scalars[NOISE])),
        rewards=int(rewards),
        pending=int(pending),
        decisions=int(decisions),
    )
