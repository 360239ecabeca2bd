"""The users of a flock: admitted, released, with arms that come and go, one by one as bytes and all in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from albatross import checks, saving
from albatross.crowd.arms import Name, NumberedArms
from albatross.crowd.users import NumberedUsers, leaving, user_keys
from albatross.flocking.origin import common_origin
from albatross.flocking.playing import FlockState, put_back_users
from albatross.flocking.rows import Header, Kept, checked, filled, from_bytes, in_bytes, room_for
from albatross.models.population import Posterior
from albatross.models.user_rows import (
    LIST,
    Memory,
    data_of,
    forget,
    longer,
    no_memory,
    packed,
    widened,
    with_room,
    without_arm,
)
from albatross.states import leaves, mapped

_NEWCOMER = 300  # bytes of a user without a reward, while they are admitted
_SAMPLE = 300  # users whose contexts a report looks at
BUCKETS = 16  # of users; the population adds them up in a fixed order


class Audience(NamedTuple):
    """Users as the population hears them."""

    memory: Memory
    buckets: list[np.ndarray]  # the slots of the users in every bucket
    n_slots: int  # of arms


class FlockCrowd:
    """Users, arms, and what is kept of every user; arrays may have more rows than there are users."""

    parameters = None  # of a policy: a flock has one of its own

    def __init__(
        self, users: NumberedUsers, arms: NumberedArms, dim: int, secret: bytes, origin: np.ndarray, n_arms: int = 0
    ) -> None:
        self.users, self.arms, self.dim, self.secret = users, arms, dim, secret
        self.origin = origin  # (3,) unit of the contexts, 0 if unknown; level of the rewards; whether it is known
        n_arms = n_arms or arms.used(len(arms.taken))
        p = dim + n_arms
        none = Posterior(np.empty((0, p)), np.empty((0, p, p)), np.empty((0, 2)))
        self.state = FlockState(no_memory(n_arms, dim), np.empty(0, np.int64), np.empty(0, np.int64), none)
        self.pending = np.empty((0, n_arms), np.int32)  # decisions of each user and arm that await rewards
        self.decisions = np.empty(0, np.int32)
        self.keys = np.empty((0, 2), np.uint64)  # of the users' random numbers

    @property
    def n_slots(self) -> int:
        """Number of slots for arms: as many as were ever in use at once."""
        return self.pending.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory of all users, in bytes."""
        return sum(array.nbytes for _, array in leaves((self.state, self.pending, self.decisions, self.keys)))

    # ---------------------------------------------------------------------------------------------- coming and going

    def admit(self, newcomers: Mapping[Name, int]) -> None:
        """Give newcomers, found by `users.listed`, their rows."""
        if newcomers:
            slots = np.fromiter(newcomers.values(), np.int64, len(newcomers))
            keys = user_keys(newcomers, self.secret)
            self.make_room(users=int(slots.max()) + 1)
            for slot in slots[self.state.memory.plays[slots] > 0].tolist():  # a Ctrl-C came while they were released
                self._forget(slot)
            self.keys[slots], self.decisions[slots], self.pending[slots] = keys, 0, 0
            self.state.version[slots], self.state.looked[slots] = -1, 0
            self.users.admit(newcomers)

    def release(self, users: Any, *, pending: bool) -> list[bytes]:
        """Remove users and return their rows; with `pending` also users with pending decisions."""
        slots, names = leaving(self.users, users, self.pending, with_pending=pending)
        found = [self._in_bytes(slot) for slot in slots]
        self.users.release(names)
        for slot in slots.tolist():
            self._forget(slot)
        self.pending[slots] = 0
        return found

    def _forget(self, slot: int) -> None:
        """Forget a user. Nothing is left for whoever gets their place: what is kept must not depend on who was here."""
        place = self.state.memory.place[slot]
        if place >= 0:
            for _, array in leaves(self.state.posteriors):
                array[place] = 0.0
        forget(self.state.memory, slot)

    def make_room_for(self, slots: np.ndarray) -> None:
        """Make sure that there is room for one more event of each of these users."""
        # For one event, sorting would cost more than learning from it.
        one = slots, np.ones(1, np.int64)
        memory, (users, events) = self.state.memory, one if slots.size == 1 else np.unique(slots, return_counts=True)
        listed = memory.place[users] < 0
        room = LIST - memory.plays[users[listed]]
        self.make_room(events=int(np.minimum(events[listed], room).sum()), triangles=int((events[listed] > room).sum()))

    def make_room(self, *, users: int = 0, events: int = 0, triangles: int = 0) -> None:
        """Make sure that there is room for so many users, and so many more events and triangles."""
        state, p, known = self.state, self.dim + self.n_slots, self.state.memory
        of_user, of_event, of_triangle = _NEWCOMER + 4 * self.n_slots, 8 * self.dim + 16, 12 * p * p + 32 * p
        lacking = (
            (users - known.plays.size, known.plays.size, of_user),
            (events - int(known.free[2]), known.arms.size, of_event),
            (triangles - int(known.free[3]), known.spare.size, of_triangle),
        )
        size = sum((have + max(more, have // 2)) * n_bytes for more, have, n_bytes in lacking if more > 0)
        if not size:
            return
        checks.fits_in_memory(f"{max(users, len(self.users))} users with their rewards", size, "take fewer")
        memory = with_room(known, users=users, events=events, triangles=triangles)
        rows = memory.spare.size - len(state.posteriors.mean)
        posteriors = mapped(lambda array: longer(array, rows, 0.0), state.posteriors) if rows else state.posteriors
        state = state._replace(memory=memory, posteriors=posteriors)
        pending, decisions, keys = self.pending, self.decisions, self.keys
        if more := memory.plays.size - known.plays.size:
            state = state._replace(looked=longer(state.looked, more, 0), version=longer(state.version, more, -1))
            pending, decisions, keys = (longer(array, more, 0) for array in (pending, decisions, keys))
        # No calls here: neither a Ctrl-C nor a lack of memory can come in between.
        self.state, self.pending, self.decisions, self.keys = state, pending, decisions, keys

    def audience(self) -> Audience:
        """Return the users as the population hears them. In a bucket, their order depends on their names alone."""
        slots = self.users.in_use
        first, second = self.keys[slots].T
        order = np.lexsort((second, first))
        slots, bucket = slots[order], first[order] % np.uint64(BUCKETS)
        return Audience(self.state.memory, [slots[bucket == number] for number in range(BUCKETS)], self.n_slots)

    def varied(self) -> tuple[bool, bool]:
        """Return whether contexts change within an arm, and whether rewards do, among the first users with rewards."""
        memory, dim = self.state.memory, self.dim
        slots = self.users.in_use
        slots = slots[memory.plays[slots] > 0][:_SAMPLE]
        if not slots.size:
            return True, True
        data = [data_of(memory, dim, self.n_slots, slot, memory.plays[slot]) for slot in slots]
        rows: Any = np.linalg.qr(np.concatenate([np.roll(each.rows, -dim, axis=1) for each in data]), mode="r")
        within = rows[self.n_slots :, self.n_slots :]  # what the arms' indicators, which come first, do not explain
        rewards = any(each.rewards.any() or each.beyond[0] > 0.0 for each in data)
        return bool(np.abs(within).max(initial=0.0) > 1e-9 * np.abs(rows).max()), rewards

    # ----------------------------------------------------------------------------------------------------------- arms

    def free_slots(self) -> list[int]:
        """Return the slots of retired arms without pending decisions."""
        return [slot for slot in self.arms.retired_slots if not self.pending[:, slot].any()]

    def take(self, arms: NumberedArms, slot: int) -> None:
        """Take these arms, one of them new in a slot. All posteriors are then out of date."""
        memory, n_arms, posteriors = self.state.memory, self.n_slots, self.state.posteriors
        pending = self.pending.copy()
        if slot == n_arms:
            memory, p = widened(memory, self.dim, n_arms, 1), self.dim + n_arms + 1
            pending = np.pad(pending, ((0, 0), (0, 1)))
            rows = memory.spare.size
            posteriors = Posterior(np.zeros((rows, p)), np.zeros((rows, p, p)), np.zeros((rows, 2)))
        else:
            pending[:, slot] = 0  # of a row from outside: those who are here have none
            memory = without_arm(memory, self.dim, n_arms, slot, self.users.in_use)
            rows = memory.spare.size - len(posteriors.mean)
            posteriors = mapped(lambda array: longer(array, rows, 0.0), posteriors)
        looked = np.minimum(self.state.looked, memory.plays)  # a play that only fixed a bias is gone
        state = FlockState(memory, looked, np.full_like(self.state.version, -1), posteriors)
        # No calls here: neither a Ctrl-C nor a lack of memory can come in between.
        self.arms, self.state, self.pending = arms, state, pending

    # ------------------------------------------------------------------------------------- users as bytes and in files

    def kept(self, slots: np.ndarray) -> Kept:
        """Return all that is kept of users in some slots."""
        memory, state = self.state.memory, self.state
        places = memory.place[slots]
        posteriors = mapped(lambda array: array[places[places >= 0]], state.posteriors)
        counts = self.pending[slots], self.decisions[slots]
        return Kept(packed(memory, slots), state.looked[slots], state.version[slots], posteriors, *counts)

    def keep(self, slots: np.ndarray, kept: Kept) -> None:
        """Set users to what was kept of them, in one step that no Ctrl-C divides."""
        self.make_room(events=len(kept.data.arms), triangles=len(kept.data.sides))
        put_back_users(self.state, self.pending, self.decisions, slots, kept)

    def row(self, user: Any) -> bytes:
        """Return what is kept of one user, as bytes."""
        return self._in_bytes(self.users.slots([user])[0])

    def put(self, user: Any, row: Any) -> None:
        """Set one user, known or new, to a row."""
        kept, origin = self._from_bytes(row)
        _, slots, newcomers = self.users.listed([user])
        before = self.origin.copy()
        try:
            self.origin[:] = origin
            self.admit(newcomers)
            self.keep(slots, kept)
        except BaseException:  # too little memory, or a Ctrl-C
            self.origin[:] = before
            if newcomers:
                self.users.release(newcomers)
            raise

    def _in_bytes(self, slot: int) -> bytes:
        arms = self.arms
        header = Header(self.dim, len(arms.taken), arms.digest(len(arms.taken)), self.origin)
        return in_bytes(self.kept(np.array([slot])), header)

    def _from_bytes(self, row: Any) -> tuple[Kept, np.ndarray]:
        """Return what is kept of a user, with all arms that were added since, and the flock's origin."""
        header, body, sizes = from_bytes(row, self.dim)
        arms, n_arms = self.arms, header.arms
        if not (type(n_arms) is int and 0 < n_arms <= len(arms.taken) and header.names == arms.digest(n_arms)):
            raise ValueError("the row belongs to a flock of other arms, or of more of them")
        origin = common_origin(self.origin, header.origin)
        alone = FlockCrowd(NumberedUsers(1), arms, self.dim, self.secret, origin, n_arms=arms.used(n_arms))
        kept = filled(alone._room_for(1, *sizes), body, alone.n_slots)
        if n_arms < len(arms.taken):
            alone.make_room(users=1)
            alone.keep(np.zeros(1, np.int64), kept)
            for _, slot in arms.taken[n_arms:]:
                alone.take(arms, slot)
            kept = alone.kept(np.zeros(1, np.int64))
        return kept, origin

    def _room_for(self, n: int, n_events: int, n_triangles: int) -> Kept:
        return room_for(n, n_events=n_events, n_triangles=n_triangles, n_arms=self.n_slots, dim=self.dim)

    def header(self) -> dict[str, Any]:
        """Return what the header of a saved file says."""
        slots = self.users.in_use
        listed = self.state.memory.place[slots] < 0
        sizes = [int(self.state.memory.plays[slots][listed].sum()), int((~listed).sum())]
        named = type(self.users) is not NumberedUsers
        return {
            "users": self.users.names if named else None,
            "n_users": len(self.users),
            "arms": self.arms.to_dict(),
            "n_arms": self.n_slots,
            "key": self.secret.hex(),
            "sizes": sizes,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is kept of all users as arrays of a saved file."""
        return saving.state_arrays(self.kept(self.users.in_use))

    def restore(self, saved: saving.Saved) -> None:
        """Take what is kept of all users from a saved file; a damaged one raises a ValueError."""
        n_events, n_triangles = saved.header["sizes"]
        for size in (n_events, n_triangles):
            checks.whole("sizes", size, least=0)
        if 8 * (n_events * (self.dim + 1) + n_triangles * (self.dim + self.n_slots) ** 2) > saved.nbytes:
            raise ValueError(f"{n_events} events and {n_triangles} triangles are larger than this file")
        slots = self.users.in_use
        arrays = iter(
            saved.array(f"state/{name}", array.shape, array.dtype)
            for name, array in leaves(self._room_for(len(slots), n_events, n_triangles))
        )
        room = self._room_for(len(slots), n_events, n_triangles)
        kept = checked(mapped(lambda _: next(arrays), room), self.n_slots)
        self.make_room(users=len(slots))
        self.keys[slots] = user_keys(self.users.names, self.secret)
        self.keep(slots, kept)
