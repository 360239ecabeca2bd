"""Logged: a log of decisions, with the reward and the probability of one action per round.

A log has features x of the round and possibly features a of every action. A context consists of the products of a
vector of the action and a vector of the round, so that a linear reward can depend on both:

| arms         | of the action                | of the round | features  |
|--------------|------------------------------|--------------|-----------|
| `"products"` | a                            | (1, x)       | q (d + 1) |
| `"actions"`  | a                            | 1            | q         |
| `"disjoint"` | unit vector of the action    | x            | K d       |
| `"biases"`   | 1                            | 1            | 1         |

x is standardised over the rounds of the log, a over the actions; rewards are not used for this. A log that was
read with a schema, or that holds a context for every offered action, has its contexts already.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.environments.log_contexts import Encoded, Offers, Products
from albatross.protocol import begin

ARMS = ("products", "actions", "disjoint", "biases")
_ROUNDING = 1e-9  # tolerance for probabilities above 1
_CERTAIN = 1.0 - 1e-6  # a propensity that leaves no probability for other actions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Logged:
    """A log: contexts (n, K, d) of all arms, and for each round the action, its reward and its probability.

    Create one from a table with `Logged.from_log`; evaluate policies on it with `albatross.evaluation`. `eligible` says
    which arms could be chosen in each round; by default all of them. `users` says whom each round was for, so that
    `evaluation.PerUser` can keep a state for each user. `names` of the arms are needed to evaluate an `Agent` whose
    arms have names.

    >>> log = {"actions": [0, 1, 1], "rewards": [1, 0, 2], "propensities": [0.5, 0.5, 1.0]}
    >>> Logged(contexts=np.ones((3, 2, 1)), **log)
    Logged(3 rounds, n_arms=2, dim=1)
    >>> both, only = [True, True], [False, True]
    >>> Logged(contexts=np.ones((3, 2, 1)), **log, eligible=[both, both, only], users=["ann", "bob", "ann"])
    Logged(3 rounds, n_arms=2, dim=1, n_users=2)
    """

    contexts: Any  #: (n, K, d), an array or `Products`
    actions: Any  #: (n,) counted from 0
    rewards: Any  #: (n,)
    propensities: Any  #: (n,) probabilities of the logged actions, above 0 and at most 1
    eligible: Any = None  #: (n, K) booleans
    users: Any = None  #: (n,) texts or whole numbers; kept as numbers from 0, in the order in which the users come
    names: Any = None  #: K different names of the arms, as texts; by default their numbers
    user_names: tuple[str | int, ...] = field(init=False)  #: the users by name, in the order in which they come

    def __post_init__(self) -> None:
        contexts = self.contexts
        if not isinstance(contexts, Products | Encoded | Offers):
            contexts = checks.finite_array("contexts", contexts, (None, None, None))
        if 0 in contexts.shape:
            raise ValueError(f"contexts must have at least one round, arm and feature, got {contexts.shape}")
        length, n_arms, _ = contexts.shape
        rewards = checks.finite_array("rewards", self.rewards, (length,))
        actions = checked_actions(self.actions, length, n_arms)
        propensities = checked_propensities(self.propensities, length)
        offered = contexts.eligible if self.eligible is None and isinstance(contexts, Offers) else self.eligible
        users, user_names = (None, ()) if self.users is None else _numbered(self.users, length)
        fields = {
            "contexts": contexts,
            "actions": actions,
            "rewards": rewards,
            "propensities": propensities,
            "eligible": _checked_eligible(offered, actions, propensities, n_arms),
            "users": users,
            "user_names": user_names,
            "names": _checked_names(self.names, n_arms),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_log(cls, log: Any, arms: str | None = None) -> Logged:
        """Convert a log from `albatross.datasets.read_log`, with contexts built as in the table above.

        The default of `arms` is "products" if the actions have features, else "disjoint" if the rounds have, else
        "biases". Constant features are left out with a warning. A log with contexts of its own takes no `arms`.

        >>> from types import SimpleNamespace
        >>> log = SimpleNamespace(actions=[0, 1], rewards=[1, 0], propensities=[0.5, 0.5], n_actions=2,
        ...                       features=[[3.0], [5.0]], action_features=None)
        >>> Logged.from_log(log).contexts[[1]].tolist()
        [[[1.0, 0.0], [0.0, 1.0]]]
        """
        others = {
            "actions": log.actions,
            "rewards": log.rewards,
            "propensities": log.propensities,
            "eligible": getattr(log, "eligible", None),
            "users": getattr(log, "users", None),
            "names": getattr(log, "action_names", None),
        }
        if getattr(log, "contexts", None) is not None:
            if arms is not None:
                raise ValueError(f"arms={arms!r} is for logs without contexts of their own, but this log has them")
            return cls(contexts=log.contexts, **others)
        rounds = _standardised("rounds", log.features, len(log.rewards))
        actions = np.empty((log.n_actions, 0))
        if log.action_features is not None:
            actions = _standardised("actions", log.action_features, log.n_actions)
        if arms is None:
            arms = "products" if actions.size else "disjoint" if rounds.size else "biases"
        checks.one_of("arms", arms, ARMS)
        if arms in ("products", "actions") and not actions.size:
            raise ValueError(f"arms={arms!r} needs features of the actions that vary, this log has none")
        if arms == "disjoint" and not rounds.size:
            raise ValueError("arms='disjoint' needs features of the rounds that vary, this log has none")
        of_actions, of_rounds = np.ones((log.n_actions, 1)), np.ones((len(rounds), 1))
        if arms in ("products", "actions"):
            of_actions = actions
        if arms == "products":
            of_rounds = np.hstack([of_rounds, rounds])
        if arms == "disjoint":
            size = 8 * log.n_actions * log.n_actions
            checks.fits_in_memory(f"arms='disjoint' with {log.n_actions} actions", size, "give other arms")
            of_actions, of_rounds = np.eye(log.n_actions), rounds
        return cls(contexts=Products(of_actions=of_actions, of_rounds=of_rounds), **others)

    @property
    def length(self) -> int:
        """Number of logged rounds."""
        return int(self.contexts.shape[0])

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return int(self.contexts.shape[1])

    @property
    def dim(self) -> int:
        """d, the number of features per arm."""
        return int(self.contexts.shape[2])

    @property
    def n_users(self) -> int:
        """Number of users; 1 if the log does not say whom its rounds were for."""
        return 1 if self.users is None else int(self.users.max()) + 1

    def __repr__(self) -> str:
        users = "" if self.users is None else f", n_users={self.n_users}"
        return f"Logged({self.length} rounds, n_arms={self.n_arms}, dim={self.dim}{users})"


def checked_actions(actions: Any, length: int, n_arms: int) -> np.ndarray:
    """Check actions (n,): whole numbers from 0 to K - 1."""
    actions = checks.numbers("actions", actions)
    if actions.shape != (length,) or actions.dtype.kind not in "iu":
        raise ValueError(f"actions must be {length} whole numbers, got shape {actions.shape} of {actions.dtype}")
    wrong = (actions < 0) | (actions >= n_arms)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"action {actions[row]} of round {row} is unknown: there are arms 0 to {n_arms - 1}")
    return actions.astype(np.int64)


def checked_propensities(propensities: Any, length: int) -> np.ndarray:
    """Check propensities (n,): above 0 and at most 1, and not so small that the squares of their inverses overflow."""
    propensities = checks.finite_array("propensities", propensities, (length,))
    wrong = (propensities < 1.0 / checks.LARGEST) | (propensities > 1.0 + _ROUNDING)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"propensities must be above 0 and at most 1, but round {row} has {propensities[row]:g} "
            f"(at least {1.0 / checks.LARGEST:g} is needed)"
        )
    return np.minimum(propensities, 1.0)


def _checked_eligible(eligible: Any, actions: np.ndarray, propensities: np.ndarray, n_arms: int) -> np.ndarray:
    """Check a mask (n, K): the logged action is eligible, and has probability 1 if it is the only one."""
    shape = (actions.size, n_arms)
    if eligible is None:
        return np.broadcast_to(np.True_, shape)  # takes no memory
    mask = checks.numbers("eligible", eligible)
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(f"eligible must be a mask of booleans of shape {shape}, got {mask.shape} of {mask.dtype}")
    wrong = ~mask[np.arange(actions.size), actions]
    if wrong.any():
        row = int(np.argmax(wrong))
        arms = shown(np.flatnonzero(mask[row]).tolist())
        raise ValueError(f"action {actions[row]} of round {row} is not eligible: the eligible arms are {arms}")
    wrong = (mask.sum(axis=1) == 1) & (propensities < _CERTAIN)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"round {row} has one eligible arm, so its propensity is 1, not {propensities[row]:g}: a propensity or the "
            "eligible arms are wrong"
        )
    return mask


def _numbered(users: Any, length: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Number the users (n,) in the order in which they come, and return their names in that order."""
    if isinstance(users, str) or not isinstance(users, Iterable):
        raise ValueError(f"users must be {length} texts or whole numbers, not {shown(users)}")
    given = users.tolist() if isinstance(users, np.ndarray) else list(users)
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(user, len(numbers)) if _is_label(user) else -1 for user in given]
    if len(found) != length:
        raise ValueError(f"users must be {length} texts or whole numbers, one for each round, got {len(found)}")
    if -1 in found:
        row = found.index(-1)
        raise ValueError(f"the user of round {row} must be a text or a whole number, not {shown(given[row])}")
    return np.array(found, np.int64), tuple(numbers)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def _checked_names(names: Any, n_arms: int) -> tuple[str, ...]:
    """Check the names of the arms; a whole number is its own name."""
    if names is None:
        return tuple(map(str, range(n_arms)))
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(map(_is_label, names := list(names))):
        raise ValueError(f"names must be {n_arms} texts or whole numbers, not {shown(names)}")
    found = tuple(map(str, names))
    if len(set(found)) < n_arms or len(found) != n_arms:
        raise ValueError(f"names must be {n_arms} different names, one for each arm, got {shown(names)}")
    return found


def _standardised(whose: str, features: Any, length: int) -> np.ndarray:
    """Scale every column to mean 0 and variance 1; leave out constant columns."""
    features = checks.finite_array(f"features of the {whose}", features, (length, None))
    varying = (np.ptp(features, axis=0) > 0.0) & (features.std(axis=0) > 0.0)  # the standard deviation may underflow
    constant = int((~varying).sum())
    if constant:
        dropped = f"{constant} of {varying.size} features of the {whose} are constant and were dropped"
        warnings.warn(dropped, stacklevel=3)
    features = features[:, varying]
    return (features - features.mean(axis=0)) / features.std(axis=0)


@begin.register
def begin_logged(env: Logged, rng: np.random.Generator) -> Any:
    raise TypeError("a log has one reward per round and cannot be simulated: use albatross.evaluation.replay")
