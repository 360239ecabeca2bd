"""Users from the log into memory: a snapshot, and the fold over what came later.

The fold runs on a bench of its own in the loader's thread, so that nobody else waits. The bench is a fold without users
that has lived through the same happenings; if some of them lie between a user's events, it lives through them again.
"""

from __future__ import annotations

import secrets
from collections.abc import Set
from heapq import merge
from typing import NamedTuple

from albatross.service.bandits import Bandits
from albatross.service.events import Decision, Happening, Outcome
from albatross.service.fold import Fold, Pending
from albatross.service.model import Model
from albatross.service.store import Snapshot, Store, UserHistory

BATCH = 64  # users that are read at once
BENCH_KINDS = ("arm", "retired", "origin", "population")  # what states depend on


class Loaded(NamedTuple):
    """A user as the log says."""

    row: bytes | None  # None for a newcomer
    open: dict[int, Pending]
    last: int  # sequence number of the last event
    new: int  # events since the snapshot
    error: Exception | None = None


class Loader:
    """Loads users of one model. One thread at a time."""

    def __init__(self, model: Model, store: Store) -> None:
        self._model, self._store = model, store
        self._bench: Fold | None = None
        self._at = 0  # the last happening that the bench has seen

    def load(self, users: list[bytes]) -> dict[bytes, Loaded]:
        """Return users as the log says; a damaged one has an error."""
        found = self._store.history(users)
        happenings = self._store.happenings(self._model.number, BENCH_KINDS)
        return {user: self._loaded(user, history, happenings) for user, history in found.items()}

    def _loaded(self, user: bytes, history: UserHistory, happenings: list[Happening]) -> Loaded:
        if history.snapshot is None and not history.events:
            return Loaded(None, {}, 0, 0)
        try:
            return self._folded(user, history, happenings)
        except Exception as error:  # damage may cause any error; the others are served
            self._bench = None
            return Loaded(None, {}, 0, 0, error)

    def _folded(self, user: bytes, history: UserHistory, happenings: list[Happening]) -> Loaded:
        start = history.snapshot.seq if history.snapshot else history.events[0].seq - 1
        later = [event for event in happenings if event.seq > start]
        if later:
            bench = self._model.fresh_fold([event for event in happenings if event.seq <= start])
        else:
            bench = self._present(happenings)
        fold_user(bench, history.snapshot, history.before, merge_by_seq(history.events, later), user)
        row = bench.bandits.release(user)
        pending, bench.open = bench.open, {}
        for each in history.open:
            known = pending[each.decision]
            known.due, known.active, known.kept = each.due, each.active, each.kept
        if pending.keys() != {each.decision for each in history.open}:
            raise ValueError("the open decisions are not those of the log")
        events = history.events
        last = events[-1].seq if events else start
        return Loaded(row, pending, last, len(events))

    def _present(self, happenings: list[Happening]) -> Fold:
        """Return the bench after everything that happened."""
        if self._bench is None:
            self._bench, self._at = self._model.fresh_fold([]), 0
        for event in happenings:
            if event.seq > self._at:
                self._bench.apply(event)
                self._at = event.seq
        return self._bench


def bandits_elsewhere(model: Model, store: Store, here: Set[bytes], most: int, memory: int) -> Bandits:
    """Return bandits of users who are not here: so many of the log, chosen at random, in so many bytes."""
    bandits: Bandits = model.fresh_fold(store.happenings(model.number, BENCH_KINDS)).bandits
    found = store.some_users(model.number, secrets.token_bytes(16), most + len(here))
    users, loader = [user for user in found if user not in here][:most], Loader(model, store)
    for start in range(0, len(users), BATCH):
        for user, loaded in loader.load(users[start : start + BATCH]).items():
            if loaded.row is not None:  # a damaged user says nothing
                bandits.put(user, loaded.row)
        if bandits.nbytes > memory:
            break
    return bandits


def merge_by_seq(events: list[Decision | Outcome], happenings: list[Happening]) -> list[Decision | Outcome | Happening]:
    """Return events and happenings in the order of the log."""
    return list(merge(events, happenings, key=lambda event: event.seq))


def fold_user(
    bench: Fold,
    snapshot: Snapshot | None,
    before: list[Decision],
    events: list[Decision | Outcome | Happening],
    user: bytes,
) -> None:
    """Fold a user's events on a bench, from a snapshot on."""
    if snapshot is not None:
        bench.bandits.put(user, snapshot.row)
    for made in before:
        bench.expect(made)
    for event in events:
        bench.apply(event)
