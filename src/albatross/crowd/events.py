"""Batches of events: arguments of a fleet's calls, checked and converted to the arrays that compiled code takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from albatross import checks
from albatross.crowd.arms import NumberedArms
from albatross.errors import UnknownDecision
from albatross.loops import Choices, Events, first_not_pending
from albatross.protocol import all_finite

_NO_COLUMNS = {"scores": 0.0, "widths": 0.0, "propensities": np.nan, "tags": np.nan}


def new_events(users: np.ndarray, dim: int, tag_size: int) -> Events:
    """Return events of users, given by their slots, that are to be chosen."""
    m = users.size
    scores, widths, propensities = np.empty((3, m))
    arms = np.empty(m, np.int64)
    arms.fill(-1)
    return Events(users, arms, np.empty((m, dim)), scores, widths, propensities, np.zeros((m, tag_size)))


def finite(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a C-ordered array of finite floats."""
    array = checks.real_array(name, value, shape)
    return array if all_finite(array) else checks.finite_array(name, array, shape)


def given_counts(value: Any, m: int, arms: NumberedArms, n_slots: int) -> np.ndarray:
    """Return pending decisions by slot (m, K), from those by arm (m, R); (0, K) if those of the fleet count."""
    if value is None:
        return np.zeros((0 if arms.last else m, n_slots), np.int32)  # those of other rows say nothing
    given = finite("pending", value, (m, arms.active.size))
    most = np.iinfo(np.int32).max
    if not ((given >= 0.0) & (given <= most) & (given == np.floor(given))).all():
        raise ValueError(f"pending must hold numbers of decisions: whole numbers from 0 to {most}")
    counts = np.zeros((m, n_slots), np.int32)
    counts[:, arms.active] = given
    return counts


def recorded(users: np.ndarray, arms: np.ndarray, actions: Any, dim: int, tag_size: int, columns: Any) -> Events:
    """Return events that somebody else chose; columns that are not given are those of another's choice."""
    m = users.size
    actions = finite("actions", actions, (m, dim)).copy()  # the caller may change the array
    found = {}
    for name, value in columns.items():
        shape = (m, tag_size) if name == "tags" else (m,)
        found[name] = (
            np.full(shape, _NO_COLUMNS[name]) if value is None else checks.real_array(name, value, shape).copy()
        )
    known = found["propensities"][~np.isnan(found["propensities"])]
    if not ((known > 0.0) & (known <= 1.0 + 1e-9)).all():
        raise ValueError("propensities must be above 0 and at most 1, or NaN if they are not known")
    if np.isnan(found["scores"]).any():
        raise ValueError("scores must be numbers")
    checks.tags("tags", found["tags"])
    return Events(users, arms, actions, **found)


def chosen(choices: Any, slots: np.ndarray, arms: NumberedArms, dim: int, tag_size: int) -> Events:
    """Return valid choices of the users in these slots as C-ordered arrays."""
    m = slots.size
    places = arms.chosen(choices.arms, choices.slots)
    if places.shape != (m,):
        raise ValueError(f"arms must be {m}, one for each user")
    actions = finite("actions", choices.actions, (m, dim))
    unchecked = [(name, getattr(choices, name)) for name in ("scores", "widths", "propensities")]
    scores, widths, propensities = (checks.real_array(*column, (m,)) for column in unchecked)
    tags = checks.real_array("tags", choices.tags, (m, tag_size))
    if tag_size:
        checks.tags("tags", tags)
    return Events(slots, places, actions, scores, widths, propensities, tags)


def check_pending(events: Events, choices: Choices, pending: np.ndarray) -> None:
    """Refuse choices of which one is not pending."""
    event = first_not_pending(events.users, events.arms, pending)
    if event >= 0:
        user, arm = (checks.shown(_plain(column[event])) for column in (choices.users, choices.arms))
        raise UnknownDecision(f"user {user} has no pending choice of arm {arm}: it was rewarded or dropped before")


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
