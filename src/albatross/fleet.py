"""Fleet: one bandit per user, with events processed in batches."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from albatross import checks, policies, saving
from albatross.errors import UnknownDecision
from albatross.forks import renew_after_fork
from albatross.loops import Choices, all_finite, choose, first_not_pending, learn_rewards
from albatross.notebook import html_table
from albatross.picking import row_to_retry
from albatross.protocol import (
    Offer,
    Policy,
    check_tags,
    diagnostics,
    init,
    noise_size,
    on_ball,
    refuse_choice,
    resolve,
    tag_size,
)
from albatross.states import leaves, mapped, state_of


class Fleet:
    """One bandit per user: `select` arms for a batch of events, play them, `update` with their rewards.

    The default policy is `policies.Albatross`. Users are numbered from 0. The fleet only counts the pending choices of
    each arm: keep the `Choices` until the rewards arrive, and call `drop` for those that will not be rewarded.
    `horizon` is the expected number of rounds per user, for policies that need it.

    >>> fleet = Fleet(policies.LinTS(sigma=0.5), n_users=1_000, n_arms=3, dim=2, seed=0)
    >>> contexts = np.random.default_rng(0).standard_normal((2, 3, 2))
    >>> choices = fleet.select([17, 4], contexts)
    >>> fleet.update(choices, [0.7, -0.2])
    >>> int(fleet.diagnostics(17)["pulls"].sum()), int(fleet.diagnostics(18)["pulls"].sum())
    (1, 0)
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        n_users: int,
        n_arms: int,
        dim: int,
        horizon: int | None = None,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        for name, value in (("n_users", n_users), ("n_arms", n_arms), ("dim", dim)):
            checks.whole(name, value, least=1)
        if horizon is not None:
            checks.rounds("horizon", horizon)
        self._rng = checks.generator("seed", seed)
        policy = policies.Albatross() if policy is None else policy
        if on_ball(policy):
            raise ValueError(f"{type(policy).__name__} plays on the unit ball, but a fleet needs finitely many arms")
        self.policy, self.n_arms, self.dim = policy, int(n_arms), int(dim)
        checks.fits_in_memory(f"contexts of {n_arms} arms and {dim} features", 8 * self.n_arms * self.dim, "take fewer")
        self.horizon = None if horizon is None else int(horizon)
        self._parameters = resolve(policy, self.n_arms, self.dim, horizon)
        self._states = self._newcomers(int(n_users))
        self._pending = np.zeros((n_users, n_arms), np.int32)  # unrewarded choices of each arm
        self._decisions = np.zeros(n_users, np.int32)
        self._set_up()

    def _set_up(self) -> None:
        self._lock = threading.Lock()
        renew_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._rng = checks.generator("seed", None)

    def _newcomers(self, n_users: int) -> Any:
        first = init(self._parameters, self.n_arms, self.dim, self._rng)
        each = sum(array.nbytes for _, array in leaves(first)) + 4 * self.n_arms
        checks.fits_in_memory(f"{n_users} users", 2 * n_users * each, "take fewer")  # they exist twice for a moment
        others = [init(self._parameters, self.n_arms, self.dim, self._rng) for _ in range(n_users - 1)]
        return mapped(lambda *arrays: np.stack(arrays), first, *others)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self._pending)

    @property
    def nbytes(self) -> int:
        """Memory used by all users, in bytes."""
        return sum(array.nbytes for _, array in leaves((self._states, self._pending, self._decisions)))

    def __repr__(self) -> str:
        return f"Fleet({self.policy!r}, n_users={self.n_users}, n_arms={self.n_arms}, dim={self.dim})"

    def _repr_html_(self) -> str:
        pending, decisions = int(self._pending.sum()), int(self._decisions.sum())
        rows = (("users", self.n_users), ("decisions", decisions), ("pending", pending), ("bytes", self.nbytes))
        return html_table(repr(self), [("", "value"), *((name, f"{value:,}") for name, value in rows)])

    def add_users(self, n_users: int) -> np.ndarray:
        """Add `n_users` new users and return their numbers."""
        checks.whole("n_users", n_users, least=1)
        with self._lock:
            known, before = self.n_users, self._rng.bit_generator.state
            checks.fits_in_memory(f"a copy of {known} users", self.nbytes, "keep several fleets")
            try:
                newcomers = self._newcomers(int(n_users))
                states = mapped(lambda known, new: np.concatenate([known, new]), self._states, newcomers)
                pending = np.concatenate([self._pending, np.zeros((n_users, self.n_arms), np.int32)])
                decisions = np.concatenate([self._decisions, np.zeros(n_users, np.int32)])
            except BaseException:  # too little memory, or a Ctrl-C
                self._rng.bit_generator.state = before
                raise
            self._states, self._pending, self._decisions = states, pending, decisions
            return np.arange(known, self.n_users)

    # ---------------------------------------------------------------------------------------- events and rewards

    def select(self, users: Any, contexts: Any, eligible: Any = None) -> Choices:
        """Choose an arm for each of m events: users (m,), contexts (m, K, d), `eligible` a mask (m, K) or (K,)."""
        users = self._known(users)
        m, table = len(users), (len(users), self.n_arms)
        contexts = checks.real_array("contexts", contexts, (*table, self.dim))
        if not all_finite(contexts):
            checks.finite_array("contexts", contexts, (*table, self.dim))
        mask = self._mask(eligible, table)
        scores, widths, propensities = np.empty((3, m))
        tags = np.zeros((m, tag_size(self._parameters)))
        arms = np.full(m, -1)  # not chosen yet
        choices = Choices(users, arms, np.empty((m, self.dim)), scores, widths, propensities, tags)
        with self._lock:
            before = self._rng.bit_generator.state
            noise = self._rng.standard_normal((m, noise_size(self._parameters, self.n_arms, self.dim)))
            counted = (self._pending, self._decisions)
            try:
                wrong = choose(self._parameters, self._states, users, contexts, mask, *counted, noise, choices)
                if wrong >= 0:
                    user = users[wrong]
                    retry = row_to_retry(int(self._decisions[user]), mask[wrong])
                    offer = Offer(contexts[wrong], mask[wrong], self._pending[user], retry, np.arange(self.n_arms))
                    refuse_choice(self._parameters, state_of(self._states, user), offer, noise[wrong])
            except BaseException:
                chosen = arms >= 0
                np.subtract.at(self._decisions, users[chosen], 1)
                np.subtract.at(self._pending, (users[chosen], arms[chosen]), 1)
                self._rng.bit_generator.state = before
                raise
        return choices

    def update(self, choices: Choices, rewards: Any) -> None:
        """Learn from the rewards (m,) of a batch, or of a part, `choices.rows(...)`. Each choice is rewarded once."""
        choices = self._chosen(choices)
        rewards = checks.finite_array("rewards", rewards, (len(choices.users),))
        with self._lock:
            self._check_pending(choices)
            learn_rewards(self._parameters, self._states, choices, rewards, self._pending)

    def drop(self, choices: Choices) -> None:
        """Discard choices that will never be rewarded."""
        choices = self._chosen(choices)
        with self._lock:
            self._check_pending(choices)
            np.subtract.at(self._pending, (choices.users, choices.arms), 1)

    def diagnostics(self, user: int) -> dict[str, Any]:
        """Return what the policy has learnt about one user."""
        (known,) = self._known([user])
        with self._lock:
            return diagnostics(self._parameters, state_of(self._states, known))

    # ------------------------------------------------------------------------------------------ checked arguments

    def _known(self, users: Any) -> np.ndarray:
        users = checks.numbers("users", users)
        if users.ndim != 1 or not (np.issubdtype(users.dtype, np.integer) or users.size == 0):
            raise ValueError(f"users must be a list of whole numbers, got shape {users.shape} of {users.dtype}")
        if users.size and not (users.min() >= 0 and users.max() < self.n_users):
            wrong = users.min() if users.min() < 0 else users.max()
            raise ValueError(f"user {wrong} is unknown: this fleet has users 0 to {self.n_users - 1}")
        return users.astype(np.int64)  # a copy: choices keep it, and the caller may change the array

    def _mask(self, eligible: Any, table: tuple[int, int]) -> np.ndarray:
        if eligible is None:
            return np.ones(table, bool)
        wanted = f"eligible must be a mask of booleans of shape {table} or {table[1:]}"
        try:
            mask = checks.numbers("eligible", eligible)
        except ValueError:
            raise ValueError(f"{wanted}, got {eligible!r}") from None
        if mask.dtype != bool or mask.shape not in (table, table[1:]):
            raise ValueError(f"{wanted}, got shape {mask.shape} of {mask.dtype}")
        if not mask.any(axis=-1).all():
            raise ValueError("eligible is False for every arm of an event: at least one arm must be eligible")
        return np.broadcast_to(mask, table).copy()  # writable: a read-only array would be compiled for separately

    def _chosen(self, choices: Choices) -> Choices:
        """Return valid choices of this fleet as C-ordered arrays for compiled code."""
        if not isinstance(choices, Choices):
            raise ValueError(f"choices must be the result of select, or rows of it, not {type(choices).__name__}")
        users = self._known(choices.users)
        m, arms = len(users), np.ascontiguousarray(checks.numbers("arms", choices.arms))
        unchecked = [(name, getattr(choices, name)) for name in ("scores", "widths", "propensities")]  # not checked
        try:
            if arms.shape != (m,) or arms.dtype != np.int64:
                raise ValueError(f"arms must be {m} whole numbers of 64 bits")
            if not ((arms >= 0) & (arms < self.n_arms)).all():
                wrong = arms.min(initial=0) if arms.min(initial=0) < 0 else arms.max()
                raise ValueError(f"arm {wrong} is unknown: this fleet has arms 0 to {self.n_arms - 1}")
            actions = checks.finite_array("actions", choices.actions, (m, self.dim))
            scores, widths, propensities = (checks.real_array(*column, (m,)) for column in unchecked)
            tags = checks.real_array("tags", choices.tags, (m, tag_size(self._parameters)))
            checks.tags("tags", tags)
            check_tags(self._parameters, self._states, tags)
        except ValueError as error:
            raise ValueError(f"choices must be the unchanged result of this fleet's select: {error}") from None
        return Choices(users, arms, actions, scores, widths, propensities, tags)

    def _check_pending(self, choices: Choices) -> None:
        """Refuse choices of which one is not pending."""
        row = first_not_pending(choices.users, choices.arms, self._pending)
        if row >= 0:
            raise UnknownDecision(
                f"user {choices.users[row]} has no pending choice of arm {choices.arms[row]}: "
                "it was rewarded or dropped before"
            )

    # ----------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Save the states of all users to a path or an open binary file: arrays and JSON, no code.

        Saving to a path is atomic.
        """
        with self._lock:
            header = {
                "policy": saving.describe_policy(self.policy),
                "n_users": self.n_users,
                "n_arms": self.n_arms,
                "dim": self.dim,
                "horizon": self.horizon,
                "rng": saving.describe_rng(self._rng),
            }
            arrays = saving.state_arrays((self._states, self._pending)) | {"decisions": self._decisions}
            saving.write(target, kind="fleet", header=header, arrays=arrays)

    @classmethod
    def load(cls, source: saving.Source, policy: Policy | None = None) -> Fleet:
        """Load a saved fleet from a path or an open binary file. It continues exactly where the saved one stopped.

        Pass `policy` if it is one of your own. Damaged and malicious files are refused.
        """
        with saving.reading(source, kind="fleet") as saved:
            header = saved.header
            policy = saving.restore_policy(header["policy"], policy)
            n_users, n_arms, dim, horizon = (header[name] for name in ("n_users", "n_arms", "dim", "horizon"))
            for name in ("n_users", "n_arms", "dim"):
                checks.whole(name, header[name], least=1)
            if horizon is not None:
                checks.rounds("horizon", horizon)
            if on_ball(policy):
                raise ValueError("a fleet needs finitely many arms, not the unit ball")
            fleet = cls.__new__(cls)
            fleet.policy, fleet.n_arms, fleet.dim, fleet.horizon = policy, n_arms, dim, horizon
            fleet._parameters, user = saving.new_state(policy, n_arms, dim, horizon, most_bytes=saved.nbytes // n_users)
            fleet._states = saved.state(fleet._parameters, user, prefix="0", leading=(n_users,))
            fleet._pending = saved.array("state/1", (n_users, n_arms), np.int32)
            checks.indices("pending", fleet._pending, np.iinfo(np.int32).max)
            fleet._decisions = np.zeros(n_users, np.int32)
            if "decisions" in saved:  # absent from files of version 0.1
                fleet._decisions = saved.array("decisions", (n_users,), np.int32)
            fleet._rng = saving.restore_rng(header["rng"])
            fleet._set_up()
        return fleet

    def __reduce__(self) -> Any:
        """Pickle and copy in the saved form."""
        return type(self).load, (saving.in_memory(self), self.policy)
