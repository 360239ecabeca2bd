"""A population that several processes share, each with some of the users."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from albatross.crowd.arms import Name
from albatross.crowd.users import user_keys
from albatross.flocking.crowd import BUCKETS
from albatross.flocking.population import Common, checked_population, from_rows, in_rows
from albatross.models.population import Population
from albatross.states import mapped


class Sharing:
    """What processes that share the users of a flock call to make one population."""

    _lock: threading.Lock
    _crowd: Any
    _common: Common
    _origin: np.ndarray

    @property
    def shared(self) -> Population:
        """The present population, as arrays, for other processes."""
        return self._common.population

    def hear(self, population: Population) -> np.ndarray:
        """Return what our users say under a population, (16, n) numbers, one row for every bucket of users.

        Several processes may share the users, each with all users of some buckets (`bucket`). Add up their arrays, and
        give the sum to `renew`: whoever has which buckets, the next population is the same, bit for bit.
        """
        with self._lock:
            population = checked_population(population, like=self.shared)
            audience = self._crowd.audience()
            audience = audience._replace(memory=mapped(np.copy, audience.memory))
        rows = self._common.heard(population, audience)  # it may take long, and users decide and learn meanwhile
        return in_rows(rows)

    def renew(self, population: Population, heard: np.ndarray) -> Population:
        """Return the next population, from what all users said under this one. A look takes two such steps."""
        population = checked_population(population, like=self.shared)
        return self._common.renewed(population, from_rows(heard, len(population.mean)))

    def take_up(self, population: Population) -> None:
        """Use a population from outside. Users take it up at their next decisions."""
        with self._lock:
            population = checked_population(population, like=self.shared)
            self._common.note(population, self._crowd, self._origin[0])

    def bucket(self, user: Name) -> int:
        """Return the bucket of a user, known or not, of 16: a function of the name and the seed."""
        (name,) = self._crowd.users.named([user])
        return int(user_keys([name], self._crowd.secret)[0, 0] % np.uint64(BUCKETS))
