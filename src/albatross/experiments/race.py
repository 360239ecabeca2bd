"""The race: every policy on a catalogue of problems, each told what it asks for, and how far it is from the best.

No policy wins everywhere, and a user does not know beforehand where they are. What counts is therefore the *ratio* of a
policy's mean final regret to that of the problem's best policy, and of these ratios the worst and the geometric mean.
Policies are told the noise level where they ask for it (a wrong one in two problems), a bound of 10 on the norm, and
that there are no biases where there are none; Albatross is told nothing, AlbatrossDim the noise level.

Problems are data, one line each: add a line, or give `albatross race --problem`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from albatross import checks, environments, policies, simulate
from albatross.environments import Ball, FixedArms, Mixture
from albatross.experiments import compare, results
from albatross.protocol import on_ball
from albatross.report import figures
from albatross.report.files import write_whole
from albatross.report.stored import FORMAT, Stored
from albatross.simulation import Run

_SD = 0.5**0.5
_BOUND = 10.0  # on the norm, for those who ask
_RESAMPLES = 2_000
QUICK_SECONDS = 60.0  # that the quick race is expected to take on two cores
_LEAST = 1e-9  # a regret that ratios are taken of


class Problem(NamedTuple):
    """A line of the catalogue."""

    env: Any
    horizon: int
    quick: bool = False  # whether it is part of the quick race
    trials: int = 10
    told_sigma: float = 1.0  # what policies are told of the noise level, in units of it
    biases: bool = False  # whether arms may have biases


def _correlated(dim: int, correlation: float) -> np.ndarray:
    return correlation ** np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))


def _of_rank(dim: int, rank: int) -> np.ndarray:
    root = np.random.default_rng(0).standard_normal((dim, rank)) / np.sqrt(rank)
    return root @ root.T


def _sparse(dim: int, size: int) -> np.ndarray:
    return np.r_[np.full(size, 1.0 / np.sqrt(size)), np.zeros(dim - size)]


def _random_direction(dim: int) -> np.ndarray:
    direction = np.abs(np.random.default_rng(0).standard_normal(dim))
    return direction / (1.0 + 1e-9) / np.linalg.norm(direction)


# fmt: off
ARMS: dict[str, Problem] = {
    "75 x 50, norm 0": Problem(Mixture(n_arms=75, dim=50, theta_norm=0.0, noise_sd=_SD), 12_775, biases=True),
    "75 x 50, norm 0.1": Problem(Mixture(n_arms=75, dim=50, theta_norm=0.1, noise_sd=_SD), 12_775, biases=True),
    "75 x 50, norm 1": Problem(Mixture(n_arms=75, dim=50, theta_norm=1.0, noise_sd=_SD), 12_775, biases=True),
    "10 x 10, norm 0": Problem(Mixture(n_arms=10, dim=10, theta_norm=0.0, noise_sd=_SD), 12_775, True, 20, biases=True),
    "10 x 10, norm 0.3": Problem(Mixture(n_arms=10, dim=10, theta_norm=0.3, noise_sd=_SD), 12_775, biases=True),
    "10 x 10, norm 1": Problem(Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 12_775, True, biases=True),
    "10 x 10, norm 3": Problem(Mixture(n_arms=10, dim=10, theta_norm=3.0, noise_sd=_SD), 12_775, biases=True),
    "5 x 100, norm 1": Problem(Mixture(n_arms=5, dim=100, theta_norm=1.0, noise_sd=_SD), 5_000, biases=True),
    "correlated contexts": Problem(
        Mixture(n_arms=20, dim=20, theta_norm=1.0, noise_sd=_SD, covariance=_correlated(20, 0.9)), 5_000, biases=True),
    "contexts of rank 3": Problem(
        Mixture(n_arms=20, dim=30, theta_norm=1.0, noise_sd=_SD, covariance=_of_rank(30, 3)), 5_000, True, biases=True),
    "heavy noise": Problem(Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=5.0), 5_000, biases=True),
    "told half the noise": Problem(
        Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 5_000, told_sigma=0.5, biases=True),
    "told thrice the noise": Problem(
        Mixture(n_arms=10, dim=10, theta_norm=1.0, noise_sd=_SD), 5_000, told_sigma=3.0, biases=True),
    "10 fixed arms in a cube": Problem(
        FixedArms(n_arms=10, dim=5, arms="cube", theta=[-5.0, 1.0, 1.0, 1.5, 2.0]), 5_000, True, 20),
    "20 fixed arms, norm 0.3": Problem(FixedArms(n_arms=20, dim=10, theta_norm=0.3, noise_sd=_SD), 5_000, trials=20),
    "500 fixed arms": Problem(FixedArms(n_arms=500, dim=50, noise_sd=_SD), 5_000),
    "lock-in: 10 arms alone": Problem(
        FixedArms(n_arms=10, dim=10, arms="axes", theta=np.linspace(0.0, 1.0, 10)), 5_000, True, 20),
}
SPARSE: dict[str, Problem] = {
    "3 of 50 features": Problem(
        Mixture(n_arms=10, dim=50, theta=_sparse(50, 3), biases=np.zeros(10), noise_sd=_SD), 5_000),
    "10 of 50 features": Problem(
        Mixture(n_arms=10, dim=50, theta=_sparse(50, 10), biases=np.zeros(10), noise_sd=_SD), 5_000),
}
BALL: dict[str, Problem] = {
    "20 of 200, evenly": Problem(
        Ball(dim=200, magnitudes=np.linspace(0.12, 0.30, 20), noise_sd=0.1), 100_000, trials=5),
    "20 of 200, all small": Problem(Ball(dim=200, magnitudes=np.full(20, 0.12), noise_sd=0.1), 100_000, trials=5),
    "one large of 200": Problem(
        Ball(dim=200, magnitudes=np.r_[0.9, np.full(9, 0.1)], noise_sd=0.1), 100_000, trials=5),
    "all of 200": Problem(Ball(dim=200, magnitudes=_random_direction(200), noise_sd=0.1), 100_000, trials=5),
    "5 of 50": Problem(Ball(dim=50, sparsity=5, smallest=0.3, noise_sd=0.3), 20_000, True),
}
# fmt: on
# Sparse parameters stand apart: of the policies for finitely many arms only the lassos look for them.
FAMILIES = {"finitely many arms": ARMS, "finitely many arms, sparse theta": SPARSE, "the unit ball": BALL}

# By name, how they are written. Corral and the balancing policies race over bases that a user would take.
ARM_POLICIES = {
    "albatross": "albatross(biases=True)",
    **{
        name: name
        for name in (
            *("alb-norm", "oful-plus", "osom", "oful", "linucb", "lints", "greedy", "ucb", "na-oful", "sf-oful"),
            *("eb-ucb", "eb-lints", "threshold-lasso", "sa-lasso", "ed2rb", "uniform"),
        )
    },
}
BALL_POLICIES = {
    "albatross-dim": "albatross-dim",
    "ball-lints": "ball-lints(switch=0.01)",
    "ball-oful": "ball-oful(switch=0.1)",
    "alb-dim": "alb-dim(switch=0.1)",
    "sl-ucb": "sl-ucb",
    "explore-then-commit": "explore-then-commit",
}


def contenders(problem: Problem, chosen: Iterable[str] | None = None) -> dict[str, Any]:
    """The policies that race on a problem, by name, told what they ask for."""
    written = BALL_POLICIES if isinstance(problem.env, Ball) else ARM_POLICIES
    if chosen is not None:
        written = {text: written.get(text, text) for text in chosen}
    sigma = problem.told_sigma * problem.env.noise_sd or _LEAST  # without noise a little is told
    known: dict[str, Any] = {
        "sigma": sigma,
        "norm_bound": 1.0 if isinstance(problem.env, Ball) else _BOUND,
        "biases": problem.biases,
        "bases": (
            policies.LinTS(sigma=sigma, biases=problem.biases),
            policies.Greedy(biases=problem.biases),
            policies.UCB(sigma=sigma),
        ),
    }
    built = {name: compare.build(text, known) for name, text in written.items()}
    return {name: policy for name, policy in built.items() if on_ball(policy) == isinstance(problem.env, Ball)}


def own_families(texts: Iterable[str]) -> dict[str, dict[str, Problem]]:
    """Problems in words, numbered, with arms and on the ball apart: they have different policies."""
    problems = {f"{number}: {text.partition('(')[0]}": read_problem(text) for number, text in enumerate(texts, 1)}
    ball = {name: problem for name, problem in problems.items() if isinstance(problem.env, Ball)}
    arms = {name: problem for name, problem in problems.items() if name not in ball}
    both = {"your problems": arms, "your problems on the ball": ball}
    return {title: family for title, family in both.items() if family}


def read_problem(text: str) -> Problem:
    """A problem in words: an environment with its parameters, and perhaps a horizon.

    >>> read_problem("Mixture(n_arms=5, dim=3, theta_norm=2, horizon=500)").horizon
    500
    """
    kinds = {"Mixture": Mixture, "FixedArms": FixedArms, "Nested": environments.Nested, "Ball": Ball}
    name, rest = compare.call_parts(text)
    try:
        kind, given = kinds[name], compare.keywords(rest, compare.literal)
    except (KeyError, compare.Unreadable):
        raise ValueError(
            f"cannot read {checks.shown(text)}: write an environment ({', '.join(kinds)}) with its parameters, as in "
            "Mixture(n_arms=20, dim=5, theta_norm=2.0, horizon=5000)"
        ) from None
    horizon = given.pop("horizon", 5_000)
    try:
        env = kind(**given)
    except (TypeError, OverflowError) as error:  # a number too large for a float, say
        raise ValueError(f"{checks.shown(text)}: {error}") from None
    return Problem(env, horizon, quick=True, biases=isinstance(env, Mixture))


# --------------------------------------------------------------------------------------------------- run and store


class Raced(NamedTuple):
    """A problem's final regrets by policy, one a trial, and what a round of it cost."""

    regret: dict[str, np.ndarray]
    microseconds: dict[str, float]
    identity: Mapping[str, Any]  # what was raced, by whom and with which code

    def stored(self) -> dict[str, Any]:
        """As JSON has it."""
        regret = {name: values.tolist() for name, values in self.regret.items()}
        return {**self.identity, "regret": regret, "microseconds": self.microseconds}


