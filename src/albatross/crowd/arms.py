"""The arms of an agent or a fleet without names: numbered, rows that pass, or the unit ball.

Policies see numbered slots only: entries of their state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, Sized
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.frames import is_frame
from albatross.loops import first_outside

Name = str | int
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # contexts (R, d), whether each is eligible, the slots of their arms


def is_list(given: Any) -> bool:
    """Return whether this holds several things: a list, a set, an array or a column of a data frame.

    A text, a dict, an array of no axes and a whole data frame, which would give the names of its columns, are none.

    >>> [is_list(each) for each in (["a"], {"a"}, np.array(["a"]), "a", {"a": 1}, np.array("a"))]
    [True, True, True, False, False, False]
    """
    if _is_plain(given):
        return True
    several = isinstance(given, Iterable) and isinstance(given, Sized) and not is_frame(given)
    return several and not isinstance(given, str | bytes | Mapping) and getattr(given, "ndim", 1) > 0


def is_ordered(given: Any) -> bool:
    """Return whether this holds several things in an order, as events and rows have one: a set has none."""
    return _is_plain(given) or (is_list(given) and not isinstance(given, Set))


def _is_plain(given: Any) -> bool:
    """Return whether this is a list or an array, as it mostly is: abstract classes cost half a microsecond."""
    return type(given) is list or (type(given) is np.ndarray and given.ndim > 0)


def _is_listed(eligible: Any) -> bool:
    """Return whether these are lists of arms, one for each event, and not masks."""
    if not isinstance(eligible, list | tuple) or not eligible or not all(map(is_list, eligible)):
        return False
    return not all(len(arms) and all(isinstance(arm, bool | np.bool_) for arm in arms) for arms in eligible)


class NumberedArms:
    """Arms 0 to n - 1, each in the slot of its number."""

    last = True  # from decision to decision; otherwise pending decisions of a slot say nothing about its next row
    none_waiting = np.zeros(1, np.int64)

    def __init__(self, n_arms: int) -> None:
        self.active = np.arange(n_arms)  # slots of the arms, in the order of the rows that `select` takes
        self._all = np.ones(n_arms, bool)
        self.first = n_arms  # number of arms, and of slots, at the start

    @property
    def retired_slots(self) -> list[int]:
        """Slots of retired arms."""
        return []

    @cached_property
    def taken(self) -> list[tuple[Name, int]]:
        """All arms that there ever were, with the slots that they took."""
        return [(arm, arm) for arm in range(self.first)]

    @property
    def names(self) -> list[Any]:
        """The arms, in the order of the rows that `select` takes."""
        return self.active.tolist()

    def name_of(self, slot: int) -> Any:
        """Return the arm in a slot."""
        return slot

    def row_names(self, slots: np.ndarray) -> list[Any]:
        """Return the arms of rows with these slots."""
        return [self.name_of(slot) for slot in slots.tolist()]

    def slot(self, name: Any) -> int:
        """Return the slot of an arm."""
        return int(self.slots([name])[0])

    def slots(self, arms: Any, n: int | None = None) -> np.ndarray:
        """Return the slots of a list of n arms, or of any number of them."""
        given = checks.numbers("arms", arms)
        return checks.arms(given, given.size if n is None else n, self.active.size)

    def eligible(self, arms: Any) -> np.ndarray:
        """Return a mask of the arms from a mask or a list of arms."""
        return checks.eligible(arms, self.active.size)

    def rows(self, contexts: Any, eligible: Any, arms: Any, dim: int) -> Rows:
        """Return checked rows of an offer; compiled code checks that contexts are finite."""
        if arms is not None:
            if eligible is not None:
                raise ValueError("with arms, one per row, give only the eligible rows, and not eligible")
            slots = self.slots(arms)
            if not slots.size:
                raise ValueError("arms is empty: give at least one row")
            given = checks.numbers("contexts", contexts)
            if given.ndim == 2 and len(given) != slots.size:
                raise ValueError(f"contexts have {len(given)} rows, but arms names {slots.size}: give the arm of each")
            return checks.contexts(given, slots.size, dim), np.ones(slots.size, bool), slots
        if contexts is None:
            raise ValueError(f"contexts must be given: shape ({self.active.size}, {dim}) or ({dim},)")
        mask = self._all if eligible is None else self.eligible(eligible)
        return checks.contexts(contexts, self.active.size, dim), mask, self.active

    # ------------------------------------------------------------------------------------------- batches of events

    def offered(self, contexts: Any) -> NumberedArms:
        """Return the arms that the rows of contexts (m, R, d) stand for."""
        return self

    def of_rows(self, n: int) -> np.ndarray:
        """Return the slots of the n rows of an event."""
        return self.active

    def masks(self, eligible: Any, n: int) -> np.ndarray:
        """Return masks (n, R), or (1, R) for all events, from a mask of either shape, (R,), or lists of arms."""
        rows = self.active.size
        if eligible is None:
            return self._all[None]
        if not isinstance(eligible, np.ndarray) and _is_listed(eligible):
            if not len(eligible) == n:
                raise ValueError(f"eligible must list the arms of {n} events, got {len(eligible)} lists")
            return np.array([self.eligible(arms) for arms in eligible]).reshape(n, rows)
        wanted = f"eligible must be a mask of booleans of shape ({n}, {rows}) or ({rows},), or lists of arms"
        if is_frame(eligible):  # its columns may be in another order than the arms
            raise ValueError(f"{wanted}, not a data frame: give its values, with the columns in the order of the arms")
        try:
            mask = checks.numbers("eligible", eligible)
        except ValueError:
            raise ValueError(f"{wanted}, got {shown(eligible)}") from None
        if mask.dtype != bool or mask.shape not in ((n, rows), (rows,)):
            raise ValueError(f"{wanted}, got shape {mask.shape} of {mask.dtype}")
        if not mask.any(axis=-1).all():
            raise ValueError("eligible is False for every arm of an event: at least one arm must be eligible")
        return np.array(mask, ndmin=2, order="C")  # writable: a read-only array would be compiled for separately

    def names_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the arms in some slots, as the caller names them."""
        return slots

    def chosen(self, arms: Any, slots: Any) -> np.ndarray:
        """Return the checked slots (m,) of arms that were chosen, which may be retired by now."""
        arms = np.require(checks.numbers("arms", arms), None, ["C", "A"])
        if arms.ndim != 1 or arms.dtype != np.int64:
            raise ValueError("arms must be whole numbers of 64 bits")
        wrong = first_outside(arms, self.active.size)
        if wrong >= 0:
            raise ValueError(f"arm {arms[wrong]} is unknown: this fleet has arms 0 to {self.active.size - 1}")
        if slots is not None and not np.array_equal(arms, slots):
            raise ValueError("arms do not match their slots")
        return arms

    # -------------------------------------------------------------------------------------------------------- history

    def digest(self, n: int) -> str:
        """Return a hash of the first n arms that there ever were, with the slots that they took."""
        return blake2b(repr(self.taken[:n]).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def used(self, n: int) -> int:
        """Return the number of slots that the first n arms that there ever were took."""
        return 1 + max(slot for _, slot in self.taken[:n])

    def capacity(self, n: int) -> int:
        """Return the number of slots after the first n arms that there ever were: it doubles when all are in use."""
        slots = self.first
        for _, slot in self.taken[self.first : n]:
            slots = 2 * slots if slot == slots else slots
        return slots

    # ----------------------------------------------------------------------------------------------------- for people

    def labelled(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return diagnostics by name of the arm, with a warning that policies cannot give: they see slots."""
        if self.active.size == 1 or "pulls" not in found or "warnings" not in found:  # one slot may be no arm at all
            return found
        never = np.count_nonzero(found["pulls"][self.active] == 0.0)
        told = [f"{never} of {self.active.size} arms were never played."] if never else []
        return {**found, "warnings": told + found["warnings"]}

    def described(self) -> str:
        """Return the keyword of `Agent` that makes such arms."""
        return f"n_arms={self.active.size}, "

    def to_dict(self) -> dict[str, Any] | None:
        """Return what a saved file holds."""
        return None


class PassingRows(NumberedArms):
    """Rows that are there for one decision, such as the articles of a day. None has a bias, so one slot serves all."""

    last = False

    def __init__(self) -> None:
        super().__init__(1)

    @staticmethod
    def check_policy(policy: Any) -> None:
        """Refuse a policy with biases: raise a ValueError."""
        if getattr(policy, "biases", True):
            given = type(policy).__name__
            raise ValueError(f"rows that pass have no bias: give a policy like LinUCB(biases=False), not {given}")

    @property
    def names(self) -> list[Any]:
        """No arm lasts."""
        return []

    def name_of(self, slot: int) -> Any:
        """Return nothing: a row has no name."""
        return None

    def row_names(self, slots: np.ndarray) -> list[Any]:
        """Return the numbers of the rows."""
        return list(range(slots.size))

    def slots(self, arms: Any, n: int | None = None) -> np.ndarray:
        """Return the only slot, n times."""
        if arms is not None:
            raise ValueError("rows that pass belong to no arms: give None")
        return np.zeros(n or 0, np.int64)

    def rows(self, contexts: Any, eligible: Any, arms: Any, dim: int) -> Rows:
        """Return checked rows of an offer; compiled code checks that contexts are finite."""
        slots = self.slots(arms)
        given = checks.numbers("contexts", contexts)
        if given.ndim != 2 or not len(given):
            raise ValueError(f"contexts must have shape (any, {dim}), one row at least, got {given.shape}")
        slots = np.zeros(len(given), np.int64)
        mask = np.ones(len(given), bool) if eligible is None else checks.eligible(eligible, len(given))
        return checks.contexts(given, len(given), dim), mask, slots

    def offered(self, contexts: Any) -> NumberedArms:
        """Return the rows as arms of one batch, by their numbers."""
        given = checks.numbers("contexts", contexts)
        if given.ndim != 3 or not given.shape[1]:
            raise ValueError(f"contexts must have shape (events, any, features), one row at least, got {given.shape}")
        return NumberedArms(given.shape[1])

    def of_rows(self, n: int) -> np.ndarray:
        """Return the only slot, n times."""
        return np.zeros(n, np.int64)

    def names_of(self, slots: np.ndarray) -> np.ndarray:
        """Return -1 for each: of choices that are recorded, the rows are not known."""
        return slots - 1

    def chosen(self, arms: Any, slots: Any) -> np.ndarray:
        """Return the only slot, once for each of the rows that were chosen."""
        if slots is not None and np.any(slots):
            raise ValueError("slots must be 0: rows that pass have no other")
        return np.zeros(np.shape(arms), np.int64)

    def described(self) -> str:
        """Return the keyword of `Agent` that makes such rows."""
        return "arms='passing', "

    def to_dict(self) -> dict[str, Any] | None:
        """Return what a saved file holds."""
        return {"passing": True}


class UnitBall(NumberedArms):
    """All vectors of length at most 1: nothing to choose from, and nothing to name."""

    def __init__(self, dim: int) -> None:
        super().__init__(1)
        self._row = np.zeros((1, dim))

    def rows(self, contexts: Any, eligible: Any, arms: Any, dim: int) -> Rows:
        """Return the only row."""
        for what, given in (("contexts", contexts), ("eligible arms", eligible), ("arms", arms)):
            if given is not None:
                raise ValueError(f"the arms are the unit ball: select() takes no {what}")
        return self._row, self._all, self.active

    def described(self) -> str:
        """Return nothing: `Agent` needs no keyword."""
        return ""
