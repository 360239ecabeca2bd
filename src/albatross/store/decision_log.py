"""A log of decisions: a journal while it is written, a table once it is closed.

The journal has a line of JSON per event, a decision with its offer or a reward, and lines are only appended. A killed
process loses at most the line that it was writing. The table has a row per decision, with its reward, however late the
reward came. It is CSV or Parquet; lists are JSON in CSV.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
import tempfile
import threading
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.errors import missing_extra
from albatross.forks import renew_after_fork
from albatross.queries import absolute_name, ctrl_c, exact_pattern
from albatross.store.files import replacing, try_lock

COLUMNS = ("decision", "user", "action", "eligible", "propensity", "reward", "contexts")
_UNFINISHED = ".unfinished"
_END_OF_A_CUT_LINE = b"!\n"  # what was refused must not be read, even if all but its line end was written
_FIRST = b'{"decision": "'  # with which every event begins
_MISSING = ("", "NA", "NULL", "null", "None", "nan", "NaN")  # texts that tables take for missing values
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # ends lines, or cannot be written
# Texts that tables take for numbers, and those among them that they give back as they are.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_INDEX = re.compile(r"0\d*|[1-9]\d{0,17}", re.ASCII)
# Bytes of a line, which take up to three times as much in a table: lines of CSV are read up to 4 MiB.
_LONGEST = {".csv": 2**20, ".parquet": 2**23}
# How Parquet gets its types from CSV.
_TYPED = {
    "eligible": """from_json(eligible, '["VARCHAR"]')""",
    "propensity": "CAST(propensity AS DOUBLE)",
    "reward": "CAST(reward AS DOUBLE)",
    "contexts": """from_json(contexts, '[["DOUBLE"]]')""",
}


class NotForALog(ValueError):
    """A sound decision that a log cannot hold: a table would give back another name, or it is too long."""


def journal_of(path: str | os.PathLike[str]) -> Path:
    """Return the journal of a log that is not closed yet."""
    return Path(f"{os.fspath(path)}{_UNFINISHED}")


def is_journal(path: str | os.PathLike[str]) -> bool:
    """Return whether this is the journal of a log."""
    return os.fspath(path).endswith(_UNFINISHED)


class LogWriter:
    """Write decisions and their rewards to a CSV or Parquet file that `albatross evaluate` reads.

    Until `close`, events are in a journal beside the file, which is called as the file with `.unfinished` at the end.
    It can be evaluated too. A program that stopped without `close` continues it with a new `LogWriter` of the same
    path. `close` writes a table with one row per decision; rewards that never came are empty. Parquet needs duckdb, of
    the extra `lab`. Rewards may come in any order. The first reward of a decision counts. `Agent.log` calls a writer
    for you.

    >>> with tempfile.TemporaryDirectory() as folder, LogWriter(Path(folder, "log.csv")) as log:
    ...     log.write_decision("d1", action="art", eligible=["art", "sport"], propensity=0.9, contexts=[[1, 0], [0, 1]])
    ...     log.write_reward("d1", 0.5)
    ...     log.close()
    ...     print(log.path.read_text())
    decision,user,action,eligible,propensity,reward,contexts
    d1,,art,"[""art"", ""sport""]",0.9,0.5,"[[1.0, 0.0], [0.0, 1.0]]"
    <BLANKLINE>
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"a log ends in .csv or .parquet, not as {shown(self.path.name)}")
        if self.path.suffix == ".parquet":
            _duckdb()  # now, not when the log is closed
        if self.path.exists():
            raise ValueError(f"{self.path} exists already: give every log a new name")
        self._journal = journal_of(self.path)
        _check_journal(self._journal)
        self._file = open(self._journal, "ab", buffering=0)  # noqa: SIM115
        if not (try_lock(self._file) and self._is_there() and not self.path.exists()):  # or it was just closed
            self._file.close()
            raise ValueError(f"{self._journal} is being written by another LogWriter: give every log its own path")
        self._cut = self._ends_in_a_cut_line()
        self._process, self._lock = os.getpid(), threading.Lock()
        renew_after_fork(self)

    def _is_there(self) -> bool:
        """Return whether the open file is still the journal."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self._journal))
        except FileNotFoundError:
            return False

    def _ends_in_a_cut_line(self) -> bool:
        with open(self._journal, "rb") as file:
            file.seek(-min(1, file.seek(0, os.SEEK_END)), os.SEEK_END)
            return file.read(1) not in (b"", b"\n")

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        """Whether the log is closed."""
        return self._file.closed

    def write_decision(
        self,
        decision: str | int,
        *,
        action: str | int,
        eligible: Sequence[str | int],
        propensity: float | None,
        contexts: Any = None,
        user: str | int | None = None,
    ) -> None:
        """Write a decision: the eligible arms, which one was chosen with which probability, and their features (m, d).

        A propensity that is unknown is None; such a decision cannot be used to evaluate policies.
        """
        arms = [_arm(arm) for arm in eligible] if _is_list(eligible) else []
        if not arms:
            raise ValueError(f"eligible must be a list of at least one arm, not {shown(eligible)}")
        if len(set(arms)) < len(arms):
            twice = next(arm for arm in arms if arms.count(arm) > 1)
            raise ValueError(f"eligible lists arm {shown(twice)} twice: a log has one row of features per arm")
        chosen = _arm(action)
        if chosen not in arms:
            raise ValueError(f"action {shown(action)} is not among the eligible arms {shown(arms)}")
        event: dict[str, Any] = {"decision": _label("a decision", decision), "action": chosen, "eligible": arms}
        if user is not None:
            event["user"] = _label("a user", user)
        if propensity is not None and propensity == propensity:
            if isinstance(propensity, str | bool) or not 0.0 < propensity <= 1.0 + 1e-9:
                raise ValueError(f"propensity must be above 0 and at most 1, or None, not {shown(propensity)}")
            event["propensity"] = float(propensity)
        if contexts is not None:
            numbers = checks.finite_array("contexts", contexts, (len(arms), None))
            event["contexts"] = b64encode(numbers.astype("<f8").tobytes()).decode()  # ten times as fast as digits
        self._append(event)

    def write_reward(self, decision: str | int, reward: float) -> None:
        """Write the reward of a decision."""
        self._append({"decision": _label("a decision", decision), "reward": checks.reward(reward)})

    def _append(self, event: dict[str, Any]) -> None:
        line = json.dumps(event).encode() + b"\n"
        if len(line) > (most := _LONGEST[self.path.suffix]):
            more = f"; a log that ends in .parquet takes {_LONGEST['.parquet']}" * (self.path.suffix == ".csv")
            raise NotForALog(f"the offer takes {len(line)} bytes in the log, but at most {most} are allowed{more}")
        with self._lock:
            if self.closed:
                raise ValueError(f"the log {self.path} is closed")
            self._check_open_elsewhere()
            line = _END_OF_A_CUT_LINE * self._cut + line
            self._cut = True  # unless all of it is written
            if self._file.write(line) < len(line):
                raise OSError(f"no room for {self._journal}: free some space and try again")
            self._cut = False
            self._check_open_elsewhere()  # it may have been closed meanwhile: then the line may be in the table or not

    def _check_open_elsewhere(self) -> None:
        if self.path.exists():
            raise ValueError(
                f"{self.path} is there already: another process closed the log, or put a file in its place"
            )
        if not self._is_there():
            raise ValueError(f"{self._journal} is gone: it was removed")

    def close(self) -> None:
        """Write the table, and remove the journal. In a process that was forked, only stop writing."""
        with self._lock:
            if self.closed:
                return
            if os.getpid() == self._process:
                if self.path.exists():
                    raise ValueError(
                        f"{self.path} was put where the table of this log belongs: move it, and close again"
                    )
                size = self._journal.stat().st_size
                write_table(self._journal, self.path)  # a forked process may write until the table is there
                if self._journal.stat().st_size > size:
                    write_table(self._journal, self.path)
                self._journal.unlink()
            self._file.close()

    def pause(self) -> None:
        """Stop writing and keep the journal, for a restart: a later `LogWriter` of the same path continues it."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _check_journal(journal: Path) -> None:
    """Refuse to continue what is not a journal: it would be written to, and removed when the log is closed."""
    if not os.path.lexists(journal):
        return
    if journal.is_symlink() or not journal.is_file():  # opening a pipe would wait for its reader
        raise ValueError(f"{journal} is not a regular file: give the log another name")
    with open(journal, "rb") as file:
        while start := file.readline(len(_FIRST)):
            if start == _FIRST:
                return
            if not _FIRST.startswith(start.rstrip(_END_OF_A_CUT_LINE)):  # a killed writer may have written a part of it
                raise ValueError(f"{journal} is not the journal of a log: give the log another name")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _label(what: str, value: Any) -> str:
    """Return a name as a text that tables give back as it is."""
    text = str(value) if isinstance(value, str | int | np.integer) and not isinstance(value, bool) else ""
    if _CONTROL.search(text) or text != text.strip() or text in _MISSING:
        wanted = "a whole number or a text, without control characters and without blanks at its ends, and none of "
        raise NotForALog(f"the name of {what} in a log must be {wanted}{', '.join(_MISSING[1:])}, not {shown(value)}")
    return text


