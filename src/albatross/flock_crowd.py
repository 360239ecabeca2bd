"""The users of a flock: admitted, released, with arms that come and go, one by one as bytes and all in a file."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from albatross import checks, saving
from albatross.arms import Name, NumberedArms
from albatross.flocking import FlockState
from albatross.models.population import Posterior
from albatross.models.user_rows import (
    LIST,
    Packed,
    forget,
    longer,
    no_memory,
    packed,
    unpacked,
    widened,
    with_room,
    without_arm,
)
from albatross.states import leaves, mapped
from albatross.users import NumberedUsers, leaving, user_keys

_MAGIC = b"albatross flock row 1\n"  # with the version of the format
_CHECKSUM = 4  # bytes
BUCKETS = 16  # of users; the population adds them up in a fixed order


class Kept(NamedTuple):
    """All that is kept of some users, without spare rows."""

    data: Packed
    looked: np.ndarray  # (n,) int64
    version: np.ndarray  # (n,) int64
    posteriors: Posterior  # (A, ...) of users with triangles
    pending: np.ndarray  # (n, K) int32
    decisions: np.ndarray  # (n,) int32


class FlockCrowd:
    """Users, arms, and what is kept of every user; arrays may have more rows than there are users."""

    parameters = None  # of a policy: a flock has one of its own

    def __init__(self, users: NumberedUsers, arms: NumberedArms, dim: int, secret: bytes) -> None:
        self.users, self.arms, self.dim, self.secret = users, arms, dim, secret
        n_arms = len({slot for _, slot in arms.taken})
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
            self._make_room(users=int(slots.max()) + 1)
            self.keys[slots], self.decisions[slots], self.state.version[slots] = keys, 0, -1
            self.users.admit(newcomers)

    def release(self, users: Any, *, pending: bool) -> list[bytes]:
        """Remove users and return their rows; with `pending` also users with pending decisions."""
        slots, names = leaving(self.users, users, self.pending, with_pending=pending)
        found = [self._in_bytes(slot) for slot in slots]
        self.users.release(names)
        for slot in slots.tolist():
            forget(self.state.memory, slot)
        self.pending[slots] = 0
        return found

    def make_room_for(self, slots: np.ndarray) -> None:
        """Make sure that there is room for one more event of each of these users."""
        full = slots[self.state.memory.plays[slots] >= LIST - slots.size]
        self._make_room(events=slots.size, triangles=np.unique(full).size)

    def _make_room(self, *, users: int = 0, events: int = 0, triangles: int = 0) -> None:
        state = self.state
        memory = with_room(state.memory, users=users, events=events, triangles=triangles)
        more = memory.plays.size - state.looked.size
        rows = memory.spare.size - len(state.posteriors.mean)
        posteriors = mapped(lambda array: longer(array, rows, 0.0), state.posteriors) if rows else state.posteriors
        looked, version = longer(state.looked, more, 0), longer(state.version, more, -1)
        columns = (longer(array, more, 0) for array in (self.pending, self.decisions, self.keys))
        pending, decisions, keys = columns
        # No calls here: neither a Ctrl-C nor a lack of memory can come in between.
        self.state = FlockState(memory, looked, version, posteriors)
        self.pending, self.decisions, self.keys = pending, decisions, keys

    def buckets(self) -> list[np.ndarray]:
        """Return the slots of the users in every bucket, in an order that depends on their names alone."""
        slots = self.users.in_use
        first, second = self.keys[slots].T
        order = np.lexsort((second, first))
        slots, bucket = slots[order], first[order] % np.uint64(BUCKETS)
        return [slots[bucket == number] for number in range(BUCKETS)]

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
            memory = without_arm(memory, self.dim, n_arms, slot, self.users.in_use)
            rows = memory.spare.size - len(posteriors.mean)
            posteriors = mapped(lambda array: longer(array, rows, 0.0), posteriors)
        state = FlockState(memory, self.state.looked, np.full_like(self.state.version, -1), posteriors)
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
        """Set users, of whom nothing is kept yet, to what was kept of them."""
        n_events, n_triangles = len(kept.data.arms), len(kept.data.sides)
        self._make_room(events=n_events, triangles=n_triangles)
        state = self.state._replace(memory=unpacked(self.state.memory, slots, kept.data))
        places = state.memory.place[slots]
        for (_, array), (_, new) in zip(leaves(state.posteriors), leaves(kept.posteriors), strict=True):
            array[places[places >= 0]] = new
        state.looked[slots], state.version[slots] = kept.looked, kept.version
        self.pending[slots], self.decisions[slots] = kept.pending, kept.decisions
        self.state = state

    def row(self, user: Any) -> bytes:
        """Return what is kept of one user, as bytes."""
        return self._in_bytes(self.users.slots([user])[0])

    def put(self, user: Any, row: Any) -> None:
        """Set one user, known or new, to a row."""
        kept = self._from_bytes(row)
        _, slots, newcomers = self.users.listed([user])
        self.admit(newcomers)
        forget(self.state.memory, int(slots[0]))
        self.keep(slots, kept)

    def _about(self) -> dict[str, Any]:
        arms = self.arms
        return {"dim": self.dim, "slots": self.n_slots, "arms": arms.digest(len(arms.taken)), "order": sys.byteorder}

    def _in_bytes(self, slot: int) -> bytes:
        kept = self.kept(np.array([slot]))
        sizes = [len(kept.data.arms), len(kept.data.sides)]
        header = json.dumps({**self._about(), "sizes": sizes}).encode()
        body = b"".join([_MAGIC, header, b"\n", *(array.tobytes() for _, array in leaves(kept))])
        return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")

    def _from_bytes(self, row: Any) -> Kept:
        if not isinstance(row, bytes | bytearray | memoryview):
            raise ValueError(f"a row must be bytes, not {type(row).__name__}")
        row = bytes(row)
        if not row.startswith(_MAGIC):
            raise ValueError("this is not a row of a flock: its header is missing")
        if zlib.crc32(row[:-_CHECKSUM]) != int.from_bytes(row[-_CHECKSUM:], "little"):
            raise ValueError("the row is damaged: its checksum is wrong")
        try:
            end = row.index(b"\n", len(_MAGIC))
            about = json.loads(row[len(_MAGIC) : end])
            n_events, n_triangles = about.pop("sizes")
        except Exception:  # damage may cause any error
            raise ValueError("the row is damaged: its header cannot be read") from None
        for name, ours in self._about().items():
            if about.get(name) != ours:
                raise ValueError(f"the row belongs to a flock of other {name}")
        if (n_events, n_triangles) not in {(n, 0) for n in range(LIST + 1)} | {(0, 1)}:
            raise ValueError("the row is damaged: it must hold one user")
        model = self._model(1, n_events, n_triangles)
        if len(row) != end + 1 + _CHECKSUM + sum(array.nbytes for _, array in leaves(model)):
            raise ValueError(f"the row is damaged: it has {len(row)} bytes")
        place, arrays = end + 1, []
        for _, array in leaves(model):
            arrays.append(np.frombuffer(row, array.dtype, array.size, place).reshape(array.shape))
            place += array.nbytes
        rest = iter(arrays)
        kept: Kept = mapped(lambda _: next(rest), model)
        check_kept(kept, self.n_slots)
        return kept

    def _model(self, n: int, n_events: int, n_triangles: int) -> Kept:
        """Return arrays of the right shapes and types for so many users, events and triangles."""
        p, a = self.dim + self.n_slots, n_triangles
        return Kept(
            data=Packed(
                plays=np.empty(n, np.int64),
                listed=np.empty(n, bool),
                events=np.empty((n_events, self.dim + 1)),
                arms=np.empty(n_events, np.int32),
                triangles=np.empty((a, p * (p + 1) // 2)),
                sides=np.empty((a, p + 1)),
            ),
            looked=np.empty(n, np.int64),
            version=np.empty(n, np.int64),
            posteriors=Posterior(np.empty((a, p)), np.empty((a, p, p)), np.empty((a, 2))),
            pending=np.empty((n, self.n_slots), np.int32),
            decisions=np.empty(n, np.int32),
        )

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
            for name, array in leaves(self._model(len(slots), n_events, n_triangles))
        )
        kept: Kept = mapped(lambda _: next(arrays), self._model(len(slots), n_events, n_triangles))
        check_kept(kept, self.n_slots)
        self._make_room(users=len(slots))
        self.keys[slots] = user_keys(self.users.names, self.secret)
        self.keep(slots, kept)


def check_kept(kept: Kept, n_arms: int) -> None:
    """Refuse users, read from elsewhere, whose numbers are impossible: raise a ValueError."""
    data = kept.data
    for name, array in leaves(kept):
        if array.dtype == float and not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers")
    if data.listed.view(np.uint8).max(initial=0) > 1:
        raise ValueError("listed must hold True and False")
    checks.indices("plays", data.plays, checks.MOST_ROUNDS)
    if (data.plays[data.listed] > LIST).any() or data.plays[data.listed].sum() != len(data.arms):
        raise ValueError("plays must be the lengths of the lists")
    if (~data.listed).sum() != len(data.sides):
        raise ValueError("listed must say who has a triangle")
    checks.indices("arms", data.arms, n_arms - 1)
    if ((kept.looked < 0) | (kept.looked > data.plays)).any() or (kept.version < -1).any():
        raise ValueError("looked must be numbers of rewards, and version a number of a population")
    for name, array in (("pending", kept.pending), ("decisions", kept.decisions)):
        checks.indices(name, array, np.iinfo(np.int32).max)
