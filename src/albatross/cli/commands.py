"""All commands: parse, call, print."""

from __future__ import annotations

import click

import albatross as package
from albatross.cli.check_policy import check_policy
from albatross.cli.compare import compare
from albatross.cli.compile import compile_policies
from albatross.cli.evaluate import evaluate
from albatross.cli.policies import policies
from albatross.cli.race import race
from albatross.cli.report import report
from albatross.cli.reproduce import reproduce
from albatross.cli.schema import schema
from albatross.cli.serve import serve
from albatross.cli.service_files import backup, erase, export, keys, verify
from albatross.cli.simulate_traffic import simulate_traffic


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package.__version__, prog_name="albatross")
def albatross() -> None:
    """Linear bandits of unknown difficulty."""


_COMMANDS: tuple[click.Command, ...] = (
    reproduce,
    report,
    compare,
    evaluate,
    race,
    policies,
    schema,
    compile_policies,
    check_policy,
    serve,
    keys,
    verify,
    export,
    backup,
    erase,
    simulate_traffic,
)
for _command in _COMMANDS:
    albatross.add_command(_command)
