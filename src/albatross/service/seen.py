"""Features as they were offered since the start, against how they were declared."""

from __future__ import annotations

import numpy as np


class Seen:
    """Number, sums and sums of squares of encoded features."""

    def __init__(self, dim: int) -> None:
        self.requests = self.rows = 0
        self.sums, self.squares = np.zeros(dim), np.zeros(dim)

    def add(self, rows: np.ndarray) -> None:
        """Take in the features (n, d) of the arms of one request."""
        self.requests += 1
        self.rows += len(rows)
        self.sums += rows.sum(axis=0)
        self.squares += np.einsum("ij,ij->j", rows, rows)

    @property
    def means(self) -> np.ndarray:
        """Means (d,) of the coordinates."""
        return self.sums / max(self.rows, 1)

    @property
    def sds(self) -> np.ndarray:
        """Standard deviations (d,) of the coordinates."""
        return np.sqrt(np.maximum(self.squares / max(self.rows, 1) - self.means**2, 0.0))
