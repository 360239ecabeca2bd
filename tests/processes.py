"""Processes that the tests start: none goes on for ever, and Ctrl-C reaches them even where the tests ignore it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

LIMIT = 600.0  # seconds: compiling takes minutes on a busy machine


def run(command: list[Any], **options: Any) -> subprocess.CompletedProcess:
    """Run a command to its end, and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options)


def albatross(
    *args: Any, check: bool = False, cwd: Any = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Run the command `albatross` to its end in a process forked from this one, and keep what it says.

    A new Python would spend 1.5 s of CPU on imports. What the commands import late is imported here once.
    """
    import albatross.evaluation
    import albatross.race.run
    import albatross.report.page  # noqa: F401

    command = ["albatross", *map(str, args)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        forking: Any = multiprocessing.get_context("fork")
        process = forking.Process(target=_command, args=(command, output.fileno(), errors.fileno(), cwd, env))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)  # other threads of the tests only wait
            process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, LIMIT)
        output.seek(0)
        errors.seek(0)
        done = subprocess.CompletedProcess(command, process.exitcode, output.read(), errors.read())
    if check:
        done.check_returncode()
    return done


def _command(command: list[str], output: int, errors: int, cwd: Any, env: Mapping[str, str] | None) -> None:
    """Run the command in this process, as a new Python would."""
    os.dup2(output, 1)
    os.dup2(errors, 2)
    sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8") for stream in (1, 2))  # noqa: SIM115
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    os.chdir(cwd or ".")
    sys.argv = command

    from albatross.cli import main

    main()


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
