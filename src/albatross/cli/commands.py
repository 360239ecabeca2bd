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


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package.__version__, prog_name="albatross")
def albatross() -> None:
    """Linear bandits of unknown difficulty."""


for _command in (reproduce, report, compare, evaluate, race, policies, schema, compile_policies, check_policy):
    albatross.add_command(_command)
