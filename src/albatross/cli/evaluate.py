"""`albatross evaluate`."""

from __future__ import annotations

from pathlib import Path

import click

from albatross.cli.plainly import OWN, new_console, plainly, printable, seed_option, with_notes


@click.command()
@click.argument("log", metavar="LOG")
@click.option(
    "--policies",
    "names",
    default=None,
    help=f"Names from `albatross policies`; parameters in parentheses, as in lints(sigma=0.1). {OWN}  "
    "[default: albatross,alb-norm,lints,ucb]",
)
@click.option(
    "--items",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A table of the actions' own features, one row per action.",
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A schema of features, as `albatross schema` proposes it: contexts are made of these columns, instead of "
    "all columns with numbers.",
)
@click.option(
    "--agent",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A saved agent, evaluated as it is. It should not have learnt from this log. The log has a column `contexts`, "
    "as Agent.log writes it, or --schema is the schema of the agent's features.",
)
@click.option(
    "--per-user", is_flag=True, help="Every policy has a state for each user of the log, from its column `user`."
)
@click.option(
    "--arms",
    type=click.Choice(["products", "actions", "disjoint", "biases"]),
    default=None,
    help="What contexts are made of: the actions' features and their products with the round's; the actions' features; "
    "the round's features, with coefficients for each action; nothing.  [default: products if the actions have "
    "features, else disjoint if the rounds have, else biases]",
)
@click.option(
    "--folds", type=click.IntRange(min=2), default=2, show_default=True, help="Number of cross-validation folds."
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of replays; all but the first shuffle the log.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Draws per round for the probabilities of a randomised policy.",
)
@seed_option
@plainly
def evaluate(
    log: str,
    names: str | None,
    items: Path | None,
    schema: Path | None,
    agent: Path | None,
    per_user: bool,
    arms: str | None,
    folds: int,
    trials: int,
    draws: int,
    seed: int,
) -> None:
    """Estimate from a LOG of decisions what other policies would have earned.

    LOG is a CSV or Parquet file with columns action, reward, propensity and features of the round, a file that
    albatross.LogWriter wrote, a file of the Open Bandit Dataset, or one of the included logs: open-bandit,
    open-bandit-bts, open-bandit-women, open-bandit-women-bts. A column `eligible` lists the actions that could be
    taken, as in red|blue, and a column `user` says whom the round was for.
    """
    from albatross import evaluation
    from albatross.cli import log_evaluation as offline
    from albatross.environments import Logged
    from albatross.policies.in_words import split_names
    from albatross.report.tables import plain_table

    texts = split_names(offline.POLICIES if names is None else names)
    if not texts or len(set(texts)) < len(texts):
        raise click.ClickException("name at least one policy in --policies, and none twice")
    with with_notes():
        read = offline.open_log(log, items=items, schema=schema)
        agents = {} if agent is None else {agent.name: offline.open_agent(agent, read, schema)}
        env = Logged.from_log(read, arms)
        contenders = offline.contenders(texts, env, per_user=per_user, agents=agents)
        if warning := offline.may_take_long(env):
            click.echo(f"note: {warning}", err=True)
        found = evaluation.evaluate(contenders, env, folds=folds, trials=trials, draws=draws, seed=seed)
        sizes = f"{env.length:,} rounds, {env.n_arms} actions, {env.dim} feature{'s' * (env.dim > 1)}"
        if env.users is not None:
            sizes += f", {env.n_users:,} user{'s' * (env.n_users > 1)}"
        title = f"{printable(Path(log).name)}: {sizes}"
        console = new_console()
        console.print(plain_table(title, offline.COLUMNS, offline.rows(read, found)))
        for line in (*offline.features(read, arms, schema), f"\n{offline.LEGEND}"):
            console.print(printable(line))
    least = env.propensities.min()
    if env.length * least < 30:
        usable = f"about {env.length * least:.2g} of the {env.length:,} rounds"
        click.echo(f"note: replay can use {usable}, because the least propensity is {least:.2g}", err=True)
