"""`albatross reproduce`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from albatross.cli.plainly import new_console, plainly, seed_option

_PARTS = {"users": ("users", "flock")}  # panels that belong together


@click.command()
@click.argument("panels", nargs=-1, metavar="[PANEL]...")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=None,
    help="Trials of each panel.  [default: 25; d, f, scaling and news 6, g, h and users 5, flock and nested 10, "
    "drift 12, theorems and e-literal 3]",
)
@click.option("--quick", is_flag=True, help="A few trials only, and fewer values for scaling and theorems.")
@seed_option
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Your own data: for g and h a ranking file (svmlight with ratings), such as set2.test.txt; for users and "
    "flock a table of ratings (user, item, rating).",
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Output folder."
)
@plainly
def reproduce(
    panels: tuple[str, ...], trials: int | None, quick: bool, seed: int, data: Path | None, out: Path
) -> None:
    """Run panels of the paper's figure, and write them and all claims of the paper on one page, report.html.

    Panels, all by default: a and b, regret at norm 0.1 and 1; c, estimates of the norm; d and e, regret on the ball at
    dimension 500 and 200; f, the active coordinates phase by phase; g and h, rated rows as arms, reward and estimates
    of the norm; e-literal, panel e without the change that reproduces the paper's figure (some minutes; not run by
    --quick alone). Beyond the paper's figure: nested, finitely many arms with nested feature maps; users, one bandit
    per user, for users of different norms, and with it flock, users who learn from each other; drift, rewards that
    change over time; scaling, regret against the norm, the bound, d, d* and T; simple, theta* = 0; news, the motivating
    example on real headlines; theorems, what the theorems claim on problems where their conditions hold; race, the
    quick form of `albatross race`.

    A panel that is already in the output folder, made by the same code with the same settings and at least as many
    trials, is not run again: you can stop with Ctrl-C and continue later.
    """
    from albatross.cli.whole_run import run_parts
    from albatross.experiments import PANELS, flock, rated_rows, results, users
    from albatross.race import problems
    from albatross.race.run import run_all
    from albatross.report.claims import measured
    from albatross.report.page import shown, write_report
    from albatross.report.tables import print_claims
    from albatross.store.results import Stored, check_ours, check_writable, standings_file

    console = new_console()
    everything = [*(name for name in PANELS if not (quick and PANELS[name].quick_trials == 0)), "race"]
    chosen = list(dict.fromkeys(part for name in panels for part in _PARTS.get(name, (name,)))) or everything
    for name in chosen:
        if name not in (*PANELS, "race"):
            raise click.ClickException(f"there is no panel {name!r}; known are {', '.join(PANELS)} and race")
    check_writable(out)
    check_ours(out, [*chosen, "report.html"])
    anew = [out / name / "summary.json" for name in chosen]
    if "race" in chosen:
        anew += [standings_file(out, title) for title in problems.catalogue(quick=True)]
    Stored(out).check_format(but=anew)
    known = dict(PANELS)
    if data is not None:
        kinds: tuple[tuple[Any, ...], ...] = ((rated_rows,), (users, flock))
        wanting = [kind for kind in kinds if any(set(chosen) & set(each.PANELS) for each in kind)]
        if not panels or len(wanting) != 1:
            raise click.ClickException(
                "--data is a ranking file for panels g and h, or a ratings file for users: "
                "albatross reproduce g h --data PATH, albatross reproduce users --data PATH"
            )
        for kind in wanting[0]:
            settings = kind.with_data(kind.SETTINGS, data)
            known.update({name: panel._replace(settings=settings) for name, panel in kind.PANELS.items()})
    in_full = known
    if quick:
        known = {name: panel.in_short() for name, panel in in_full.items()}
    numbers = {name: known[name].trials if trials is None else trials for name in known}
    expected = {name: known[name].seconds * numbers[name] / known[name].trials for name in known}
    parts: dict[str, Callable[[], Any]] = {}
    for name in chosen:
        if name == "race":
            parts[name] = partial(run_all, problems.catalogue(quick=True), out=out, seed=seed)
            continue
        given: Any = {"trials": numbers[name], "seed": seed, "out": out}
        # Quick or not, what is there in full or with more trials is not replaced by less.
        summary = results.finished(known[name], **given) or results.finished(in_full[name], **given)
        if summary is not None:
            shown(Stored(out), name)  # or say that it was changed
            more = f", with {summary['trials']} trials instead of {numbers[name]}"
            console.print(f"Panel {name} is in {out / name} already{more * (summary['trials'] > numbers[name])}.")
            _print_part(console, name, summary)
            continue
        if why := results.why_again(known[name], **given):
            console.print(f"{why}: it is made again.")
        parts[name] = partial(results.run, known[name], **given)
    with closing(run_parts(parts, {"race": problems.QUICK_SECONDS, **expected}, new_console(stderr=True))) as ended:
        for name, found in ended:
            _print_part(console, name, found)
    print_claims(console, [each for each in measured(Stored(out)) if set(each.claim.panels) & set(chosen)])
    console.print(f"Everything on one page: {write_report(out)}")
    console.print(f"Figures: {', '.join(str(out / name / 'figure.png') for name in chosen)}")


def _print_part(console: Any, name: str, found: Any) -> None:
    """Print the table of a panel, or of the race."""
    from albatross.cli.race import print_race
    from albatross.report.tables import policy_table

    if name == "race":
        for title, result in found.items():
            print_race(console, title, result)
    else:
        console.print(policy_table(found))
    console.print()
