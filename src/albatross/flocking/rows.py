"""What is kept of a flock's users, as arrays without spare rows, and of one user as bytes."""

from __future__ import annotations

import json
import sys
import zlib
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.flocking.origin import check_origin
from albatross.models.population import NOISE, Posterior
from albatross.models.user_rows import LIST, Packed
from albatross.states import leaves, mapped

_MAGIC = b"albatross flock row 1\n"  # with the version of the format
_CHECKSUM = 4  # bytes
_LARGEST = 4.0 * checks.LARGEST  # of a context or a reward, less the level and as arms come and go
_LARGEST_SUM = 1e20 * checks.LARGEST  # far above all sums of what a row may hold, and of what is played after it


class Kept(NamedTuple):
    """All that is kept of some users, without spare rows."""

    data: Packed
    looked: np.ndarray  # (n,) int64
    version: np.ndarray  # (n,) int64
    posteriors: Posterior  # (A, ...) of users with triangles
    pending: np.ndarray  # (n, K) int32
    decisions: np.ndarray  # (n,) int32


def room_for(n: int, *, n_events: int, n_triangles: int, n_arms: int, dim: int) -> Kept:
    """Return arrays of the right shapes and types for so many users, events and triangles."""
    p, a = dim + n_arms, n_triangles
    return Kept(
        data=Packed(
            plays=np.empty(n, np.int64),
            listed=np.empty(n, bool),
            events=np.empty((n_events, dim + 1)),
            arms=np.empty(n_events, np.int32),
            triangles=np.empty((a, p * (p + 1) // 2)),
            sides=np.empty((a, p + 1)),
        ),
        looked=np.empty(n, np.int64),
        version=np.empty(n, np.int64),
        posteriors=Posterior(np.empty((a, p)), np.empty((a, p, p)), np.empty((a, 2))),
        pending=np.empty((n, n_arms), np.int32),
        decisions=np.empty(n, np.int32),
    )


class Header(NamedTuple):
    """What a row says about the flock that it comes from."""

    dim: int
    arms: int  # how many there ever were
    names: str  # a digest of them
    origin: np.ndarray


def in_bytes(kept: Kept, header: Header) -> bytes:
    """Return what is kept of one user, as bytes."""
    about = {
        "dim": header.dim,
        "order": sys.byteorder,
        "arms": header.arms,
        "names": header.names,
        "origin": header.origin.tolist(),
        "sizes": [len(kept.data.arms), len(kept.data.sides)],
    }
    body = b"".join([_MAGIC, json.dumps(about).encode(), b"\n", *(array.tobytes() for _, array in leaves(kept))])
    return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")


def from_bytes(row: Any, dim: int) -> tuple[Header, bytes, list[int]]:
    """Return the header of a row, its arrays as bytes, and how many events and triangles they hold."""
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
        sizes = [int(size) for size in about["sizes"]]
        origin = checks.finite_array("origin", about["origin"], (3,))
        check_origin(origin)
        header = Header(about["dim"], about["arms"], about["names"], origin)
    except Exception:  # damage may cause any error
        raise ValueError("the row is damaged: its header cannot be read") from None
    for name, ours in (("dim", dim), ("order", sys.byteorder)):
        if about.get(name) != ours:
            raise ValueError(f"the row belongs to a flock of other {name}")
    if sizes not in [*([n, 0] for n in range(LIST + 1)), [0, 1]]:
        raise ValueError("the row is damaged: it must hold one user")
    return header, row[end + 1 : -_CHECKSUM], sizes


def filled(room: Kept, body: bytes, n_arms: int) -> Kept:
    """Return arrays of these shapes and types with the numbers of a row."""
    if len(body) != sum(array.nbytes for _, array in leaves(room)):
        raise ValueError(f"the row is damaged: its arrays have {len(body)} bytes")
    place, arrays = 0, []
    for _, array in leaves(room):
        arrays.append(np.frombuffer(body, array.dtype, array.size, place).reshape(array.shape).copy())  # aligned
        place += array.nbytes
    rest = iter(arrays)
    kept = checked(mapped(lambda _: next(rest), room), n_arms)
    _check_row(kept)
    return kept


def checked(kept: Kept, n_arms: int) -> Kept:
    """Return users, read from elsewhere; those whose numbers are impossible raise a ValueError.

    Nobody can say whether a posterior is that of its user. One that cannot be a posterior is left out: their next
    decision makes it anew.
    """
    data = kept.data
    if data.listed.view(np.uint8).max(initial=0) > 1:
        raise ValueError("listed must hold True and False")
    checks.indices("plays", data.plays, checks.MOST_ROUNDS)
    if (data.plays[data.listed] > LIST).any() or data.plays[data.listed].sum() != len(data.arms):
        raise ValueError("plays must be the lengths of the lists")
    if (~data.listed).sum() != len(data.sides):
        raise ValueError("listed must say who has a triangle")
    checks.indices("arms", data.arms, n_arms - 1)
    if not (np.abs(data.events) <= _LARGEST).all():
        raise ValueError("events must hold finite numbers, no larger than contexts and rewards can be")
    _check_sums(data, _LARGEST_SUM)
    if (data.sides[:, -1] < 0.0).any():
        raise ValueError("sides must end in a sum of squares")
    if ((kept.looked < 0) | (kept.looked > data.plays)).any() or (kept.version < -1).any():
        raise ValueError("looked must be numbers of rewards, and version a number of a population")
    for name, array in (("pending", kept.pending), ("decisions", kept.decisions)):
        checks.indices(name, array, checks.MOST_DECISIONS)
    impossible = ~_are_posteriors(kept.posteriors)
    for _, array in leaves(kept.posteriors):
        array[impossible] = 0.0
    kept.version[np.flatnonzero(~data.listed)[impossible]] = -1
    return kept


def _check_row(kept: Kept) -> None:
    """Refuse a user whom no plays make, of a row: in the sums over all users, squares would overflow.

    A file is held to less, or whoever wrote a row could make the file of all users unreadable.
    """
    checks.indices("plays", kept.data.plays, checks.MOST_ROUNDS_IN_ROW)
    for name, array in (("pending", kept.pending), ("decisions", kept.decisions)):
        checks.indices(name, array, checks.MOST_DECISIONS_IN_ROW)
    _check_sums(kept.data, _LARGEST * float(np.sqrt(max(kept.data.plays[0], 1))))


def _check_sums(data: Packed, largest: float) -> None:
    """Refuse triangles and their sides if they are larger than this."""
    sides, squares = data.sides[:, :-1], data.sides[:, -1]
    for name, array, most in (
        ("triangles", data.triangles, largest),
        ("sides", sides, largest),
        ("sides", squares, largest**2),
    ):
        if not (np.abs(array) <= most).all():
            raise ValueError(f"{name} must hold finite numbers, no larger than its plays can make them")


def _are_posteriors(posteriors: Posterior) -> np.ndarray:
    """Return which of some posteriors (A, ...) can be one."""
    possible = np.ones(len(posteriors.mean), bool)
    for _, array in leaves(posteriors):
        possible &= (np.abs(array) <= _LARGEST**2).all(axis=tuple(range(1, array.ndim)))
    return possible & (posteriors.scalars[:, NOISE] > 0.0)
