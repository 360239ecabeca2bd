"""Work in threads, and progress bars."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

_AHEAD = 2  # trials handed out, for each that is played


def default_workers() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(run_trial: Any, trials: int, workers: int, stop: threading.Event) -> list[Any]:
    """Run all trials; an error or Ctrl-C stops the others at their next chunk and is raised at once."""
    results: list[Any] = [None] * trials
    left, running = iter(range(trials)), dict[Future[Any], int]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                for trial in islice(left, _AHEAD * workers - len(running)):
                    running[pool.submit(run_trial, trial)] = trial
                if not running:
                    return results
                finished, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    results[running.pop(future)] = future.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


_BARS: ContextVar[bool] = ContextVar("bars", default=True)


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide nested progress bars unless they are asked for."""
    token = _BARS.set(False)
    try:
        yield
    finally:
        _BARS.reset(token)


@contextmanager
def progress_bar(total: int, wanted: bool | None) -> Iterator[Any]:
    """Yield a function of the number of rounds done; draw a bar if one is wanted and rich is installed."""
    if wanted is None:
        wanted = _BARS.get() and sys.stderr is not None and sys.stderr.isatty()
    if wanted:
        try:
            from rich.console import Console
            from rich.progress import Progress, TimeRemainingColumn
        except ImportError:
            wanted = False
    if not wanted:
        yield lambda n: None
        return
    columns = (*Progress.get_default_columns()[:-1], TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=total)  # or loading what was compiled before
        yield lambda n: bar.update(task, advance=n, description="playing")
