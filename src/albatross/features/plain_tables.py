"""Schemas as plain tables, of texts, numbers and lists: in TOML, and in saved files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from albatross.checks import shown
from albatross.features.kinds import KINDS, Feature


def describe(feature: Feature) -> dict[str, Any]:
    """Return the table that declares a feature.

    >>> describe(KINDS["number"](mean=30.0, sd=10.0))
    {'kind': 'number', 'mean': 30.0, 'sd': 10.0, 'of': 'arm'}
    """
    kind = next(word for word, kind in KINDS.items() if type(feature) is kind)
    given = {field.name: getattr(feature, field.name) for field in fields(feature)}
    return {"kind": kind, **{key: _plain(value) for key, value in given.items() if value or key == "mean"}}


def build(name: str, given: Any) -> Feature:
    """Return the feature that a table declares."""
    if not isinstance(given, Mapping) or given.get("kind") not in tuple(KINDS):
        raise ValueError(f"feature {shown(name)} needs a kind: {', '.join(map(repr, KINDS))}")
    kind: Any = KINDS[given["kind"]]
    known = {field.name: field for field in fields(kind)}
    for key in given:
        if key != "kind" and key not in known:
            raise ValueError(f"feature {shown(name)}: a {given['kind']} has no {shown(key)}, but {', '.join(known)}")
    absent = [key for key, field in known.items() if field.default is MISSING and key not in given]
    if absent:
        raise ValueError(f"feature {shown(name)} needs its {absent[0]}")
    try:
        return kind(**{key: value for key, value in given.items() if key != "kind"})
    except ValueError as error:
        raise ValueError(f"feature {shown(name)}: {error}") from None


def to_toml(schema: Mapping[str, Any]) -> str:
    """Return the tables of a whole schema as TOML."""
    lines = [f"products = {_toml(schema['products'])}", ""]
    for name, described in schema["features"].items():
        lines.append(f"[features.{name if name.isidentifier() and name.isascii() else _toml(name)}]")
        lines += [f"{key} = {_toml(value)}" for key, value in described.items()] + [""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    """Return texts, numbers, truth values and lists as TOML, which writes them as JSON does but for two exceptions.

    TOML has no surrogates, by which JSON writes an emoji, and does not take DEL as it is.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    """Return NumPy's numbers as Python's, and tuples as lists."""
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
