"""`albatross race`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from albatross.cli.plainly import OWN, new_console, plainly, seed_option


@click.command()
@click.option("--quick", is_flag=True, help="A few problems with short horizons.")
@click.option(
    "--policies",
    "names",
    default=None,
    help=f"Names from `albatross policies`, with parameters in parentheses. {OWN}  [default: all that need no feature "
    "maps]",
)
@click.option(
    "--problem",
    "texts",
    multiple=True,
    help='Race on this instead of the catalogue, as in "Mixture(n_arms=20, dim=5, theta_norm=2.0, horizon=5000)", '
    "FixedArms(...), Nested(...), Ball(...) or my_file.py:MyEnv(...), which runs the file; may be given several times.",
)
@seed_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Output folder."
)
@plainly
def race(quick: bool, names: str | None, texts: tuple[str, ...], seed: int, out: Path) -> None:
    """Race all policies on a catalogue of problems, and say how far each is from the best.

    A policy that is best somewhere may be worst elsewhere: the table shows each one's regret as a ratio to the best
    policy's, the worst ratio and the geometric mean over all problems with 95 % intervals. Problems that are in the
    output folder already, raced by the same code, your own files included, are not raced again.
    """
    from albatross.policies.in_words import split_names
    from albatross.race import problems
    from albatross.race.run import run_all
    from albatross.report.figures.panels import write_race
    from albatross.store.results import Stored, check_writable

    console = new_console()
    chosen = None if names is None else split_names(names)
    families = problems.own_families(texts) if texts else problems.catalogue(quick=quick)
    check_writable(out)
    finished = run_all(families, out=out, seed=seed, chosen=chosen, announce=lambda line: console.print(line))
    for title, result in finished.items():
        print_race(console, title, result)
    write_race(Stored(out))
    console.print(f"  {out / 'race' / 'figure.png'}")


def print_race(console: Any, title: str, result: Any) -> None:
    """Print the problems and the standings of one family."""
    from albatross.race.standings import problem_rows, standing_rows
    from albatross.report.tables import plain_table

    leader = result.standings[0]
    of_problems = ("problem", "best", "its regret", leader.name, "ratio", "95 %")
    console.print(plain_table(title, of_problems, problem_rows(result.found, leader), left=2))
    columns = ("policy", "given", "worst on", "worst\nratio", "95 %", "mean\nratio", "95 %")
    rows = standing_rows(result.standings)
    console.print(plain_table("regret / that of the best policy", columns, rows, left=3))
