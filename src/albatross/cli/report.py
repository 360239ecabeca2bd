"""`albatross report`."""

from __future__ import annotations

from pathlib import Path

import click

from albatross.cli.plainly import new_console, plainly


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path("results"))
@plainly
def report(folder: Path) -> None:
    """Draw all figures of a results FOLDER again, and write its page, report.html.

    Nothing is run: everything is made from the tables that `albatross reproduce` and `albatross race` stored there.
    """
    from albatross.report.page import write_report

    new_console().print(f"Everything on one page: {write_report(folder)}")
