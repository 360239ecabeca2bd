"""The users of a fleet, numbered or named. Policies see numbered slots only: rows of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.crowd.arms import Name, is_ordered
from albatross.loops import first_outside


class NumberedUsers:
    """Users 0 to n - 1, each in the slot of its number."""

    def __init__(self, n_users: int) -> None:
        self._n = n_users

    def __len__(self) -> int:
        return self._n

    def __contains__(self, user: Any) -> bool:
        return isinstance(user, int | np.integer) and not isinstance(user, bool) and bool(0 <= user < self._n)

    @property
    def names(self) -> list[Any]:
        """All users."""
        return list(range(self._n))

    @property
    def in_use(self) -> np.ndarray:
        """The slots of all users."""
        return np.arange(self._n)

    def listed(self, users: Any) -> tuple[np.ndarray, np.ndarray, dict[Name, int]]:
        """Return users (m,) as the caller names them, their slots (m,), and newcomers, of which there are none here."""
        slots = self.slots(users)
        return slots, slots, {}

    def slots(self, users: Any) -> np.ndarray:
        """Return the slots (m,) of known users."""
        if type(users) is not np.ndarray or users.dtype != np.int64:
            users = checks.numbers("users", users)
        if users.ndim != 1 or not (np.issubdtype(users.dtype, np.integer) or users.size == 0):
            raise ValueError(f"users must be a list of whole numbers, got shape {users.shape} of {users.dtype}")
        slots = users.astype(np.int64)  # a copy: choices keep it, and the caller may change the array
        wrong = first_outside(slots, self._n)
        if wrong >= 0:
            raise ValueError(f"user {users[wrong]} is unknown: this fleet has users 0 to {self._n - 1}")
        return slots

    def named(self, users: Any) -> list[Any]:
        """Return a list of users, known or not."""
        return self.slots(users).tolist()

    def admit(self, newcomers: Mapping[Name, int]) -> None:
        """Add users with the next numbers."""
        self._n += len(newcomers)

    def release(self, users: Iterable[Any]) -> None:
        """Refuse to: the numbers of the others would change."""
        raise ValueError("users with numbers cannot be released: give them names, Fleet(users=[...])")

    def described(self) -> str:
        """Return the keyword of `Fleet` that makes such users."""
        return f"n_users={self._n}"


class NamedUsers(NumberedUsers):
    """Users with names. The slot of a released user is the next one to be taken.

    >>> users = NamedUsers()
    >>> users.admit(users.listed(["anna", 7, "anna"])[2])
    >>> users.release(["anna"])
    >>> users.admit(users.listed(["bob"])[2])
    >>> users.names, users.slots(["bob", 7]).tolist()
    ([7, 'bob'], [0, 1])
    """

    def __init__(self) -> None:
        self._slots: dict[Name, int] = {}
        self._free: list[int] = []  # slots of released users
        self._ever = 0  # slots that have been in use

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, user: Any) -> bool:
        user = user.item() if isinstance(user, np.generic) else user
        return type(user) in (str, int) and user in self._slots

    @property
    def names(self) -> list[Any]:
        """All users, in the order in which they came."""
        return list(self._slots)

    @property
    def in_use(self) -> np.ndarray:
        """The slots of all users."""
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    def listed(self, users: Any) -> tuple[np.ndarray, np.ndarray, dict[Name, int]]:
        """Return users (m,) as the caller names them, their slots (m,), and the slots of newcomers among them."""
        names = _names(users)
        slots, newcomers = [self._slots.get(name, -1) for name in names], dict[Name, int]()
        if -1 in slots:
            spare = [*reversed(self._free)]
            for event, name in enumerate(names):
                if slots[event] < 0:
                    if name not in newcomers:
                        checks.name("a user", name)
                        place = len(newcomers)
                        newcomers[name] = spare[place] if place < len(spare) else self._ever + place - len(spare)
                    slots[event] = newcomers[name]
        return _objects(names), np.array(slots, np.int64), newcomers

    def named(self, users: Any) -> list[Any]:
        """Return a list of users, known or not."""
        return _names(users)

    def slots(self, users: Any) -> np.ndarray:
        """Return the slots (m,) of known users."""
        names = _names(users)
        try:
            return np.array([self._slots[name] for name in names], np.int64)
        except KeyError as error:
            raise ValueError(f"user {shown(error.args[0])} is unknown: never admitted, or released") from None

    def admit(self, newcomers: Mapping[Name, int]) -> None:
        """Add the newcomers that `listed` found, in the slots that it gave them."""
        kept = max(len(self._free) - len(newcomers), 0)
        ever = max(self._ever, 1 + max(newcomers.values(), default=-1))
        # No calls here: a Ctrl-C cannot come in between.
        self._slots |= newcomers
        del self._free[kept:]
        self._ever = ever

    def release(self, users: Iterable[Any]) -> None:
        """Remove users; those that are not there are passed over."""
        found = {name: self._slots[name] for name in users if name in self._slots}
        slots = list(found.values())
        try:
            for name in found:
                del self._slots[name]
        except BaseException:  # a Ctrl-C
            self._slots |= found
            raise
        self._free += slots

    def described(self) -> str:
        """Return the keyword of `Fleet` that makes such users."""
        return f"users=[{len(self)} names]"


def _names(users: Any) -> list[Any]:
    """Return a list of names as Python objects."""
    if not is_ordered(users):
        raise ValueError(f"users must be a list of names, not {shown(users)}")
    names = users.tolist() if hasattr(users, "tolist") else list(users)
    if not set(map(type, names)) <= {str, int}:
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        for name in names:
            checks.name("a user", name)
    return names


def _objects(names: list[Any]) -> np.ndarray:
    """Return names as an array of Python objects."""
    array = np.empty(len(names), object)
    array[:] = names
    return array


def user_keys(names: Iterable[Name], secret: bytes) -> np.ndarray:
    """Return (n, 2) words of 64 bits, a function of a secret and a name: a keyed hash (BLAKE2b)."""
    digests = b"".join(blake2b(_in_bytes(name), digest_size=16, key=secret).digest() for name in names)
    return np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)


def _in_bytes(name: Name) -> bytes:
    return b"s" + name.encode("utf-8", "surrogatepass") if isinstance(name, str) else f"i{name:x}".encode()


def leaving(
    known: NumberedUsers, users: Any, pending: np.ndarray, *, with_pending: bool
) -> tuple[np.ndarray, list[Any]]:
    """Return slots and names of users who are to be released.

    `pending` (N, K) counts their decisions; only `with_pending` may there be any.
    """
    slots, names = known.slots(users), known.named(users)
    if len(set(names)) < len(names):
        raise ValueError("users lists somebody twice: list each user once")
    waiting = pending[slots].sum(axis=1)
    if waiting.any() and not with_pending:
        user = int(np.flatnonzero(waiting)[0])
        raise ValueError(
            f"user {shown(names[user])} has {waiting[user]} pending decisions: reward or drop them, "
            "or keep them in the row, release(users, pending=True)"
        )
    return slots, names
