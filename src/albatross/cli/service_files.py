"""Commands for the log of a service: `keys`, `verify`, `backup`, `erase` and `export`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from albatross.cli.plainly import Real, plainly, printable

_LONGEST = 36_500  # days of a key
_folder = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))


@contextmanager
def _store(folder: Path, *, alone: bool = False) -> Iterator[Any]:
    """Open the log of a service; `alone` if nobody may serve it meanwhile."""
    from albatross.service.serving import LOG, locked, usable
    from albatross.service.sqlite import SQLiteStore

    with usable(folder), locked(folder) if alone else nullcontext():
        store = SQLiteStore(folder / LOG)
        try:
            yield store
        finally:
            store.close()


def _check_new(target: Path) -> None:
    """Refuse to write over a file, or into a folder that is not there."""
    if target.exists():
        raise ValueError(f"{target} exists already: name a new file")
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent}")


@click.group()
def keys() -> None:
    """Add, list and revoke the keys of a service, also while it runs."""


@keys.command("add")
@_folder
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, default=("decide", "reward"), show_default=True, help="Repeatable.")
@click.option("--model", "models", multiple=True, help="A model that the key is for; repeatable.  [default: all]")
@click.option("--days", type=Real(min=0, min_open=True, max=_LONGEST), default=None, help="Expires after so many days.")
@click.option("--rate", type=Real(min=0.001, max=1e9), default=1_000.0, show_default=True, help="Requests a second.")
@plainly
def add_key(
    folder: Path, name: str, scopes: tuple[str, ...], models: tuple[str, ...], days: float | None, rate: float
) -> None:
    """Add a key and print it: this once, since only its hash is stored."""
    from albatross.service.keys import new_key
    from albatross.service.sqlite import shown_key

    expires = None if days is None else int(time.time() + 86_400 * days)
    text, row = new_key(name, list(scopes), list(models) or None, expires, rate)
    with _store(folder) as store, shown_key(store, row):
        click.echo(text)


@keys.command("list")
@_folder
@plainly
def list_keys(folder: Path) -> None:
    """List keys: name, scopes, models, rate, and whether they still work."""
    with _store(folder) as store:
        for row in store.all_keys():
            models = "all models" if row.models is None else "models " + ", ".join(row.models)
            state = "works"
            if row.expires is not None:
                state = time.strftime("until %Y-%m-%d %H:%M UTC", time.gmtime(row.expires))
                state = "expired" if row.expires <= time.time() else state
            state = "revoked" if row.revoked else state
            click.echo(printable(f"{row.name}: {', '.join(row.scopes)}; {models}; {row.rate:g} a second; {state}"))


@keys.command("revoke")
@_folder
@click.argument("name")
@plainly
def revoke_key(folder: Path, name: str) -> None:
    """Revoke a key. A running service refuses it within a second."""
    with _store(folder) as store:
        store.revoke_key(name)
    click.echo(f"{printable(name)} is revoked")


@click.command()
@_folder
@plainly
def verify(folder: Path) -> None:
    """Fold the whole log of a service again, and compare it with every snapshot.

    Exits with 1 if anything differs. The service may run meanwhile.
    """
    from rich.console import Console
    from rich.progress import Progress

    from albatross.service.verifying import verify as fold_and_compare

    with _store(folder) as store, Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("folding", total=store.count_records())
        found = fold_and_compare(store, lambda n: bar.advance(task, n))
    click.echo(f"{found.events:,} records of {found.users:,} users folded, {found.snapshots:,} snapshots compared")
    for sentence in found.wrong:
        click.echo(printable(f"WRONG: {sentence}"), err=True)
    if found.wrong:
        sys.exit(1)
    click.echo("everything agrees")


@click.command()
@_folder
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@plainly
def backup(folder: Path, target: Path) -> None:
    """Copy the log of a service to TARGET, whole and consistent, while it runs.

    The copy holds the service's secret and all that users did: keep it as safe as the folder. To restore it, put it
    into an empty folder as log.db.
    """
    _check_new(target)
    with _store(folder) as store:
        store.backup(target)
    click.echo(f"{target}: {target.stat().st_size:,} bytes")


@click.command()
@_folder
@click.argument("user")
@click.option("--model", default=None, help="Only in this model.  [default: in all]")
@plainly
def erase(folder: Path, user: str, model: str | None) -> None:
    """Delete everything that is kept of a USER, in a service that does not run.

    While it runs, send DELETE /v1/users/USER.
    """
    import asyncio

    from albatross.service.engine import Engine
    from albatross.service.problems import Problem

    async def run(store: Any) -> int:
        engine = Engine(store)
        await engine.start()
        try:
            models = list(engine.models.values()) if model is None else [engine.kept(model)]
            return await engine.erase(models, user)
        finally:
            await engine.stop()

    with _store(folder, alone=True) as store:
        try:
            erased = asyncio.run(run(store))
        except Problem as problem:
            raise ValueError(problem.detail) from None
    click.echo(f"{erased:,} records erased")


@click.command()
@_folder
@click.argument("model")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@plainly
def export(folder: Path, model: str, target: Path) -> None:
    """Write the decisions of a MODEL to TARGET, a Parquet or CSV file that `albatross evaluate` reads.

    Each row has its eligible arms with their features, the propensity and the reward. Users appear as digests.
    """
    from rich.console import Console
    from rich.progress import Progress

    from albatross.service.exporting import export as write

    _check_new(target)
    with _store(folder) as store, Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exporting", total=store.count_records())
        damaged = set[bytes]()
        written = write(store, model, target, lambda n: bar.advance(task, n), damaged)
    click.echo(f"{target}: {written:,} decisions")
    if damaged:
        what = f"users with damaged records: {len(damaged):,}, left out from there on"
        click.echo(f"note: {what}. `albatross verify` names the records", err=True)
