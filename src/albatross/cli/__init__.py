"""The command `albatross`. Heavy imports stay inside the commands, so that --help answers at once."""

from __future__ import annotations

import sys

from albatross.errors import missing_extra


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from albatross.cli.commands import albatross
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("albatross"):
            raise
        sys.exit(f"albatross: {missing_extra(error.name)}")
    albatross()
