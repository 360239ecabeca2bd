"""Users from the log into memory: a snapshot, and the fold over what came later.

The fold runs on a bench of its own in the loader's thread, so that nobody else waits. The bench is a fold without users
that has lived through the same happenings. If some of them lie between the events of users, a new one lives through
all of them again, once for all users that are loaded together.
"""

from __future__ import annotations

import secrets
from collections.abc import Set
from heapq import merge
from typing import NamedTuple

from albatross.service.bandits import Bandits
from albatross.service.events import Happening
from albatross.service.fold import Fold, Pending
from albatross.service.model import Model
from albatross.service.store import Store, UserHistory

BATCH = 64  # users that are read at once
Histories = dict[bytes, UserHistory]
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
        last = happenings[-1].seq if happenings else 0
        loaded = dict.fromkeys(found, Loaded(None, {}, 0, 0))
        known = {user: history for user, history in found.items() if history.snapshot or history.events}
        recent = {user: history for user, history in known.items() if _start(history) >= last}
        older = {user: history for user, history in known.items() if user not in recent}
        # The older ones together: what happened since then is lived through once, and not once for each of them.
        return loaded | self._loaded(recent, happenings) | self._loaded(older, happenings)

    def _loaded(self, histories: Histories, happenings: list[Happening]) -> dict[bytes, Loaded]:
        try:
            return self._folded(histories, happenings) if histories else {}
        except Exception as error:  # damage may cause any error; the others are served
            self._bench = None
            if len(histories) == 1:
                return {user: Loaded(None, {}, 0, 0, error) for user in histories}
        alone = [self._loaded({user: history}, happenings) for user, history in histories.items()]
        return {user: each for found in alone for user, each in found.items()}

    def _folded(self, histories: Histories, happenings: list[Happening]) -> dict[bytes, Loaded]:
        start = min(map(_start, histories.values()))
        later = [event for event in happenings if event.seq > start]
        if later:
            bench = self._model.fresh_fold([event for event in happenings if event.seq <= start])
        else:
            bench = self._present(happenings)
        fold_users(bench, histories, later)
        opened, bench.open = bench.open, {}
        loaded = {}
        for user, history in histories.items():
            row = bench.bandits.release(user)
            pending = {seq: each for seq, each in opened.items() if each.user == user}
            for each in history.open:
                known = pending[each.decision]
                known.due, known.active, known.kept = each.due, each.active, each.kept
            if pending.keys() != {each.decision for each in history.open}:
                raise ValueError("the open decisions are not those of the log")
            events = history.events
            last = events[-1].seq if events else _start(history)
            loaded[user] = Loaded(row, pending, last, len(events))
        return loaded

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


def _start(history: UserHistory) -> int:
    """Return the number of the last record before those that are folded."""
    return history.snapshot.seq if history.snapshot else history.events[0].seq - 1


def fold_users(bench: Fold, histories: Histories, happenings: list[Happening]) -> None:
    """Fold the events of users on a bench, each from a snapshot on, in the order of the log."""
    snapshots = [(user, history.snapshot) for user, history in histories.items() if history.snapshot]
    snapshots.sort(key=lambda each: -each[1].seq)
    for history in histories.values():
        for made in history.before:
            bench.expect(made)
    of_users = (history.events for history in histories.values())
    for event in merge(happenings, *of_users, key=lambda event: event.seq):
        while snapshots and snapshots[-1][1].seq < event.seq:
            user, snapshot = snapshots.pop()
            bench.bandits.put(user, snapshot.row)
        bench.apply(event)
    for user, snapshot in snapshots:
        bench.bandits.put(user, snapshot.row)
