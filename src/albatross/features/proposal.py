"""A schema proposed from a log, as a start that people edit."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.features.kinds import Category, Feature, Number, Whose, is_missing
from albatross.features.schema import Features
from albatross.frames import columns_of, is_frame

# Columns of a log that are no features.
_ACTIONS = ("action", "arm", "item_id")
_OTHERS = (
    "reward", "click", "propensity", "propensity_score", "user", "user_id", "time", "timestamp", "position", "eligible",
    "contexts", "id", "decision", "round",
)  # fmt: skip
_MOST_VALUES = 50  # a category with more values is hashed
_BUCKETS = 32
_RARE = 0.01  # a value in fewer rows is pooled with other rare ones
_LONG = 40  # characters: texts that are longer on average are not categories
_WIDEST = 10  # a product is proposed of features with at most so many coordinates
_MOST_PRODUCTS = 200  # coordinates of all proposed products


class Proposal(NamedTuple):
    """A schema, and a sentence about every column that was left out."""

    features: Features
    left_out: list[str]

    def to_toml(self) -> str:
        """Return the schema as TOML, with what was left out as comments."""
        return "".join(f"# {line}\n" for line in self.left_out) + self.features.to_toml()


def propose(log: Any) -> Proposal:
    """Propose a schema for a log with a column `action`: a CSV or Parquet file, or a data frame.

    Numbers are scaled by their mean and standard deviation, texts become categories: values in less than 1 % of the
    rows are pooled, and more than 50 values are hashed. A column that is the same in all rows of an action describes
    the arm, any other one the situation. Products of the arm's and the situation's features are added where they are
    small. Constant columns and long texts are left out.

    >>> log = {"action": ["a", "b"] * 5, "topic": ["sport", "news"] * 5, "hour": list(range(10)), "site": ["x"] * 10}
    >>> kinds = [("action", "U1"), ("topic", "U5"), ("hour", float), ("site", "U1")]
    >>> found = propose(np.array(list(zip(*log.values())), dtype=kinds))
    >>> found.features.names
    ('topic=news', 'topic=sport', 'hour', 'topic=news * hour', 'topic=sport * hour')
    >>> found.left_out
    ["'site' is constant"]
    """
    if not is_frame(log) and not isinstance(log, str | os.PathLike):
        raise ValueError(f"the log must be a CSV or Parquet file or a data frame, not {shown(log)}")
    columns = columns_of(log) if is_frame(log) else _read(log)
    actions = next((columns[name] for name in _ACTIONS if name in columns), None)
    if actions is None:
        raise ValueError(f"the log needs a column 'action', but has {', '.join(map(repr, columns)) or 'none'}")
    schema: dict[str, Feature] = {}
    left_out = []
    for name, values in columns.items():
        if name in (*_ACTIONS, *_OTHERS):
            continue
        found = _feature(values, "arm" if _is_of_arm(values, actions) else "situation")
        if isinstance(found, str):
            left_out.append(f"{shown(name)} {found}")
        else:
            schema[name] = found
    if not schema:
        raise ValueError("no column of the log can be a feature: " + "; ".join(left_out or ["there are none"]))
    return Proposal(Features(schema, products=_products(schema)), left_out)


def _read(path: str | os.PathLike[str]) -> dict[str, Sequence[Any]]:
    from albatross.datasets.tables import UNNAMED, Table

    table = Table(path)
    named = [name for name in table.names if not name.startswith(UNNAMED)]
    numeric, _ = table.numeric_and_text(named)
    return {
        name: table.numbers([name])[:, 0].tolist() if name in numeric else table.texts(name).tolist() for name in named
    }


def _is_of_arm(values: Sequence[Any], actions: Sequence[Any]) -> bool:
    """Return whether the value is the same in all rows of every action, and some action has two rows."""
    by_action = defaultdict(set)
    for value, action in zip(values, actions, strict=True):
        by_action[action].add(None if is_missing(value) else value)
    return len(by_action) < len(values) and all(len(found) == 1 for found in by_action.values())


def _feature(values: Sequence[Any], of: Whose) -> Feature | str:
    """Return the feature, or why there is none."""
    present = [value for value in values if not is_missing(value)]
    if len(set(map(str, present))) < 2:
        return "is constant" if present else "is missing in every row"
    if all(isinstance(value, int | float | np.number) for value in present):
        numbers = np.array(present, dtype=float)
        if np.abs(numbers).max() > checks.LARGEST:
            return f"has numbers above {checks.LARGEST:g} in size"
        sd = _rounded(numbers.std())
        if sd < 1.0 / checks.LARGEST:
            return "has no usable spread: its numbers are too close together"
        digits = 2 - math.floor(math.log10(sd))  # of the mean, to a hundredth of the sd: it may be far larger than that
        return Number(mean=round(float(numbers.mean()), digits), sd=sd, of=of)
    if not all(isinstance(value, str) for value in present):
        return "has values that are neither texts nor numbers"
    counts = Counter(present)
    if sum(map(len, present)) > _LONG * len(present) or 2 * len(counts) > len(present):
        return "has texts that hardly recur: make features of them yourself"
    if len(counts) > _MOST_VALUES:
        return Category(buckets=_BUCKETS, of=of)
    frequent = sorted(value for value, count in counts.items() if count >= _RARE * len(present))
    return Category(values=frequent, other=len(frequent) < len(counts), of=of)


def _rounded(number: float) -> float:
    """Return a number of four significant digits, which is easier to edit."""
    return float(f"{number:.4g}")


def _products(schema: dict[str, Feature]) -> list[tuple[str, str]]:
    widths = {name: len(feature.coordinates(name)) for name, feature in schema.items()}
    small = [name for name in schema if widths[name] <= _WIDEST]
    pairs = [
        (arm, situation)
        for arm in small
        for situation in small
        if (schema[arm].of, schema[situation].of) == ("arm", "situation")
    ]
    return pairs if sum(widths[one] * widths[other] for one, other in pairs) <= _MOST_PRODUCTS else []
