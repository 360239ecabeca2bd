"""Snapshots save time, nothing else; and users who have not come for long leave memory."""

from __future__ import annotations

import zlib

from albatross.service.model import Hot, Model
from albatross.service.writer import Group

_OLD, _WORTH_IT = 256, 32  # new events after which a user is snapshotted, in memory and on leaving it
_MEASURE_EVERY = 64  # commands
_SHRINK = 0.9  # fewer users in memory, whenever they outgrow it
_LEVEL = 1  # of compression: rows are mostly numbers that do not compress


def snapshot_if_old(model: Model, user: bytes, group: Group, seq: int) -> None:
    """Snapshot a user of whom many events are new; `seq` is the last number that was given out."""
    hot = model.hot.get(user)
    if hot is not None and hot.new >= _OLD:
        _snapshot(user, hot, model.bandits.row(user), group, seq)


def begin_with_snapshot(model: Model, user: bytes, group: Group, seq: int) -> None:
    """Let the fold of a user begin with a snapshot: what was before is no longer needed."""
    _snapshot(user, model.hot[user], model.bandits.row(user), group, seq)
    user, seq, row = group.snapshots[-1]
    group.bases.append((user, model.number, seq, row))


def evict(model: Model, memory: int, committed: int, group: Group, seq: int) -> None:
    """Let users leave who came least recently, while there are more than fit.

    Arrays do not shrink: once they are as large as allowed, nobody new comes without somebody leaving. Only users whose
    events are all on disk may leave, because the log is where they come back from.
    """
    bandits = model.bandits
    model.commands += 1
    if model.commands % _MEASURE_EVERY == 0:
        taken = model.nbytes
        if taken > max(memory, model.most_bytes):  # users of a flock grow, and decisions wait for rewards
            fewer = bandits.n_users if model.most_users is None else int(_SHRINK * model.most_users)
            model.most_users, model.most_bytes = max(fewer, 1), taken
        elif taken < _SHRINK * memory:  # there were many open decisions
            model.most_users, model.most_bytes = None, 0
    if model.most_users is None:
        return
    while bandits.n_users > model.most_users:
        user, hot = next(iter(model.hot.items()))
        if hot.last > committed:
            return
        row = bandits.release(user) if user in bandits else None
        if row is not None and hot.new >= _WORTH_IT:
            _snapshot(user, hot, row, group, seq)
        for decision in hot.open:
            del model.fold.open[decision]
        del model.hot[user]


def _snapshot(user: bytes, hot: Hot, row: bytes, group: Group, seq: int) -> None:
    # Not the number of the user's last event: arms that came after it are in the row.
    group.snapshots.append((user, seq, zlib.compress(row, _LEVEL)))
    hot.new = 0
