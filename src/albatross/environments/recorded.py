"""Recorded: rounds given as arrays, with the reward of every arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.protocol import Rounds, begin, draw


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Recorded:
    """Rounds as arrays: contexts (T, K, d) with means (T, K) and noise (T, K), or with rewards (T, K) alone.

    With rewards alone, the regret of a round is its best reward minus the received one. Every trial plays the same
    rounds. The arrays are not copied.

    >>> Recorded(contexts=np.zeros((9, 2, 1)), rewards=np.ones((9, 2)))
    Recorded(9 rounds, n_arms=2, dim=1)
    """

    contexts: Any  #: (T, K, d) contexts
    means: Any = None  #: (T, K) expected rewards
    noise: Any = None  #: (T, K) noise, added to the means; None: 0
    rewards: Any = None  #: (T, K) rewards, instead of means and noise
    eligible: Any = None  #: (T, K) Boolean mask; None: all arms

    def __post_init__(self) -> None:
        contexts = checks.finite_array("contexts", self.contexts, (None, None, None))
        if 0 in contexts.shape:
            raise ValueError(f"contexts must have at least one round, arm and feature, got {contexts.shape}")
        table = contexts.shape[:2]
        if (self.means is None) == (self.rewards is None):
            raise ValueError("give either means (and noise, if any) or rewards")
        means = checks.finite_array("means" if self.rewards is None else "rewards", self._levels(), table)
        noise = np.zeros(table) if self.noise is None else checks.finite_array("noise", self.noise, table)
        if self.rewards is not None and self.noise is not None:
            raise ValueError("rewards include their noise: give noise only with means")
        eligible = np.ones(table, bool) if self.eligible is None else checks.numbers("eligible", self.eligible)
        if eligible.shape != table:
            raise ValueError(f"eligible must have shape {table}, got {eligible.shape}")
        if not np.isin(eligible, (0, 1)).all():
            raise ValueError("eligible must hold only True and False")
        eligible = eligible.astype(bool)
        if not eligible.any(axis=1).all():
            raise ValueError(f"round {int(np.argmin(eligible.any(axis=1)))} has no eligible arm")
        for name, array in (("contexts", contexts), ("means", means), ("noise", noise), ("eligible", eligible)):
            object.__setattr__(self, name, array)

    def _levels(self) -> Any:
        return self.means if self.rewards is None else self.rewards

    @property
    def length(self) -> int:
        """Number of rounds."""
        return len(self.contexts)

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return int(self.contexts.shape[1])

    @property
    def dim(self) -> int:
        """d, the number of features per arm."""
        return int(self.contexts.shape[2])

    def __repr__(self) -> str:
        return f"Recorded({self.length} rounds, n_arms={self.n_arms}, dim={self.dim})"


class RecordedInstance(NamedTuple):
    rounds: Rounds
    played: np.ndarray  # (1,)


@begin.register
def begin_recorded(env: Recorded, rng: np.random.Generator) -> RecordedInstance:
    return RecordedInstance(Rounds(env.contexts, env.eligible, env.means, env.noise), np.zeros(1, np.int64))


@draw.register
def draw_recorded(instance: RecordedInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    start = int(instance.played[0])
    stop = min(start + len(chunk.means), len(instance.rounds.means))
    for given, wanted in zip(instance.rounds, chunk, strict=True):
        wanted[: stop - start] = given[start:stop]
    instance.played[0] = stop
