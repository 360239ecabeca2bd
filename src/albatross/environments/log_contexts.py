"""Contexts (n, K, d) of a log that are computed for the requested rounds only: all of them may not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """Products of a vector of the action and a vector of the round: contexts (n, K, q d).

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoded:
    """Features of the action, features of the round, and products of pairs of them, as a schema declares them.

    >>> encoded = Encoded(of_actions=np.array([[1.0, 0.0], [2.0, 0.0]]), of_rounds=np.array([[0.0, 5.0], [0.0, 7.0]]),
    ...                   left=np.array([0]), right=np.array([1]))
    >>> encoded[[1]].tolist(), encoded[[0, 1], [1, 0]].tolist()
    ([[[1.0, 7.0, 7.0], [2.0, 7.0, 14.0]]], [[2.0, 5.0, 10.0], [1.0, 7.0, 7.0]])
    """

    of_actions: np.ndarray  # (K, b), 0 where the coordinate is one of the round
    of_rounds: np.ndarray  # (n, b), 0 where the coordinate is one of the action
    left: np.ndarray  # (p,) the coordinates whose products follow
    right: np.ndarray  # (p,)

    @property
    def shape(self) -> tuple[int, int, int]:
        """n, K and the number of features."""
        n_arms, b = self.of_actions.shape
        return len(self.of_rounds), n_arms, b + len(self.left)

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return contexts of rows (m, K, d), or of rows and one action in each (m, d), like an array."""
        rows, arms = key if isinstance(key, tuple) else (key, None)
        if arms is not None:
            single = self.of_actions[arms] + self.of_rounds[rows]
        else:
            single = self.of_actions + self.of_rounds[rows][:, None]
        return np.concatenate([single, single[..., self.left] * single[..., self.right]], axis=-1)

    def rows(self, which: np.ndarray) -> Encoded:
        """Return these rounds only."""
        return Encoded(of_actions=self.of_actions, of_rounds=self.of_rounds[which], left=self.left, right=self.right)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offers:
    """A context for every arm that a round offers, and zeros for arms that it does not offer.

    >>> offers = Offers(contexts=np.array([[1.0], [2.0], [3.0]]), places=np.array([0, 2, 4]), length=2, n_arms=3)
    >>> offers[[0, 1]].tolist(), offers[[0, 1], [2, 1]].tolist()
    ([[[1.0], [0.0], [2.0]], [[0.0], [3.0], [0.0]]], [[2.0], [3.0]])
    """

    contexts: np.ndarray  # (N, d) of all rounds
    places: np.ndarray  # (N,) round * K + arm, in ascending order
    length: int
    n_arms: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """n, K and the number of features."""
        return self.length, self.n_arms, self.contexts.shape[1]

    @property
    def eligible(self) -> np.ndarray:
        """(n, K) which arms each round offers."""
        mask = np.zeros((self.length, self.n_arms), bool)
        mask.flat[self.places] = True
        return mask

    def __getitem__(self, key: Any) -> np.ndarray:
        """Return contexts of rows (m, K, d), or of rows and one offered action in each (m, d), like an array."""
        rows, arms = key if isinstance(key, tuple) else (key, None)
        rows = np.asarray(rows)
        if arms is not None:
            return self.contexts[np.searchsorted(self.places, rows * self.n_arms + arms)]
        found, places = self._of(rows)
        table = np.zeros((len(rows), *self.shape[1:]))
        table.reshape(-1, self.shape[2])[places] = self.contexts[found]
        return table

    def rows(self, which: np.ndarray) -> Offers:
        """Return these rounds only."""
        found, places = self._of(which)
        return Offers(contexts=self.contexts[found], places=places, length=len(which), n_arms=self.n_arms)

    def _of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which contexts belong to these rounds, and their places if these are all rounds."""
        start, end = np.searchsorted(self.places, [rows * self.n_arms, (rows + 1) * self.n_arms])
        sizes = end - start
        found = np.arange(sizes.sum()) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)
        shift = (np.arange(len(rows)) - rows) * self.n_arms
        return found, self.places[found] + np.repeat(shift, sizes)