def _arm(value: Any) -> str:
    """Return the name of an arm. A number could be the same as another one in a table, as 1.0 and +1 are."""
    text = _label("an arm", value)
    if _NUMBER.fullmatch(text) and not _INDEX.fullmatch(text):
        raise NotForALog(
            "the name of an arm in a log must be a whole number from 0 with up to 18 digits, without sign, or a text "
            f"that is no number, not {shown(value)}"
        )
    return text


# ------------------------------------------------------------------------------------------- from journal to table


def write_table(journal: Path, path: Path) -> None:
    """Write the decisions of a journal with their rewards as CSV, or as Parquet if the path ends so."""
    if path.suffix != ".parquet":
        with replacing(path) as file:
            _write_csv(journal, file)
        return
    duckdb = _duckdb()
    with tempfile.TemporaryDirectory() as folder, replacing(path) as file, duckdb.connect() as connection:
        rows = Path(folder, "rows.csv")
        with open(rows, "wb") as text:
            _write_csv(journal, text)
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in COLUMNS)
        source = (
            f"read_csv({_literal(exact_pattern(rows))}, auto_detect = false, header = true, columns = {{{columns}}}, "
            f"delim = ',', quote = '\"', escape = '\"', nullstr = '', max_line_size = {4 * _LONGEST['.parquet']})"
        )
        chosen = ", ".join(f'{_TYPED.get(name, name)} AS "{name}"' for name in COLUMNS)
        target = _literal(absolute_name(file.name))
        try:
            with ctrl_c():
                connection.execute(
                    f"COPY (SELECT {chosen} FROM {source}) TO {target} (FORMAT parquet, USE_TMP_FILE false)"
                )
        except duckdb.Error as error:
            what = str(error).partition("\n")[0]
            raise OSError(f"{path} cannot be written ({what}): see that there is room, and try again") from None


