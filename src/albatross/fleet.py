"""Fleet: one policy for many users, each with what it has learnt of them alone, a batch of events at a time."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from albatross import checks, policies, saving
from albatross.compiling import compiled, entry
from albatross.errors import UnknownDecision
from albatross.forks import renew_after_fork
from albatross.picking import arm_to_retry
from albatross.protocol import (
    Choice,
    Offer,
    check_tags,
    diagnostics,
    init,
    is_sound,
    noise_size,
    on_ball,
    refuse_choice,
    resolve,
    select,
    tag_size,
    update,
)
from albatross.states import leaves, mapped


class Choices(NamedTuple):
    """What a fleet chose for a batch of m events: all that `update` needs, however late the rewards come."""

    users: np.ndarray  # (m,) int64
    arms: np.ndarray  # (m,) int64
    actions: np.ndarray  # (m, d) the chosen arms' contexts
    scores: np.ndarray  # (m,) what the policy maximised; inf for a first play that every arm gets
    widths: np.ndarray  # (m,) the part of the score that is exploration
    propensities: np.ndarray  # (m,) the probability of this arm, NaN where the policy does not know it
    tags: np.ndarray  # (m, tag_size) the policy's own notes to its later self

    def rows(self, which: Any) -> Choices:
        """Some of the events, by a mask or by their numbers."""
        return Choices(*(column[which] for column in self))


# ------------------------------------------------------------------------------------------- one state of many


def state_of(states: Any, user: int) -> Any:
    """The state of one user: views of arrays that have all users along their first axis."""
    return mapped(lambda array: array[user], states)


@intrinsic
def unowned(typing, view):
    """The view without a share in what it views, which outlives it here: counting shares is half of a small policy."""

    def generate(context, builder, signature, args):
        array = make_array(signature.return_type)(context, builder, value=args[0])
        array.meminfo = context.get_constant_null(types.voidptr)
        return array._getvalue()

    return view(view), generate


@overload(state_of, strict=False)
def _compile_state_of(states, user):
    if isinstance(states, types.Array):
        return lambda states, user: unowned(states[user])
    if hasattr(states, "instance_class"):
        kind = states.instance_class
        if len(states) == 0:
            return lambda states, user: kind()
        return lambda states, user: kind(*(state_of(states[0], user), *state_of(states[1:], user)))
    if len(states) == 0:
        return lambda states, user: ()
    return lambda states, user: (state_of(states[0], user), *state_of(states[1:], user))


@compiled
def all_finite(contexts):
    """Whether every number may be used; in one pass, where NumPy would take three and memory for two."""
    wrong = 0
    for value in contexts.flat:
        wrong += not abs(value) <= checks.LARGEST
    return wrong == 0


@entry
def choose(policy, states, users, contexts, eligible, pending, decisions, noise, choices):
    """One choice for each event, one after the other: a user may come twice. The event of an unsound choice, or -1."""
    for event in range(users.size):
        user = users[event]
        retry = arm_to_retry(int(decisions[user]), pending.shape[1])
        offer = Offer(contexts[event], eligible[event], pending[user], retry)
        choice = select(policy, state_of(states, user), offer, noise[event])
        fits = choice.action.size == choices.actions.shape[1] and choice.tag.size <= choices.tags.shape[1]
        if not (fits and is_sound(choice, offer)):
            return event
        pending[user, choice.arm] += 1
        decisions[user] += 1
        choices.arms[event] = choice.arm
        choices.scores[event] = choice.score
        choices.widths[event] = choice.width
        choices.propensities[event] = choice.propensity
        for j in range(choice.action.size):
            choices.actions[event, j] = choice.action[j]
        for j in range(choice.tag.size):
            choices.tags[event, j] = choice.tag[j]
    return -1


@entry
def learn(policy, states, choices, rewards, learnt):
    """One reward for each event; `learnt` (1,) counts them."""
    for event in range(rewards.size):
        choice = Choice(
            choices.arms[event],
            choices.actions[event],
            choices.scores[event],
            choices.widths[event],
            choices.propensities[event],
            choices.tags[event],
        )
        update(policy, state_of(states, choices.users[event]), choice, rewards[event], 1)
        learnt[0] += 1


# ------------------------------------------------------------------------------------------------------ the fleet


class Fleet:
    """A bandit for every user: `select` arms for a batch of events, play them, `update` with their rewards.

    Without a policy it is `policies.Albatross`. Users are numbers from 0. The fleet keeps nothing of a choice but that
    its arm has one pending; whoever plays it keeps the choice until the reward is there, and calls `drop` where none
    will come. `horizon` is how many rounds a user is expected to play, for policies that want to know.

    >>> fleet = Fleet(policies.LinTS(sigma=0.5), n_users=1_000, n_arms=3, dim=2, seed=0)
    >>> contexts = np.random.default_rng(0).standard_normal((2, 3, 2))
    >>> choices = fleet.select([17, 4], contexts)
    >>> fleet.update(choices, [0.7, -0.2])
    >>> int(fleet.diagnostics(17)["pulls"].sum()), int(fleet.diagnostics(18)["pulls"].sum())
    (1, 0)
    """

    def __init__(
        self,
        policy: Any = None,
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
            raise ValueError(f"{type(policy).__name__} plays on the unit ball, a fleet plays finitely many arms")
        self.policy, self.n_arms, self.dim = policy, int(n_arms), int(dim)
        checks.fits_in_memory(f"contexts of {n_arms} arms and {dim} features", 8 * self.n_arms * self.dim, "take fewer")
        self.horizon = None if horizon is None else int(horizon)
        self._parameters = resolve(policy, self.n_arms, self.dim, horizon)
        self._states = self._newcomers(int(n_users))
        self._pending = np.zeros((n_users, n_arms), np.int32)  # choices of each arm whose reward has not come yet
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
        checks.fits_in_memory(f"{n_users} users", 2 * n_users * each, "take fewer")  # they are there twice for a moment
        others = [init(self._parameters, self.n_arms, self.dim, self._rng) for _ in range(n_users - 1)]
        return mapped(lambda *arrays: np.stack(arrays), first, *others)

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return len(self._pending)

    @property
    def nbytes(self) -> int:
        """The memory that all users take."""
        return sum(array.nbytes for _, array in leaves((self._states, self._pending, self._decisions)))

    def __repr__(self) -> str:
        return f"Fleet({self.policy!r}, n_users={self.n_users}, n_arms={self.n_arms}, dim={self.dim})"

    def add_users(self, n_users: int) -> np.ndarray:
        """Take in so many new users, of whom nothing is known; returns their numbers."""
        checks.whole("n_users", n_users, least=1)
        with self._lock:
            known = self.n_users
            newcomers = self._newcomers(int(n_users))
            self._states = mapped(lambda known, new: np.concatenate([known, new]), self._states, newcomers)
            self._pending = np.concatenate([self._pending, np.zeros((n_users, self.n_arms), np.int32)])
            self._decisions = np.concatenate([self._decisions, np.zeros(n_users, np.int32)])
            return np.arange(known, self.n_users)

    # ---------------------------------------------------------------------------------------- events and rewards

    def select(self, users: Any, contexts: Any, eligible: Any = None) -> Choices:
        """Choose an arm for each of m events: users (m,), contexts (m, K, d), eligible a mask (m, K) or (K,)."""
        users = self._known(users)
        m, table = len(users), (len(users), self.n_arms)
        contexts = checks.real_array("contexts", contexts, (*table, self.dim))
        if not all_finite(contexts):
            checks.finite_array("contexts", contexts, (*table, self.dim))
        mask = self._mask(eligible, table)
        scores, widths, propensities = np.empty((3, m))
        tags = np.zeros((m, tag_size(self._parameters)))
        arms = np.full(m, -1)  # until they are chosen
        choices = Choices(users, arms, np.empty((m, self.dim)), scores, widths, propensities, tags)
        with self._lock:
            before = self._rng.bit_generator.state
            noise = self._rng.standard_normal((m, noise_size(self._parameters, self.n_arms, self.dim)))
            counted = (self._pending, self._decisions)
            try:
                wrong = choose(self._parameters, self._states, users, contexts, mask, *counted, noise, choices)
                if wrong >= 0:
                    user = users[wrong]
                    retry = arm_to_retry(int(self._decisions[user]), self.n_arms)
                    offer = Offer(contexts[wrong], mask[wrong], self._pending[user], retry)
                    refuse_choice(self._parameters, state_of(self._states, user), offer, noise[wrong])
            except BaseException:
                chosen = arms >= 0
                np.subtract.at(self._decisions, users[chosen], 1)
                np.subtract.at(self._pending, (users[chosen], arms[chosen]), 1)
                self._rng.bit_generator.state = before
                raise
        return choices

    def update(self, choices: Choices, rewards: Any) -> None:
        """Take the rewards (m,) of choices, of a batch or of some `choices.rows(...)`; each is rewarded once."""
        choices = self._chosen(choices)
        rewards = checks.finite_array("rewards", rewards, (len(choices.users),))
        with self._lock:
            self._settle(choices)
            learnt = np.zeros(1, np.int64)
            try:
                learn(self._parameters, self._states, choices, rewards, learnt)
            except BaseException:  # the policy's own: what was not learnt stays pending
                np.add.at(self._pending, (choices.users[learnt[0] :], choices.arms[learnt[0] :]), 1)
                raise

    def drop(self, choices: Choices) -> None:
        """Say that these choices will never be rewarded."""
        choices = self._chosen(choices)
        with self._lock:
            self._settle(choices)

    def diagnostics(self, user: int) -> dict[str, Any]:
        """What the policy has learnt of one user."""
        (known,) = self._known([user])
        with self._lock:
            return diagnostics(self._parameters, state_of(self._states, known))

    # ------------------------------------------------------------------------------------------------- the border

    def _known(self, users: Any) -> np.ndarray:
        users = checks.numbers("users", users)
        if users.ndim != 1 or not (np.issubdtype(users.dtype, np.integer) or users.size == 0):
            raise ValueError(f"users must be a list of whole numbers, got shape {users.shape} of {users.dtype}")
        if users.size and not (users.min() >= 0 and users.max() < self.n_users):
            wrong = users.min() if users.min() < 0 else users.max()
            raise ValueError(f"user {wrong} is unknown: this fleet has users 0 to {self.n_users - 1}")
        return users.astype(np.int64)  # a copy: choices keep it, and the caller's array may change

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
            raise ValueError("eligible is False for every arm of an event: at least one must be eligible")
        return np.broadcast_to(mask, table).copy()  # not read-only, which would be compiled for apart

    def _chosen(self, choices: Choices) -> Choices:
        """Choices that can be this fleet's, C-ordered as compiled code wants them."""
        if not isinstance(choices, Choices):
            raise ValueError(f"choices must be what select returned, or some rows of it, not {type(choices).__name__}")
        users = self._known(choices.users)
        m, arms = len(users), np.ascontiguousarray(checks.numbers("arms", choices.arms))
        unchecked = [(name, getattr(choices, name)) for name in ("scores", "widths", "propensities")]  # any will do
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
            raise ValueError(
                f"choices must be what this fleet's select returned, these are another's or were changed: {error}"
            ) from None
        return Choices(users, arms, actions, scores, widths, propensities, tags)

    def _settle(self, choices: Choices) -> None:
        """Take choices off what is pending; nothing is taken where one of them is not."""
        where = choices.users, choices.arms
        np.subtract.at(self._pending, where, 1)
        settled = self._pending[where] >= 0
        if not settled.all():
            np.add.at(self._pending, where, 1)
            row = int(np.argmin(settled))
            raise UnknownDecision(
                f"user {choices.users[row]} has no pending choice of arm {choices.arms[row]}: "
                "it was rewarded or dropped before"
            )

    # ----------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Write what is known of all users to a path or an open binary file: arrays and JSON, no code.

        At a path the file is there whole or not at all.
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
    def load(cls, source: saving.Source, policy: Any = None) -> Fleet:
        """Read a saved fleet from a path or an open binary file; it goes on bit for bit.

        `policy` is needed for a policy of your own. A file that is damaged, or that could do harm, is refused.
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
                raise ValueError("a fleet plays finitely many arms, not the unit ball")
            fleet = cls.__new__(cls)
            fleet.policy, fleet.n_arms, fleet.dim, fleet.horizon = policy, n_arms, dim, horizon
            fleet._parameters, user = saving.new_state(policy, n_arms, dim, horizon, most_bytes=saved.nbytes // n_users)
            fleet._states = saved.state(fleet._parameters, user, prefix="0", leading=(n_users,))
            fleet._pending = saved.array("state/1", (n_users, n_arms), np.int32)
            checks.indices("pending", fleet._pending, np.iinfo(np.int32).max)
            fleet._decisions = np.zeros(n_users, np.int32)
            if "decisions" in saved:  # files of version 0.1 have none
                fleet._decisions = saved.array("decisions", (n_users,), np.int32)
            fleet._rng = saving.restore_rng(header["rng"])
            fleet._set_up()
        return fleet

    def __reduce__(self) -> Any:
        """Pickled and copied in the saved form."""
        return type(self).load, (saving.in_memory(self), self.policy)
