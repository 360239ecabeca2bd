"""`albatross export`: the log as a table that `albatross evaluate` reads."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from albatross.service.events import EFFECTS, NOTHING, Decision, Happening, Outcome, unpack_offer
from albatross.service.fold import Fold, check_crc
from albatross.service.identity import DecisionId, Identity
from albatross.service.refold import Refold
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import ranges
from albatross.store.decision_log import LogWriter, NotForALog
from albatross.store.files import try_lock

_BESIDE = ".albatross-export-"  # how folders begin in which exports are made
_JUST_BEGUN = 86_400.0  # seconds; some file systems have no locks, which say that an export still runs
DRAWS = 10_000  # for the propensity of a policy that draws
Offers = dict[tuple[int, int], tuple[list[str], np.ndarray]]  # arms and features, by request and slot


def export(
    store: SQLiteStore,
    name: str,
    path: Path,
    progress: Callable[[int], None] = lambda _: None,
    damaged: set[bytes] | None = None,
) -> int:
    """Write the decisions of a model with their rewards; return how many. Unknown propensities are computed.

    Users with damaged records are left out from there on, and added to `damaged`.

    For a policy that draws, the log is folded: the propensity is that of the state as it was at the decision, and not
    known if records before it were too old to keep. Arms that pass are called by their rows in the request. The file is
    there once it is whole; a journal of this name, of somebody else or of an export that was killed, is left alone.
    """
    model, damaged = _number(store, name), set() if damaged is None else damaged
    written = 0
    if path.exists():
        raise ValueError(f"{path} exists already: name a new file")
    _remove_abandoned(path.parent)
    with tempfile.TemporaryDirectory(prefix=_BESIDE, dir=path.parent, ignore_cleanup_errors=True) as folder:
        log = LogWriter(Path(folder, path.name))
        with ExitStack() as stack:
            stack.callback(log.pause)  # on an error, without a table
            stack.enter_context(store.at_one_moment())  # the service may be running
            for users in ranges(store.count_users()):
                written += _export_users(store, users, model, log, progress, damaged)
            log.close()
        os.replace(log.path, path)
    return written


def _remove_abandoned(folder: Path) -> None:
    """Remove what exports that were killed have left here: nobody writes their journals."""
    for left in folder.glob(f"{_BESIDE}*"):
        with suppress(OSError), ExitStack() as stack:
            journals = [stack.enter_context(open(each, "rb")) for each in left.glob("*")]
            if time.time() - left.stat().st_mtime > _JUST_BEGUN and all(map(try_lock, journals)):
                shutil.rmtree(left)


def _number(store: SQLiteStore, name: str) -> int:
    for event in store.happenings(None, ("model",)):
        if event.content["name"] == name:
            return event.model
    raise ValueError(f"there is no model {name!r} in this log")


def _export_users(
    store: SQLiteStore,
    users: tuple[bytes, bytes],
    model: int,
    log: LogWriter,
    progress: Callable[[int], None],
    damaged: set[bytes],
) -> int:
    folds = Refold(store, users)
    writer = _Writer(folds, Identity(store.secret), log)
    for event in store.events(0, users):
        progress(1)
        for base in folds.bases_before(event.seq):
            if base.model == model:
                with _leaving_out(base.user, damaged):
                    folds.begin(base)
        if event.model != model:
            continue
        if isinstance(event, Happening):
            folds.apply(event)
        elif event.user not in damaged:
            with _leaving_out(event.user, damaged):
                check_crc(event)
                writer.take(event)
                folds.apply(event)
    return writer.written


@contextmanager
def _leaving_out(user: bytes, damaged: set[bytes]) -> Iterator[None]:
    """Leave a user out whose records are damaged, which may cause any error but these."""
    try:
        yield
    except (OSError, MemoryError, NotForALog):
        raise
    except Exception:
        damaged.add(user)


class _Writer:
    """Writes decisions and rewards of a model, in the order of the log."""

    def __init__(self, folds: Refold, identity: Identity, log: LogWriter) -> None:
        self._folds, self._identity, self._log = folds, identity, log
        self.written = 0
        self._unsettled: set[int] = set()  # decisions that were written: not imports, nor those without an offer
        self._offers: Offers = {}
        self._rows: dict[str, int] = {}  # of the arms of a request

    def take(self, event: Decision | Outcome) -> None:
        """Write a record that belongs into the table. The fold is as it was before it."""
        if isinstance(event, Decision) and event.by != "import":
            offer = _offer(event, self._offers)
            if offer is not None:
                self._write(event, offer)
        elif isinstance(event, Outcome) and EFFECTS[event.status] != NOTHING and event.decision in self._unsettled:
            self._unsettled.remove(event.decision)
            if event.value is not None:
                self._log.write_reward(self._identity.decision(DecisionId(0, event.decision)), event.value)

    def _write(self, made: Decision, offer: tuple[list[str], np.ndarray]) -> None:
        self._rows = {arm: row for row, arm in enumerate(offer[0])} if made.place == 0 else self._rows
        fold = self._folds.models[made.model]
        passing = fold.bandits.passing  # then arms of different requests have nothing in common but features
        propensity = made.propensity
        if propensity is None and made.by == "policy" and not self._folds.is_covered(made):
            propensity = _drawn(fold, made, offer)
        self._log.write_decision(
            self._identity.decision(DecisionId(0, made.seq)),
            action=self._rows[made.arm] if passing else made.arm,
            eligible=[self._rows[arm] for arm in offer[0]] if passing else offer[0],
            propensity=propensity,
            contexts=offer[1],
            user=made.user.hex(),
        )
        self._unsettled.add(made.seq)
        self.written += 1


def _offer(made: Decision, offers: Offers) -> tuple[list[str], np.ndarray] | None:
    """Return the eligible arms of a decision; those of a later slot are what is left of the one before it.

    They are not known where an earlier slot was too old to keep.
    """
    if made.place == 0:
        if not made.offer:  # log_offers="chosen"
            return None
        offers.clear()  # the slots of a request follow each other
        offers[made.group, 0] = unpack_offer(made.offer)
    offer = offers.get((made.group, made.place))
    if offer is not None:
        left = [row for row, arm in enumerate(offer[0]) if arm != made.arm]
        offers[made.group, made.place + 1] = [offer[0][row] for row in left], offer[1][left]
    return offer


def _drawn(fold: Fold, made: Decision, offer: tuple[list[str], np.ndarray]) -> float:
    if made.user not in fold.bandits:
        fold.bandits.admit(made.user)
    return fold.bandits.propensity(made.user, fold.bandits.rows(*offer), made.arm, draws=DRAWS, seed=made.seq)
