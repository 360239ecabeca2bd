"""Arms with names, which come and go.

An arm takes a slot in the policy's state when it is added; the slot of a retired arm is used again once none of its
decisions is pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from copy import copy
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.crowd.arms import Name, NumberedArms, is_list, is_ordered
from albatross.frames import is_frame

# Entries of `diagnostics` with one value per slot.
_PER_SLOT = ("pulls", "means", "biases", "optimistic_biases")


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
        # A set has no order, and rows have one; a data frame would give the names of its columns.
        if isinstance(names, str | Set) or not isinstance(names, Iterable) or is_frame(names):
            raise ValueError(f"arms must be a list of names, not {shown(names)}")
        self._slots: dict[Name, int] = {}
        self._retired: dict[int, Name] = {}  # by slot
        for name in names:
            self._slots[self._new(name)] = len(self._slots)
        if not self._slots:
            raise ValueError("arms must name at least one arm")
        self.first, self.taken = len(self._slots), list(self._slots.items())
        self._count()

    def _count(self) -> None:
        by_slot = {**self._retired, **{slot: name for name, slot in self._slots.items()}}
        self._by_slot = np.empty(len(by_slot), object)
        self._by_slot[list(by_slot)] = list(by_slot.values())
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
            if not isinstance(name, bool | np.bool_):  # which equal 0 and 1
                return self._slots[name]
        except (KeyError, TypeError):
            pass
        raise ValueError(self._unknown(name))

    def slots(self, arms: Any, n: int | None = None) -> np.ndarray:
        """Return the slots of a list of n active arms, or of any number of them."""
        if not is_ordered(arms):
            raise ValueError(f"arms must be a list of names, not {shown(arms)}")
        if n is not None and len(arms) != n:
            raise ValueError(f"arms must be {n} names, one for each reward, got {len(arms)}")
        return np.array([self.slot(name) for name in arms], np.int64)

    def eligible(self, arms: Any) -> np.ndarray:
        """Return a mask of the active arms from a mask or a list of names."""
        if not is_list(arms):
            raise ValueError(f"eligible must be a list of arms or a mask of booleans, not {shown(arms)}")
        listed = list(arms)
        if all(isinstance(each, bool | np.bool_) for each in listed):
            return checks.eligible(listed, self.active.size)
        found = set(self.slots(listed).tolist())
        if len(found) < len(listed):
            raise ValueError("eligible lists an arm twice: list each arm once, or give a mask of booleans")
        return np.array([slot in found for slot in self._slots.values()])

    def names_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the arms, active or retired, in some slots."""
        return self._by_slot[slots]

    def chosen(self, arms: Any, slots: Any) -> np.ndarray:
        """Return the checked slots (m,) of arms that were chosen, which may be retired by now."""
        names = arms.tolist() if isinstance(arms, np.ndarray) else arms
        if slots is None or not is_list(names):
            return self.slots(names)
        slots = slots if type(slots) is np.ndarray else checks.numbers("slots", slots)
        if slots.dtype != np.int64 or slots.shape != (len(names),):
            raise ValueError(f"slots must be {len(names)} whole numbers of 64 bits")
        found, n_slots = self._by_slot, self.n_slots
        for name, slot in zip(names, slots.tolist(), strict=True):
            if not 0 <= slot < n_slots:
                raise ValueError(f"slots must be from 0 to {n_slots - 1}, not {slot}")
            if name != found[slot]:
                raise ValueError(f"the slot of arm {shown(name)} was taken by {shown(found[slot])}")
        return np.require(slots, np.int64, ["C", "A"])

    # ------------------------------------------------------------------------------------------------ coming and going

    def copied(self) -> NamedArms:
        """Return a copy to change. A deep one would visit every arm that there ever was, at each change."""
        arms = copy(self)
        arms._slots, arms._retired, arms.taken = dict(self._slots), dict(self._retired), list(self.taken)
        return arms

    def add(self, name: Any, *, free: Sequence[int]) -> int:
        """Add an arm, in one of the `free` slots of retired arms if there is one. Return its slot."""
        name = self._new(name)
        self._slots[name] = slot = self._next(name, free)
        self._count()
        return slot

    def move(self, name: Any, *, free: Sequence[int]) -> int:
        """Give an active arm another slot; its old one becomes that of a retired arm. Return the new slot."""
        old = self.slot(name)
        name = self._by_slot[old]  # not the caller's, which may be equal only, such as one of NumPy's
        self._slots[name] = slot = self._next(name, free)  # it keeps its place in the order
        self._retired[old] = name
        self._count()
        return slot

    def retire(self, name: Any) -> None:
        """Retire an active arm."""
        slot = self.slot(name)
        if len(self._slots) == 1:
            raise ValueError(f"{shown(name)} is the last arm and cannot be retired: add another one first")
        del self._slots[name]
        self._retired[slot] = self._by_slot[slot]  # the name as it was given first
        self._count()

    def checked_slot(self, slot: Any) -> list[int]:
        """Return a slot for the next arm as a list of free ones: that of a retired arm, or the first unused one."""
        if slot == self.n_slots:
            return []
        if type(slot) is not int or slot not in self._retired:
            raise ValueError(f"slot must be {self.n_slots}, or that of a retired arm, not {shown(slot)}")
        return [slot]

    def _next(self, name: Name, free: Sequence[int]) -> int:
        slot = free[0] if free else self.n_slots
        self._retired.pop(slot, None)
        self.taken.append((name, slot))
        return slot

    def _new(self, name: Any) -> Name:
        """Check the name of a new arm. One of NumPy's texts or numbers becomes Python's."""
        name = name.item() if isinstance(name, np.generic) else name
        checks.name("an arm", name)
        if name in self._slots:
            raise ValueError(f"there is an arm {shown(name)} already")
        return name

    def _unknown(self, name: Any) -> str:
        name = name.item() if isinstance(name, np.generic) else name
        if type(name) in (str, int) and name in self._retired.values():
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
        return {**super().labelled(found), **by_name}

    def described(self) -> str:
        """Return the keyword of `Agent` that makes such arms."""
        return f"arms={shown(self.names)}, "

    def to_dict(self) -> dict[str, Any] | None:
        """Return what a saved file holds: names with their slots."""
        retired = [(name, slot) for slot, name in self._retired.items()]
        return {"active": list(self._slots.items()), "retired": retired, "first": self.first, "taken": self.taken}

    @classmethod
    def from_dict(cls, saved: dict[str, Any], *, n_slots: int) -> NamedArms:
        """Return the arms of a saved file with so many slots; a damaged one raises a ValueError."""
        arms = cls([name for name, _ in saved["active"]])
        arms._slots = dict(saved["active"])
        arms._retired = {slot: name for name, slot in saved["retired"]}
        slots = [*arms._slots.values(), *arms._retired]
        if "taken" in saved:  # absent from agents of version 0.2
            arms.first, arms.taken = saved["first"], [(name, slot) for name, slot in saved["taken"]]
        for slot in (*slots, *(slot for _, slot in arms.taken)):
            checks.whole("slot", slot, least=0)
        if sorted(slots) != list(range(len(saved["active"]) + len(saved["retired"]))) or len(slots) > n_slots:
            raise ValueError(f"arms must have different slots of 0 to {n_slots - 1}, without gaps")
        checks.whole("first", arms.first, least=1)
        if max(slot for _, slot in arms.taken) >= n_slots or arms.first > n_slots:
            raise ValueError(f"taken must hold slots of 0 to {n_slots - 1}")
        arms._count()
        return arms
