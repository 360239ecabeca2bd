"""The command `albatross`. Heavy imports stay inside the commands, so that --help answers at once."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from albatross.cli.commands import albatross
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("albatross"):
            raise
        sys.exit(f"albatross: the command line needs {error.name}: pip install 'albatross[lab]'")
    albatross()
