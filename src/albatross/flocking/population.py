"""The population of a flock: what all users have in common, how it is learnt, and its history."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from albatross import checks, saving
from albatross.flocking.crowd import BUCKETS, Audience, FlockCrowd
from albatross.flocking.looks import Looks, begins_early, looked
from albatross.flocking.playing import hear_users
from albatross.flocking.reports import HISTORY, look_summary
from albatross.models.population import Population, first_population, prior_for_looks, prior_for_users, with_arm
from albatross.models.population_looks import COMMON, WEIGHT, Heard, noise_guesses, nothing_heard, renewed
from albatross.states import leaves, mapped

BIASES = ("joint", "independent")
_MANY_ARMS = 50  # from which on biases are independent unless the caller says otherwise
_ROUNDING = 1e-6  # of a covariance: what a look leaves of the flat prior has lost ten digits


class Common:
    """The present population, its number, and when it is made anew."""

    def __init__(self, n_arms: int, dim: int, biases: str) -> None:
        self.dim, self.biases, self.looks = dim, biases, Looks(n_arms + dim)
        self.history: list[list[float]] = []  # one row per look
        self.use(self.first(n_arms), 0)

    def first(self, n_arms: int) -> Population:
        """Return the population before any reward."""
        return first_population(n_arms, self.dim, independent=self.biases == "independent")

    def use(self, population: Population, version: int) -> None:
        """Use a population, of this number, from now on. Users take it up at their next decisions."""
        prior = prior_for_users(population)
        self.population, self.prior, self.version = population, prior, version

    def with_arm(self, slot: int) -> Common:
        """Return the population with a new arm in a slot, beside this one."""
        common = copy(self)
        common.use(with_arm(self.population, self.dim, slot), self.version + 1)
        return common

    def look(self, crowd: FlockCrowd, unit: float) -> None:
        """Learn the population anew from all users. If that fails, the present one stays in use."""
        looks, audience = self.looks, crowd.audience()
        try:
            population = self.looked(
                self.population, lambda each: self.heard(each, audience), rewards=looks.rewards, last=looks.last
            )
        except ValueError as error:  # one user must not stop the updates of all others
            warnings.warn(f"the population stays as it is: {error}", stacklevel=2)
        else:
            self.note(population, crowd, unit)
            looks.last = looks.rewards
        looks.pass_due()

    def looked(
        self, population: Population, hear: Callable[[Population], list[Heard]], *, rewards: int, last: int
    ) -> Population:
        """Return the population that a look finds if all users say `hear(population)` under a population."""
        first = self.first(len(population.mean) - self.dim)
        return looked(
            population,
            lambda each, few: self.renewed(each, hear(each), few=few),
            guesses=lambda each: with_guesses(each, in_pairs(hear(each))),
            evidence=lambda each: float(in_pairs(hear(each)).evidence[COMMON]),
            first=first,
            rewards=rewards,
            last=last,
        )

    def heard(self, population: Population, audience: Audience) -> list[Heard]:
        """Return what the users of every bucket say under a population."""
        prior, heard = prior_for_looks(population), [nothing_heard(len(population.mean)) for _ in range(BUCKETS)]
        for users, sums in zip(audience.buckets, heard, strict=True):
            hear_users(prior, audience.memory, self.dim, audience.n_slots, users, sums)
        return heard

    def renewed(self, population: Population, heard: list[Heard], *, few: bool = False) -> Population:
        """Return the next population, from what the users of all buckets said under this one.

        A ValueError says why there is none.
        """
        sums = in_pairs(heard)
        if not all(np.isfinite(part).all() for part in sums):
            raise ValueError("the contexts or the rewards of its users differ too much in size")
        if not sums.counts[WEIGHT] > 0.0:
            raise ValueError("no user has a reward to learn from")
        following = Population(*renewed(population, self.dim, sums, self.biases == "independent", few))
        return checked_population(following, like=population)

    def note(
        self,
        population: Population,
        crowd: FlockCrowd,
        unit: float,
        *,
        users: int | None = None,
        rewards: int | None = None,
    ) -> None:
        """Use a population that was made by a look, here or elsewhere."""
        if users is None:
            users = int((crowd.state.memory.plays[crowd.users.in_use] > 0).sum())
        rewards = self.looks.rewards if rewards is None else rewards
        self.history.append(look_summary(population, self.dim, rewards=rewards, users=users, unit=unit or 1.0))
        self.use(population, self.version + 1)

    # ----------------------------------------------------------------------------------------------------- in a file

    def header(self) -> dict[str, Any]:
        """Return what the header of a saved file says."""
        return {
            "biases": self.biases,
            "rewards": self.looks.rewards,
            "last_look": self.looks.last,
            "next_look": self.looks.next,
            "version": self.version,
            "history": self.history,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the population as arrays of a saved file."""
        return {f"population/{name}": array for name, array in leaves(self.population)}

    @classmethod
    def restored(cls, saved: saving.Saved, n_arms: int, dim: int) -> Common:
        """Return the population of a saved file; a damaged one raises a ValueError."""
        header = saved.header
        biases = header.get("biases", "joint")  # the first files had no others
        checks.one_of("biases", biases, BIASES)
        common = cls(n_arms, dim, biases)
        counts = [header["version"], header["rewards"], header.get("last_look", 0)]
        for name, count in zip(("version", "rewards", "last_look"), counts, strict=True):
            checks.whole(name, count, least=0)
            checks.indices(name, np.array(count), checks.MOST_ROUNDS)
        checks.positive("next_look", header["next_look"])
        shape = len(header["history"]), len(HISTORY)
        common.history = _finite("history", np.reshape(header["history"], shape), shape).tolist()
        model = common.population
        arrays = [saved.array(f"population/{name}", each.shape, each.dtype) for name, each in leaves(model)]
        population = checked_population(Population(*arrays), like=model)
        common.looks.rewards, common.looks.next = header["rewards"], float(header["next_look"])
        of_history = int(common.history[-1][0]) if common.history else 0
        common.looks.last = header.get("last_look", of_history)  # absent from the first files
        common.use(population, header["version"])
        return common


