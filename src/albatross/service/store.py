"""What a store of the log must do. `sqlite.py` is the one for a single process."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from albatross.service.events import Decision, Happening, Outcome
from albatross.service.writer import Group


class OpenDecision(NamedTuple):
    """A decision whose wait has not ended."""

    decision: int  # sequence number
    user: bytes
    due: int  # milliseconds since 1970: the end of the wait
    active: bool  # False until a deferred decision is activated
    kept: list[float]  # rewards that wait for the end, or for the activation


class Snapshot(NamedTuple):
    """A user's row as the fold has it after all records of the log up to `seq`."""

    user: bytes
    seq: int
    compressed: bytes

    @property
    def row(self) -> bytes:
        """The row; a damaged one raises a ValueError."""
        try:
            return zlib.decompress(self.compressed)
        except zlib.error as error:
            raise ValueError(f"the snapshot is damaged: {error}") from None


class Base(NamedTuple):
    """A user's row, in place of records up to `seq` that are no longer in the log, or need not be."""

    user: bytes
    model: int
    seq: int
    compressed: bytes
    before: list[Decision]  # those that were open then

    @property
    def row(self) -> bytes:
        """The row; a damaged one raises a ValueError."""
        return Snapshot(self.user, self.seq, self.compressed).row


class UserHistory(NamedTuple):
    """All that is needed to rebuild a user: a snapshot, and what came later in the order of the log."""

    snapshot: Snapshot | None
    before: list[Decision]  # made before the snapshot, and still open or closed after it
    events: list[Decision | Outcome]  # after the snapshot
    open: list[OpenDecision]


class KeyRow(NamedTuple):
    """A key as it is stored: never the key itself."""

    name: str
    digest: bytes  # SHA-256
    scopes: list[str]
    models: list[str] | None  # None: all
    expires: int | None
    rate: float
    revoked: bool


class Store(Protocol):
    """The log, and what is derived from it."""

    secret: bytes

    def write(self, group: Group) -> None:
        """Commit a group, whole or not at all."""

    def last(self) -> tuple[int, int]:
        """Return the last sequence number and the latest time in the log, 0 and 0 if it is empty."""

    def happenings(self, model: int | None, kinds: tuple[str, ...] = (), after: int = 0) -> list[Happening]:
        """Return what happened to a model, or to all."""

    def history(self, users: list[bytes]) -> dict[bytes, UserHistory]:
        """Return what is needed to rebuild users."""

    def some_users(self, model: int, first: bytes, limit: int) -> list[bytes]:
        """Return users of a model in the order of their digests, from one digest on and then from the start."""

    def count_learnt(self, model: int, after: int, until: int) -> int:
        """Return the number of rewards that a model learnt between two sequence numbers."""

    def decision(self, seq: int) -> Decision | None:
        """Return a decision."""

    def outcomes(self, decision: int) -> list[Outcome]:
        """Return what came of a decision."""

    def request(self, digest: bytes, now: int) -> tuple[bytes, bytes] | None:
        """Return the digest of the body and the answer of an earlier request."""

    def due(self, now: int, limit: int, skip: int = 0) -> list[OpenDecision]:
        """Return open decisions whose wait has ended, the oldest first but for some that are skipped."""

    def all_keys(self) -> list[KeyRow]:
        """Return all keys."""

    def events(self, after: int, users: tuple[bytes, bytes] | None = None) -> Iterator[Decision | Outcome | Happening]:
        """Return the log in order, or the part of users from one digest up to another, with all happenings."""
