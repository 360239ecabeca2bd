"""Processes that the tests start: none goes on for ever, and Ctrl-C reaches them even where the tests ignore it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

LIMIT = 600.0  # seconds: compiling takes minutes on a busy machine


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess:
    """Run a command to its end, and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)


@contextmanager
def started(command: list[Any], *, ignores_ctrl_c: bool = False, **options: Any) -> Iterator[subprocess.Popen]:
    """A process in a session of its own, which is killed at the end or after LIMIT, with all that it started.

    SIGINT is at its default there, or ignored, as in a script's background job. It would be ignored in any case where
    the tests themselves are such a job, because that is inherited; what has a handler is not.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignores_ctrl_c else signal.default_int_handler)
    try:
        process = subprocess.Popen(command, text=True, start_new_session=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    limit = threading.Timer(LIMIT, kill)
    limit.start()
    with process:
        try:
            yield process
        finally:
            limit.cancel()
            kill()


def all_gone(process: subprocess.Popen, seconds: float = 30.0) -> bool:
    """Whether nothing is left of its session after so long."""
    for _ in range(round(10 * seconds)):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
