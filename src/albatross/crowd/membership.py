"""Users and arms that come and go: the part of a fleet that does not depend on how it decides and learns."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from albatross.crowd.arms import Name
from albatross.crowd.named_arms import NamedArms
from albatross.protocol import check_change_of_arms


class Membership:
    """The users and arms of a crowd, for callers. Calls from several threads take turns."""

    _lock: threading.Lock
    _crowd: Any  # a `Crowd`, or what a flock keeps of its users

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self._crowd.users)

    @property
    def users(self) -> list[Any]:
        """All users, in the order in which they came."""
        return self._crowd.users.names

    def __contains__(self, user: Any) -> bool:
        return user in self._crowd.users

    @property
    def n_arms(self) -> int:
        """Number of arms, without retired ones."""
        return self._crowd.arms.active.size

    @property
    def arms(self) -> list[Any]:
        """The arms, in the order of the rows of contexts."""
        return self._crowd.arms.names

    @property
    def n_slots(self) -> int:
        """Number of slots that active and retired arms take."""
        return len({slot for _, slot in self._crowd.arms.taken})

    @property
    def nbytes(self) -> int:
        """Memory used by all users, in bytes."""
        return self._crowd.nbytes

    # ---------------------------------------------------------------------------------------------------------- users

    def admit(self, users: Iterable[Name]) -> None:
        """Admit users by name. Users that are known stay as they are; `select` and `record` admit users too."""
        with self._lock:
            self._crowd.admit(self._crowd.users.listed(users)[2])

    def release(self, users: Iterable[Name], *, pending: bool = False) -> list[bytes]:
        """Remove users, and return their rows for `put`. A user who comes again without `put` is a newcomer.

        A user with pending decisions is refused, unless `pending=True`: then the row keeps them, and their choices can
        be rewarded after `put`.
        """
        with self._lock:
            return self._crowd.release(users, pending=pending)

    def row(self, user: Name) -> bytes:
        """Return all that is kept of a user: state, pending decisions of each arm, and number of decisions."""
        with self._lock:
            return self._crowd.row(user)

    def put(self, user: Name, row: bytes) -> None:
        """Set a user, known or new, to a row, as if they had been here since it was written.

        Arms that were added since are added to it. Damaged and malicious rows, and those of other policies or arms, are
        refused.
        """
        with self._lock:
            self._crowd.put(user, row)

    # ----------------------------------------------------------------------------------------------------------- arms

    def add_arm(self, name: Name, *, slot: int | None = None) -> None:
        """Add an arm for all users. Its row is the last one of the contexts that `select` takes.

        A log is replayed with the `slot` that the arm took the first time (`slot_of`).
        """
        with self._lock:
            arms = self._named_arms().copied()
            free = self._crowd.free_slots() if slot is None else arms.checked_slot(slot)
            self._take(arms, arms.add(name, free=free))

    def slot_of(self, name: Name) -> int:
        """Return where the policy keeps an arm."""
        return self._crowd.arms.slot(name)

    def retire_arm(self, name: Name) -> None:
        """Remove an arm. What it taught about theta stays, and its pending choices can still be rewarded."""
        with self._lock:
            arms = self._named_arms().copied()
            arms.retire(name)
            self._crowd.arms = arms

    def reset_arm(self, name: Name) -> None:
        """Forget the bias of an arm, as if it were new. Rewards of its pending choices then teach theta only."""
        with self._lock:
            arms = self._named_arms().copied()
            self._take(arms, arms.move(name, free=self._crowd.free_slots()))

    def _take(self, arms: NamedArms, slot: int) -> None:
        """Take these arms, one of them new in a slot, at once."""
        self._crowd.take(arms, slot)

    def _named_arms(self) -> NamedArms:
        arms = self._crowd.arms
        if not isinstance(arms, NamedArms):
            raise ValueError("the arms of this fleet have no names: give them, arms=[...]")
        check_change_of_arms(self._crowd.parameters)
        return arms