def checked_biases(biases: Any, n_arms: int) -> str:
    """Return how biases are learnt, by the number of arms if the caller does not say."""
    if biases is None:
        return "independent" if n_arms >= _MANY_ARMS else "joint"
    checks.one_of("biases", biases, BIASES)
    return str(biases)


def with_guesses(population: Population, heard: Heard) -> tuple[Population, Population]:
    """Return the population with a low and a high guess of the noise, from what users said under it.

    With few parameters, the guess of 1 stays where it is not far off, as in the golden cases.
    """
    exact = begins_early(len(population.mean))
    low, high = noise_guesses(population.noise, heard.counts, exact=exact)
    return population._replace(noise=low), population._replace(noise=high)


def in_pairs(heard: list[Heard]) -> Heard:
    """Add the sums of all buckets, in pairs: the same order whoever holds which bucket."""
    while len(heard) > 1:
        heard = [mapped(np.add, one, other) for one, other in zip(heard[::2], heard[1::2], strict=True)]
    return heard[0]


def in_rows(heard: list[Heard]) -> np.ndarray:
    """Return the sums of all buckets as one row of numbers for each."""
    return np.array([np.concatenate([part.ravel() for part in sums]) for sums in heard])


def from_rows(rows: Any, p: int) -> list[Heard]:
    """Return the sums of all buckets from rows that came from elsewhere; wrong ones raise a ValueError."""
    shapes = nothing_heard(p)
    rows = _finite("heard", rows, (BUCKETS, sum(part.size for part in shapes)))
    cuts = np.cumsum([part.size for part in shapes])[:-1]
    return [
        Heard(*(part.reshape(shape.shape) for part, shape in zip(np.split(row, cuts), shapes, strict=True)))
        for row in rows
    ]


def checked_population(population: Any, *, like: Population) -> Population:
    """Return a population that came from elsewhere, as arrays of our own for compiled code.

    What is not a population of the same size raises a ValueError.
    """
    if not isinstance(population, Population):
        raise ValueError(f"population must be one that `shared` or `renew` returned, not {checks.shown(population)}")
    named = zip(Population._fields, population, like, strict=True)
    checked = Population(*(_finite(name, array, known.shape) for name, array, known in named))
    if min(checked.noise.min(), checked.shares.min()) < 1.0 / checks.LARGEST:
        raise ValueError("noise and shares must be positive")
    if not (_is_covariance(checked.spread) and _is_covariance(checked.doubt)):
        raise ValueError("spread and doubt must be covariances: symmetric, without negative eigenvalues")
    with np.errstate(over="ignore"):
        if not np.isfinite(prior_for_users(checked).spread).all():
            raise ValueError("doubt must be finite in units of the noise")
    return checked


def _finite(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a C-ordered copy; of rewards as large as allowed, squares are learnt."""
    array = checks.real_array(name, value, shape).copy()
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array


def _is_covariance(matrix: np.ndarray) -> bool:
    scaled = matrix / (np.abs(matrix).max() or 1.0)
    symmetric = np.abs(scaled - scaled.T).max() <= _ROUNDING
    return bool(symmetric and np.linalg.eigvalsh(scaled)[0] >= -_ROUNDING)
