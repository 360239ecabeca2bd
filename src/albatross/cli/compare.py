"""`albatross compare`."""

from __future__ import annotations

from pathlib import Path

import click

from albatross.cli.plainly import OWN, Real, new_console, plainly, seed_option

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


@click.command()
@click.option(
    "--env",
    type=click.Choice(["mixture", "ball", "nested"]),
    default="mixture",
    show_default=True,
    help="Arms with biases and contexts; the unit ball with a sparse parameter; arms with nested feature maps.",
)
@click.option(
    "--problem",
    default=None,
    help="An environment in words instead of --env, as in `albatross race`: FixedArms(n_arms=20, dim=5) or "
    "my_file.py:MyEnv(...), which runs the file.",
)
@click.option(
    "--policies",
    "names",
    default=None,
    help="Names from `albatross policies`, or oracle; parameters in parentheses, as in alb-norm(norm_bound=10). "
    f"{OWN}  "
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
    type=Real(min=0, min_open=True),
    default=0.12,
    show_default=True,
    help="Ball: smallest nonzero magnitude.",
)
@click.option(
    "--theta-norm",
    type=Real(min=0),
    default=1.0,
    show_default=True,
    help="Mixture, nested: norm of theta*.",
)
@click.option(
    "--noise-sd",
    type=Real(min=0, min_open=True),
    default=0.5**0.5,
    show_default="sqrt(0.5)",
    help="Standard deviation of the noise.",
)
@click.option(
    "--norm-bound",
    type=Real(min=0),
    default=10.0,
    show_default=True,
    help="Mixture: bound on the norm given to OFUL, OFUL+ and OSOM.",
)
@click.option("--horizon", type=click.IntRange(min=1), default=5_000, show_default=True, help="Rounds.")
@click.option("--trials", type=click.IntRange(min=1), default=10, show_default=True, help="Trials.")
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("compare.png"),
    show_default=True,
    help="Output file of the figure.",
)
@click.pass_context
@plainly
def compare(
    context: click.Context,
    env: str,
    problem: str | None,
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
    """Compare policies on the same contexts and noise."""
    from albatross import simulate
    from albatross.policies.in_words import build, split_names
    from albatross.race import compare as comparison
    from albatross.race.problems import read_problem
    from albatross.report.figures import compare as figure
    from albatross.report.figures import style
    from albatross.report.tables import plain_table

    if not out.parent.is_dir():
        raise click.ClickException(f"{out.parent} is not a folder: --out is the figure's file name")
    if out.is_dir():
        raise click.ClickException(f"{out} is a folder: --out is the figure's file name")
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise click.ClickException(f"--out must end in .png, .pdf or .svg, not {str(out)!r}")

    def is_given(option: str) -> bool:
        return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE

    for option, wanted in _FOR_ENV.items():
        if is_given(option) and (problem is not None or env not in wanted):
            name, here = option.replace("_", "-"), f"--env {env}" if problem is None else "--problem"
            raise click.ClickException(f"--{name} says nothing about {here}; it is for {' and '.join(wanted)}")
    if problem is not None:
        if is_given("env") or is_given("noise_sd"):
            raise click.ClickException("--problem takes the place of --env and --noise-sd: leave them out")
        read = read_problem(problem)
        found = comparison.in_words(problem, read)
        horizon = horizon if is_given("horizon") else read.horizon
    elif env == "ball":
        found = comparison.ball(dim=dim, sparsity=sparsity, smallest=smallest, noise_sd=noise_sd)
    elif env == "nested":
        try:
            maps = tuple(int(part) for part in dims.split(","))
        except ValueError:
            raise click.ClickException(
                f"--dims must be whole numbers with commas, as in 5,10,20, not {dims!r}"
            ) from None
        found = comparison.nested(
            arms=arms or 5, dims=maps, true_dim=true_dim, theta_norm=theta_norm, noise_sd=noise_sd
        )
    else:
        found = comparison.mixture(
            arms=arms or 75, dim=dim, theta_norm=theta_norm, noise_sd=noise_sd, norm_bound=norm_bound
        )
    texts = split_names(found.policies if names is None else names)
    if not texts or len(set(texts)) < len(texts):
        raise click.ClickException("name at least one policy in --policies, and none twice")
    contenders = {text: build(text, found.known, files=True) for text in texts}

    runs = simulate(contenders, found.env, horizon=horizon, trials=trials, seed=seed)
    lines = comparison.lines(runs)
    rows = [
        (
            line.name,
            f"{line.mean:,.1f}",
            f"± {line.margin:,.1f}" if trials > 1 else "",
            "" if position == 0 else f"{line.difference:+,.1f}",
            "" if position == 0 or trials == 1 else f"± {line.difference_margin:,.1f}",
            f"{line.microseconds:.1f}",
        )
        for position, line in enumerate(lines)
    ]
    title = f"{found.title}, {horizon:,} rounds, {trials} trial{'s' * (trials > 1)}"
    columns = ("policy", "regret", "95 %", "against first", "95 %", "µs/round")
    console = new_console()
    console.print(plain_table(title, columns, rows))
    style.save(lambda: figure.plot_regret(runs, title), out)
    console.print(f"  {out}")
