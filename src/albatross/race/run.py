"""Run the race problem by problem, each stored in its own file, and compute the standings of each family."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albatross import own_files, simulate
from albatross.constants import is_ours
from albatross.race.problems import Problem, contenders, given_in_words
from albatross.race.standings import Raced, Standing, standings
from albatross.runs import Run
from albatross.store.files import write_text
from albatross.store.identity import FORMAT, differences, fingerprint, identity, signed
from albatross.store.results import check_ours, file_name, standings_file
from albatross.store.tables import write_table

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def race(problem: Problem, racers: Mapping[str, Any], found_by: Mapping[str, Any], *, seed: int) -> Raced:
    """Run all policies on one problem, paired."""
    trials = problem.trials
    runs: dict[str, Run] = simulate(racers, problem.env, horizon=problem.horizon, trials=trials, seed=seed, record=1)
    return Raced(
        {name: run.regret[:, -1] for name, run in runs.items()},
        {name: 1e6 * run.seconds / (trials * problem.horizon) for name, run in runs.items()},
        found_by,
    )


def run(
    problems: Mapping[str, Problem],
    *,
    out: Path,
    seed: int,
    chosen: Iterable[str] | None = None,
    announce: Callable[[str], None] = lambda line: None,
) -> dict[str, Raced]:
    """Run all problems; one that the same code has already stored is not run again."""
    folder = out / "race"
    check_ours(out, [folder.name])
    chosen = None if chosen is None else list(chosen)
    # All identities before the first race: playing may fill the variables of a user's file.
    entries = [(name, problem, racers) for name, problem in problems.items() if (racers := contenders(problem, chosen))]
    identities = [_identity(name, problem, racers, seed) for name, problem, racers in entries]
    found = {}
    for number, ((name, problem, racers), wanted) in enumerate(zip(entries, identities, strict=True), 1):
        code = ("format", "versions", "sources")  # a race by other code replaces this one, another race does not
        known = json.dumps({key: value for key, value in wanted.items() if key not in code}, sort_keys=True)
        path = folder / f"{file_name(name)[:60]}-{hashlib.sha256(known.encode()).hexdigest()[:8]}.json"
        raced = _stored(path, wanted)
        if raced is None:
            announce(f"{number} of {len(entries)}: {name}")
            raced = race(problem, racers, signed(wanted), seed=seed)
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, raced.stored())
        found[name] = raced
    return found


def _identity(name: str, problem: Problem, racers: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return identity(
        *sources(problem.env, racers),
        problem=name,
        horizon=problem.horizon,
        env=_text(problem.env),
        contenders={key: _text(policy) for key, policy in racers.items()},
        content=fingerprint((problem.env, racers)),
        trials=problem.trials,
        seed=seed,
    )


class Result(NamedTuple):
    """A family of problems after the race."""

    found: dict[str, Raced]
    standings: list[Standing]


def run_all(
    families: Mapping[str, Mapping[str, Problem]],
    *,
    out: Path,
    seed: int,
    chosen: Iterable[str] | None = None,
    announce: Callable[[str], None] = lambda line: None,
) -> dict[str, Result]:
    """Race every family that some of the policies can play, and store its standings."""
    finished = {}
    for title, problems in families.items():
        found = run(problems, out=out, seed=seed, chosen=chosen, announce=announce)
        if found:
            given = {} if chosen is not None else given_in_words(next(iter(problems.values())))
            finished[title] = Result(found, standings(found, given))
            store(finished[title], title=title, out=out)
    if not finished:
        raise ValueError("none of these policies can play any of these problems")
    return finished


def sources(env: Any, racers: Mapping[str, Any]) -> list[str]:
    """Return the modules that compute a race: the simulation, the environment, and all policies with their parts.

    If any is of a user's own, all loaded files count: verbs may be registered in another one than their class.
    """
    homes = {type(each).__module__ for each in (env, *racers.values())} | _homes((env, *racers.values()))
    files = [] if all(map(is_ours, homes)) else own_files.loaded()
    return sorted({simulate.__module__, *homes, *files})


def _text(subject: Any) -> str:
    """Return the text of an environment or a policy, the same in every process: without addresses."""
    return _ADDRESS.sub("", repr(subject))


def _homes(part: Any) -> set[str]:
    if isinstance(part, tuple):
        own = {type(part).__module__} if hasattr(part, "_fields") else set()
        return own.union(*map(_homes, part))
    if not is_dataclass(part):
        return set()
    return {type(part).__module__}.union(*map(_homes, vars(part).values()))


def _stored(path: Path, wanted: Mapping[str, Any]) -> Raced | None:
    try:
        kept = json.loads(path.read_text())
        if wanted["content"] is None or differences(kept, wanted):
            return None
        names = wanted["contenders"]
        regret = {name: np.array(kept["regret"][name], dtype=float) for name in names}
        microseconds = {name: float(kept["microseconds"][name]) for name in names}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):  # not there, or not as written
        return None
    if any(values.shape != (wanted["trials"],) or not np.isfinite(values).all() for values in regret.values()):
        return None
    return Raced(regret, microseconds, {key: kept[key] for key in wanted})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=1) + "\n")


def regret_table(found: Mapping[str, Raced]) -> dict[str, np.ndarray]:
    """Return one row per problem, policy and trial."""
    parts = [
        (problem, name, trial, regret, raced.microseconds[name])
        for problem, raced in found.items()
        for name, values in raced.regret.items()
        for trial, regret in enumerate(values)
    ]
    names = ("problem", "policy", "trial", "regret", "microseconds")
    return dict(zip(names, map(np.array, zip(*parts, strict=True)), strict=True))


def store(result: Result, *, title: str, out: Path) -> None:
    """Write the standings as JSON, and all regrets as Parquet."""
    content = {
        "format": FORMAT,
        "family": title,
        "standings": [line._asdict() for line in result.standings],
        "problems": [raced.stored() for raced in result.found.values()],
    }
    _write(standings_file(out, title), content)
    write_table(regret_table(result.found), out / "race" / f"regret-{file_name(title)}.parquet")