def race(problem: Problem, racers: Mapping[str, Any], identity: Mapping[str, Any], *, seed: int) -> Raced:
    """All of them on one problem, paired."""
    trials = problem.trials
    runs: dict[str, Run] = simulate(racers, problem.env, horizon=problem.horizon, trials=trials, seed=seed, record=1)
    return Raced(
        {name: run.regret[:, -1] for name, run in runs.items()},
        {name: 1e6 * run.seconds / (trials * problem.horizon) for name, run in runs.items()},
        identity,
    )


def run(
    problems: Mapping[str, Problem],
    *,
    out: Path,
    seed: int,
    chosen: Iterable[str] | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> dict[str, Raced]:
    """All problems, each kept in a file of its own, and not run again by the same code."""
    folder = out / "race"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = None if chosen is None else list(chosen)
    found, versions = {}, results.versions()
    for number, (name, problem) in enumerate(problems.items(), 1):
        racers = contenders(problem, chosen)
        if not racers:
            continue
        identity = {
            "problem": name,
            "horizon": problem.horizon,
            "env": repr(problem.env),
            "contenders": {key: repr(policy) for key, policy in racers.items()},
            "trials": problem.trials,
            "seed": seed,
            "versions": versions,
        }
        known = json.dumps({key: value for key, value in identity.items() if key != "versions"}, sort_keys=True)
        path = folder / f"{_file_name(name)[:60]}-{hashlib.sha256(known.encode()).hexdigest()[:8]}.json"
        raced = _stored(path, identity)
        if raced is None:
            told(f"{number} of {len(problems)}: {name}")
            raced = race(problem, racers, identity, seed=seed)
            _write(path, raced.stored())
        found[name] = raced
    return found


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
    told: Callable[[str], None] = lambda line: None,
) -> dict[str, Result]:
    """Every family that some of the policies can play, with its standings and one figure stored."""
    finished = {}
    for title, problems in families.items():
        found = run(problems, out=out, seed=seed, chosen=chosen, told=told)
        if found:
            finished[title] = Result(found, standings(found))
            store(finished[title], title=title, out=out)
    if not finished:
        raise ValueError("none of these policies can play any of these problems")
    stored = Stored(out).standings  # of earlier races, too, as in the report
    drawn = {title: [Standing(**line) for line in lines] for title, lines in stored.items()}
    for suffix in ("png", "pdf"):
        figures.save(lambda: plot(drawn), out / "race" / f"figure.{suffix}")
    return finished


