"""Which rounds of a run are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from albatross import checks

_MOST_RECORDED = 2_000


def recording_grid(horizon: int, record: int | str | Sequence[int] | np.ndarray | None = None) -> np.ndarray:
    """Return the rounds to record: at most this many, evenly spaced; "log" for logarithmic spacing; or a list of
    rounds.

    >>> recording_grid(100, 5).tolist()
    [1, 26, 50, 75, 100]
    >>> recording_grid(100, [10, 100]).tolist()
    [10, 100]
    """
    log = isinstance(record, str) and record == "log"
    if isinstance(record, str) and not log:
        raise ValueError(f"record must be a number of rounds, 'log' or the rounds themselves, not {record!r}")
    most = _MOST_RECORDED if record is None or log else record
    if isinstance(most, (int, np.integer)) and not isinstance(most, bool):
        checks.whole("record", most, least=1)
        size = min(int(most), int(horizon))
        checks.fits_in_memory(f"record={most}: {size:,} rounds", 40 * size, "record fewer rounds, or 'log'")
        spaced = np.geomspace if log else np.linspace
        first = 1.0 if most > 1 else float(horizon)
        return np.unique(np.round(spaced(first, horizon, size)).astype(np.int64))
    rounds = checks.numbers("record", most)
    if rounds.ndim != 1 or rounds.size == 0 or not np.issubdtype(rounds.dtype, np.integer):
        raise ValueError("record must be a number of rounds, 'log' or a list of whole numbers")
    if rounds.min() < 1 or rounds.max() > horizon:
        raise ValueError(f"record holds rounds from {rounds.min()} to {rounds.max()}, the run has 1 to {horizon}")
    return np.unique(rounds).astype(np.int64)
