"""The population of a flock: what all users have in common, how it is learnt, and its history."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from albatross import checks, saving
from albatross.flock_crowd import BUCKETS, Audience, FlockCrowd
from albatross.flock_reports import HISTORY, look_summary
from albatross.flocking import hear_users
from albatross.models.population import Population, first_population, prior_for_looks, prior_for_users, with_arm
from albatross.models.population_looks import Heard, nothing_heard, renewed
from albatross.states import leaves, mapped

_FIRST_LOOK, _GROWTH = 16.0, 2.0**0.5  # rewards before the first look, and their growth between looks
STEPS = 2  # of EM, in a look
BIASES = ("joint", "independent")
_MANY_ARMS = 50  # from which on biases are independent unless the caller says otherwise


class Common:
    """The present population, its number, and when it is made anew."""

    def __init__(self, n_arms: int, dim: int, biases: str) -> None:
        self.dim, self.biases, self.rewards, self.next_look = dim, biases, 0, _FIRST_LOOK
        self.history: list[list[float]] = []  # one row per look
        self.use(first_population(n_arms, dim, independent=biases == "independent"), 0)

    def use(self, population: Population, version: int) -> None:
        """Use a population, of this number, from now on. Users take it up at their next decisions."""
        prior = prior_for_users(population)
        self.population, self.prior, self.version = population, prior, version

    def with_arm(self, slot: int) -> Common:
        """Return the population with a new arm in a slot, beside this one."""
        common = copy(self)
        common.use(with_arm(self.population, self.dim, slot), self.version + 1)
        return common

    @property
    def is_due(self) -> bool:
        """Whether there are rewards enough for the next look."""
        return self.rewards >= self.next_look

    def look(self, crowd: FlockCrowd, unit: float) -> None:
        """Learn the population anew from all users."""
        population = self.population
        for _ in range(STEPS):
            population = self.renewed(population, self.heard(population, crowd.audience()))
        self.note(population, crowd, unit)
        while self.is_due:
            self.next_look = max(_GROWTH * self.next_look, self.next_look + 1.0)

    def heard(self, population: Population, audience: Audience) -> list[Heard]:
        """Return what the users of every bucket say under a population."""
        prior, heard = prior_for_looks(population), [nothing_heard(len(population.mean)) for _ in range(BUCKETS)]
        for users, sums in zip(audience.buckets, heard, strict=True):
            hear_users(prior, audience.memory, self.dim, audience.n_slots, users, sums)
        return heard

    def renewed(self, population: Population, heard: list[Heard]) -> Population:
        """Return the next population, from what the users of all buckets said under this one."""
        return Population(*renewed(population, self.dim, in_pairs(heard), self.biases == "independent"))

    def note(self, population: Population, crowd: FlockCrowd, unit: float) -> None:
        """Use a population that was made by a look."""
        users = int((crowd.state.memory.plays[crowd.users.in_use] > 0).sum())
        self.history.append(look_summary(population, self.dim, rewards=self.rewards, users=users, unit=unit or 1.0))
        self.use(population, self.version + 1)

    # ----------------------------------------------------------------------------------------------------- in a file

    def header(self) -> dict[str, Any]:
        """Return what the header of a saved file says."""
        return {
            "biases": self.biases,
            "rewards": self.rewards,
            "next_look": self.next_look,
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
        for name in ("version", "rewards"):
            checks.whole(name, header[name], least=0)
        checks.positive("next_look", header["next_look"])
        shape = len(header["history"]), len(HISTORY)
        common.history = checks.finite_array("history", np.reshape(header["history"], shape), shape).tolist()
        model = common.population
        arrays = iter([saved.array(f"population/{name}", each.shape, each.dtype) for name, each in leaves(model)])
        population: Population = mapped(lambda _: next(arrays), model)
        check_population(population, like=model)
        common.rewards, common.next_look = header["rewards"], float(header["next_look"])
        common.use(population, header["version"])
        return common


def checked_biases(biases: Any, n_arms: int) -> str:
    """Return how biases are learnt, by the number of arms if the caller does not say."""
    if biases is None:
        return "independent" if n_arms >= _MANY_ARMS else "joint"
    checks.one_of("biases", biases, BIASES)
    return str(biases)


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
    rows = checks.finite_array("heard", rows, (BUCKETS, sum(part.size for part in shapes)))
    cuts = np.cumsum([part.size for part in shapes])[:-1]
    return [
        Heard(*(part.reshape(shape.shape) for part, shape in zip(np.split(row, cuts), shapes, strict=True)))
        for row in rows
    ]


def check_population(population: Any, *, like: Population) -> None:
    """Refuse what comes from elsewhere and is not a population of the same size: raise a ValueError."""
    if not isinstance(population, Population):
        raise ValueError(f"population must be one that `shared` or `renew` returned, not {checks.shown(population)}")
    for (name, array), (_, known) in zip(leaves(population), leaves(like), strict=True):
        checks.finite_array(name, array, known.shape)
    if not (population.noise > 0.0).all() or not (population.shares > 0.0).all():
        raise ValueError("noise and shares must be positive")
    if not ((np.diag(population.spread) >= 0.0).all() and (np.diag(population.doubt) >= 0.0).all()):
        raise ValueError("spread and doubt must be covariances")
