"""`albatross verify`: fold the whole log again, and compare it with everything that was derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from albatross.service.events import Happening
from albatross.service.fold import DamagedRecord, Fold
from albatross.service.refold import Refold
from albatross.service.sqlite import SQLiteStore
from albatross.service.store import Snapshot

_AT_ONCE = 20_000  # users whose states are in memory together
_MOST_SHOWN = 20


@dataclass
class Verified:
    """What was compared, and what is wrong."""

    events: int = 0
    users: int = 0
    snapshots: int = 0
    wrong: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        """Note what is wrong, unless that is too much to read."""
        if len(self.wrong) < _MOST_SHOWN:
            self.wrong.append(sentence)
        elif len(self.wrong) == _MOST_SHOWN:
            self.wrong.append("... and more")


def verify(store: SQLiteStore, progress: Callable[[int], None] = lambda _: None) -> Verified:
    """Fold the log and compare it with every snapshot and every open decision. Problems are sentences."""
    found = Verified(wrong=store.damage())
    if found.wrong:
        return found
    with store.at_one_moment():  # the service may be running
        _check_numbers(store, found)
        for users in ranges(store.count_users()):
            _verify_users(store, users, found, progress)
    return found


def _check_numbers(store: SQLiteStore, found: Verified) -> None:
    """Sequence numbers have no gaps, but for those of erased users and of what was too old to keep."""
    last, _ = store.last()
    records, erased = store.count_records(), store.erased
    if records + erased != last:
        found.wrong.append(f"{last - erased} records should be there, of which {records} are: the log has gaps")


def ranges(n_users: int) -> Iterator[tuple[bytes, bytes]]:
    """Split all digests into ranges of so many users that their states fit into memory."""
    parts = min(max(1, -(-n_users // _AT_ONCE)), 256)
    cuts = [256 * part // parts for part in range(parts)]
    for low, high in zip(cuts, [*cuts[1:], 256], strict=True):
        yield bytes([low]), bytes([high]) if high < 256 else b"\xff" * 17


def _verify_users(
    store: SQLiteStore, users: tuple[bytes, bytes], found: Verified, progress: Callable[[int], None]
) -> None:
    folds, damaged, seen = Refold(store, users), set[bytes](), set[bytes]()
    snapshots = sorted(store.snapshots(users).values(), key=lambda snapshot: -snapshot.seq)

    def come_to(seq: int) -> None:
        """Begin with the bases before a record, and compare the snapshots before it."""
        for base in folds.bases_before(seq):
            seen.add(base.user)
            try:
                folds.begin(base)
            except Exception as error:  # damage may cause any error; the other users are still compared
                damaged.add(base.user)
                found.say(f"user {base.user.hex()}, who begins at record {base.seq}: {error}")
        while snapshots and snapshots[-1].seq < seq:
            _compare(folds.models, snapshots.pop(), damaged, found)

    for event in store.events(0, users):
        come_to(event.seq)
        found.events += 1
        progress(1)
        if isinstance(event, Happening):
            try:
                folds.apply(event)
            except Exception as error:
                _say(found, error, event.seq)
            continue
        if event.user in damaged:
            continue
        seen.add(event.user)
        try:
            folds.apply(event)
        except Exception as error:
            damaged.add(event.user)
            _say(found, error, event.seq)
    come_to(store.last()[0] + 1)
    found.users += len(seen)
    _compare_open(store, users, folds.models, damaged, found)


def _compare(models: dict[int, Fold], snapshot: Snapshot, damaged: set[bytes], found: Verified) -> None:
    user = snapshot.user
    if user in damaged:
        return
    found.snapshots += 1
    try:
        rows = [fold.bandits.row(user) for fold in models.values() if user in fold.bandits]
        if rows != [snapshot.row]:
            raise ValueError("the snapshot differs from the fold")
    except ValueError as error:
        found.say(f"user {user.hex()} at record {snapshot.seq}: {error}")


def _compare_open(
    store: SQLiteStore, users: tuple[bytes, bytes], models: dict[int, Fold], damaged: set[bytes], found: Verified
) -> None:
    stored = {decision for decision, user in store.open_of(users) if user not in damaged}
    folded = {seq for fold in models.values() for seq, pending in fold.open.items() if pending.user not in damaged}
    for seq in sorted(stored ^ folded):
        where = "the table of open decisions" if seq in stored else "the log"
        found.say(f"decision {seq} is open only in {where}")


def _say(found: Verified, error: Exception, seq: int) -> None:
    found.say(str(error) if isinstance(error, DamagedRecord) else f"record {seq}: {error}")
