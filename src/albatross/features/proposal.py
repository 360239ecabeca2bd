"""A schema proposed from a log, as a start that people edit."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
        notes, described = [*self.left_out], {feature.of for feature in self.features.schema.values()}
        if "arm" not in described:
            notes.append("No feature is of the arm, so none changes which arm is best: give a table of items.")
        elif "situation" in described and not self.features.products:
            notes.append("Products of the arm's and the situation's features would be many: add those that matter.")
        return "".join(f"# {line}\n" for line in notes) + self.features.to_toml()


def propose(log: Any, items: Any = None) -> Proposal:
    """Propose a schema for a log with a column `action`: a CSV or Parquet file, or a data frame.

    Numbers are scaled by their mean and standard deviation, texts become categories: values in less than 1 % of the
    rows are pooled, and more than 50 values are hashed. `items`, a table with one row per action, describes the arms;
    so does a column that is the same in all rows of an action. Any other column describes the situation. Products of
    the arm's and the situation's features are added where they are small. Constant columns and long texts are left out.

    >>> log = {"action": ["a", "b"] * 5, "topic": ["sport", "news"] * 5, "hour": list(range(10)), "site": ["x"] * 10}
    >>> kinds = [("action", "U1"), ("topic", "U5"), ("hour", float), ("site", "U1")]
    >>> found = propose(np.array(list(zip(*log.values())), dtype=kinds))
    >>> found.features.names
    ('topic=news', 'topic=sport', 'hour', 'topic=news * hour', 'topic=sport * hour')
    >>> found.left_out
    ["'site' is constant"]
    """
    columns = _columns("log", log)
    of_items: Mapping[str, Sequence[Any]] = {} if items is None else _columns("table of items", items)
    actions = _actions("log", columns)
    if items is not None and len(set(named := _actions("table of items", of_items))) < len(named):
        raise ValueError("the table of items must have one row per action: is it a log?")
    schema: dict[str, Feature] = {}
    left_out = []
    for name, values in {**columns, **of_items}.items():
        if name in (*_ACTIONS, *_OTHERS) or not name.strip():  # the index of a frame that was written to a file
            continue
        found = _feature(values, "arm" if name in of_items or _is_of_arm(values, actions) else "situation")
        if isinstance(found, str):
            left_out.append(f"{shown(name)} {found}")
        else:
            schema[name] = found
    if not schema:
        raise ValueError("no column of the log can be a feature: " + "; ".join(left_out or ["there are none"]))
    return Proposal(Features(schema, products=_products(schema)), left_out)


def _columns(what: str, given: Any) -> Mapping[str, Sequence[Any]]:
    """Return the columns of a file or a frame by name; in one of numbers, what is no number is a text."""
    if is_frame(given):
        return columns_of(given)
    if not isinstance(given, str | os.PathLike):
        raise ValueError(f"the {what} must be a CSV or Parquet file or a data frame, not {shown(given)}")
    from albatross.datasets.tables import UNNAMED, Table

    table = Table(given)
    named = [name for name in table.names if not name.startswith(UNNAMED)]
    numeric, _ = table.numeric_and_text(named)
    found: dict[str, Sequence[Any]] = {}
    for name in named:
        texts = table.texts(name).tolist()
        if name in numeric:
            found[name] = [_number_or_text(text) for text in texts]
        else:
            is_list = name not in (*_ACTIONS, *_OTHERS) and table.is_nested(name)
            found[name] = [None if text is None else [text] for text in texts] if is_list else texts
    return found


def _actions(what: str, columns: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    found = next((columns[name] for name in _ACTIONS if name in columns), None)
    if found is None:
        raise ValueError(f"the {what} needs a column 'action', but has {', '.join(map(repr, columns)) or 'none'}")
    return found


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _is_of_arm(values: Sequence[Any], actions: Sequence[Any]) -> bool:
    """Return whether the value is the same in all rows of every action, and some action has two rows."""
    by_action = defaultdict(set)
    for value, action in zip(values, actions, strict=True):
        by_action[action].add(None if is_missing(value) else str(value))  # a list has no hash
    return len(by_action) < len(values) and all(len(found) == 1 for found in by_action.values())


def _feature(values: Sequence[Any], of: Whose) -> Feature | str:
    """Return the feature, or why there is none."""
    present = [value for value in values if not is_missing(value)]
    if len(set(map(str, present))) < 2:
        return "is constant" if present else "is missing in every row"
    if any(isinstance(value, list | tuple | np.ndarray) for value in present):
        return "has lists or structs: declare a vector, if they are lists of numbers"
    if any(isinstance(value, bool) for value in present):
        return "has truth values: make numbers of them, 0 and 1"
    numeric = [value for value in present if isinstance(value, int | float | np.number)]
    texts = [value for value in present if isinstance(value, str)]
    if numeric and texts:
        return f"has numbers and texts, such as {shown(numeric[0])} and {shown(texts[0])}"
    if len(numeric) == len(present):
        numbers = np.array(present, dtype=float)
        if np.abs(numbers).max() > checks.LARGEST:
            return f"has numbers above {checks.LARGEST:g} in size"
        sd = _rounded(numbers.std())
        if sd < 1.0 / checks.LARGEST:
            return "has no usable spread: its numbers are too close together"
        digits = 2 - math.floor(math.log10(sd))  # of the mean, to a hundredth of the sd: it may be far larger than that
        mean = round(float(numbers.mean()), digits) or 0.0  # rather than -0.0
        return Number(mean=mean, sd=sd, of=of)
    if len(texts) < len(present):
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
