"""The arms of an agent: numbered, named, or the unit ball. Policies see numbered slots only.

Named arms come and go. An arm takes a slot in the policy's state when it is added; the slot of a retired arm is used
again once none of its decisions is pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown

Name = str | int
Rows = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # contexts (R, d), whether each is eligible, the slot of each one's arm
# Entries of `diagnostics` with one value per slot.
_PER_SLOT = ("pulls", "means", "biases", "optimistic_biases")


class NumberedArms:
    """Arms 0 to n - 1, each in the slot of its number."""

    def __init__(self, n_arms: int) -> None:
        self.active = np.arange(n_arms)  # slots of the arms, in the order of the rows that `select` takes
        self._all = np.ones(n_arms, bool)

    @property
    def names(self) -> list[Any]:
        """The arms, in the order of the rows that `select` takes."""
        return self.active.tolist()

    def name_of(self, slot: int) -> Any:
        """Return the arm in a slot."""
        return slot

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
            return checks.contexts(contexts, slots.size, dim), np.ones(slots.size, bool), slots
        if contexts is None:
            raise ValueError(f"contexts must be given: shape ({self.active.size}, {dim}) or ({dim},)")
        mask = self._all if eligible is None else self.eligible(eligible)
        return checks.contexts(contexts, self.active.size, dim), mask, self.active

    def labelled(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return diagnostics with the names of the arms."""
        return found

    def described(self) -> str:
        """Return the keyword of `Agent` that makes such arms."""
        return f"n_arms={self.active.size}, "

    def to_dict(self) -> dict[str, Any] | None:
        """Return what a saved file holds."""
        return None


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


class NamedArms(NumberedArms):
    """Arms with names, in the order in which they were added.

    >>> arms = NamedArms(["sport", "politics"])
    >>> arms.retire("sport")
    >>> arms.add("art", free=[0])
    0
    >>> arms.names, arms.slots(["art", "politics"]).tolist()
    (['politics', 'art'], [0, 1])
    """

    def __init__(self, names: Iterable[Name]) -> None:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ValueError(f"arms must be a list of names, not {shown(names)}")
        self._slots: dict[Name, int] = {}
        self._retired: dict[int, Name] = {}  # by slot
        for name in names:
            self._slots[self._new(name)] = len(self._slots)
        if not self._slots:
            raise ValueError("arms must name at least one arm")
        self._count()

    def _count(self) -> None:
        self._by_slot = {**self._retired, **{slot: name for name, slot in self._slots.items()}}
        self.active = np.array(list(self._slots.values()), np.int64)
        self._all = np.ones(self.active.size, bool)

    @property
    def names(self) -> list[Any]:
        """The active arms, in the order in which they were added."""
        return list(self._slots)

    @property
    def n_slots(self) -> int:
        """Number of slots that active and retired arms take."""
        return len(self._slots) + len(self._retired)

    @property
    def retired_slots(self) -> list[int]:
        """Slots of retired arms."""
        return list(self._retired)

    def name_of(self, slot: int) -> Any:
        """Return the arm, active or retired, in a slot."""
        return self._by_slot[slot]

    def slot(self, name: Any) -> int:
        """Return the slot of an active arm."""
        try:
            return self._slots[name]
        except (KeyError, TypeError):
            raise ValueError(self._unknown(name)) from None

    def slots(self, arms: Any, n: int | None = None) -> np.ndarray:
        """Return the slots of a list of n active arms, or of any number of them."""
        if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray):
            raise ValueError(f"arms must be a list of names, not {shown(arms)}")
        if n is not None and len(arms) != n:
            raise ValueError(f"arms must be {n} names, one for each reward, got {len(arms)}")
        return np.array([self.slot(name) for name in arms], np.int64)

    def eligible(self, arms: Any) -> np.ndarray:
        """Return a mask of the active arms from a mask or a list of names."""
        if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray | set | frozenset):
            raise ValueError(f"eligible must be a list of arms or a mask of booleans, not {shown(arms)}")
        listed = list(arms)
        if all(isinstance(each, bool | np.bool_) for each in listed):
            return checks.eligible(listed, self.active.size)
        for name in listed:
            self.slot(name)
        if len(set(listed)) < len(listed):
            raise ValueError("eligible lists an arm twice: list each arm once, or give a mask of booleans")
        return np.array([name in listed for name in self._slots])

    # ------------------------------------------------------------------------------------------------ coming and going

    def add(self, name: Any, *, free: Sequence[int]) -> int:
        """Add an arm, in one of the `free` slots of retired arms if there is one. Return its slot."""
        self._slots[self._new(name)] = slot = self._next(free)
        self._count()
        return slot

    def move(self, name: Any, *, free: Sequence[int]) -> int:
        """Give an active arm another slot; its old one becomes that of a retired arm. Return the new slot."""
        old = self.slot(name)
        self._slots[name] = slot = self._next(free)  # it keeps its place in the order
        self._retired[old] = name
        self._count()
        return slot

    def retire(self, name: Any) -> None:
        """Retire an active arm."""
        slot = self.slot(name)
        if len(self._slots) == 1:
            raise ValueError(f"{shown(name)} is the last arm and cannot be retired: add another one first")
        del self._slots[name]
        self._retired[slot] = name
        self._count()

    def _next(self, free: Sequence[int]) -> int:
        slot = free[0] if free else self.n_slots
        self._retired.pop(slot, None)
        return slot

    def _new(self, name: Any) -> Name:
        """Check the name of a new arm."""
        if type(name) not in (str, int) or name == "":
            raise ValueError(f"the name of an arm must be a text or a whole number, not {shown(name)}")
        if name in self._slots:
            raise ValueError(f"there is an arm {shown(name)} already")
        return name

    def _unknown(self, name: Any) -> str:
        if name in self._retired.values():
            return f"arm {shown(name)} is retired: add it again with add_arm"
        more = f" and {len(self._slots) - 8} more" if len(self._slots) > 8 else ""
        return f"there is no arm {shown(name)}: the arms are {', '.join(map(shown, self.names[:8]))}{more}"

    # ----------------------------------------------------------------------------------------------------- for people

    def labelled(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return diagnostics with dicts by name in place of arrays by slot."""
        by_name = {
            key: dict(zip(self.names, found[key][self.active].tolist(), strict=True))
            for key in _PER_SLOT
            if found.get(key) is not None
        }
        return {**found, **by_name}

    def described(self) -> str:
        """Return the keyword of `Agent` that makes such arms."""
        return f"arms={shown(self.names)}, "

    def to_dict(self) -> dict[str, Any] | None:
        """Return what a saved file holds: names with their slots."""
        return {"active": list(self._slots.items()), "retired": [(name, slot) for slot, name in self._retired.items()]}

    @classmethod
    def from_dict(cls, saved: dict[str, Any], *, n_slots: int) -> NamedArms:
        """Return the arms of a saved file with so many slots; a damaged one raises a ValueError."""
        arms = cls([name for name, _ in saved["active"]])
        arms._slots = dict(saved["active"])
        arms._retired = {slot: name for name, slot in saved["retired"]}
        slots = [*arms._slots.values(), *arms._retired]
        for slot in slots:
            checks.whole("slot", slot, least=0)
        if sorted(slots) != list(range(len(saved["active"]) + len(saved["retired"]))) or len(slots) > n_slots:
            raise ValueError(f"arms must have different slots of 0 to {n_slots - 1}, without gaps")
        arms._count()
        return arms
