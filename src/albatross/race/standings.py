"""The standings of a race: how far each policy is from the best one, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

_RESAMPLES = 2_000
_LEAST = 1e-9  # a regret that ratios are taken of


class Raced(NamedTuple):
    """A problem's final regrets by policy, one per trial, and the time per round."""

    regret: dict[str, np.ndarray]
    microseconds: dict[str, float]
    identity: Mapping[str, Any]  # what was raced, by whom and with which code

    def stored(self) -> dict[str, Any]:
        """Return the result in the form that is stored as JSON."""
        regret = {name: values.tolist() for name, values in self.regret.items()}
        return {**self.identity, "regret": regret, "microseconds": self.microseconds}


class Standing(NamedTuple):
    """A policy in the race: its ratio to the best on each problem, the worst ratio and the geometric mean."""

    name: str
    ratios: dict[str, float]
    intervals: dict[str, tuple[float, float]]  # of the ratios: 95 %, by resampling trials
    worst: float
    worst_interval: tuple[float, float]
    mean: float
    mean_interval: tuple[float, float]
    given: str  # what it was given of the problems, in words


def standings(found: Mapping[str, Raced], given: Mapping[str, str] = MappingProxyType({})) -> list[Standing]:
    """Rank all policies that ran on every problem by their worst ratio, smallest first."""
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
            dict(zip(found, map(_interval, resampled[:, :, j].T), strict=True)),
            float(ratios[:, j].max()),
            _interval(worst[:, j]),
            float(np.exp(np.log(ratios[:, j]).mean())),
            _interval(mean[:, j]),
            given.get(name, ""),
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
    """Return columns policy, what it is given, its worst problem, the ratio there, the mean ratio, and intervals."""
    return [
        (
            line.name,
            line.given,
            max(line.ratios, key=lambda problem: line.ratios[problem]),
            short(line.worst),
            _to(line.worst_interval),
            short(line.mean),
            _to(line.mean_interval),
        )
        for line in lines
    ]


def _to(interval: tuple[float, float]) -> str:
    return " to ".join(map(short, interval))


def short(ratio: float) -> str:
    """Format with three digits.

    >>> short(1.2345), short(1234.5)
    ('1.23', '1,234')
    """
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def problem_rows(found: Mapping[str, Raced], line: Standing) -> list[tuple[str, ...]]:
    """Return columns problem, best policy, its regret, and the regret of a policy, its ratio and its interval."""
    rows: list[tuple[str, ...]] = []
    for problem, raced in found.items():
        best = min(raced.regret, key=lambda each: raced.regret[each].mean())
        regrets = [_with_error(raced.regret[name]) for name in (best, line.name)]
        rows.append((problem, best, *regrets, short(line.ratios[problem]), _to(line.intervals[problem])))
    return rows


def _with_error(values: np.ndarray) -> str:
    error = f" ± {values.std(ddof=1) / np.sqrt(values.size):,.0f}" if values.size > 1 else ""
    return f"{values.mean():,.0f}{error}"
