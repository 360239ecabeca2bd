"""The actions of a log: numbers, names and features, from the log itself and from a table of items."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albatross.checks import shortened
from albatross.datasets.tables import UNNAMED, Table
from albatross.environments.log_contexts import Encoded

_FEW = 100  # whole numbers below this are indices from 0; larger ones only if half of the numbers up to them occur
_MOST_CELLS = 2**30  # indicators: 8 GB
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


class Actions(NamedTuple):
    """The actions of a log."""

    codes: np.ndarray  # (n,) float, NaN where missing
    names: tuple[str, ...]
    features: np.ndarray | None
    feature_names: tuple[str, ...]
    contexts: Encoded | None = None  # (n, K, d), if there is an encoder


Encoder = Callable[[Table, Table | None, Actions], Encoded]  # of the log, the items and the actions


def known_actions(
    table: Table,
    column: str,
    items: str | os.PathLike[str] | None,
    n_actions: int | None,
    encode: Encoder | None,
    eligible: Sequence[list[str] | None] | None = None,
) -> Actions:
    """Number the actions, including those that only the items, the eligible arms or the caller know."""
    distinct, places = table.labels(column)
    if not len(distinct):
        raise ValueError(f"{table.name}: {column} is missing in every row")
    others = {arm for arms in eligible or () for arm in arms or ()}
    odd = table.first_not_whole(column)
    if odd is not None and table.numeric_and_text([column])[0] and not others.issuperset(map(str, distinct)):
        table.numbers([column])  # raises an error for a name among numbers
        raise ValueError(
            f"{table.place(odd[0])}: {column} is {shortened(odd[1])}, but actions must be whole numbers of up to 18 "
            "digits, or names"
        )
    logged = distinct
    distinct = _with_others(distinct, others)
    counted = distinct.dtype.kind == "i" and distinct[-1] < max(_FEW, 2 * len(distinct), n_actions or 0)
    if counted and logged[0] < 0:
        row = int(np.flatnonzero(places == 0)[0])
        raise ValueError(f"{table.place(row)}: {column} is {logged[0]}, but actions are counted from 0")
    features = None
    feature_names: tuple[str, ...] = ()
    of_items = None if items is None else Table(items)
    if of_items is not None and encode is not None:
        names = tuple(map(str, labels_of_items(of_items)[0]))
    elif of_items is not None:
        names, features, feature_names = _read_items(of_items)
    elif counted:
        names = tuple(map(str, range(n_actions or int(distinct[-1]) + 1)))
    else:
        names = tuple(map(str, distinct))
        names += tuple(f"unnamed {j + 1}" for j in range((n_actions or 0) - len(names)))
    if n_actions is not None and len(names) != n_actions:
        known_by = table.name if items is None else Path(items).name
        raise ValueError(f"n_actions={n_actions}, but {known_by} has {len(names)} actions: {listed(names)}")
    codes = {name: code for code, name in enumerate(names)}
    numbers = np.array([codes.get(str(label), -1) for label in logged])
    if (numbers < 0).any():
        worst = int(np.argmin(numbers))
        row = int(np.flatnonzero(places == worst)[0])
        label = shortened(str(logged[worst]))
        raise ValueError(f"{table.place(row)}: {column} is {label}, but the {len(names)} actions are {listed(names)}")
    known = Actions(np.where(places < 0, np.nan, numbers[places]), names, features, feature_names)
    return known if encode is None else known._replace(contexts=encode(table, of_items, known))


def _with_others(distinct: np.ndarray, others: set[str]) -> np.ndarray:
    """Return the labels and others in ascending order: numbers if all of them are whole, else texts."""
    if not others:
        return distinct
    if distinct.dtype.kind == "i" and all(map(_WHOLE.fullmatch, others)):
        return np.array(sorted({*distinct.tolist(), *map(int, others)}))
    return np.array(sorted({*map(str, distinct), *others}), dtype=object)


def item_column(table: Table) -> str:
    """Return the column with the names of the actions in a table of items."""
    column = next((name for name in ("item_id", "action") if name in table.names), None)
    if column is None:
        raise ValueError(f"{table.name} has no column 'item_id' or 'action': it has {listed(table.names)}")
    return column


def labels_of_items(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the actions in ascending order, and the place of every row's name in it."""
    column = item_column(table)
    distinct, places = table.labels(column)
    if len(distinct) < table.n_rows or (places < 0).any():
        raise ValueError(f"{table.name} must have one row per action, each with a different {column}")
    return distinct, places


def _read_items(table: Table) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """Read names and features of the actions, and the features' names; text columns become indicators."""
    column = item_column(table)
    distinct, places = labels_of_items(table)
    others = [name for name in table.names if name != column and not name.startswith(UNNAMED)]
    numeric, texts = table.numeric_and_text(others)
    flags, titles = indicators(table, texts)
    features = np.hstack([table.numbers(numeric), flags])[np.argsort(places)]
    if not np.isfinite(features).all():
        row = int(np.argsort(places)[np.argmin(np.isfinite(features).all(axis=1))])
        raise ValueError(f"{table.place(row)}: a feature is missing or infinite")
    return tuple(map(str, distinct)), features, (*numeric, *titles)


def indicators(table: Table, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Make 0/1 columns for the levels of each category except the first, which the biases of the arms cover."""
    columns = [np.empty((table.n_rows, 0))]
    titles: list[str] = []
    for name in names:
        levels, places = table.labels(name)
        if (len(titles) + len(levels)) * table.n_rows > _MOST_CELLS:
            raise ValueError(
                f"{table.name}: {shortened(name)} has {len(levels)} distinct values in {table.n_rows} rows, too many "
                "for indicators: leave the column out"
            )
        columns.append(places[:, None] == np.arange(1, len(levels)))
        titles += [f"{name}={level}" for level in levels[1:]]
    return np.hstack(columns).astype(np.float64), titles


def listed(names: Sequence[str], most: int = 8) -> str:
    """List names for a message, at most so many of them."""
    return ", ".join(map(shortened, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
