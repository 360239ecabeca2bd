"""Logged: a log of decisions, with the reward and the probability of one action per round.

A log has features x of the round and possibly features a of every action. A context consists of the products of a
vector of the action and a vector of the round, so that a linear reward can depend on both:

| arms         | of the action                | of the round | features  |
|--------------|------------------------------|--------------|-----------|
| `"products"` | a                            | (1, x)       | q (d + 1) |
| `"actions"`  | a                            | 1            | q         |
| `"disjoint"` | unit vector of the action    | x            | K d       |
| `"biases"`   | 1                            | 1            | 1         |

x is standardised over the rounds of the log, a over the actions; rewards are not used for this.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from albatross import checks
from albatross.protocol import begin

ARMS = ("products", "actions", "disjoint", "biases")
_ROUNDING = 1e-9  # tolerance for probabilities above 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """Contexts (n, K, q d), computed only for the rounds requested: all of them may not fit into memory.

    >>> products = Products(of_actions=np.array([[1.0], [2.0]]), of_rounds=np.array([[1.0, 5.0], [1.0, 7.0]]))
    >>> products[[1]].tolist(), products[[0, 1], [1, 0]].tolist()
    ([[[1.0, 7.0], [2.0, 14.0]]], [[2.0, 10.0], [1.0, 7.0]])
    """

    of_actions: np.ndarray  # (K, q)
    of_rounds: np.ndarray  # (n, d)

    @property
    def shape(self) -> tuple[int, int, int]:
        """n, K and the number of features."""
        n_arms, q = self.of_actions.shape
        length, d = self.of_rounds.shape
        return length, n_arms, q * d

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return contexts of rows (m, K, q d), or of rows and one action in each (m, q d), like an array."""
        rows, arms = key if isinstance(key, tuple) else (key, None)
        actions, rounds = self.of_actions[:, :, None], self.of_rounds[rows][:, None, :]
        if arms is not None:
            return np.multiply(actions[arms], rounds, order="C").reshape(len(rounds), -1)
        return np.multiply(actions, rounds[:, None], order="C").reshape(len(rounds), *self.shape[1:])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Logged:
    """A log: contexts (n, K, d) of all arms, and for each round the action, its reward and its probability.

    Create one from a table with `Logged.from_log`; evaluate policies on it with `albatross.evaluation`.

    >>> Logged(contexts=np.ones((3, 2, 1)), actions=[0, 1, 1], rewards=[1, 0, 2], propensities=[0.5, 0.5, 0.5])
    Logged(3 rounds, n_arms=2, dim=1)
    """

    contexts: Any  #: (n, K, d), an array or `Products`
    actions: Any  #: (n,) counted from 0
    rewards: Any  #: (n,)
    propensities: Any  #: (n,) probabilities of the logged actions, above 0 and at most 1

    def __post_init__(self) -> None:
        contexts = self.contexts
        if not isinstance(contexts, Products):
            contexts = checks.finite_array("contexts", contexts, (None, None, None))
        if 0 in contexts.shape:
            raise ValueError(f"contexts must have at least one round, arm and feature, got {contexts.shape}")
        length, n_arms, _ = contexts.shape
        rewards = checks.finite_array("rewards", self.rewards, (length,))
        arrays = {
            "contexts": contexts,
            "actions": checked_actions(self.actions, length, n_arms),
            "rewards": rewards,
            "propensities": checked_propensities(self.propensities, length),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @classmethod
    def from_log(cls, log: Any, arms: str | None = None) -> Logged:
        """Convert a log from `albatross.datasets.read_log`, with contexts built as in the table above.

        The default of `arms` is "products" if the actions have features, else "disjoint" if the rounds have, else
        "biases". Constant features are left out with a warning.

        >>> from types import SimpleNamespace
        >>> log = SimpleNamespace(actions=[0, 1], rewards=[1, 0], propensities=[0.5, 0.5], n_actions=2,
        ...                       features=[[3.0], [5.0]], action_features=None)
        >>> Logged.from_log(log).contexts[[1]].tolist()
        [[[1.0, 0.0], [0.0, 1.0]]]
        """
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
        return cls(
            contexts=Products(of_actions=of_actions, of_rounds=of_rounds),
            actions=log.actions,
            rewards=log.rewards,
            propensities=log.propensities,
        )

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

    def __repr__(self) -> str:
        return f"Logged({self.length} rounds, n_arms={self.n_arms}, dim={self.dim})"


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
