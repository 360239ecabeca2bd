"""Logs read with a schema: its columns become contexts."""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import Any

import numpy as np

from albatross.datasets.log_actions import Actions, labels_of_items, listed
from albatross.datasets.logs import Log, read_with
from albatross.datasets.tables import Table
from albatross.environments.log_contexts import Encoded
from albatross.features.kinds import Category, Feature, Number, Vector, is_missing
from albatross.features.schema import Features

Columns = dict[str, list[Any]]


def read_log(
    features: Features,
    path: str | os.PathLike[str],
    *,
    items: str | os.PathLike[str] | None = None,
    n_actions: int | None = None,
) -> Log:
    """Read a log whose columns are the features of a schema. See `Features.read_log`."""
    encode = partial(_encode, features)
    return read_with(encode, path, items=items, n_actions=n_actions, declared=features.schema)


def _encode(features: Features, table: Table, items: Table | None, known: Actions) -> Encoded:
    of_situation, of_arm = (
        {name: feature for name, feature in features.schema.items() if feature.of == whose}
        for whose in ("situation", "arm")
    )
    situations = {name: _column(table, name, feature) for name, feature in of_situation.items()}
    if items is not None:
        rows_of_arms = np.argsort(labels_of_items(items)[1])
        whole = {name: _column(items, name, feature) for name, feature in of_arm.items()}
    else:
        rows_of_arms = _rows_of_arms(table, known) if of_arm else np.zeros(len(known.names), np.int64)
        whole = {name: _column(table, name, feature) for name, feature in of_arm.items()}
        _check_constant(table, known, whole, rows_of_arms)
    arms = {name: [values[row] for row in rows_of_arms] for name, values in whole.items()}
    n, n_arms = table.n_rows, len(known.names)
    single = [Features(features.schema) for _ in range(2)]  # without products; each counts its own missing values
    try:
        of_rounds = single[0].encode_rows(_records(situations, n), [{}] * n)
        of_actions = single[1].encode({}, _records(arms, n_arms))
    except ValueError as error:
        raise ValueError(f"{table.name} does not fit the schema: {error}") from None
    missing = {name: single[feature.of == "arm"].missing[name] for name, feature in features.schema.items()}
    if any(missing.values()):
        counts = ", ".join(f"{count} of {name!r}" for name, count in missing.items() if count)
        warnings.warn(f"{table.name}: missing values are encoded as 0: {counts}", stacklevel=6)
    left, right = _factors(features)
    return Encoded(of_actions=of_actions, of_rounds=of_rounds, left=left, right=right)


def _records(columns: Columns, n: int) -> list[dict[str, Any]]:
    if not columns:
        return [{}] * n
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _column(table: Table, name: str, feature: Feature) -> list[Any]:
    """Return the values of a feature in every row; an error names the line of a value that does not fit."""
    if name not in table.names:
        raise ValueError(
            f"{table.name} has no column {name!r}, a feature of the {feature.of} in the schema: it has "
            f"{listed(table.names)}"
        )
    values: list[Any]
    if isinstance(feature, Number):
        values = table.numbers([name])[:, 0].tolist()
    elif isinstance(feature, Vector):
        values = table.lists(name)
    else:
        values = _labels(table, name, feature)
    try:
        feature.raw(name, values)
    except ValueError:
        for row, value in enumerate(values):
            try:
                feature.raw(name, [value])
            except ValueError as error:
                raise ValueError(f"{table.place(row)}: {error}") from None
    return values


def _labels(table: Table, name: str, feature: Category) -> list[Any]:
    """Return the values of a category as the schema lists them, as they are in the file, or as whole numbers."""
    distinct, places = table.labels(name)
    texts = table.texts(name)
    listed_as = {str(value): value for value in feature.values}
    whole = feature.values or table.may_have_floats(name)
    if feature.buckets and distinct.dtype.kind == "i" and any("." in text for text in texts if text) and whole:
        said = f"{name} is read as whole numbers, 10 for 10.0: if these are texts, write the log as Parquet"
        warnings.warn(f"{table.name}: {said}", stacklevel=6)
    values = dict[str | None, Any]({None: None})
    for text, place in zip(texts, places, strict=True):
        if text not in values:
            number = distinct[place]
            values[text] = listed_as.get(text, listed_as.get(str(number), number if whole else text))
    return [values[text] for text in texts]


def _rows_of_arms(table: Table, known: Actions) -> np.ndarray:
    """Return a row (K,) of the log for each arm, in which it was chosen: its features are there."""
    rows = np.full(len(known.names), -1)
    chosen = np.flatnonzero(~np.isnan(known.codes))[::-1]
    rows[known.codes[chosen].astype(np.int64)] = chosen  # the first one is assigned last
    if (rows < 0).any():
        unknown = [name for name, row in zip(known.names, rows, strict=True) if row < 0]
        raise ValueError(
            f"{table.name} has no row with the features of {len(unknown)} arm(s) that were never chosen: "
            f"{listed(unknown)}. Give a table of items"
        )
    return rows


def _check_constant(table: Table, known: Actions, columns: Columns, rows_of_arms: np.ndarray) -> None:
    """Refuse a feature of the arm that differs between rows of one arm."""
    for name, values in columns.items():
        shown = [None if is_missing(value) else str(value) for value in values]
        for row, code in enumerate(known.codes):
            if code == code and shown[row] != shown[first := rows_of_arms[int(code)]]:
                raise ValueError(
                    f"{table.place(row)}: {name} of {known.names[int(code)]!r} is {shown[row]}, but {shown[first]} in "
                    f"another row: the schema declares it as a feature of the arm, so declare it of the situation"
                )


def _factors(features: Features) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates (p,) and (p,) whose products follow the features, in their order."""
    starts, start = {}, 0
    for name, feature in features.schema.items():
        starts[name] = start
        start += feature.width
    pairs = [
        (starts[one] + j, starts[other] + k)
        for one, other in features.products
        for j in range(features.schema[one].width)
        for k in range(features.schema[other].width)
    ]
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    return left, right
