"""The constants that the paper leaves unnamed, and the check that all bounds on regret share."""

from __future__ import annotations

from typing import Any

import numpy as np

C = 1.0
C_1 = 9.0


def positive_horizon(horizon: Any) -> np.ndarray:
    """The rounds as an array, refused unless all are positive."""
    T = np.asarray(horizon, dtype=float)
    if not (T > 0).all():
        raise ValueError(f"horizon must be positive, not {horizon!r}")
    return T
