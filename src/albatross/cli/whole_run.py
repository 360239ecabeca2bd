"""Run many parts, several at once in separate processes, with one progress bar for all.

Trials run in threads, but compiling holds a lock; processes let the parts compile in parallel.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from albatross.parallel import default_workers, without_bars

_MOST_AT_ONCE = 4  # processes; each takes some hundred megabytes
_GRACE = 2.0  # seconds to remove what is half done
_ALMOST = 0.9  # of a part that takes longer than expected
_EARLY = 0.05  # of a run: its pace is not known yet


def run_parts(
    parts: Mapping[str, Callable[[], Any]], expected: Mapping[str, float], console: Console
) -> Generator[tuple[str, Any], None, None]:
    """Yield the result of each part when it ends; the longest parts start first."""
    if not parts:
        return
    order = sorted(parts, key=lambda name: -expected[name])
    at_once = min(len(parts), default_workers(), _MOST_AT_ONCE)
    with _workers(at_once) as run_all, Bar({name: expected[name] for name in order}, console) as bar:
        begun = iter(order)
        ended = run_all(_run, [(name, parts[name]) for name in order])
        for _ in range(at_once):
            bar.begin(next(begun))
        for name, found in ended:
            bar.finish(name)
            with bar.away():
                yield name, found
            for following in begun:
                bar.begin(following)
                break


@contextmanager
def _workers(at_once: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` over processes that yields results as they finish; with one worker, the built-in `map`."""
    if at_once < 2:
        yield map
        return
    with ProcessPoolExecutor(at_once, get_context("spawn"), _obey_the_parent) as pool:

        def first_done(run: Callable[[Any], Any], work: list[Any]) -> Iterator[Any]:
            with _deaf_to_ctrl_c():  # as the processes that begin here will be: it is for the parent
                futures = [pool.submit(run, part) for part in work]
            return (future.result() for future in as_completed(futures))

        try:
            yield first_done
        except BaseException as error:
            for worker in active_children():
                worker.terminate()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise ChildProcessError(
                    "a process of this run was killed, perhaps because memory ran out; run the same command again to "
                    "continue"
                ) from None
            raise


def _run(part: tuple[str, Callable[[], Any]]) -> tuple[str, Any]:
    name, run = part
    try:
        with without_bars():
            return name, run()
    except SystemExit:  # the parent's word; what was half done has been removed, and no thread is waited for
        os._exit(1)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _obey_the_parent() -> None:
    """Let the parent end this process without leaving incomplete files, and end it if the parent dies."""
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_follow_the_parent, daemon=True).start()


def _follow_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _end(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent may say it twice
    # The exit may surface as another error, such as the ImportError of a module that is being loaded, and would be
    # printed; the parent says that the run was stopped.
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    # In a finalizer it is ignored, and the parent would wait for ever.
    in_any_case = threading.Timer(_GRACE, os._exit, [1])
    in_any_case.daemon = True
    in_any_case.start()
    # Threads that compile or play outlast the interpreter, which then complains: end before it is taken down.
    atexit.register(os._exit, 1)
    sys.exit(1)


class Pace:
    """The progress of a run, from the expected and actual seconds of its parts."""

    def __init__(self, expected: Mapping[str, float]) -> None:
        self._expected = dict(expected)
        self._begun: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def begin(self, name: str, now: float) -> None:
        """Note that a part has started."""
        self._begun[name] = now

    def finish(self, name: str, now: float) -> None:
        """Note that a part has finished."""
        self._took[name] = now - self._begun[name]

    @property
    def running(self) -> list[str]:
        """The parts that have started but not finished."""
        return [name for name in self._begun if name not in self._took]

    @property
    def done(self) -> int:
        """The number of finished parts."""
        return len(self._took)

    def share(self, now: float) -> float:
        """The finished share of the run."""
        done, slowness = sum(self._expected[name] for name in self._took), self._slowness(now)
        for name in self.running:
            done += min((now - self._begun[name]) / (slowness * self._expected[name]), _ALMOST) * self._expected[name]
        return done / sum(self._expected.values())

    def left(self, now: float) -> float:
        """The remaining seconds: as expected at first, then at the pace of the run so far."""
        share, expected = self.share(now), sum(self._expected.values())
        so_far = now - min(self._begun.values(), default=now)
        return (1.0 - share) * (so_far / share if share > _EARLY else expected)

    def _slowness(self, now: float) -> float:
        """Actual over expected time of the parts that are finished or overdue."""
        running = {name: now - self._begun[name] for name in self.running}
        known = {**self._took, **{name: each for name, each in running.items() if each > self._expected[name]}}
        return sum(known.values()) / sum(self._expected[name] for name in known) if known else 1.0


class Bar:
    """A progress bar with the remaining time; without a terminal, it prints which part starts."""

    def __init__(self, expected: Mapping[str, float], console: Console) -> None:
        self._pace, self._of, self._console = Pace(expected), len(expected), console
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
        self._progress = Progress(*columns, TextColumn("{task.fields[left]}"), console=console, transient=True)
        self._task = self._progress.add_task("", total=1.0, left="")
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._draw, daemon=True)

    def begin(self, name: str) -> None:
        """Note that a part has started."""
        self._pace.begin(name, time.monotonic())
        if not self._console.is_terminal:
            self._console.print(f"{name} begins; {self._pace.done} of {self._of} are done", highlight=False)

    def finish(self, name: str) -> None:
        """Note that a part has finished."""
        self._pace.finish(name, time.monotonic())

    def __enter__(self) -> Bar:
        if self._console.is_terminal:
            self._progress.start()
            self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._console.is_terminal:
            self._progress.stop()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Hide the bar while other output is printed."""
        if not self._console.is_terminal:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def _draw(self) -> None:
        while True:
            now = time.monotonic()
            minutes = self._pace.left(now) / 60.0
            left = f"about {minutes:.0f} min left" if minutes >= 1.0 else "less than a minute left"
            what = f"{', '.join(self._pace.running)} ({self._pace.done} of {self._of} done)"
            self._progress.update(self._task, description=what, completed=self._pace.share(now), left=left)
            if self._over.wait(0.5):
                return
