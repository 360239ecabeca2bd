"""The command `albatross`. Heavy imports stay inside the commands, so that --help answers at once."""

from __future__ import annotations

import io
import signal
import sys

from albatross.errors import missing_extra


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; a command then stops as after Ctrl-C."""

    came = False  # known even if a library turned the exception into one of its own, as DuckDB does


def main() -> None:
    """Run the command line, or say what must be installed for it.

    SIGTERM stops a command in an orderly way. A command that was started with SIGINT or SIGTERM ignored keeps ignoring
    it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # no result is lost because a terminal lacks ± or a dash
    try:
        from albatross.cli.commands import albatross
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("albatross"):
            raise
        sys.exit(f"albatross: {missing_extra(error.name)}")
    except KeyboardInterrupt:  # while they are loaded, before a command could say so
        sys.exit(128 + signal.SIGINT)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        albatross()
    except OSError as error:  # of --help: there is no room for it
        sys.exit(f"Error: {error}")


def _terminate(*_: object) -> None:
    Terminated.came = True
    raise Terminated
