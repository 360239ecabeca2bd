"""Parse, call, print."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

import albatross as package
from albatross.cli import Terminated
from albatross.errors import missing_extra


def _plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a user can do something about into one line, and a missing extra into its name."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("albatross"):
                raise
            raise click.ClickException(missing_extra(error.name)) from None
        except (ValueError, OSError) as error:
            raise click.ClickException(str(error)) from None
        except MemoryError as error:
            raise click.ClickException(f"out of memory: {str(error) or 'take less data or fewer features'}") from None
        except KeyboardInterrupt as error:
            terminated = isinstance(error, Terminated)
            click.echo("\n" * (not terminated) + "stopped; finished panels and problems are kept", err=True)
            sys.exit(128 + (signal.SIGTERM if terminated else signal.SIGINT))

    return wrapped


@contextmanager
def _with_notes() -> Iterator[None]:
    """Print what was warned of as notes, once each, below everything else, also where an error ends it."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for note in dict.fromkeys(str(note.message) for note in notes):
                click.echo(f"note: {note}", err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package.__version__, prog_name="albatross")
def albatross() -> None:
    """Linear bandits whose difficulty nobody knows beforehand."""


@albatross.command()
@click.argument("panels", nargs=-1, metavar="[PANEL]...")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=None,
    help="Trials of each panel.  [default: 25; d, f and scaling 6, g, h and users 5, nested 10, e-literal 3]",
)
@click.option("--quick", is_flag=True, help="A few trials only, and fewer values for scaling.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Of your own: for g and h a ranking file (svmlight with ratings), such as set2.test.txt; for users a table of "
    "ratings (user, item, rating).",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Where to.")
@_plainly
def reproduce(
    panels: tuple[str, ...], trials: int | None, quick: bool, seed: int, data: Path | None, out: Path
) -> None:
    """Run panels of the paper's figure, and write them and all claims of the paper on one page, report.html.

    Without a PANEL all are run: a and b, regret at norm 0.1 and 1; c, estimates of the norm; d and e, regret on the
    ball at dimension 500 and 200; f, the active coordinates phase by phase; g and h, rated rows as arms, reward and
    estimates of the norm; nested, finitely many arms with nested feature maps, users, a bandit for each of many users
    of different norms, and scaling, regret against the norm, the bound, d, d* and T (all three beyond the paper's
    figure); e-literal, panel e without the change that makes it come out (some minutes, not with --quick); race, the
    quick form of `albatross race`. What is in the output folder already, made by the same code with the same settings,
    is not run again: stop it with Ctrl-C and go on later.
    """
    from rich.console import Console

    from albatross.cli.whole_run import run_parts
    from albatross.experiments import PANELS, rated_rows, results, users
    from albatross.experiments import race as racing
    from albatross.report.page import write_report
    from albatross.report.stored import Stored

    console = Console()
    everything = [*(name for name in PANELS if not (quick and PANELS[name].quick_trials == 0)), "race"]
    chosen = list(dict.fromkeys(panels)) or everything
    for name in chosen:
        if name not in (*PANELS, "race"):
            raise click.ClickException(f"there is no panel {name!r}; known are {', '.join(PANELS)} and race")
    results.check_writable(out)
    anew = [out / name / "summary.json" for name in chosen]
    if "race" in chosen:
        anew += [racing.standings_file(out, title) for title in racing.catalogue(quick=True)]
    Stored(out).check_format(but=anew)
    known = dict(PANELS)
    if data is not None:
        wanting = [kind for kind in (rated_rows, users) if set(chosen) & set(kind.PANELS)]
        if not panels or len(wanting) != 1:
            raise click.ClickException(
                "--data is a ranking file for panels g and h, or a ratings file for users: "
                "albatross reproduce g h --data PATH, albatross reproduce users --data PATH"
            )
        settings = wanting[0].with_data(wanting[0].SETTINGS, data)
        known.update({name: panel._replace(settings=settings) for name, panel in wanting[0].PANELS.items()})
    if quick:
        known = {name: panel.in_short() for name, panel in known.items()}
    numbers = {name: known[name].trials if trials is None else trials for name in known}
    expected = {name: known[name].seconds * numbers[name] / known[name].trials for name in known}
    parts: dict[str, Callable[[], Any]] = {}
    for name in chosen:
        if name == "race":
            parts[name] = partial(racing.run_all, racing.catalogue(quick=True), out=out, seed=seed)
            continue
        given: Any = {"trials": numbers[name], "seed": seed, "out": out}
        # Quick or not, what is there in full is not replaced by less.
        summary = results.finished(known[name], **given) or results.finished(
            PANELS[name], trials=PANELS[name].trials, seed=seed, out=out
        )
        if summary is not None:
            console.print(f"Panel {name} is in {out / name} already.", highlight=False)
            _print_part(console, name, summary, out)
            continue
        if why := results.why_again(known[name], **given):
            console.print(f"{why}: it is made again.", highlight=False)
        parts[name] = partial(results.run, known[name], **given)
    with closing(run_parts(parts, {"race": racing.QUICK_SECONDS, **expected}, Console(stderr=True))) as ended:
        for name, found in ended:
            _print_part(console, name, found, out)
    console.print(f"Everything on one page: {write_report(out)}", highlight=False)


def _print_part(console: Any, name: str, found: Any, out: Path) -> None:
    """What a panel's summary, or the race, says."""
    from albatross.report.tables import print_panel

    if name == "race":
        for title, result in found.items():
            _print_race(console, title, result)
    else:
        print_panel(console, found)
    console.print(f"  {out / name / 'figure.png'}\n", highlight=False)


# Options of `compare` that only some problems have.
_FOR_ENV = {
    "arms": ("mixture", "nested"),
    "dim": ("mixture", "ball"),
    "dims": ("nested",),
    "true_dim": ("nested",),
    "sparsity": ("ball",),
    "smallest": ("ball",),
    "theta_norm": ("mixture", "nested"),
    "norm_bound": ("mixture",),
}


@albatross.command()
@click.option(
    "--env",
    type=click.Choice(["mixture", "ball", "nested"]),
    default="mixture",
    show_default=True,
    help="Arms with biases and contexts; the unit ball with a sparse parameter; arms with nested feature maps.",
)
@click.option(
    "--policies",
    "names",
    default=None,
    help="Names from `albatross policies`, or oracle; parameters in parentheses, as in alb-norm(norm_bound=10).  "
    "[default: albatross,alb-norm,lints,greedy; ball: albatross-dim,alb-dim,ball-oful,ball-lints,sl-ucb,"
    "explore-then-commit,oracle; "
    "nested: alb-dim-finite(inner='linucb'),linucb,mod-cb,corral,ed2rb,oracle]",
)
@click.option(
    "--arms",
    type=click.IntRange(min=1),
    default=None,
    help="Mixture, nested: number of arms.  [default: 75; nested 5]",
)
@click.option(
    "--dim", type=click.IntRange(min=1), default=50, show_default=True, help="Mixture, ball: number of features."
)
@click.option("--dims", default="5,10,20", show_default=True, help="Nested: features of each map.")
@click.option("--true-dim", type=click.IntRange(min=1), default=5, show_default=True, help="Nested: features in use.")
@click.option("--sparsity", type=click.IntRange(min=1), default=5, show_default=True, help="Ball: coordinates in use.")
@click.option(
    "--smallest",
    type=click.FloatRange(min=0, min_open=True),
    default=0.12,
    show_default=True,
    help="Ball: least magnitude.",
)
@click.option(
    "--theta-norm",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Mixture, nested: norm of theta*.",
)
@click.option(
    "--noise-sd", type=click.FloatRange(min=0, min_open=True), default=0.5**0.5, show_default="sqrt(0.5)", help="Noise."
)
@click.option(
    "--norm-bound",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="Mixture: what OFUL, OFUL+ and OSOM are told of the norm.",
)
@click.option("--horizon", type=click.IntRange(min=1), default=5_000, show_default=True, help="Rounds.")
@click.option("--trials", type=click.IntRange(min=1), default=10, show_default=True, help="Trials.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("compare.png"), show_default=True, help="The figure."
)
@click.pass_context
@_plainly
def compare(
    context: click.Context,
    env: str,
    names: str | None,
    arms: int | None,
    dim: int,
    dims: str,
    true_dim: int,
    sparsity: int,
    smallest: float,
    theta_norm: float,
    noise_sd: float,
    norm_bound: float,
    horizon: int,
    trials: int,
    seed: int,
    out: Path,
) -> None:
    """Race policies on the same contexts and noise."""
    from rich.console import Console

    from albatross import simulate
    from albatross.experiments import compare as comparison
    from albatross.report import figures
    from albatross.report.tables import plain_table

    if not out.parent.is_dir():
        raise click.ClickException(f"{out.parent} is not a folder: --out is the figure's file name")
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise click.ClickException(f"--out must end in .png, .pdf or .svg, not {str(out)!r}")
    for option, wanted in _FOR_ENV.items():
        if env not in wanted and context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            name = option.replace("_", "-")
            raise click.ClickException(f"--{name} says nothing about --env {env}; it is for {' and '.join(wanted)}")
    if env == "ball":
        problem = comparison.ball(dim=dim, sparsity=sparsity, smallest=smallest, noise_sd=noise_sd)
    elif env == "nested":
        try:
            maps = tuple(int(part) for part in dims.split(","))
        except ValueError:
            raise click.ClickException(
                f"--dims must be whole numbers with commas, as in 5,10,20, not {dims!r}"
            ) from None
        problem = comparison.nested(
            arms=arms or 5, dims=maps, true_dim=true_dim, theta_norm=theta_norm, noise_sd=noise_sd
        )
    else:
        problem = comparison.mixture(
            arms=arms or 75, dim=dim, theta_norm=theta_norm, noise_sd=noise_sd, norm_bound=norm_bound
        )
    texts = comparison.split_names(problem.policies if names is None else names)
    if not texts or len(set(texts)) < len(texts):
        raise click.ClickException("name at least one policy in --policies, and none twice")
    contenders = {text: comparison.build(text, problem.known) for text in texts}

    runs = simulate(contenders, problem.env, horizon=horizon, trials=trials, seed=seed)
    found = comparison.lines(runs)
    rows = [
        (
            line.name,
            f"{line.mean:,.1f}",
            f"± {line.margin:,.1f}" if trials > 1 else "",
            "" if position == 0 else f"{line.difference:+,.1f}",
            "" if position == 0 or trials == 1 else f"± {line.difference_margin:,.1f}",
            f"{line.microseconds:.1f}",
        )
        for position, line in enumerate(found)
    ]
    title = f"{problem.title}, {horizon:,} rounds, {trials} trial{'s' * (trials > 1)}"
    columns = ("policy", "regret", "95 %", "against first", "95 %", "µs/round")
    console = Console()
    console.print(plain_table(title, columns, rows), highlight=False)
    figures.save(lambda: comparison.plot(runs, title), out)
    console.print(f"  {out}", highlight=False)


@albatross.command()
@click.argument("log", metavar="LOG")
@click.option(
    "--policies",
    "names",
    default=None,
    help="Names from `albatross policies`; parameters in parentheses, as in lints(sigma=0.1).  "
    "[default: albatross,alb-norm,lints,ucb]",
)
@click.option(
    "--items",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A table of the actions' own features, one row an action.",
)
@click.option(
    "--arms",
    type=click.Choice(["products", "actions", "disjoint", "biases"]),
    default=None,
    help="What contexts are made of: the actions' features and their products with the round's; the actions' features; "
    "the round's features, with coefficients for each action; nothing.  [default: products if the actions have "
    "features, else disjoint if the rounds have, else biases]",
)
@click.option("--folds", type=click.IntRange(min=2), default=2, show_default=True, help="Parts to learn from and test.")
@click.option(
    "--trials", type=click.IntRange(min=1), default=1, show_default=True, help="Replays; all but the first shuffle."
)
@click.option(
    "--draws", type=click.IntRange(min=1), default=20, show_default=True, help="Of a policy's randomness, a round."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@_plainly
def evaluate(
    log: str, names: str | None, items: Path | None, arms: str | None, folds: int, trials: int, draws: int, seed: int
) -> None:
    """Estimate from a LOG of somebody's decisions what other policies would have earned.

    LOG is a CSV or Parquet file with columns action, reward, propensity and features of the round, a file of the Open
    Bandit Dataset, or one that is shipped: open-bandit, open-bandit-bts, open-bandit-women, open-bandit-women-bts.
    """
    from rich.console import Console

    from albatross import evaluation
    from albatross.environments import Logged
    from albatross.experiments import evaluate as offline
    from albatross.experiments.compare import split_names
    from albatross.report.tables import plain_table

    texts = split_names(offline.POLICIES if names is None else names)
    if not texts or len(set(texts)) < len(texts):
        raise click.ClickException("name at least one policy in --policies, and none twice")
    with _with_notes():
        read = offline.open_log(log, items=items)
        env = Logged.from_log(read, arms)
        contenders = offline.contenders(texts, read)
        if warning := offline.may_take_long(env):
            click.echo(f"note: {warning}", err=True)
        found = evaluation.evaluate(contenders, env, folds=folds, trials=trials, draws=draws, seed=seed)
        title = f"{Path(log).name}: {env.length:,} rounds, {env.n_arms} actions, {env.dim} feature{'s' * (env.dim > 1)}"
        console = Console()
        console.print(plain_table(title, offline.COLUMNS, offline.rows(read, found)), highlight=False)
        for line in (*offline.features(read, arms), f"\n{offline.LEGEND}"):
            console.print(line, highlight=False, markup=False)
    least = env.propensities.min()
    if env.length * least < 30:
        usable = f"about {env.length * least:.2g} of the {env.length:,} rounds"
        click.echo(f"note: replay can use {usable}, because the least propensity is {least:.2g}", err=True)


@albatross.command()
@click.option("--quick", is_flag=True, help="A few problems, in short.")
@click.option(
    "--policies",
    "names",
    default=None,
    help="Names from `albatross policies`, with parameters in parentheses.  [default: all that need no feature maps]",
)
@click.option(
    "--problem",
    "texts",
    multiple=True,
    help='Race on this instead of the catalogue, as in "Mixture(n_arms=20, dim=5, theta_norm=2.0, horizon=5000)", '
    "FixedArms(...), Nested(...) or Ball(...); may be given several times.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Where to.")
@_plainly
def race(quick: bool, names: str | None, texts: tuple[str, ...], seed: int, out: Path) -> None:
    """Race all policies on a catalogue of problems, and say how far each is from the best.

    A policy that is best somewhere may be worst elsewhere: the table shows each one's regret as a ratio to the best
    policy's, the worst ratio and the geometric mean over all problems with 95 % intervals. Problems that are in the
    output folder already, raced by the same code, are not raced again.
    """
    from rich.console import Console

    from albatross.experiments import compare as comparison
    from albatross.experiments import race as racing
    from albatross.experiments import results

    console = Console()
    chosen = None if names is None else comparison.split_names(names)
    families = racing.own_families(texts) if texts else racing.catalogue(quick=quick)
    results.check_writable(out)
    finished = racing.run_all(
        families, out=out, seed=seed, chosen=chosen, told=lambda line: console.print(line, highlight=False)
    )
    for title, result in finished.items():
        _print_race(console, title, result)
    console.print(f"  {out / 'race' / 'figure.png'}", highlight=False)


def _print_race(console: Any, title: str, result: Any) -> None:
    from albatross.experiments import race as racing
    from albatross.report.tables import plain_table

    leader = result.standings[0].name
    columns = ("problem", "best", "its regret", f"{leader}'s", "ratio")
    rows = racing.problem_rows(result.found, leader)
    console.print(plain_table(title, columns, rows, left=2), highlight=False)
    columns = ("policy", "worst ratio", "95 %", "mean ratio", "worst on")
    rows = racing.standing_rows(result.standings)
    console.print(plain_table("regret / that of the best policy", columns, rows), highlight=False)


@albatross.command()
@_plainly
def policies() -> None:
    """List all policies: citation, setting, and what must be known beforehand."""
    from rich.console import Console

    from albatross.policies import CATALOGUE
    from albatross.report.tables import plain_table

    rows = [
        (name, entry.policy.__name__, f"{entry.setting}; must know: {entry.must_know}\n{entry.citation}")
        for name, entry in CATALOGUE.items()
    ]
    columns = ("name", "class", "setting; what it must know beforehand; citation")
    Console().print(plain_table("", columns, rows, left=3), highlight=False)
