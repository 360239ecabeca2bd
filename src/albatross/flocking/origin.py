"""The origin of a flock: the unit of its contexts and the level of its rewards, which all users share.

It is an array (3,): the unit, 0 before the first decision; the level; and whether the level is known.
"""

from __future__ import annotations

import numpy as np

from albatross import checks
from albatross.models.units import unit_of
from albatross.protocol import Offer


def check_origin(origin: np.ndarray) -> None:
    """Refuse an origin, read from elsewhere, that is impossible: raise a ValueError."""
    if origin[0]:
        checks.positive("unit", origin[0])
    if origin[2] not in (0.0, 1.0) or (origin[1] and not origin[2]):
        raise ValueError("a level must be known or 0")


def common_origin(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return our origin, completed by that of a row if we have seen nothing yet. A different one is refused."""
    common = ours.copy()
    common[0] = common[0] or theirs[0]
    if common[2] == 0.0:
        common[1:] = theirs[1:]
    if theirs[0] not in (0.0, common[0]) or (theirs[2] and theirs[1] != common[1]):
        raise ValueError(
            f"the row belongs to a flock of unit {theirs[0]:g} and level {theirs[1]:g}, not {common[0]:g} and "
            f"{common[1]:g}: give flocks that share users the same unit and level"
        )
    return common


def fitting_unit(known: float, contexts: np.ndarray, offer: Offer) -> float:
    """Return the unit, that of an offer if none is known. Contexts far beyond it are refused."""
    unit = known or min(unit_of(offer), checks.LARGEST)  # of many features, a length may be larger than each
    if unit < 1.0 and np.abs(contexts).max() > checks.LARGEST * unit:
        raise ValueError(f"contexts must be at most {checks.LARGEST:g} times their usual length, {unit:g}")
    return float(unit)