def catalogue(*, quick: bool) -> dict[str, dict[str, Problem]]:
    """All problems by family; quick: a few of them, in short."""
    if not quick:
        return dict(FAMILIES)
    shortened = {title: in_short(problems) for title, problems in FAMILIES.items()}
    return {title: problems for title, problems in shortened.items() if problems}


def in_short(problems: Mapping[str, Problem]) -> dict[str, Problem]:
    """Those of the quick race, with fewer rounds."""
    return {
        name: problem._replace(horizon=min(problem.horizon, 2_000), trials=10)
        for name, problem in problems.items()
        if problem.quick
    }


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _stored(path: Path, identity: Mapping[str, Any]) -> Raced | None:
    try:
        kept = json.loads(path.read_text())
        if any(kept[key] != value for key, value in identity.items()):
            return None
        regret = {key: np.array(values) for key, values in kept["regret"].items()}
        return Raced(regret, kept["microseconds"], identity)
    except (OSError, ValueError, KeyError):
        return None


def _write(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1) + "\n")


# --------------------------------------------------------------------------------------------------------- the table


class Standing(NamedTuple):
    """A policy in the race: its ratio to the best on each problem, the worst and the geometric mean of them."""

    name: str
    ratios: dict[str, float]
    worst: float
    worst_interval: tuple[float, float]  # 95 %, by resampling trials
    mean: float
    mean_interval: tuple[float, float]


