"""Batches of events: choose arms for many users at once, record choices of others, learn from their rewards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from albatross.crowd import events
from albatross.crowd.membership import Membership
from albatross.loops import Choices, Events, count_events


class Batches(Membership, ABC):
    """`select`, `record`, `update` and `drop`: their arguments are checked here, before anything changes."""

    dim: int
    _tag_size = 0

    @property
    def tag_size(self) -> int:
        """Number of values in the tag of a choice."""
        return self._tag_size

    def compile(self) -> None:
        """Compile what decides and what learns, before the first event needs it."""
        self._choose, self._learn  # noqa: B018

    @property
    @abstractmethod
    def _choose(self) -> Any:
        """The compiled function that decides."""

    @property
    @abstractmethod
    def _learn(self) -> Any:
        """The compiled function that learns."""

    @property
    @abstractmethod
    def noise_size(self) -> int:
        """Number of standard normal numbers per decision, for `noise` of `select`."""

    @abstractmethod
    def _choose_arms(
        self, contexts: np.ndarray, mask: np.ndarray, given: np.ndarray, noise: Any, made: Events
    ) -> np.ndarray | None:
        """Fill in the choices, and return their rows if rows pass.

        `given` are pending decisions and `noise` random numbers from outside, or None.
        """

    @abstractmethod
    def _learn_rewards(self, made: Events, rewards: np.ndarray) -> None:
        """Learn from the rewards of pending choices, and count these as rewarded."""

    def _note_decisions(self, made: Events) -> None:
        """Do what a decision does apart from choosing, for choices that somebody else made."""

    def _check_tags(self, tags: np.ndarray) -> None:
        """Refuse tags that lead outside of arrays: raise a ValueError."""

    def select(
        self, users: Any, contexts: Any, eligible: Any = None, *, noise: Any = None, pending: Any = None
    ) -> Choices:
        """Choose an arm for each of m events: users (m,), contexts (m, K, d) with the arms in the order of `arms`.

        `eligible` is a mask (m, K) or (K,), or a list of arms for each event. `noise` (m, noise_size) replaces the
        fleet's own random numbers in this call, and `pending` (m, K) its own counts of pending choices. If rows pass,
        K is any number of rows, and `arms` of the choices are the chosen ones.
        """
        with self._lock:
            crowd, arms = self._crowd, self._crowd.arms
            names, slots, newcomers = crowd.users.listed(users)
            m, offered = slots.size, arms.offered(contexts)
            contexts = events.finite("contexts", contexts, (m, offered.active.size, self.dim))
            mask = offered.masks(eligible, m)
            given = events.given_counts(pending, m, arms, crowd.n_slots)
            if noise is not None:
                noise = events.finite("noise", noise, (m, self.noise_size))
            made = events.new_events(slots, self.dim, self._tag_size)
            try:
                crowd.admit(newcomers)
                rows = self._choose_arms(contexts, mask, given, noise, made)
            except BaseException:
                done = made.arms >= 0
                np.subtract.at(crowd.decisions, slots[done], 1)
                np.subtract.at(crowd.pending, (slots[done], made.arms[done]), 1)
                if newcomers:
                    crowd.users.release(newcomers)
                raise
            return Choices(names, arms.names_of(made.arms) if rows is None else rows, *made[2:], made.arms)

    def record(
        self,
        users: Any,
        arms: Any,
        actions: Any,
        *,
        scores: Any = None,
        widths: Any = None,
        propensities: Any = None,
        tags: Any = None,
    ) -> Choices:
        """Take choices that somebody else made, or that were read from a log: users (m,), arms (m,), actions (m, d).

        They are pending until `update` or `drop`. With the columns of the `Choices` of a fleet, the policy learns from
        them exactly as that fleet did; without `tags` it knows that the choices are not its own. If rows pass, arms is
        None.
        """
        columns = {"scores": scores, "widths": widths, "propensities": propensities, "tags": tags}
        with self._lock:
            crowd = self._crowd
            names, slots, newcomers = crowd.users.listed(users)
            places = crowd.arms.slots(arms, slots.size)
            made = events.recorded(slots, places, actions, self.dim, self._tag_size, columns)
            self._check_tags(made.tags)
            crowd.admit(newcomers)
            self._note_decisions(made)
            count_events(slots, places, crowd.pending, crowd.decisions)
            return Choices(names, crowd.arms.names_of(places), *made[2:], places)

    def update(self, choices: Choices, rewards: Any) -> None:
        """Learn from the rewards (m,) of a batch, or of a part, `choices.rows(...)`. Each choice is rewarded once."""
        with self._lock:
            made = self._chosen(choices)
            rewards = events.finite("rewards", rewards, made.users.shape)
            events.check_pending(made, choices, self._crowd.pending)
            self._learn_rewards(made, rewards)

    def drop(self, choices: Choices) -> None:
        """Discard choices that will never be rewarded."""
        with self._lock:
            made, pending = self._chosen(choices), self._crowd.pending
            events.check_pending(made, choices, pending)
            np.subtract.at(pending, (made.users, made.arms), 1)

    def _chosen(self, choices: Choices) -> Events:
        """Return valid choices of this fleet as C-ordered arrays for compiled code."""
        if not isinstance(choices, Choices):
            raise ValueError(f"choices must be the result of select, or rows of it, not {type(choices).__name__}")
        crowd = self._crowd
        slots = crowd.users.slots(choices.users)
        try:
            made = events.chosen(choices, slots, crowd.arms, self.dim, self._tag_size)
            self._check_tags(made.tags)
        except ValueError as error:
            raise ValueError(f"choices must be the unchanged result of this fleet's select: {error}") from None
        return made
