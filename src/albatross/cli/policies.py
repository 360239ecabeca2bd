"""`albatross policies`."""

from __future__ import annotations

import click

from albatross.cli.plainly import new_console, plainly


@click.command()
@plainly
def policies() -> None:
    """List all policies: citation, setting, and what must be known beforehand."""
    from albatross.policies import CATALOGUE
    from albatross.report.tables import plain_table

    rows = [
        (name, entry.policy.__name__, f"{entry.setting}; must know: {entry.must_know}\n{entry.citation}")
        for name, entry in CATALOGUE.items()
    ]
    columns = ("name", "class", "setting; what it must know beforehand; citation")
    new_console().print(plain_table("", columns, rows, left=3))
