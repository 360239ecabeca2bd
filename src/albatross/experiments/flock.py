"""Users who learn from each other: a flock beside independent policies, one shared policy and HierTS.

All users of a family (`families.py`) play in batches, with the same visits, contexts and noise for every policy.
"flock" and "albatross" are given nothing: the first learns what users have in common, the second is one Albatross per
user. "shared" is one Albatross for all. "hier-ts" is given the covariance of the users' parameters, the size of
their mean, and the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albatross import Fleet, Flock, policies
from albatross.experiments import users
from albatross.experiments.families import Crowd, drawn
from albatross.experiments.hier_ts import HierTS
from albatross.experiments.panel import Outcome, Panel, spread
from albatross.normals import fill_normal
from albatross.parallel import progress_bar
from albatross.simulation import streams

SETTINGS: dict[str, Any] = {
    "families": [
        "users",
        "equal",
        "opposed",
        "independent",
        "two groups",
        "five types",
        "low rank",
        "rare visits",
        "newcomers",
    ],
    "users": 100,
    "events": 60,  # of every user
    "batch": 10,
    "n_arms": 10,
    "dim": 16,
    "noise_sd": 0.5**0.5,
    "largest_norm": 3.0,
    "without_interest": 0.25,
    "norm": 1.5,  # of a usual theta
    "types": 5,
    "rank": 3,
    "deviation": 0.7,  # of similar users, as a share of what they have in common
    "rare_users": 1_000,
    "rare_events": 8,  # of a user, on average
    "first_events": 20,  # of a newcomer
}


class Independent:
    """One Albatross for every user, or a flock."""

    def __init__(self, bandits: Fleet | Flock) -> None:
        self.bandits = bandits

    def select(self, users: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        self.choices = self.bandits.select(users, contexts)
        arms: np.ndarray = self.choices.arms
        return arms

    def update(self, rewards: np.ndarray) -> None:
        self.bandits.update(self.choices, rewards)


class Shared(Independent):
    """One Albatross for all users."""

    def select(self, users: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        return super().select(np.zeros_like(users), contexts)


class Hierarchical:
    """HierTS, given what it needs to know of the population."""

    def __init__(self, population: users.Population, seed: np.random.SeedSequence) -> None:
        w = np.hstack([population.biases, population.thetas])
        n_arms, mean = population.biases.shape[1], w.mean(axis=0)
        sizes = [np.full(part.size, (part**2).mean()) for part in np.split(mean, [n_arms])]
        prior = np.concatenate(sizes) + 1e-6
        self.policy = HierTS(len(w), spread=np.cov(w.T), prior=prior, noise_sd=population.noise_sd, seed=seed)

    def select(self, users: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        m, n_arms, _ = contexts.shape
        rows = np.concatenate([np.broadcast_to(np.eye(n_arms), (m, n_arms, n_arms)), contexts], axis=2)
        arms = self.policy.select(users, rows)
        self.played = users, rows[np.arange(m), arms]
        return arms

    def update(self, rewards: np.ndarray) -> None:
        self.policy.update(*self.played, rewards)


def contenders(population: users.Population, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Return the policies, new."""
    n_users, n_arms = population.biases.shape
    sizes: dict[str, Any] = {"n_arms": n_arms, "dim": population.thetas.shape[1], "seed": seed}
    return {
        "flock": Independent(Flock(n_users=n_users, **sizes)),
        "albatross": Independent(Fleet(policies.Albatross(), n_users=n_users, **sizes)),
        "shared": Shared(Fleet(policies.Albatross(), n_users=1, **sizes)),
        "hier-ts": Hierarchical(population, seed),
    }


class Played(NamedTuple):
    """The results of every policy on one population."""

    crowd: Crowd
    regret: dict[str, np.ndarray]  # (E,) of every event
    topic_readers: np.ndarray  # (N,) the flock's probability that a user is one
    norms: np.ndarray  # (N,) of theta, as the flock finds it


