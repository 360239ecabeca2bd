"""Features as they were offered since the start, against how they were declared."""

from __future__ import annotations

import numpy as np

_AT_ONCE = 2**15  # numbers that are added up together, which costs less than one request at a time


class Seen:
    """Number, sums and sums of squares of encoded features."""

    def __init__(self, dim: int) -> None:
        self.requests = self.rows = 0
        self._sums, self._squares = np.zeros(dim), np.zeros(dim)
        self._last: list[np.ndarray] = []  # not yet added up
        self._n_last = 0

    def add(self, rows: np.ndarray) -> None:
        """Take in the features (n, d) of the arms of one request."""
        self.requests += 1
        self.rows += len(rows)
        self._last.append(rows)
        self._n_last += rows.size
        if self._n_last >= _AT_ONCE:
            self._sums, self._squares = self._totals()
            self._last, self._n_last = [], 0

    def _totals(self) -> tuple[np.ndarray, np.ndarray]:
        rows = np.concatenate([np.empty((0, len(self._sums))), *self._last])
        return self._sums + rows.sum(axis=0), self._squares + np.einsum("ij,ij->j", rows, rows)

    @property
    def means_and_sds(self) -> tuple[np.ndarray, np.ndarray]:
        """Means (d,) and standard deviations (d,) of the coordinates."""
        sums, squares = self._totals()
        means, n = sums / max(self.rows, 1), max(self.rows, 1)
        return means, np.sqrt(np.maximum(squares / n - means**2, 0.0))
