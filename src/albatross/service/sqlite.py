"""The log in one SQLite file: the store of a single process.

A commit syncs the write-ahead log (`synchronous=FULL`), so that what was committed survives a power cut. Checkpoints
run in a thread of their own: inside a commit they would make all who wait for it wait longer.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any

from albatross.service.events import EFFECTS, LEARN, NOTHING, Decision, Happening, Outcome
from albatross.service.store import Base, KeyRow, OpenDecision, Snapshot, UserHistory
from albatross.service.writer import Group
from albatross.store.files import replacing

FORMAT = 2  # of the file
_BUSY = 5_000  # milliseconds to wait for another process, such as `albatross keys`
_CHECKPOINT_EVERY = 1.0  # seconds
_LARGE_LOG = 256 * 2**20  # bytes of the write-ahead log, after which it is emptied
_ROOM = 2**16  # bytes that must fit after a commit has failed, before the disk counts as not full
_NO_ROOM = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
_PATIENCE = 20  # milliseconds that commits may wait for that, while somebody reads the file: it is tried again

_SCHEMA = """
CREATE TABLE about(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE decisions(
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, user BLOB NOT NULL, at INTEGER NOT NULL, arm TEXT NOT NULL,
    slot INTEGER NOT NULL, by TEXT NOT NULL, propensity REAL, choice BLOB NOT NULL, offer BLOB NOT NULL,
    place INTEGER NOT NULL, grp INTEGER NOT NULL, own BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE INDEX decisions_of_users ON decisions(user, seq);
CREATE TABLE outcomes(
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, user BLOB NOT NULL, decision INTEGER NOT NULL,
    at INTEGER NOT NULL, value REAL, status TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE INDEX outcomes_of_users ON outcomes(user, seq);
CREATE INDEX outcomes_of_decisions ON outcomes(decision, seq);
CREATE TABLE happenings(
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL,
    crc INTEGER NOT NULL);
CREATE TABLE open(
    decision INTEGER PRIMARY KEY, user BLOB NOT NULL, due INTEGER NOT NULL, active INTEGER NOT NULL,
    kept TEXT NOT NULL);
CREATE INDEX open_by_due ON open(due);
CREATE INDEX open_of_users ON open(user);
CREATE TABLE snapshots(user BLOB PRIMARY KEY, seq INTEGER NOT NULL, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE bases(user BLOB PRIMARY KEY, model INTEGER NOT NULL, seq INTEGER NOT NULL, row BLOB NOT NULL)
    WITHOUT ROWID;
CREATE INDEX bases_by_seq ON bases(seq);
CREATE TABLE requests(
    digest BLOB PRIMARY KEY, user BLOB NOT NULL, body BLOB NOT NULL, answer BLOB NOT NULL, until INTEGER NOT NULL);
CREATE INDEX requests_by_until ON requests(until);
CREATE INDEX requests_of_users ON requests(user);
CREATE TABLE tallies(
    model INTEGER, hour INTEGER, what TEXT, label TEXT, n INTEGER, total REAL, square REAL,
    PRIMARY KEY (model, hour, what, label)) WITHOUT ROWID;
CREATE TABLE keys(
    name TEXT PRIMARY KEY, digest BLOB UNIQUE NOT NULL, scopes TEXT NOT NULL, models TEXT, expires INTEGER,
    rate REAL NOT NULL, revoked INTEGER NOT NULL) WITHOUT ROWID;
"""

_DECISION = "seq, model, user, at, arm, slot, by, propensity, choice, offer, place, grp, own, crc"
_OUTCOME = "seq, model, user, decision, at, value, status, crc"
_OF_USERS = "user >= ? AND user < ?"
_CLOSING = ", ".join(f"'{status}'" for status, effect in EFFECTS.items() if effect != NOTHING)
_LEARNING = ", ".join(f"'{status}'" for status, effect in EFFECTS.items() if effect == LEARN)
_SKIPPED = 16  # users of other models that are skipped for every one that is wanted

# One search of the index for each user, however many records they have.
_SOME_USERS = """
WITH RECURSIVE each(user) AS (
    SELECT min(user) FROM decisions WHERE user >= ?
    UNION ALL SELECT (SELECT min(user) FROM decisions WHERE user > each.user) FROM each WHERE user IS NOT NULL
    LIMIT ?)
SELECT user FROM each WHERE (SELECT model FROM decisions WHERE user = each.user LIMIT 1) = ? LIMIT ?
"""


class SQLiteStore:
    """One file, written by one thread; every thread that reads has a connection of its own."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.exists():
            raise ValueError(f"there is no log at {path}: `albatross serve` makes one")
        self.path = path
        if create and not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # nobody else may read what users did
        self._threads = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._ending = threading.Event()
        self._checkpoints: threading.Thread | None = None
        self._has_failed = False  # whether the last commit did
        self._holds_erased = False  # whether the write-ahead log may hold what was erased
        try:
            connection = self._connection
            if create and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
                about = [("format", str(FORMAT)), ("secret", secrets.token_bytes(32)), ("erased", 0)]
                connection.executemany("INSERT INTO about VALUES (?, ?)", about)
                connection.execute("COMMIT")  # tables and secret together: a kill in between leaves an empty file
            found = dict(connection.execute("SELECT name, value FROM about"))
            if found["format"] != str(FORMAT):
                raise ValueError(f"{path} has format {found['format']}, but this version reads format {FORMAT}")
        except (sqlite3.DatabaseError, KeyError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM:
                raise OSError(f"{path} cannot be opened ({error}): its folder must be writable and have room") from None
            raise ValueError(f"{path} cannot be read as a log: {error}") from None
        self.secret: bytes = found["secret"]

    @property
    def _connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        if not hasattr(self._threads, "connection"):
            made = sqlite3.connect(self.path, isolation_level=None, timeout=_BUSY / 1_000, check_same_thread=False)
            made.execute("PRAGMA synchronous = FULL")
            made.execute("PRAGMA wal_autocheckpoint = 0")
            made.execute("PRAGMA secure_delete = ON")  # an erased user is not left in free pages
            made.execute("PRAGMA trusted_schema = OFF")
            self._threads.connection = made
            self._all.append(made)
        return self._threads.connection

    def start_checkpoints(self) -> None:
        """Copy the write-ahead log into the file from time to time."""
        self._checkpoints = threading.Thread(target=self._checkpoint, name="albatross-checkpoints", daemon=True)
        self._checkpoints.start()

    def _checkpoint(self) -> None:
        log = Path(f"{self.path}-wal")
        while not self._ending.wait(_CHECKPOINT_EVERY):
            with suppress(OSError, sqlite3.Error):  # a full disk shows in the next commit
                if self._holds_erased or log.stat().st_size > _LARGE_LOG:
                    self._empty_log()
                else:
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _empty_log(self) -> None:
        """Copy the write-ahead log into the file and truncate it, unless somebody is reading from it."""
        connection, is_busy = self._connection, 1
        held, self._holds_erased = self._holds_erased, False  # another erasure may come meanwhile
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")  # meanwhile nobody can write
        try:
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY}")
            if held and is_busy:
                self._holds_erased = True

    def close(self) -> None:
        """Close the file; what is in the write-ahead log goes into it."""
        self._ending.set()
        if self._checkpoints:
            self._checkpoints.join(_BUSY / 1_000)
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for connection in self._all:
            with suppress(sqlite3.Error):
                connection.close()

    # -------------------------------------------------------------------------------------------------------- writing

    def write(self, group: Group) -> None:
        """Commit a group, whole or not at all."""
        connection = self._connection
        before = connection.total_changes
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._insert(connection, group)
            if not connection.total_changes - before:  # a commit of nothing would succeed on a full disk too
                # A small one may fit where a decision does not.
                room = _ROOM if self._has_failed else 1
                connection.execute("INSERT OR REPLACE INTO about VALUES ('probed', randomblob(?))", (room,))
            connection.execute("COMMIT")
            self._has_failed = False
        except BaseException:
            self._has_failed = True
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        if group.erased:
            self._holds_erased = True
            with suppress(sqlite3.Error):  # it is tried again
                self._empty_log()

    def _insert(self, connection: sqlite3.Connection, group: Group) -> None:
        many = connection.executemany
        many(f"INSERT INTO decisions({_DECISION}) VALUES ({_marks(14)})", group.decisions)
        many(f"INSERT INTO outcomes({_OUTCOME}) VALUES ({_marks(8)})", group.outcomes)
        many(f"INSERT INTO happenings VALUES ({_marks(6)})", group.happenings)
        opened = [(*row[:4], json.dumps(row[4])) for row in group.opened.values()]
        many(f"INSERT OR REPLACE INTO open VALUES ({_marks(5)})", opened)
        many("DELETE FROM open WHERE decision = ?", [(decision,) for decision in group.closed])
        many(f"INSERT OR REPLACE INTO snapshots VALUES ({_marks(3)})", group.snapshots)
        many(f"INSERT OR REPLACE INTO bases VALUES ({_marks(4)})", group.bases)
        many("DELETE FROM requests WHERE user = ?", [(user,) for user in group.erased])  # those in the group are newer
        many(f"INSERT OR REPLACE INTO requests VALUES ({_marks(5)})", group.requests)
        tallies = [(*key, *cell) for key, cell in group.tallies.items()]
        many(
            f"INSERT INTO tallies VALUES ({_marks(7)}) ON CONFLICT DO UPDATE SET "
            "n = n + excluded.n, total = total + excluded.total, square = square + excluded.square",
            tallies,
        )
        numbers = {"decisions": "seq", "outcomes": "seq", "open": "decision", "snapshots": "seq", "bases": "seq"}
        for user, until in group.erased.items():
            gone = [
                connection.execute(f"DELETE FROM {table} WHERE user = ? AND {number} < ?", (user, until)).rowcount
                for table, number in numbers.items()
            ]
            group.n_erased[user] = sum(gone[:2])
            self._miss(connection, group.n_erased[user])

    def _miss(self, connection: sqlite3.Connection, n: int) -> None:
        """Note that so many sequence numbers are missing from now on: `albatross verify` counts them."""
        connection.execute("UPDATE about SET value = value + ? WHERE name = 'erased'", (n,))

    def knows(self, user: bytes) -> bool:
        """Return whether anything is kept of a user."""
        query = "SELECT 1 FROM {} WHERE user = ? LIMIT 1"
        tables = ("decisions", "outcomes", "bases")
        return any(self._connection.execute(query.format(table), (user,)).fetchone() for table in tables)

    @property
    def erased(self) -> int:
        """Number of records that were erased, or deleted because of their age."""
        return int(self._connection.execute("SELECT value FROM about WHERE name = 'erased'").fetchone()[0])

    def delete_covered(self, user: bytes, since: int, limit: int) -> int:
        """Delete some decisions before a number that the base of their user covers; return how many.

        Covered is what was closed before the base. Commits wait meanwhile.
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")  # a late reward that came after the search would go with its number
        try:
            covered = connection.execute(
                "SELECT made.seq FROM decisions AS made JOIN bases AS base USING (user) "
                "WHERE user = ?1 AND made.seq < ?2 AND made.seq <= base.seq "
                "AND NOT EXISTS (SELECT 1 FROM open WHERE decision = made.seq) "
                "AND NOT EXISTS (SELECT 1 FROM outcomes WHERE decision = made.seq AND seq > base.seq) LIMIT ?3",
                (user, since, limit),
            ).fetchall()
            tables = "decisions WHERE seq", "outcomes WHERE decision"
            gone = [connection.executemany(f"DELETE FROM {which} = ?", covered).rowcount for which in tables]
            self._miss(connection, sum(gone))
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return len(covered)

    def forget_requests(self, now: int, limit: int) -> int:
        """Forget some answers that are too old to be asked for again; return how many. Commits wait meanwhile."""
        old = "SELECT digest FROM requests WHERE until < ? LIMIT ?"
        return self._connection.execute(f"DELETE FROM requests WHERE digest IN ({old})", (now, limit)).rowcount

    # -------------------------------------------------------------------------------------------------------- reading

    def last(self) -> tuple[int, int]:
        """Return the last sequence number and the latest time in the log, 0 and 0 if it is empty."""
        tables = ("decisions", "outcomes", "happenings")
        rows = [
            self._connection.execute(f"SELECT seq, at FROM {table} ORDER BY seq DESC LIMIT 1").fetchone() or (0, 0)
            for table in tables
        ]
        (base,) = self._connection.execute("SELECT max(seq) FROM bases").fetchone()  # what it stands for may be gone
        return max(base or 0, *(seq for seq, _ in rows)), max(at for _, at in rows)

    def happenings(self, model: int | None, kinds: tuple[str, ...] = (), after: int = 0) -> list[Happening]:
        """Return what happened to a model, or to all."""
        rows = self._connection.execute("SELECT * FROM happenings WHERE seq > ? ORDER BY seq", (after,))
        found = map(Happening._make, rows)
        return [each for each in found if model in (None, each.model) and (not kinds or each.kind in kinds)]

    @contextmanager
    def at_one_moment(self) -> Iterator[sqlite3.Connection]:
        """Read the file in this thread as it is now, whatever is written meanwhile."""
        connection = self._connection
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("COMMIT")

    def history(self, users: list[bytes]) -> dict[bytes, UserHistory]:
        """Return what is needed to rebuild users, as of one moment."""
        with self.at_one_moment() as connection:
            return {user: self._history(connection, user) for user in users}

    def _history(self, connection: sqlite3.Connection, user: bytes) -> UserHistory:
        row = connection.execute("SELECT user, seq, row FROM snapshots WHERE user = ?", (user,)).fetchone()
        snapshot = None if row is None else Snapshot._make(row)
        since = snapshot.seq if snapshot else 0
        opened = connection.execute("SELECT * FROM open WHERE user = ? ORDER BY decision", (user,)).fetchall()
        return UserHistory(
            snapshot,
            _open_at(connection, user, since),
            list(self._of_user(connection, user, since)),
            [_open(row) for row in opened],
        )

    def _of_user(self, connection: sqlite3.Connection, user: bytes, since: int) -> Iterator[Decision | Outcome]:
        made = connection.execute(
            f"SELECT {_DECISION} FROM decisions WHERE user = ? AND seq > ? ORDER BY seq", (user, since)
        )
        came = connection.execute(
            f"SELECT {_OUTCOME} FROM outcomes WHERE user = ? AND seq > ? ORDER BY seq", (user, since)
        )
        return _in_order(made, came)

    def number_at(self, at: int) -> int:
        """Return a sequence number: decisions before it are older than a time, those from it on are not."""
        low, high = 0, self.last()[0] + 1
        while low < high:  # times never go back
            middle = (low + high) // 2
            row = self._connection.execute(
                "SELECT seq, at FROM decisions WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)
            ).fetchone()
            if row is not None and row[1] < at:
                low = row[0] + 1
            else:
                high = middle
        return low

    def users_of_closed(self, model: int, first: int, end: int) -> list[bytes]:
        """Return the users of a model's closed decisions, from one sequence number up to another."""
        rows = self._connection.execute(
            "SELECT DISTINCT user FROM decisions WHERE seq >= ? AND seq < ? AND model = ? "
            "AND NOT EXISTS (SELECT 1 FROM open WHERE decision = seq)",
            (first, end, model),
        )
        return [row[0] for row in rows]

    def first_open(self) -> int | None:
        """Return the sequence number of the first decision that is open."""
        found: int | None = self._connection.execute("SELECT min(decision) FROM open").fetchone()[0]
        return found

    def decision(self, seq: int) -> Decision | None:
        """Return a decision."""
        row = self._connection.execute(f"SELECT {_DECISION} FROM decisions WHERE seq = ?", (seq,)).fetchone()
        return row and Decision._make(row)

    def outcomes(self, decision: int) -> list[Outcome]:
        """Return what came of a decision."""
        rows = self._connection.execute(f"SELECT {_OUTCOME} FROM outcomes WHERE decision = ? ORDER BY seq", (decision,))
        return list(map(Outcome._make, rows))

    def request(self, digest: bytes, now: int) -> tuple[bytes, bytes] | None:
        """Return the digest of the body and the answer of an earlier request."""
        found = self._connection.execute(
            "SELECT body, answer FROM requests WHERE digest = ? AND until >= ?", (digest, now)
        ).fetchone()
        return found

    def is_open(self, model: int, slot: int) -> bool:
        """Return whether a decision for the arm in a slot is open."""
        query = "SELECT 1 FROM open JOIN decisions ON seq = decision WHERE model = ? AND slot = ? LIMIT 1"
        return self._connection.execute(query, (model, slot)).fetchone() is not None

    def due(self, now: int, limit: int, skip: int = 0) -> list[OpenDecision]:
        """Return open decisions whose wait has ended, the oldest first but for some that are skipped."""
        query = "SELECT * FROM open WHERE due <= ? ORDER BY due, decision LIMIT ? OFFSET ?"
        rows = self._connection.execute(query, (now, limit, skip))
        return [_open(row) for row in rows]

    def tallies(self, model: int, since: int) -> list[tuple[int, str, str, int, float, float]]:
        """Return what was counted since an hour: hour, what, label, number, sum, sum of squares."""
        return self._connection.execute(
            "SELECT hour, what, label, n, total, square FROM tallies WHERE model = ? AND hour >= ? ORDER BY hour",
            (model, since),
        ).fetchall()

    def tallies_by_hour(self, model: int, since: int) -> list[tuple[int, str, int, float, float]]:
        """Return what was counted since an hour, of all labels together: hour, what, number, sum, sum of squares."""
        return self._connection.execute(
            "SELECT hour, what, sum(n), sum(total), sum(square) FROM tallies WHERE model = ? AND hour >= ? "
            "GROUP BY hour, what ORDER BY hour",
            (model, since),
        ).fetchall()

    def tallies_by_label(self, model: int, since: int) -> list[tuple[str, str, int, float, float]]:
        """Return what was counted since an hour, in all: what, label, number, sum, sum of squares."""
        return self._connection.execute(
            "SELECT what, label, sum(n), sum(total), sum(square) FROM tallies WHERE model = ? AND hour >= ? "
            "GROUP BY what, label",
            (model, since),
        ).fetchall()

    def events(self, after: int, users: tuple[bytes, bytes] | None = None) -> Iterator[Decision | Outcome | Happening]:
        """Return the log in order, or the part of users from one digest up to another, with all happenings."""
        low, high = users or (b"", b"\xff" * 17)
        connection = self._connection

        def read(table: str, columns: str, kind: Any, where: str, values: tuple[Any, ...]) -> Iterator[Any]:
            query = f"SELECT {columns} FROM {table} WHERE seq > ? {where} ORDER BY seq"
            return map(kind._make, connection.execute(query, (after, *values)))

        of_users = f"AND {_OF_USERS}" if users else ""
        values: tuple[Any, ...] = (low, high) if users else ()
        return merge(
            read("decisions", _DECISION, Decision, of_users, values),
            read("outcomes", _OUTCOME, Outcome, of_users, values),
            read("happenings", "*", Happening, "", ()),
            key=lambda event: event.seq,
        )

    def of_user(self, user: bytes) -> list[Decision | Outcome]:
        """Return all records of a user, in the order of the log."""
        return list(self._of_user(self._connection, user, 0))

    def page(self, model: int, after: int, limit: int) -> list[Decision | Outcome]:
        """Return the next records of a model after a sequence number."""
        made = self._connection.execute(
            f"SELECT {_DECISION} FROM decisions WHERE seq > ? AND model = ? ORDER BY seq LIMIT ?", (after, model, limit)
        )
        came = self._connection.execute(
            f"SELECT {_OUTCOME} FROM outcomes WHERE seq > ? AND model = ? ORDER BY seq LIMIT ?", (after, model, limit)
        )
        return list(islice(_in_order(made, came), limit))

    def count_learnt(self, model: int, after: int, until: int) -> int:
        """Return the number of rewards that a model learnt between two sequence numbers."""
        query = f"SELECT count(*) FROM outcomes WHERE seq > ? AND seq <= ? AND model = ? AND status IN ({_LEARNING})"
        return int(self._connection.execute(query, (after, until, model)).fetchone()[0])

    def some_users(self, model: int, first: bytes, limit: int) -> list[bytes]:
        """Return users of a model in the order of their digests, from one digest on and then from the start.

        Digests are random, so these are, too. If few users are of this model, fewer may be found.
        """
        found: list[bytes] = []
        for start in (first, b""):
            rows = self._connection.execute(_SOME_USERS, (start, _SKIPPED * limit, model, limit))
            found += [row[0] for row in rows]
        return list(dict.fromkeys(found))[:limit]

    def count_users(self) -> int:
        """Return the number of users in the log, also of those whose records were too old to keep."""
        users = "SELECT user FROM decisions UNION SELECT user FROM bases"
        return int(self._connection.execute(f"SELECT count(*) FROM ({users})").fetchone()[0])

    def count_records(self) -> int:
        """Return the number of records in the log."""
        tables = ("decisions", "outcomes", "happenings")
        return sum(self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)

    def open_of(self, users: tuple[bytes, bytes]) -> list[tuple[int, bytes]]:
        """Return the open decisions of users from one digest up to another."""
        return self._connection.execute(f"SELECT decision, user FROM open WHERE {_OF_USERS}", users).fetchall()

    def snapshots(self, users: tuple[bytes, bytes]) -> dict[bytes, Snapshot]:
        """Return the snapshots of users from one digest up to another."""
        rows = self._connection.execute(f"SELECT user, seq, row FROM snapshots WHERE {_OF_USERS}", users)
        return {user: Snapshot(user, seq, row) for user, seq, row in rows}

    def bases(self, users: tuple[bytes, bytes]) -> list[Base]:
        """Return the rows that the fold of users begins with, from one digest up to another."""
        connection = self._connection
        rows = connection.execute(f"SELECT user, model, seq, row FROM bases WHERE {_OF_USERS}", users).fetchall()
        return [Base(user, model, seq, row, _open_at(connection, user, seq)) for user, model, seq, row in rows]

    # ----------------------------------------------------------------------------------------------------------- keys

    def all_keys(self) -> list[KeyRow]:
        """Return all keys."""
        rows = self._connection.execute("SELECT * FROM keys ORDER BY name").fetchall()
        return [
            KeyRow(
                name, digest, scopes.split(), None if models is None else models.split(), expires, rate, bool(revoked)
            )
            for name, digest, scopes, models, expires, rate, revoked in rows
        ]

    def add_key(self, key: KeyRow) -> None:
        """Add a key; its name must be new."""
        models = None if key.models is None else " ".join(key.models)
        try:
            self._connection.execute(
                f"INSERT INTO keys VALUES ({_marks(7)})",
                (key.name, key.digest, " ".join(key.scopes), models, key.expires, key.rate, key.revoked),
            )
        except sqlite3.IntegrityError:
            raise ValueError(f"there is a key {key.name!r} already") from None

    def remove_key(self, name: str) -> None:
        """Remove a key that nobody has seen."""
        self._connection.execute("DELETE FROM keys WHERE name = ?", (name,))

    def revoke_key(self, name: str) -> None:
        """Revoke a key."""
        if not self._connection.execute("UPDATE keys SET revoked = 1 WHERE name = ?", (name,)).rowcount:
            raise ValueError(f"there is no key {name!r}")

    def data_version(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def backup(self, path: Path) -> None:
        """Copy the file while it is in use. Nobody else may read the copy; if it fails, there is none."""
        with replacing(path) as file:
            os.chmod(file.name, 0o600)
            try:
                with closing(sqlite3.connect(file.name)) as target:
                    target.execute("PRAGMA journal_mode = OFF")  # a copy that fails is thrown away
                    self._connection.backup(target, pages=1_000)
            except sqlite3.Error as error:
                raise OSError(f"{path} cannot be written ({error}): see that there is room, and try again") from None

    def damage(self) -> list[str]:
        """Return what SQLite finds damaged in the file."""
        rows = [row[0] for row in self._connection.execute("PRAGMA integrity_check(20)")]
        return [] if rows == ["ok"] else rows

    @property
    def n_bytes(self) -> int:
        """Size of the file and its write-ahead log."""
        paths = (self.path, Path(f"{self.path}-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())


@contextmanager
def shown_key(store: SQLiteStore, key: KeyRow) -> Iterator[None]:
    """Add a key which is shown meanwhile, once. If that fails, there is no key: it could not be read again."""
    if sys.stdout is None:  # it was closed
        raise ValueError("there is no standard output to show the key on")
    store.add_key(key)
    try:
        yield
    except OSError as error:
        store.remove_key(key.name)
        raise OSError(f"the key cannot be shown and is not kept: {error}") from None


def _open_at(connection: sqlite3.Connection, user: bytes, seq: int) -> list[Decision]:
    """Return the decisions of a user that were open at a sequence number."""
    later = f"SELECT decision FROM outcomes WHERE user = ?1 AND seq > ?2 AND status IN ({_CLOSING})"
    rows = connection.execute(
        f"SELECT {_DECISION} FROM decisions WHERE user = ?1 AND seq <= ?2 AND "
        f"seq IN (SELECT decision FROM open WHERE user = ?1 UNION {later}) ORDER BY seq",
        (user, seq),
    )
    return list(map(Decision._make, rows))


def _in_order(made: Iterable[Any], came: Iterable[Any]) -> Iterator[Decision | Outcome]:
    """Return decisions and outcomes in the order of the log."""
    both: Iterator[Any] = merge(map(Decision._make, made), map(Outcome._make, came), key=lambda event: event.seq)
    return both


def _open(row: tuple[Any, ...]) -> OpenDecision:
    decision, user, due, active, kept = row
    return OpenDecision(decision, user, due, bool(active), json.loads(kept))


def _marks(n: int) -> str:
    return ", ".join("?" * n)
