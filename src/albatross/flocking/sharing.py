"""A population that several processes share, each with some of the users."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from albatross import checks
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
        give the sum to `look`: whoever has which buckets, the next population is the same, bit for bit.
        """
        with self._lock:
            population = checked_population(population, like=self.shared)
            audience = self._crowd.audience()
            audience = audience._replace(memory=mapped(np.copy, audience.memory))
        rows = self._common.heard(population, audience)  # it may take long, and users decide and learn meanwhile
        return in_rows(rows)

    def look(self, hear: Callable[[Population], np.ndarray], *, rewards: int, last: int = 0) -> Population:
        """Return the population that a look finds, for all processes to `take_up`; nothing changes here.

        `hear(population)` must return the sum of what all processes `hear` under a population. `rewards` is the number
        of rewards of all users, and `last` what it was at the last look.
        """
        checks.whole("rewards", rewards, least=1)
        checks.whole("last", last, least=0)
        present = self.shared
        return self._common.looked(
            present, lambda each: from_rows(hear(each), len(present.mean)), rewards=rewards, last=last
        )

    def renew(self, population: Population, heard: np.ndarray) -> Population:
        """Return the next population, from what all users said under this one: a step of `look`, with many rewards."""
        population = checked_population(population, like=self.shared)
        return self._common.renewed(population, from_rows(heard, len(population.mean)))

    def take_up(self, population: Population, *, users: int | None = None, rewards: int | None = None) -> None:
        """Use a population from outside. Users take it up at their next decisions.

        `users` and `rewards` say on how many it rests; without them, those of this process are counted.
        """
        for name, number in (("users", users), ("rewards", rewards)):
            if number is not None:
                checks.whole(name, number, least=0)
        users, rewards = (None if number is None else int(number) for number in (users, rewards))  # of NumPy, too
        with self._lock:
            population = checked_population(population, like=self.shared)
            self._common.note(population, self._crowd, self._origin[0], users=users, rewards=rewards)

    def bucket(self, user: Name) -> int:
        """Return the bucket of a user, known or not, of 16: a function of the name and the seed."""
        (name,) = self._crowd.users.named([user])
        return int(user_keys([name], self._crowd.secret)[0, 0] % np.uint64(BUCKETS))