def _write_csv(journal: Path, file: BinaryIO) -> None:
    rewards: dict[str, float] = {}
    n_rewards = n_decisions = 0
    for _, event in _events(journal, warn=True):
        if "action" not in event:
            n_rewards += 1
            rewards.setdefault(event["decision"], event["reward"])
    table = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
    table.writerow(COLUMNS)
    written = set()
    for number, event in _events(journal):
        name = event["decision"]
        if "action" not in event:
            continue
        n_decisions += 1
        if name not in written:
            written.add(name)
            row = {**event, "reward": rewards.get(name), "eligible": json.dumps(event["eligible"], ensure_ascii=False)}
            if "contexts" in event:
                try:
                    numbers = np.frombuffer(b64decode(event["contexts"]), "<f8").reshape(len(event["eligible"]), -1)
                except (TypeError, ValueError):
                    raise ValueError(f"{journal.name}, line {number}: the contexts are damaged") from None
                row["contexts"] = json.dumps(numbers.tolist())
            table.writerow([row.get(key) for key in COLUMNS])
    left_out = {
        "decision{} with the id of an earlier one": n_decisions - len(written),
        "reward{} after the first of a decision": n_rewards - len(rewards),
        "reward{} of unknown decisions": len(rewards.keys() - written),
    }
    told = [f"{count} {what.format('s' * (count > 1))}" for what, count in left_out.items() if count]
    if told:
        warnings.warn(f"{journal.name}: left out {', '.join(told)}", stacklevel=2)


def _events(journal: Path, *, warn: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the events of a journal with their lines, without those that were cut when their writer was killed."""
    cut = 0
    with open(journal, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                event = json.loads(line)
            except RecursionError:
                event = None
            except ValueError:
                line = b""
            if not line.endswith(b"\n"):
                cut += 1
                continue
            if not _is_event(event):
                raise ValueError(
                    f"{journal.name} is not the journal of a log, or is damaged: line {number} is {shown(line[:100])}"
                )
            yield number, event
    if cut and warn:
        lines = "1 line was" if cut == 1 else f"{cut} lines were"
        warnings.warn(f"{journal.name}: {lines} cut when the writer was stopped, and left out", stacklevel=2)


def _is_event(event: Any) -> bool:
    """Return whether this is a decision or a reward; contexts are checked where they are decoded."""
    if not isinstance(event, dict):
        return False
    if "action" not in event:
        return _are_names(event.get("decision")) and _is_number(event.get("reward"))
    eligible = event.get("eligible")
    if not (isinstance(eligible, list) and eligible and _is_number(event.get("propensity", 1.0))):
        return False
    return _are_names(event.get("decision"), event["action"], event.get("user", "-"), *eligible)


def _are_names(*values: Any) -> bool:
    return all(isinstance(value, str) and not _CONTROL.search(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise ImportError(missing_extra("duckdb")) from None
    return duckdb


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