def play(settings: Mapping[str, Any], family: str, *, trial: int, seed: int, advance: Any) -> Played:
    """All users of one population come in turn."""
    number = settings["families"].index(family)
    rng = streams(seed, 1_000 * number + trial)[0]
    crowd = drawn(family, settings, rng)
    population = crowd.population
    found = contenders(population, np.random.SeedSequence(seed, spawn_key=(trial, number, 1)))
    regret: dict[str, list[np.ndarray]] = {name: [] for name in found}
    for start in range(0, len(crowd.visits), settings["batch"]):
        who = crowd.visits[start : start + settings["batch"]]
        contexts = np.empty((len(who), population.biases.shape[1], population.thetas.shape[1]))
        noise, events = np.empty(contexts.shape[:2]), np.arange(len(who))
        users.fill_contexts(contexts, population, rng)
        fill_normal(noise, rng)
        means = population.biases[who] + np.einsum("ukd,ud->uk", contexts, population.thetas[who])
        best = means.max(axis=1)
        for name, policy in found.items():
            arms = policy.select(who, contexts)
            got = means[events, arms]
            policy.update(got + population.noise_sd * noise[events, arms])
            regret[name].append(best - got)
        advance(len(who))
    reports = [found["flock"].bandits.user(user) for user in range(len(population.biases))]
    return Played(
        crowd,
        {name: np.concatenate(parts) for name, parts in regret.items()},
        np.array([1.0 - report.kinds["outlet readers"] for report in reports]),
        np.array([report.norm for report in reports]),
    )


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run one population per family and trial."""
    tables: list[dict[str, np.ndarray]] = []
    with progress_bar(trials * len(settings["families"]), None) as advance:
        for family in settings["families"]:
            for trial in range(trials):
                played = play(settings, family, trial=trial, seed=seed, advance=lambda n: None)
                tables += rows(played, family=family, trial=trial, most=settings["events"])
                advance(1)
    table = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    return Outcome(entries(table), table)


def visit_numbers(visits: np.ndarray) -> np.ndarray:
    """Return for each visit how often its user has come, this time included.

    >>> visit_numbers(np.array([5, 3, 5, 5])).tolist()
    [1, 1, 2, 3]
    """
    order = np.argsort(visits, kind="stable")
    starts = np.r_[0, np.flatnonzero(np.diff(visits[order])) + 1]
    numbers = np.empty(len(visits), np.int64)
    numbers[order] = np.arange(len(visits)) - np.repeat(starts, np.diff(np.r_[starts, len(visits)])) + 1
    return numbers


def rows(played: Played, *, family: str, trial: int, most: int) -> list[dict[str, np.ndarray]]:
    """Return the regret of a user by number of visits, later ones together, and what the flock says of each user."""
    crowd = played.crowd
    who = np.flatnonzero(crowd.counted)
    counts = crowd.counted[crowd.visits]
    numbers = np.minimum(visit_numbers(crowd.visits)[counts], most)
    found: list[dict[str, Any]] = []
    for policy, regret in played.regret.items():
        by_visit = np.bincount(numbers, regret[counts])[1:].cumsum() / len(who)
        about: dict[str, Any] = {
            "policy": policy,
            "user": -1,
            "visit": np.arange(1, len(by_visit) + 1),
            "regret": by_visit,
        }
        found.append(about | {"norm": np.nan, "norm_found": np.nan, "topic_reader": np.nan})
    of_user = np.bincount(crowd.visits, played.regret["flock"], len(crowd.counted))[who]
    found.append(
        {"policy": "flock", "user": who, "visit": -1, "regret": of_user, "norm": crowd.population.norms[who]}
        | {"norm_found": played.norms[who], "topic_reader": played.topic_readers[who]}
    )
    return [
        {
            name: np.broadcast_to(value, len(each["regret"]))
            for name, value in {"family": family, "population": trial, **each}.items()
        }
        for each in found
    ]


def entries(table: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Return for each policy the regret of a user, summed over families, and by family in % of independent users'."""
    columns = (table[name].tolist() for name in ("policy", "family", "population", "visit", "regret"))
    last: dict[str, dict[str, dict[int, float]]] = {}  # by policy, family and population
    for policy, family, population, visit, regret in zip(*columns, strict=True):
        if visit >= 0:
            last.setdefault(policy, {}).setdefault(family, {})[population] = regret
    found = {policy: {key: np.array([*each.values()]) for key, each in last[policy].items()} for policy in last}
    return {
        policy: {
            "policy": policy,
            **spread(np.sum([*each.values()], axis=0)),
            "per_user": {
                f"{family}, %": 100.0 * float(regrets.sum() / found["albatross"][family].sum())
                for family, regrets in each.items()
            },
        }
        for policy, each in found.items()
    }


def with_data(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings for a ratings file of the user."""
    kept = users.with_data(settings, path)
    return {**kept, "families": ["your data", "your data, newcomers"]}


PANELS = {"flock": Panel("flock", __name__, SETTINGS, run, trials=10, quick_trials=1, seconds=200.0)}
