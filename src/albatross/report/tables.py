"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from albatross.report.claims.engine import CHANGED, FAILS, HOLDS, MISSING, OURS, PAPERS, Result
from albatross.report.figures import panels
from albatross.report.wording import counted, short, wanted


def policy_rows(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and one row per policy: its final number, and numbers by epoch and by kind of user."""
    panel = summary["panel"]
    entries = [each for entry in summary["policies"].values() for each in entry.get("by_norm", {"": entry}).values()]
    epochs = [entry.get("norm_bounds", {}).get("mean", entry.get("support_sizes", [])) for entry in entries]
    kinds = list(dict.fromkeys(kind for entry in entries for kind in entry.get("per_user", {})))
    several = summary["trials"] > 1
    sloped = any("slope" in entry for entry in entries)
    headings = ["policy", panels.measure(panel), *["sd"] * several, *kinds]
    headings += [*["slope"] * sloped, *["over epochs"] * any(epochs)]
    rows = []
    for entry, values in zip(entries, epochs, strict=True):
        cells = [panels.label(panel, entry), counted(entry["final_mean"])]
        alone = entry.get("trials", summary["trials"]) == 1  # a slow policy may have fewer trials than its panel
        cells += ["" if alone else counted(entry["final_sd"])] * several
        cells += [counted(entry["per_user"][kind]) for kind in kinds]
        cells += [f"{entry['slope']['mean']:z.2f}" if "slope" in entry else ""] * sloped
        cells += ["  ".join(map(short, values))] * any(epochs)
        rows.append(cells)
    return headings, rows


def policy_table(summary: Mapping[str, Any]) -> Table:
    """Print the final number of every policy of a panel."""
    table = Table(title=f"Panel {summary['panel']}: {panels.title(summary['panel'])}", title_justify="left", box=None)
    headings, rows = policy_rows(summary)
    for name in headings:
        words = name in ("policy", "over epochs")
        table.add_column(name, justify="left" if words else "right", overflow="fold" if words else "ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


_COLOURS = {HOLDS: "green", CHANGED: "yellow", FAILS: "red"}


def print_claims(console: Console, results: Sequence[Result]) -> None:
    """Print verdicts with their numbers, the paper's claims first; claims that were not run are left out."""
    for whose, title in ((PAPERS, "The paper's claims"), (OURS, "Our own questions")):
        found = [each for each in results if each.claim.whose == whose and each.verdict != MISSING]
        if found:
            console.print(f"[bold]{title}[/]", markup=True, highlight=False)
        for result in found:
            lacking = f" (not run: {', '.join(result.lacking)})" if result.lacking else ""
            alone = ", in one trial" * result.of_one_trial
            verdict = f"[{_COLOURS[result.verdict]}]{result.verdict}[/]{alone}"
            console.print(f"  {verdict}{lacking}: {escape(result.claim.statement)}", markup=True, highlight=False)
            ranges = dict.fromkeys(wanted(each.wanted) for reading in result.readings for each in reading.measured)
            console.print(f"    {result.claim.quantity}; wanted: {' or '.join(ranges)}", markup=False, highlight=False)
            for reading in result.readings:
                numbers = "; ".join(f"{each.what}: {short(each.value)}" for each in reading.measured)
                name = f"{reading.name}: " if len(result.readings) > 1 else ""
                console.print(f"    - {name}{numbers}", markup=False, highlight=False)


def plain_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Table:
    """Return a table of texts: the first `left` columns are words, which wrap; the others numbers, which do not.

    In a terminal that is too narrow for a number, it ends in an ellipsis: 1,2 could be taken for one.
    """
    table = Table(title=title, title_justify="left", box=None)
    for position, name in enumerate(columns):
        words = position < left
        overflow: Any = "fold" if words else "ellipsis"
        table.add_column(name, justify="left" if words else "right", overflow=overflow, no_wrap=not words)
    for row in rows:
        table.add_row(*row)
    return table
