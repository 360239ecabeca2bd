"""Families of users, from those who share nothing to those who are all equal, and the order in which they come.

Every user has biases and a theta; a mean reward is bias + <x, theta>, with contexts of N(0, I). A family draws one
population: its users, the events of all of them in a random order, and the users whose regret counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from albatross.experiments.users import Population, generated, rated


class Crowd(NamedTuple):
    """Users and their visits."""

    population: Population
    visits: np.ndarray  # (E,) users, in the order in which they come
    counted: np.ndarray  # (N,) bool, users whose regret counts


Settings = Mapping[str, Any]
Draw = Callable[[Settings, np.random.Generator], Population]


def biases(settings: Settings, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return (n, K) biases."""
    return rng.uniform(-1.0, 1.0, (n, settings["n_arms"]))


def directions(settings: Settings, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return (n, d) vectors of norm 1."""
    drawn = rng.standard_normal((n, settings["dim"]))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def equal(settings: Settings, rng: np.random.Generator) -> Population:
    """All users are equal."""
    theta = settings["norm"] * directions(settings, rng, 1)
    return _users(
        settings, np.repeat(theta, settings["users"], 0), np.repeat(biases(settings, rng, 1), settings["users"], 0)
    )


def opposed(settings: Settings, rng: np.random.Generator) -> Population:
    """Half of the users like what the others dislike; biases are common."""
    n, theta = settings["users"], settings["norm"] * directions(settings, rng, 1)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    return _users(settings, signs[:, None] * theta, np.repeat(biases(settings, rng, 1), n, 0))


def independent(settings: Settings, rng: np.random.Generator) -> Population:
    """Users have nothing in common."""
    n, size = settings["users"], settings["norm"] / settings["dim"] ** 0.5
    return _users(settings, size * rng.standard_normal((n, settings["dim"])), biases(settings, rng, n))


def two_groups(settings: Settings, rng: np.random.Generator) -> Population:
    """Half of the users choose by outlet, half by topic, and nothing else is in common."""
    n = settings["users"]
    norms = np.where(np.arange(n) % 2, settings["largest_norm"], 0.0)
    return _users(settings, norms[:, None] * directions(settings, rng, n), biases(settings, rng, n))


def types(settings: Settings, rng: np.random.Generator) -> Population:
    """Five types of users."""
    n, k = settings["users"], settings["types"]
    of_user = rng.integers(k, size=n)
    thetas = settings["norm"] * directions(settings, rng, k)
    return _users(settings, thetas[of_user], biases(settings, rng, k)[of_user])


def low_rank(settings: Settings, rng: np.random.Generator) -> Population:
    """Thetas lie in a space of few dimensions."""
    n, rank = settings["users"], settings["rank"]
    basis = np.linalg.qr(rng.standard_normal((settings["dim"], rank)))[0]
    scores = settings["norm"] / rank**0.5 * rng.standard_normal((n, rank))
    return _users(settings, scores @ basis.T, biases(settings, rng, n))


def similar(settings: Settings, rng: np.random.Generator) -> Population:
    """Users differ a little from a common taste."""
    n, size = settings["users"], settings["deviation"]
    common = settings["norm"] * directions(settings, rng, 1)
    own = size * settings["norm"] / settings["dim"] ** 0.5 * rng.standard_normal((n, settings["dim"]))
    return _users(settings, common + own, biases(settings, rng, 1) + size * biases(settings, rng, n))


def _users(settings: Settings, thetas: np.ndarray, biases: np.ndarray) -> Population:
    return Population(np.ascontiguousarray(thetas), np.ascontiguousarray(biases), settings["noise_sd"])


# --------------------------------------------------------------------------------------- who comes, and how often


def together(draw: Draw, settings: Settings, rng: np.random.Generator) -> Crowd:
    """All users come equally often."""
    population = draw(settings, rng)
    n = len(population.biases)
    visits = rng.permutation(np.repeat(np.arange(n), settings["events"]))
    return Crowd(population, visits, np.ones(n, bool))


def rarely(draw: Draw, settings: Settings, rng: np.random.Generator) -> Crowd:
    """Many users with Zipf activity: most come a few times."""
    population = draw({**settings, "users": settings["rare_users"]}, rng)
    n = len(population.biases)
    weights = 1.0 / np.arange(1, n + 1)
    visits = rng.choice(n, settings["rare_users"] * settings["rare_events"], p=weights / weights.sum())
    return Crowd(population, visits, np.ones(n, bool))


def newcomers(draw: Draw, settings: Settings, rng: np.random.Generator) -> Crowd:
    """Half of the users come first and often; the regret of the others counts, who come later and rarely."""
    population = draw({**settings, "users": 2 * settings["users"]}, rng)
    n = len(population.biases)
    old, new = np.split(rng.permutation(n), [n // 2])
    visits = [
        rng.permutation(np.repeat(who, times))
        for who, times in ((old, settings["events"]), (new, settings["first_events"]))
    ]
    counted = np.zeros(n, bool)
    counted[new] = True
    return Crowd(population, np.concatenate(visits), counted)


FAMILIES: dict[str, tuple[Callable[[Draw, Settings, np.random.Generator], Crowd], Draw]] = {
    "users": (together, generated),
    "equal": (together, equal),
    "opposed": (together, opposed),
    "independent": (together, independent),
    "two groups": (together, two_groups),
    "five types": (together, types),
    "low rank": (together, low_rank),
    "rare visits": (rarely, similar),
    "newcomers": (newcomers, similar),
    "your data": (together, rated),
    "your data, newcomers": (newcomers, rated),
}


def drawn(family: str, settings: Settings, rng: np.random.Generator) -> Crowd:
    """Draw users of a family and their visits."""
    come, draw = FAMILIES[family]
    return come(draw, settings, rng)
