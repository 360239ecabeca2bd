"""The log as the event loop sees it: numbers, time, the open group, and what happens when a commit fails.

Memory is ahead of the log only by what is not yet answered. If a commit fails, memory is thrown away, and read again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from albatross.service.identity import Identity
from albatross.service.metrics import Metrics
from albatross.service.model import Ticket
from albatross.service.problems import Problem, unavailable
from albatross.service.sqlite import SQLiteStore
from albatross.service.writer import Group, Writer

log = logging.getLogger("albatross.service")


class Ledger(ABC):
    """Appends to the log in the loop's thread, and tells when records are on disk."""

    def __init__(self, store: SQLiteStore, clock: Callable[[], float]) -> None:
        self.store, self._clock = store, clock
        self.identity, self.metrics = Identity(store.secret), Metrics()
        self.writer = Writer(store, self._report)
        self.committed_at = -math.inf  # when a commit last succeeded, by the monotonic clock
        self.seq = self.committed = 0  # the last sequence number that was given out, and the last one on disk
        self._last_at = 0  # the latest time in the log
        self._is_stale = True  # whether the log must be read: memory is behind it, or ahead
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pools: list[ThreadPoolExecutor] = []

    @abstractmethod
    def read(self) -> None:
        """Take from the log what memory needs."""

    async def start(self) -> None:
        """Start the writer."""
        self._loop = asyncio.get_running_loop()
        self.writer.start()
        self.store.start_checkpoints()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else, until the service stops."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Write what is there, and close the log."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.writer.stop, 30.0)
        for pool in self._pools:
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
        self.store.close()

    def pool(self, threads: int, name: str) -> ThreadPoolExecutor:
        """Return threads that may read the log. It is closed after they have ended: SQLite breaks down otherwise."""
        pool = ThreadPoolExecutor(threads, name)
        self._pools.append(pool)
        return pool

    # ---------------------------------------------------------------------------------------------- numbers and time

    def ticket(self) -> Ticket:
        """Return the time and the numbers for one command."""
        self._last_at = max(self._last_at, int(1_000 * self._clock()))  # a clock that is set back changes nothing
        return Ticket(self._last_at, self.next_seq)

    def next_seq(self) -> int:
        """Return the next sequence number."""
        self.seq += 1
        return self.seq

    @property
    def now(self) -> int:
        """Milliseconds since 1970, never before the last record."""
        return max(self._last_at, int(1_000 * self._clock()))

    # ------------------------------------------------------------------------------------------------------- commits

    @contextmanager
    def acting(self) -> Iterator[Group]:
        """Append to the log. What is refused takes no numbers; after an unexpected error memory is thrown away."""
        with self.writer.group() as group:
            before = self.seq
            try:
                yield group
                return
            except Exception as error:
                self.seq = max(before, group.last)
                if isinstance(error, Problem):
                    raise
                failed = group.failed = error  # the writer may take the group at once
        log.error("unexpected error", exc_info=failed)
        self._start_anew(failed)
        raise Problem(500, "an unexpected error: see the service's log") from failed

    def promise(self, group: Group) -> asyncio.Future[None]:
        """Return what is done when a group is on disk. Call it inside `writer.group()`, and await it outside."""
        future: asyncio.Future[None] = self._loop.create_future()

        def report(error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(unavailable(f"the log cannot be written: {error}"))

        group.callbacks.append(report)
        return future

    async def settled(self) -> None:
        """Wait until everything that memory holds is on disk, before an answer shows it."""
        if self.committed < self.seq:
            with self.writer.group() as group:
                promise = self.promise(group)
            await promise

    def _report(self, group: Group, error: BaseException | None, seconds: float) -> None:
        """Take the writer's report, in its thread."""
        self._loop.call_soon_threadsafe(self._done, group, error, seconds)

    def _done(self, group: Group, error: BaseException | None, seconds: float) -> None:
        if error is None:
            self.committed_at, self.committed = time.monotonic(), max(self.committed, group.last)
            self.metrics.commit.observe(seconds)
            self.metrics.group_events.observe(group.events)
        else:
            self.committed_at = -math.inf
            log.error("commit failed", extra={"detail": str(error)})
            if group.epoch == self.writer.epoch:
                self._start_anew(error)
        for callback in group.callbacks:
            callback(error)

    def _start_anew(self, error: BaseException) -> None:
        """Throw memory away: it is ahead of the log by records that were lost."""
        lost = self.writer.void()
        self._is_stale = True
        for callback in lost:
            callback(error)

    def refresh(self) -> None:
        """Read the log if memory does not agree with it; raise the problem if it cannot be read."""
        if self._is_stale:
            try:
                self.seq, self._last_at = self.store.last()
                self.committed = self.seq
                self.read()
                self._is_stale = False
            except Exception as error:
                log.error("the log cannot be read", extra={"detail": str(error)})
                raise unavailable(f"the log cannot be read: {error}") from None

    async def probe(self) -> None:
        """Make sure that the log can be written; raise the problem if not."""
        self.refresh()
        if time.monotonic() - self.committed_at > 1.0:
            with self.writer.group() as group:
                promise = self.promise(group)
            await promise
