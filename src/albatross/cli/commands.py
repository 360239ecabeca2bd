"""Parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

import albatross as package


def _plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a user can do something about into one line, and a missing extra into its name."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("albatross"):
                raise
            raise click.ClickException(f"this needs {error.name}: pip install 'albatross[lab]'") from None
        except (ValueError, OSError) as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:
            click.echo("\nstopped; what was finished is kept", err=True)
            sys.exit(130)

    return wrapped


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
    help="Trials of each panel.  [default: 25; d 6, nested 10, e-literal 3]",
)
@click.option("--quick", is_flag=True, help="A few trials only.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Where to.")
@_plainly
def reproduce(panels: tuple[str, ...], trials: int | None, quick: bool, seed: int, out: Path) -> None:
    """Run panels of the paper's figure and draw them.

    Without a PANEL all are run: a and b, regret at norm 0.1 and 1; c, estimates of the norm; d and e, regret on the
    ball at dimension 500 and 200; f, the active coordinates phase by phase; nested, finitely many arms with nested
    feature maps (beyond the paper's figure); e-literal, panel e without the change that makes it come out (some
    minutes). A panel that is in the output folder already, made by the same code with the same settings, is not run
    again.
    """
    from rich.console import Console

    from albatross.experiments import PANELS, results
    from albatross.report.tables import print_panel

    console = Console()
    chosen = list(dict.fromkeys(panels)) or list(PANELS)
    for name in chosen:
        if name not in PANELS:
            raise click.ClickException(f"there is no panel {name!r}; known are {', '.join(PANELS)}")
    for name in chosen:
        panel = PANELS[name]
        number = trials if trials is not None else panel.quick_trials if quick else panel.trials
        summary = results.finished(panel, trials=number, seed=seed, out=out)
        if summary is None:
            summary = results.run(panel, trials=number, seed=seed, out=out)
        else:
            console.print(f"Panel {name} is in {out / name} already.", highlight=False)
        print_panel(console, summary)
        console.print(f"  {out / name / 'figure.png'}\n", highlight=False)


@albatross.command()
@click.option(
    "--env",
    type=click.Choice(["mixture", "ball"]),
    default="mixture",
    show_default=True,
    help="Arms with biases and contexts, or the unit ball with a sparse parameter.",
)
@click.option(
    "--policies",
    "names",
    default=None,
    help="Names from `albatross policies`, or oracle; parameters in parentheses, as in alb-norm(norm_bound=10).  "
    "[default: alb-norm,lints,greedy; on the ball alb-dim,ball-oful,ball-lints,sl-ucb,explore-then-commit,oracle]",
)
@click.option("--arms", type=click.IntRange(min=1), default=75, show_default=True, help="Number of arms.")
@click.option("--dim", type=click.IntRange(min=1), default=50, show_default=True, help="Number of features.")
@click.option("--sparsity", type=click.IntRange(min=1), default=5, show_default=True, help="Ball: coordinates in use.")
@click.option(
    "--smallest",
    type=click.FloatRange(min=0, min_open=True),
    default=0.12,
    show_default=True,
    help="Ball: least magnitude.",
)
@click.option("--theta-norm", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Norm of theta*.")
@click.option(
    "--noise-sd", type=click.FloatRange(min=0, min_open=True), default=0.5**0.5, show_default="sqrt(0.5)", help="Noise."
)
@click.option(
    "--norm-bound",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    help="What OFUL, OFUL+ and OSOM are told of the norm.",
)
@click.option("--horizon", type=click.IntRange(min=1), default=5_000, show_default=True, help="Rounds.")
@click.option("--trials", type=click.IntRange(min=1), default=10, show_default=True, help="Trials.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Fixes every number.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("compare.png"), show_default=True, help="The figure."
)
@_plainly
def compare(
    env: str,
    names: str | None,
    arms: int,
    dim: int,
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

    from albatross import environments, simulate
    from albatross.experiments import compare as comparison
    from albatross.report import figures
    from albatross.report.tables import plain_table

    if not out.parent.is_dir():
        raise click.ClickException(f"{out.parent} is not a folder: --out is the figure's file name")
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise click.ClickException(f"--out must end in .png, .pdf or .svg, not {str(out)!r}")
    problem: Any
    known: dict[str, Any] = {"sigma": noise_sd}
    if env == "ball":
        problem = environments.Ball(dim=dim, sparsity=sparsity, smallest=smallest, noise_sd=noise_sd)
        title = f"the ball, {sparsity} of {dim} coordinates, {horizon:,} rounds"
        default = "alb-dim,ball-oful,ball-lints,sl-ucb,explore-then-commit,oracle"
    else:
        problem = environments.Mixture(n_arms=arms, dim=dim, theta_norm=theta_norm, noise_sd=noise_sd)
        known.update(norm_bound=norm_bound, theta_norm=theta_norm)
        title = f"{arms} arms, {dim} features, norm {theta_norm:g}, {horizon:,} rounds"
        default = "alb-norm,lints,greedy"
    texts = comparison.split_names(default if names is None else names)
    if not texts or len(set(texts)) < len(texts):
        raise click.ClickException("name at least one policy in --policies, and none twice")
    contenders = {text: comparison.build(text, known) for text in texts}

    runs = simulate(contenders, problem, horizon=horizon, trials=trials, seed=seed)
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
    title += f", {trials} trial{'s' * (trials > 1)}"
    columns = ("policy", "regret", "95 %", f"against {found[0].name}", "95 %, paired", "µs a round")
    console = Console()
    console.print(plain_table(title, columns, rows), highlight=False)
    figures.save(lambda: comparison.plot(runs, title), out)
    console.print(f"  {out}", highlight=False)


@albatross.command()
@_plainly
def policies() -> None:
    """List all policies: citation, setting, and what must be known beforehand."""
    from rich.console import Console

    from albatross.policies import CATALOGUE
    from albatross.report.tables import plain_table

    rows = [
        (name, entry.policy.__name__, entry.citation, entry.setting, entry.must_know)
        for name, entry in CATALOGUE.items()
    ]
    columns = ("name", "class", "citation", "setting", "must know beforehand")
    Console().print(plain_table("", columns, rows, left=5), highlight=False)
