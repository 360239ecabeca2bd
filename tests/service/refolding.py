"""The whole log folded anew, in the order of its numbers and without snapshots: what live states must equal."""

from __future__ import annotations

import msgspec

from albatross.service.events import Happening
from albatross.service.fold import Fold, relived
from albatross.service.identity import Identity
from albatross.service.settings import ModelSettings
from albatross.service.sqlite import SQLiteStore

ALL_USERS = b"", b"\xff" * 17


def refold(store: SQLiteStore, last: int | None = None) -> tuple[dict[int, Fold], int]:
    """Fold the log up to a number. Return the folds by model, and how many snapshots they were compared with.

    Snapshots are live states: the service took them from its memory, at whatever moment. Sequence numbers must have no
    gaps.
    """
    identity, folds = Identity(store.secret), dict[int, Fold]()
    snapshots: dict[int, list[tuple[bytes, bytes]]] = {}
    for user, snapshot in store.snapshots(ALL_USERS).items():
        snapshots.setdefault(snapshot.seq, []).append((user, snapshot.row))
    compared = 0
    for expected, event in enumerate(store.events(0), 1):
        if last is not None and expected > last:
            break
        assert event.seq == expected, f"number {expected} is missing or there twice"
        if isinstance(event, Happening) and event.kind == "model":
            settings = msgspec.convert(event.content["settings"], ModelSettings)
            folds[event.model] = relived(settings, settings.schema(), identity.seed(event.model), ())
        else:
            folds[event.model].apply(event)
        for user, row in snapshots.get(event.seq, ()):
            (fold,) = (fold for fold in folds.values() if user in fold.bandits)
            assert fold.bandits.row(user) == row, f"the snapshot of a user at {event.seq} is not what the log says"
            compared += 1
    return folds, compared
