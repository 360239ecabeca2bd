"""`albatross compile`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from albatross.cli.plainly import plainly

_FLOCK = "flock"  # not in the catalogue of policies; what the service plays unless a model says otherwise
_MANY = 17  # rewards: one more than a user of a flock is kept for as a list of events


@click.command("compile")
@click.argument("names", metavar="[POLICY]...", nargs=-1)
@plainly
def compile_policies(names: tuple[str, ...]) -> None:
    """Compile policies beforehand, for an image or a service, so that the first decision is fast.

    Write policies as in `albatross policies`, with parameters in parentheses, or as a class of your own file,
    my_file.py:MyPolicy, which runs the file; `flock` is what `albatross serve` plays. Without a POLICY, the default
    policies of agents and the flock are compiled. The machine code serves agents, fleets, simulations and the service
    with any number of arms and features. It is kept in ALBATROSS_CACHE, or else in the user's cache folder.
    """
    from rich.console import Console
    from rich.progress import Progress

    from albatross import machine_code

    folder = machine_code.folder()
    if folder is None:
        raise ValueError(
            "there is no private folder to keep machine code in: set ALBATROSS_CACHE to an absolute path that only "
            "this user can write to"
        )
    policies = {name: _built(name) for name in names or ("albatross", "albatross-dim", _FLOCK)}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=len(policies))
        for name, policy in policies.items():
            bar.update(task, description=f"compiling {name}")
            _use_flock() if policy is None else _use(policy)
            bar.advance(task)
    if machine_code.not_kept:
        raise ValueError(
            f"{len(machine_code.not_kept)} files could not be written to {folder}: is it full, or read-only?"
        )
    click.echo(f"{', '.join(policies)}: compiled in {folder}")


def _built(name: str) -> Any:
    """Return a policy in words, None for a flock."""
    from albatross.policies.in_words import build

    return None if name == _FLOCK else build(name, {"horizon": 1_000}, files=True)


def _use(policy: Any) -> None:
    """Decide, learn and simulate once, which compiles everything for any number of arms and features."""
    import numpy as np

    from albatross import Agent, Fleet, environments, simulate
    from albatross.protocol import on_ball

    dim = max(getattr(policy, "dims", (2,)))
    contexts = np.zeros((3, dim))
    if on_ball(policy):
        agent = Agent(policy, dim=dim, seed=0)
        agent.update(agent.select(), 0.0)
        simulate(policy, environments.Ball(dim=dim, theta=np.eye(dim)[0]), horizon=2, progress=False)
        return
    agent = Agent(policy, n_arms=3, dim=dim, floor=0.1, seed=0)
    agent.update(agent.select(contexts), 0.0)
    for names in ({"n_users": 1, "n_arms": 3}, {"users": [0], "arms": ["a", "b", "c"], "floor": 0.1}):
        fleet = Fleet(policy, **names, dim=dim, horizon=1_000, seed=0)
        fleet.update(fleet.select([0], contexts[None]), [0.0])
    _encoded()
    fleet.put(0, fleet.row(0))
    fleet.drop(fleet.select([0], contexts[None]))
    fleet.record([0], ["a"], contexts[:1])
    with suppress(ValueError):  # a policy without a score for every arm
        fleet.explain(0, contexts)
    simulate(policy, environments.Mixture(n_arms=3, dim=dim), horizon=2, progress=False)


def _use_flock() -> None:
    """Do once what the service does with a flock and its features."""
    from albatross import Flock

    features, contexts = _encoded()
    flock = Flock(users=[], arms=["a", "b"], features=features, floor=0.02, seed=0)
    for _ in range(_MANY):
        made = flock.select(["user"], contexts[None])
        flock.update(made, [1.0])
    flock.take_up(flock.look(flock.hear, rewards=_MANY))
    flock.drop(flock.select(["user"], contexts[None]))  # the population is new to the user
    flock.record(["user"], ["a"], contexts[:1])
    flock.explain("user", contexts)
    flock.user("user")
    flock.add_arm("c")
    flock.put("user", flock.release(["user"], pending=True)[0])


def _encoded() -> tuple[Any, Any]:
    """Return a schema, and two arms that it has encoded."""
    from albatross import Features
    from albatross.features import Category, Number

    features = Features(
        {"topic": Category(values=["a", "b"]), "age": Number(of="situation")}, products=[("topic", "age")]
    )
    return features, features.encode({"age": 1.0}, [{"topic": "a"}, {"topic": "b"}])
