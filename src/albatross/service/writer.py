"""Group commit: one thread writes what has gathered while the last group was being written.

The event loop appends records to the open group, and callbacks say when they are on disk; answers leave only then.
Nothing is appended to a group that is being written: the loop appends, and the writer takes the group, under one lock.
Without it a record could join a group that is being written, and be acknowledged unwritten.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from albatross.service.events import Decision, Happening, Outcome

Callback = Callable[[BaseException | None], None]  # called when a group is on disk, or with what prevented it


@dataclass
class Group:
    """Records that are committed together."""

    decisions: list[Decision] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    opened: dict[int, tuple[Any, ...]] = field(default_factory=dict)  # rows of open decisions, new or changed
    closed: list[int] = field(default_factory=list)
    snapshots: list[tuple[Any, ...]] = field(default_factory=list)
    requests: list[tuple[Any, ...]] = field(default_factory=list)
    tallies: dict[tuple[Any, ...], list[float]] = field(default_factory=dict)
    bases: list[tuple[Any, ...]] = field(default_factory=list)  # snapshots that the fold of their users begins with
    erased: dict[bytes, int] = field(default_factory=dict)  # users, and the numbers up to which their records go
    n_erased: dict[bytes, int] = field(default_factory=dict)  # how many records went, once the group is on disk
    epoch: int = 0  # of the memory that these records rest on
    failed: BaseException | None = None  # the error of a command that had begun to append: nothing may be written
    callbacks: list[Callback] = field(default_factory=list)

    def tally(self, model: int, hour: int, what: str, label: str, value: float = 0.0) -> None:
        """Count something of an hour, and add up its values."""
        cell = self.tallies.setdefault((model, hour, what, label), [0, 0.0, 0.0])
        cell[0] += 1
        cell[1] += value
        cell[2] += value * value

    @property
    def last(self) -> int:
        """The last sequence number."""
        return max(
            (records[-1].seq for records in (self.decisions, self.outcomes, self.happenings) if records), default=0
        )

    @property
    def events(self) -> int:
        """Number of log records."""
        return len(self.decisions) + len(self.outcomes) + len(self.happenings)

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits for it and there is nothing to write."""
        return not (self.callbacks or self.events or self.snapshots or self.requests or self.opened or self.closed)


class CanWrite(Protocol):
    """What a store must do for the writer."""

    def write(self, group: Group) -> None:
        """Commit a group, whole or not at all."""


class Writer:
    """Writes groups in a thread of its own, in order, and reports each: group, error or None, seconds.

    After an error nothing is written until `void` is called: later groups rest on records that were lost.
    """

    def __init__(self, store: CanWrite, report: Callable[[Group, BaseException | None, float], None]) -> None:
        self._store, self._report = store, report
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._open = Group()
        self._ending = self._is_writing = False
        self._lost: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="albatross-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Append to the open group. It is written soon after this ends; its callbacks are then called."""
        with self._work:
            yield self._open
            self._work.notify_all()

    def void(self) -> list[Callback]:
        """Take the open group away unwritten, and begin anew with the next epoch.

        Waits for a group that is being written: whoever reads the log next sees it whole or not at all.
        """
        with self._work:
            while self._is_writing:
                self._work.wait()
            group, self._open, self._lost = self._open, Group(epoch=self._open.epoch + 1), None
            return group.callbacks

    @property
    def epoch(self) -> int:
        """How often what was not written had to be given up."""
        return self._open.epoch

    def stop(self, timeout: float) -> None:
        """Write what is there, and end the thread."""
        with self._work:
            self._ending = True
            self._work.notify_all()
        self._thread.join(timeout)

    def _take(self) -> Group | None:
        """Wait for work and take the open group; None at the end."""
        with self._work:
            while self._open.is_empty:
                if self._ending:
                    return None
                self._work.wait()
            group, self._open = self._open, Group(epoch=self._open.epoch)
            self._is_writing = True
            return group

    def _run(self) -> None:
        while (group := self._take()) is not None:
            start, error = time.perf_counter(), self._lost or group.failed
            if error is None:
                try:
                    self._store.write(group)
                except Exception as failed:  # whatever it is, nothing of the group may be acknowledged
                    error = failed
            with self._work:
                self._is_writing = False
                if error is not None and group.epoch == self._open.epoch:
                    self._lost = error
                self._work.notify_all()
            self._report(group, error, time.perf_counter() - start)
