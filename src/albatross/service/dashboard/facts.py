"""What a page says of a model, as numbers: counts of the last two weeks, and what is in memory now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from albatross.features import Number
from albatross.service.dashboard.charts import Bin, Point
from albatross.service.endpoints import REWARDED
from albatross.service.model import DELAYS, Model
from albatross.service.sqlite import SQLiteStore

DAYS = 14
MOST_USERS = 300  # whose estimates are looked at for one page
LEAST = 20  # rewards of a point, if there are as many
_MOST_POINTS = 56
_STRETCHES = (1, 2, 3, 6, 12, 24)  # hours that one point may cover
_SURE = 0.5  # probability from which a user counts as an outlet reader
_BINS = 24
_EXAMPLES = 3


class Cell(NamedTuple):
    """Numbers that were counted and added up."""

    n: int = 0
    total: float = 0.0
    square: float = 0.0

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return self.total / self.n if self.n else None

    @property
    def variance(self) -> float:
        """Their variance; 0 if it is within the rounding errors of the sums."""
        if self.n < 2:
            return 0.0
        spread = self.square - self.total**2 / self.n
        return spread / (self.n - 1) if spread > 1e-9 * self.square else 0.0

    @property
    def half(self) -> float:
        """Half the width of a 95 % interval of the mean."""
        return 1.96 * math.sqrt(self.variance / self.n) if self.n else 0.0

    def __add__(self, other: Any) -> Cell:
        return Cell(*(one + another for one, another in zip(self, other, strict=True)))


class ArmRow(NamedTuple):
    """An arm, with what it was shown and brought."""

    name: str
    active: bool
    decisions: int
    share: float
    rewards: Cell


class FeatureRow(NamedTuple):
    """A feature as it came since the start, against how it was declared."""

    name: str
    of: str
    missing: int
    missing_share: float
    shift: float | None  # mean less the declared one, in declared standard deviations; of numbers
    spread: float | None  # standard deviation over the declared one


class Reader(NamedTuple):
    """A user without a name."""

    norm: float
    outlet: float  # probability of being an outlet reader
    rewards: int


@dataclass
class Readers:
    """Users of a flock by the norm of what they make of features."""

    n: int  # in memory
    looked_at: list[Reader]
    shares: dict[str, float]  # of the kinds, in the population

    @property
    def outlet(self) -> list[Reader]:
        """Those for whom the arm counts, and not its features."""
        return [reader for reader in self.looked_at if reader.outlet >= _SURE]

    @property
    def topic(self) -> list[Reader]:
        """Those for whom the features count."""
        return [reader for reader in self.looked_at if reader.outlet < _SURE]

    def bins(self) -> list[Bin]:
        """Return outlet and topic readers by norm."""
        most = max((reader.norm for reader in self.looked_at), default=0.0) or 1.0
        edges = np.linspace(0.0, most, _BINS + 1)
        counts = [np.histogram([each.norm for each in part], edges)[0].tolist() for part in (self.outlet, self.topic)]
        return [
            Bin(low, high, both)
            for low, high, *both in zip(edges[:-1].tolist(), edges[1:].tolist(), *counts, strict=True)
        ]

    def examples(self) -> list[tuple[str, Reader]]:
        """Return some of either kind, those with the most rewards."""
        kinds = (("outlet reader", self.outlet), ("topic reader", self.topic))
        return [
            (kind, each) for kind, part in kinds for each in sorted(part, key=lambda each: -each.rewards)[:_EXAMPLES]
        ]


@dataclass
class Facts:
    """Everything that a page shows of a model."""

    model: Model
    first: float = 0.0  # hour since 1970
    last: float = 0.0
    series: dict[str, list[Point]] = field(default_factory=dict)
    decisions: dict[str, int] = field(default_factory=dict)  # by who made them
    rewards: dict[str, Cell] = field(default_factory=dict)  # by who made the decision
    outcomes: dict[str, int] = field(default_factory=dict)
    delays: list[tuple[str, int]] = field(default_factory=list)
    arms: list[ArmRow] = field(default_factory=list)
    features: list[FeatureRow] = field(default_factory=list)
    newcomers: int = 0
    weight: Cell = field(default_factory=Cell)  # of a uniform policy
    agreed: Cell = field(default_factory=Cell)  # of an apprentice with its baseline
    smallest: float | None = None  # propensity since the start
    readers: Readers | None = None
    own_warnings: list[str] = field(default_factory=list)  # of the flock, or of the policy

    @property
    def n_decisions(self) -> int:
        """Number of decisions."""
        return sum(self.decisions.values())

    @property
    def all_rewards(self) -> Cell:
        """All rewards together."""
        return sum(self.rewards.values(), Cell())

    @property
    def never_played(self) -> list[str]:
        """Active arms without a decision."""
        return [arm.name for arm in self.arms if arm.active and not arm.decisions]

    @property
    def effective(self) -> float | None:
        """Effective number of decisions for evaluating a uniform policy."""
        return self.weight.total**2 / self.weight.square if self.weight.square else None


def gathered(store: SQLiteStore, model: Model, users: Sequence[bytes], now: int, smallest: float | None) -> Facts:
    """Gather the facts of a model; `users` are those whose estimates are looked at. May run in another thread."""
    hour = now // 3_600_000
    since = hour - 24 * DAYS + 1
    by_hour, by_label = store.tallies_by_hour(model.number, since), store.tallies_by_label(model.number, since)
    facts = Facts(model, smallest=smallest, last=float(hour + 1))
    facts.first, facts.series = _series(by_hour, facts.last)
    counts: dict[str, dict[str, Cell]] = {}
    for what, label, n, total, square in by_label:
        counts.setdefault(what, {})[label] = Cell(n, total, square)
    for what, cells in counts.items():
        kind, _, name = what.partition(":")
        whole = sum(cells.values(), Cell())
        if kind == "decision" and name != "import":
            facts.decisions[name] = whole.n
        elif kind == "reward":
            facts.rewards[name] = whole
        elif kind == "outcome":
            facts.outcomes[name] = whole.n
    delays = counts.get("delay", {})
    labels = [*(name for _, name in DELAYS), "longer"]
    facts.delays = [(label, delays[label].n if label in delays else 0) for label in labels]
    facts.newcomers = _of(counts, "newcomer").n
    facts.weight, facts.agreed = _of(counts, "weight"), _of(counts, "agreed")
    facts.arms = _arms(model, counts)
    facts.features = _features(model)
    facts.readers, facts.own_warnings = _readers(model, users)
    return facts


def _of(counts: dict[str, dict[str, Cell]], what: str) -> Cell:
    return sum(counts.get(what, {}).values(), Cell())


def _series(rows: Iterable[Any], last: float) -> tuple[float, dict[str, list[Point]]]:
    """Return mean rewards over time by who decided, and the hour with which they begin."""
    cells: dict[str, dict[int, Cell]] = {}
    for hour, what, *numbers in rows:
        kind, _, by = what.partition(":")
        if kind == "reward" and by != "import":
            cells.setdefault(by, {})[hour] = Cell(*numbers)
    first = min((hour for each in cells.values() for hour in each), default=int(last) - 1)
    series = {by: _points(found, last - first) for by, found in cells.items()}
    return float(first), {by: series[by] for by in ("policy", "floor", "baseline") if by in series}


def _points(found: dict[int, Cell], span: float) -> list[Point]:
    """Return points of equal stretches of time, but longer ones where rewards are few: a mean of two says nothing."""
    stretch = next((each for each in _STRETCHES if span / each <= _MOST_POINTS), _STRETCHES[-1])
    parts: list[tuple[Cell, float]] = []  # with the sum of the hours of all rewards
    place = None
    for hour, cell in sorted(found.items()):
        when = cell.n * (hour + 0.5)
        if parts and (hour // stretch == place or parts[-1][0].n < LEAST):
            parts[-1] = parts[-1][0] + cell, parts[-1][1] + when
        else:
            parts.append((cell, when))
        place = hour // stretch
    if len(parts) > 1 and parts[-1][0].n < LEAST:
        cell, when = parts.pop()
        parts[-1] = parts[-1][0] + cell, parts[-1][1] + when
    return [Point(when / cell.n, cell.mean or 0.0, cell.half, cell.n) for cell, when in parts]


def _arms(model: Model, counts: dict[str, dict[str, Cell]]) -> list[ArmRow]:
    shown: dict[str, int] = {}
    brought: dict[str, Cell] = {}
    for what, cells in counts.items():
        for name, cell in cells.items():
            if what.startswith("decision:") and what != "decision:import":
                shown[name] = shown.get(name, 0) + cell.n
            elif what in REWARDED:
                brought[name] = brought.get(name, Cell()) + cell
    total = sum(shown.values()) or 1
    active = model.counted_arms
    names = {**dict.fromkeys(active), **dict.fromkeys(shown)}
    rows = [
        ArmRow(name, name in active, shown.get(name, 0), shown.get(name, 0) / total, brought.get(name, Cell()))
        for name in names
    ]
    return sorted(rows, key=lambda row: (-row.decisions, not row.active))


def _features(model: Model) -> list[FeatureRow]:
    seen, rows = model.seen, []
    (means, sds), place = seen.means_and_sds, 0
    for name, feature in model.features.schema.items():
        offered = seen.rows if feature.of == "arm" else seen.requests
        missing = model.features.missing[name]
        is_number = isinstance(feature, Number) and missing < offered  # what is missing counts as the mean
        rows.append(
            FeatureRow(
                name,
                "arm" if feature.of == "arm" else "context",
                missing,
                min(missing / offered, 1.0) if offered else 0.0,
                float(means[place]) if is_number else None,
                float(sds[place]) if is_number else None,
            )
        )
        place += feature.width
    return rows


def _readers(model: Model, users: Sequence[bytes]) -> tuple[Readers | None, list[str]]:
    bandits = model.bandits
    population = bandits.population()
    if population is None:
        return None, _warnings_of_one(bandits, users) if model.settings.users == "shared" else []
    found = []
    for user in users if population.looks else ():  # before, everybody is as the prior has it
        try:
            told = bandits.describe(user)
        except ValueError:  # the user has just left memory
            continue
        found.append(Reader(told["norm"], told["kinds"]["outlet readers"], told["rewards"]))
    return Readers(bandits.n_users, found, population.kinds), list(population.warnings)


def _warnings_of_one(bandits: Any, users: Sequence[bytes]) -> list[str]:
    """Return the warnings of the one bandit that all users share, but for that of arms: the page has one of its own."""
    if not users or users[0] not in bandits:
        return []
    return [each for each in bandits.describe(users[0]).get("warnings", []) if "never played" not in each]
