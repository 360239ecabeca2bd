"""What all commands share: how they report problems (errors in one line, warnings as notes), and `--seed`."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from albatross.cli import Terminated
from albatross.errors import missing_extra

_WIDTH_OF_FILES = 120  # characters per line, where the output is no terminal
OWN = "Or a class of your own file, as in my_file.py:MyPolicy(alpha=0.3), which runs the file."


class Real(click.FloatRange):
    """A range of numbers without NaN, which passes every comparison with a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, if it is one."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail("nan is not a number", param, ctx)
        return number


seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed, determines every number."
)


def plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors that a user can fix into one line, and a missing library into the extra to install."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("albatross"):
                raise
            raise click.ClickException(missing_extra(error.name)) from None
        except BrokenPipeError:  # whoever reads the output has seen enough: click ends without a word
            raise
        except (ValueError, OSError) as error:
            raise click.ClickException(printable(str(error))) from None
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {str(error) or 'take less data or fewer features'}") from None
        except KeyboardInterrupt:
            click.echo("\n" * (not Terminated.came) + "stopped; what was finished is kept", err=True)
            sys.exit(128 + (signal.SIGTERM if Terminated.came else signal.SIGINT))
        except Exception as error:
            from albatross import own_files

            if not own_files.is_theirs(error):
                raise
            raise click.ClickException(printable(own_files.said(error))) from None

    return wrapped


@contextmanager
def with_notes() -> Iterator[None]:
    """Print warnings as notes, each once, below all other output, even after an error."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for note in dict.fromkeys(str(note.message) for note in notes):
                click.echo(f"note: {printable(note)}", err=True)


def new_console(**options: Any) -> Any:
    """Return a console that prints text as it is: [old] in a path is not markup, and :smile: is not an emoji."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, **options)
    # A terminal that does not know its size may say 0.
    if (not console.is_terminal and "COLUMNS" not in os.environ) or os.environ.get("COLUMNS") == "0":
        console.width = _WIDTH_OF_FILES
    return console


def printable(text: str) -> str:
    r"""Spell out control characters, with which a file could overwrite the terminal.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape").decode()
        for letter in text
    )