def standings(found: Mapping[str, Raced]) -> list[Standing]:
    """All policies that ran on every problem, the one with the smallest worst ratio first."""
    names = [
        name for name in next(iter(found.values())).regret if all(name in raced.regret for raced in found.values())
    ]
    tables = [np.array([raced.regret[name] for name in names]) for raced in found.values()]  # (policies, trials)
    ratios = np.array([_ratios(table.mean(axis=1)) for table in tables])  # (problems, policies)
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            [_ratios(table[:, rng.integers(table.shape[1], size=table.shape[1])].mean(axis=1)) for table in tables]
            for _ in range(_RESAMPLES)
        ]
    )  # (resamples, problems, policies)
    worst, mean = resampled.max(axis=1), np.exp(np.log(resampled).mean(axis=1))
    lines = [
        Standing(
            name,
            dict(zip(found, ratios[:, j].tolist(), strict=True)),
            float(ratios[:, j].max()),
            _interval(worst[:, j]),
            float(np.exp(np.log(ratios[:, j]).mean())),
            _interval(mean[:, j]),
        )
        for j, name in enumerate(names)
    ]
    return sorted(lines, key=lambda line: line.worst)


def _ratios(means: np.ndarray) -> np.ndarray:
    floored = np.maximum(means, _LEAST)
    return floored / floored.min()


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def standing_rows(lines: list[Standing]) -> list[tuple[str, ...]]:
    """Columns policy, worst ratio, its interval, geometric mean, and where it is worst."""
    return [
        (
            line.name,
            _short(line.worst),
            " to ".join(map(_short, line.worst_interval)),
            _short(line.mean),
            max(line.ratios, key=lambda problem: line.ratios[problem]),
        )
        for line in lines
    ]


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def problem_rows(found: Mapping[str, Raced], name: str) -> list[tuple[str, ...]]:
    """Columns problem, best policy, its regret, and the named policy's regret and ratio."""
    rows: list[tuple[str, ...]] = []
    for problem, raced in found.items():
        best = min(raced.regret, key=lambda each: raced.regret[each].mean())
        ratio = max(raced.regret[name].mean(), _LEAST) / max(raced.regret[best].mean(), _LEAST)
        rows.append((problem, best, _with_error(raced.regret[best]), _with_error(raced.regret[name]), f"{ratio:.2f}"))
    return rows


