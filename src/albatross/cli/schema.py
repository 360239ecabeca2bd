"""`albatross schema`."""

from __future__ import annotations

from pathlib import Path

import click

from albatross.cli.plainly import plainly


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--items",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A table of the actions' own features, one row per action.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="TOML file to write.  [default: print it]")
@plainly
def schema(log: Path, items: Path | None, out: Path | None) -> None:
    """Propose features for a log, as a TOML file to edit.

    LOG is a CSV or Parquet file with a column `action` and one column per feature.
    """
    for what, given in (("log", log), ("table of items", items)):
        if out is not None and given is not None and out.exists() and out.samefile(given):
            raise ValueError(f"--out is the {what} itself, {out}: choose another file")
    from albatross.features import propose
    from albatross.store.files import replacing

    text = propose(log, items).to_toml()
    if out is None:
        click.echo(text, nl=False)
        return
    with replacing(out) as file:
        file.write(text.encode())
    click.echo(f"{out}: read it with albatross.features.Features.read")
