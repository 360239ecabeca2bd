"""Flock: one bandit per user, each of which starts from what all users have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from albatross import checks, saving
from albatross.crowd import events
from albatross.crowd.arms import Name, NumberedArms
from albatross.crowd.batches import Batches
from albatross.crowd.named_arms import NamedArms
from albatross.crowd.users import NamedUsers, NumberedUsers
from albatross.explaining import Explanation, compared
from albatross.features import Features, given_dim
from albatross.flocking.crowd import FlockCrowd
from albatross.flocking.files import check_options, read_flock, write_flock
from albatross.flocking.origin import fitting_unit
from albatross.flocking.playing import (
    choose_for_users,
    count_draws,
    estimates,
    learn_rewards_of_users,
    note_decisions,
    present_posterior,
)
from albatross.flocking.population import Common, checked_biases
from albatross.flocking.reports import PopulationReport, UserReport, population_report, user_report
from albatross.flocking.sharing import Sharing
from albatross.forks import renew_after_fork
from albatross.loops import FLOOR_NUMBERS, Events
from albatross.models.population import Posterior
from albatross.models.units import unit_of
from albatross.noise import fill_by_user, fill_orders
from albatross.notebook import html_table
from albatross.protocol import Offer


class Flock(Sharing, Batches):
    """One bandit per user, like `Fleet`, but every user starts from what all users taught.

    Each user keeps an exact posterior of their own, under a prior that the whole flock learns: mean biases and theta,
    how far users are from them, how many choose by outlet alone, and the noise. There is nothing to tune. `index` is
    "optimism", Albatross's, or "sampling", Thompson's, which draws. Users, arms, features, floor and batches are as in
    `Fleet`. `population` and `user` say what was learnt.

    With `biases="joint"` the flock also learns which arms are liked together, and which go with which features; with
    "independent" it does not, which is the default from 50 arms on.

    `unit` is the usual length of a context, and `level` a usual reward; without them, those of the first offer and the
    first reward are taken. With `looks=False` the flock learns its users only: the population comes from outside, as
    for one of several processes that share the users (`hear`, `look`, `take_up`). All of them need the same `unit` and
    `level`.

    >>> flock = Flock(users=[], arms=["sport", "politics", "art"], dim=2, seed=0)
    >>> contexts = np.random.default_rng(0).standard_normal((2, 3, 2))
    >>> choices = flock.select(["anna", "bob"], contexts)
    >>> flock.update(choices, [0.7, -0.2])
    >>> flock.user("anna").rewards  # the population is first learnt at 16 rewards of all users
    1
    """

    def __init__(
        self,
        *,
        users: Iterable[Name] | None = None,
        n_users: int | None = None,
        arms: Iterable[Name] | None = None,
        n_arms: int | None = None,
        dim: int | None = None,
        features: Features | None = None,
        index: str = "optimism",
        biases: str | None = None,
        floor: float = 0.0,
        unit: float | None = None,
        level: float | None = None,
        looks: bool = True,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        checks.names_or_number("users", users, n_users)
        checks.names_or_number("arms", arms, n_arms)
        check_options(index, floor, looks)
        if unit is not None:
            checks.positive("unit", unit)
        if level is not None:
            checks.real("level", level)
        dim = given_dim(dim, features)
        rng = checks.generator("seed", seed)
        known = NumberedArms(int(n_arms or 0)) if arms is None else NamedArms(arms)
        p = dim + known.first
        checks.fits_in_memory(f"posteriors of {known.first} arms and {dim} features", 80 * p * p, "take fewer")
        self.dim, self.features, self.index, self.floor, self.looks = dim, features, index, float(floor), bool(looks)
        words = rng.integers(0, 2**64, 4, np.uint64)
        self._secret = words[2:]
        # Unit of the contexts, 0 before the first decision; level of the rewards; whether it is known.
        self._origin = np.array([float(unit or 0.0), float(level or 0.0), float(level is not None)])
        self._crowd: Any = FlockCrowd(
            NumberedUsers(0) if users is None else NamedUsers(), known, dim, words[:2].tobytes(), self._origin
        )
        self._common = Common(known.first, dim, checked_biases(biases, known.first))
        self._set_up()
        if users is None:
            self._crowd.make_room(users=int(n_users or 0))
            self._crowd.admit({number: number for number in range(int(n_users or 0))})
        else:
            self.admit(users)

    def _set_up(self) -> None:
        self._lock = threading.Lock()
        renew_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._secret = checks.generator("seed", None).integers(0, 2**64, 2, np.uint64)

    @property
    def noise_size(self) -> int:
        """Number of standard normal numbers per decision, for `noise` of `select`."""
        drawn = self.dim + self._crowd.n_slots if self.index == "sampling" else 0
        return drawn + (FLOOR_NUMBERS if self.floor else 0)

    @property
    def biases(self) -> str:
        """Whether the flock learns how biases go together: "joint" or "independent"."""
        return self._common.biases

    def __repr__(self) -> str:
        crowd = self._crowd
        return f"Flock({crowd.users.described()}, {crowd.arms.described()}dim={self.dim}, index={self.index!r})"

    def _repr_html_(self) -> str:
        crowd = self._crowd
        counts = {
            "users": self.n_users,
            "decisions": int(crowd.decisions[crowd.users.in_use].sum()),
            "pending": int(crowd.pending.sum()),
            "rewards": self._common.looks.rewards,
            "looks of the population": len(self._common.history),
            "bytes": self.nbytes,
        }
        return html_table(repr(self), [("", "value"), *((name, f"{value:,}") for name, value in counts.items())])

    # -------------------------------------------------------------------------------------------- events and rewards

    # Compiled at first use: a flock that only decides does not wait for the code that learns.

    @cached_property
    def _choose(self) -> Any:
        return choose_for_users.prepared(*self._choosing(np.empty((0, 1, self.dim)), *_NO_OFFER, self._no_events()))

    @cached_property
    def _learn(self) -> Any:
        return learn_rewards_of_users.prepared(*self._learning(self._no_events(), np.empty(0)))

    def _no_events(self) -> Events:
        return events.new_events(np.empty(0, np.int64), self.dim, 0)

    def _choosing(
        self, contexts: np.ndarray, mask: np.ndarray, given: np.ndarray, noise: np.ndarray, made: Events
    ) -> Any:
        crowd = self._crowd
        counted = crowd.pending, crowd.decisions, crowd.keys
        offered = crowd.arms.active, contexts, mask, given, noise, self.floor
        return self._common.prior, crowd.state, self._common.version, self._origin, counted, *offered, made

    def _learning(self, made: Events, rewards: np.ndarray) -> Any:
        common, crowd = self._common, self._crowd
        return common.prior, crowd.state, common.version, self._origin, crowd.pending, made, rewards

    def _choose_arms(self, contexts: np.ndarray, mask: np.ndarray, given: np.ndarray, noise: Any, made: Events) -> None:
        crowd = self._crowd
        if noise is None:
            noise = np.empty((made.users.size, self.noise_size))
            fill_by_user(noise, crowd.keys, self._secret, made.users, crowd.decisions)
        if made.users.size:
            self._check_shared(self.unit, "unit")
            self._origin[0] = self._unit(contexts, contexts[0], mask[0], crowd.arms.active)
        wrong = self._choose(*self._choosing(contexts, mask, given, noise, made))
        if wrong >= 0:
            raise ValueError(f"event {wrong}: the scores are not finite, contexts or rewards differ too much in size")

    def _note_decisions(self, made: Events) -> None:
        crowd = self._crowd
        note_decisions(self._common.prior, crowd.state, self._common.version, self.dim, crowd.n_slots, made.users)

    def _learn_rewards(self, made: Events, rewards: np.ndarray) -> None:
        if not rewards.size:
            return
        self._check_shared(self.level, "level")
        self._crowd.make_room_for(made.users)
        origin, everything = self._origin, np.ones(len(made.actions), bool)
        origin[0] = self._unit(made.actions, made.actions, everything, made.arms)  # they may have been recorded
        if origin[2] == 0.0:
            origin[1], origin[2] = rewards[0], 1.0
        self._learn(*self._learning(made, rewards))
        self._common.looks.rewards += rewards.size
        if self.looks and self._common.looks.are_due:
            self._common.look(self._crowd, origin[0])

    # ------------------------------------------------------------------------------------------ unit and first reward

    @property
    def unit(self) -> float | None:
        """The usual length of a context, None before the first decision."""
        return float(self._origin[0]) or None

    @property
    def level(self) -> float | None:
        """What is taken off all rewards, the first one; None before it."""
        return float(self._origin[1]) if self._origin[2] else None

    def fix(self, *, unit: float | None = None, level: float | None = None) -> None:
        """Fix the unit of the contexts or the level of the rewards, as those that a log was made with."""
        with self._lock:
            if unit is not None and self.unit is None:
                checks.positive("unit", unit)
                self._origin[0] = unit
            if level is not None and self.level is None:
                self._origin[1:] = checks.finite_array("level", level, ()), 1.0

    def _check_shared(self, known: float | None, name: str) -> None:
        """Refuse to choose a unit or a level that other processes cannot know."""
        if known is None and not self.looks:
            raise ValueError(f"with looks=False, give {name} or fix it: that of the process that makes the population")

    def _unit(self, contexts: np.ndarray, offered: np.ndarray, mask: np.ndarray, arms: np.ndarray) -> float:
        return fitting_unit(self._origin[0], contexts, Offer(offered, mask, self._crowd.pending[0], -1, arms))

    def propensity(
        self, user: Name, contexts: Any, eligible: Any = None, *, draws: int = 1_000, seed: int = 0
    ) -> np.ndarray:
        """Estimate the probability of each arm being chosen now for a known user, from `draws` draws.

        Only `index="sampling"` draws; with "optimism", `propensities` of the choices are exact. Nothing changes.
        """
        if self.index != "sampling":
            raise ValueError('propensity needs index="sampling"; with optimism, choices have exact propensities')
        checks.whole("draws", draws, least=1)
        checks.seed("seed", seed)
        with self._lock:
            crowd, arms = self._crowd, self._crowd.arms
            (slot,) = crowd.users.slots([user])
            contexts = events.finite("contexts", contexts, (arms.active.size, self.dim))
            mask = arms.masks(None if eligible is None else [eligible], 1)[0]
            size = 8 * draws * (self.dim + crowd.n_slots)
            checks.fits_in_memory(f"draws={draws} of the posterior", size, "take fewer")
            noise = np.random.default_rng(seed).standard_normal((draws, self.dim + crowd.n_slots))
            offer = Offer(contexts, mask, crowd.pending[slot], -1, arms.active)
            common, unit = self._common, self._origin[0] or 1.0
            counts = count_draws(common.prior, crowd.state, common.version, unit, offer, noise, slot)
        return (1.0 - self.floor) * counts / draws + self.floor * mask / np.count_nonzero(mask)

    # -------------------------------------------------------------------------------------------------- the population

    def population(self) -> PopulationReport:
        """Return what all users have in common: means, spread, kinds of users, noise, and the history of looks."""
        with self._lock:
            history, varied = self._common.history, self._crowd.varied()
            return population_report(self.shared, history=history, varied=varied, **self._labels())

    def user(self, user: Name) -> UserReport:
        """Return what is known of one user: kinds, theta with standard deviations, norm, biases, noise."""
        with self._lock:
            crowd = self._crowd
            (slot,) = crowd.users.slots([user])
            posterior, weights = present_posterior(
                self._common.prior, crowd.state.memory, self.dim, crowd.n_slots, slot
            )
            counts = crowd.state.memory.plays[slot], crowd.pending[slot].sum(), crowd.decisions[slot]
            return user_report(Posterior(*posterior), weights, counts=counts, **self._labels())

    def explain(self, user: Name, contexts: Any, eligible: Any = None) -> Explanation:
        """Explain what would be chosen for a user: every arm's mean, width and score, and what decides.

        The user's posterior is that of a fresh look. Nothing is drawn and nothing changes.
        """
        with self._lock:
            crowd, dim = self._crowd, self.dim
            (slot,) = crowd.users.slots([user])
            rows, mask, arms = crowd.arms.rows(contexts, eligible, None, dim)
            offer, plays = Offer(rows, mask, crowd.pending[slot], -1, arms), float(crowd.state.memory.plays[slot])
            known, _ = present_posterior(self._common.prior, crowd.state.memory, dim, crowd.n_slots, slot)
            unit, level, posterior = self.unit or unit_of(offer), self.level or 0.0, Posterior(*known)
            means, widths = estimates(posterior, offer, unit, plays, dim)
            found = {"theta_hat": posterior.mean[:dim] / unit, "biases": posterior.mean[dim:]}
            means += level
            order = np.empty((1, crowd.n_slots), np.int64)
            fill_orders(order, crowd.keys[slot : slot + 1], 0)
            named = {"priority": order[0], "arms": crowd.arms.names, "names": self._names}
            return compared(found, offer, means, means + widths, widths, **named)

    @property
    def _names(self) -> Sequence[str]:
        return self.features.names if self.features else [f"feature {j}" for j in range(self.dim)]

    def _labels(self) -> dict[str, Any]:
        arms = self._crowd.arms
        return {"arms": arms.names, "slots": arms.active, "names": self._names, "origin": self._origin}

    def _take(self, arms: NamedArms, slot: int) -> None:
        common = self._common.with_arm(slot)
        self._crowd.take(arms, slot)
        self._common = common  # no call in between: users and population always have the same arms

    # -------------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Save all users and the population to a path or an open binary file: arrays and JSON, no code.

        Saving to a path is atomic.
        """
        with self._lock:
            write_flock(self, target)

    @classmethod
    def load(cls, source: saving.Source) -> Flock:
        """Load a saved flock from a path or an open binary file. It continues exactly where the saved one stopped.

        Damaged and malicious files are refused.
        """
        flock = cls.__new__(cls)
        read_flock(flock, source)
        flock._set_up()
        return flock

    def __reduce__(self) -> Any:
        """Pickle and copy in the saved form."""
        return type(self).load, (saving.in_memory(self),)


_NO_OFFER = np.ones((1, 1), bool), np.empty((0, 1), np.int32), np.empty((0, 0))
