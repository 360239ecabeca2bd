"""The table of the panel on theorems, read part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albatross.report.claims.engine import Measured
from albatross.report.claims.measuring import proportion
from albatross.store.results import Stored

PANEL = ("theorems",)
FLAT = 0.1  # as in the claims on scaling: an exponent up to this is called flat


class Values(NamedTuple):
    """A part of the table in one reading."""

    x: np.ndarray  # (n,) in ascending order
    at: list[np.ndarray]  # (trials,) values at each x

    def matrix(self) -> np.ndarray:
        """(trials, n)."""
        return np.stack(self.at, axis=1)


def values_of(stored: Stored, part: str, reading: str) -> Values:
    rows = stored.table(
        "theorems",
        f"SELECT x, list(value ORDER BY trial) AS values FROM curves "
        f"WHERE part = '{part}' AND policy = '{reading}' GROUP BY x ORDER BY x",
    )
    return Values(np.asarray(rows["x"], dtype=float), [np.array(list(each)) for each in rows["values"]])


def shares(values: Values, name: str, met: str, least: Sequence[float]) -> list[Measured]:
    """At each x the share of the draws in which the value is at most or at least 1, and the share that is promised."""
    found = []
    for x, each, wanted in zip(values.x, values.at, least, strict=True):
        good = each <= 1.0 if met == "at most" else each >= 1.0
        found.append(proportion(f"{name} {x:g}", good, (100.0 * float(wanted), 100.0)))
    return found