def _with_error(values: np.ndarray) -> str:
    error = f" ± {values.std(ddof=1) / np.sqrt(values.size):,.0f}" if values.size > 1 else ""
    return f"{values.mean():,.0f}{error}"


def regret_table(found: Mapping[str, Raced]) -> dict[str, np.ndarray]:
    """A line for every problem, policy and trial."""
    parts = [
        (problem, name, trial, regret, raced.microseconds[name])
        for problem, raced in found.items()
        for name, values in raced.regret.items()
        for trial, regret in enumerate(values)
    ]
    names = ("problem", "policy", "trial", "regret", "microseconds")
    return dict(zip(names, map(np.array, zip(*parts, strict=True)), strict=True))


def store(result: Result, *, title: str, out: Path) -> None:
    """The standings as JSON, and every regret as Parquet."""
    content = {
        "format": FORMAT,
        "family": title,
        "standings": [line._asdict() for line in result.standings],
        "problems": [raced.stored() for raced in result.found.values()],
    }
    _write(standings_file(out, title), content)
    results.write_table(regret_table(result.found), out / "race" / f"regret-{_file_name(title)}.parquet")


def standings_file(out: Path, title: str) -> Path:
    """Of a family of problems."""
    return out / "race" / f"standings-{_file_name(title)}.json"


def plot(families: Mapping[str, list[Standing]]) -> Figure:
    """Ratio to the best on every problem as dots, policies sorted by their worst; one plot a family of problems."""
    longest = max(len(lines) for lines in families.values())
    figure, places = figures.new_figure(len(families), widths=[1.2] * len(families), height=1.2 + 0.27 * longest)
    for axes, (title, lines) in zip(places, families.items(), strict=True):
        for height, line in enumerate(reversed(lines)):
            ours = line.name.startswith("albatross")
            colour = "#D55E00" if ours else "#0072B2"
            values = np.array(list(line.ratios.values()))
            axes.plot(values, np.full(values.size, height), "o", color=colour, markersize=4, alpha=0.55, mec="none")
            axes.plot([line.mean], [height], "|", color="black", markersize=11, markeredgewidth=1.6)
            axes.annotate(
                _short(line.worst), (line.worst, height), (5, -3), textcoords="offset points", fontsize=7, color=colour
            )
        axes.set_xscale("log")
        axes.set_xlim(0.9, 2.2 * max(line.worst for line in lines))
        axes.axvline(1.0, color="#555555", linewidth=0.8)
        axes.set_yticks(range(len(lines)), [line.name for line in reversed(lines)])
        axes.set_ylim(-0.7, len(lines) - 0.3)
        axes.set_xlabel("regret / that of the best policy\none dot per problem, bar: geometric mean")
        axes.set_title(title)
    return figure
