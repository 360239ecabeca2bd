"""What is logged. The state of every user is a fold over these records, in the order of their sequence numbers.

| record | says |
|---|---|
| `Decision` | an arm was chosen for a user, with all that learning from it needs |
| `Outcome` | what came of a decision: a reward, learnt or not, or the end of the wait |
| `Happening` | what concerns all users of a model: settings, arms, populations, erasures |
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import msgspec
import numpy as np

# What an outcome does to the state of the user.
LEARN, DROP, NOTHING = "learn", "drop", "nothing"
EFFECTS = {
    "learnt": LEARN,  # the reward, when it came
    "closed": LEARN,  # the combined rewards, at the end of the wait
    "default": LEARN,  # the default reward, at the end of the wait
    "expired": DROP,  # nothing came, and there is no default
    "frozen": DROP,  # a reward, or several combined, while the model learns nothing
    "frozen_default": DROP,  # the default reward, while the model learns nothing
    "waits": NOTHING,  # it is learnt at the end of the wait
    "inactive": NOTHING,  # it is learnt once the decision is activated
    "activated": NOTHING,  # the decision was shown: the wait begins
    "late": NOTHING,
}
_NUMBERS = 3  # score, width and propensity stand before the tag


class Choice(NamedTuple):
    """A choice as the policy made it, to the last bit."""

    arm: str
    slot: int  # where the policy keeps the arm
    action: np.ndarray  # (d,) numbers of float32, as float64
    score: float
    width: float
    propensity: float  # NaN if the policy draws
    tag: np.ndarray

    def to_bytes(self) -> bytes:
        """Return the numbers: doubles but for the action, which was rounded to float32 before the policy saw it."""
        head = np.array([self.score, self.width, self.propensity, *self.tag], "<f8")
        return head.tobytes() + self.action.astype("<f4").tobytes()

    @classmethod
    def from_bytes(cls, arm: str, slot: int, data: bytes, tag_size: int) -> Choice:
        """Return the choice of some bytes."""
        split = 8 * (_NUMBERS + tag_size)
        head = np.frombuffer(data[:split], "<f8").astype(float)
        action = np.frombuffer(data[split:], "<f4").astype(float)
        score, width, propensity = head[:_NUMBERS].tolist()
        return cls(arm, slot, action, score, width, propensity, head[_NUMBERS:])


class Decision(NamedTuple):
    """One arm for one user. Its sequence number is part of its id."""

    seq: int
    model: int
    user: bytes  # digest
    at: int  # milliseconds since 1970, UTC
    arm: str
    slot: int
    by: str  # policy, floor, baseline or import
    propensity: float | None  # None if unknown
    choice: bytes
    offer: bytes  # the eligible arms with their features, or nothing
    place: int  # in the ranking, 0 is the first
    group: int  # sequence number of the first decision of the request
    own: bytes  # the policy's own choice, where the baseline was played
    crc: int = 0

    def sealed(self) -> Decision:
        """Return the record with its checksum."""
        return self._replace(crc=self.checksum())

    def checksum(self) -> int:
        """Return the checksum of everything that learning needs."""
        body = f"{self.seq} {self.model} {self.at} {self.arm} {self.slot} {self.by} {self.place} {self.group}".encode()
        return zlib.crc32(b"".join((body, self.user, self.choice, self.offer, self.own)))


class Outcome(NamedTuple):
    """What came of a decision."""

    seq: int
    model: int
    user: bytes
    decision: int
    at: int
    value: float | None
    status: str
    crc: int = 0

    def sealed(self) -> Outcome:
        """Return the record with its checksum."""
        return self._replace(crc=self.checksum())

    def checksum(self) -> int:
        """Return the checksum of the record."""
        body = f"{self.seq} {self.model} {self.decision} {self.at} {self.value!r} {self.status}".encode()
        return zlib.crc32(body + self.user)


class Happening(NamedTuple):
    """What concerns all users of a model."""

    seq: int
    model: int
    at: int
    kind: str
    body: bytes
    crc: int = 0

    def sealed(self) -> Happening:
        """Return the record with its checksum."""
        return self._replace(crc=self.checksum())

    def checksum(self) -> int:
        """Return the checksum of the record."""
        return zlib.crc32(f"{self.seq} {self.model} {self.at} {self.kind}".encode() + self.body)

    @property
    def content(self) -> Any:
        """Return the body as plain objects."""
        return msgspec.msgpack.decode(self.body)


def packed(content: Any) -> bytes:
    """Return plain objects as the body of a happening."""
    return msgspec.msgpack.encode(content)


def pack_offer(arms: list[str], features: np.ndarray) -> bytes:
    """Return the eligible arms and their features (n, d), rounded to float32 before."""
    return packed([arms, features.astype("<f4").tobytes()])


def unpack_offer(offer: bytes) -> tuple[list[str], np.ndarray]:
    """Return the eligible arms and their features (n, d)."""
    arms, features = msgspec.msgpack.decode(offer)
    return arms, np.frombuffer(features, "<f4").reshape(len(arms), -1).astype(float)


def pack_arrays(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays as plain objects, exactly."""
    return {name: [str(array.dtype), list(array.shape), array.tobytes()] for name, array in arrays.items()}


def unpack_arrays(content: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of `pack_arrays`."""
    return {name: np.frombuffer(data, dtype).reshape(shape).copy() for name, (dtype, shape, data) in content.items()}
