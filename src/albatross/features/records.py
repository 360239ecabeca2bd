"""Records of arms and situations, as callers have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown


def in_order(records: Any, order: Any) -> Any:
    """Return records by name as a list in this order of the names; other records have an order of their own.

    >>> in_order({"a": {"x": 1}, "b": {"x": 2}}, ["b", "a"])
    [{'x': 2}, {'x': 1}]
    """
    if not isinstance(records, Mapping):
        if order is not None:
            raise ValueError(f"order is for a dict of records by name, not for {shown(records)}")
        return records
    if order is None:  # the dict's own order need not be that of the arms
        raise ValueError("a dict of records needs the order of its rows: encode(situation, records, order=agent.arms)")
    if isinstance(order, str) or not isinstance(order, Iterable):
        raise ValueError(f"order must be a list of names, not {shown(order)}")
    names = [name.item() if isinstance(name, np.generic) else name for name in order]
    for name in names:
        checks.name("an arm", name)
        if name not in records:
            raise ValueError(f"arm {shown(name)} has no record: give one for every name in order")
    strange = records.keys() - names
    if strange:
        raise ValueError(f"there is a record of {shown(strange.pop())}, which is not in order")
    return [records[name] for name in names]


def listed(records: Any, whose: str) -> list[Any]:
    """Return records as a list."""
    if not isinstance(records, list | tuple):
        raise ValueError(f"records of the {whose} must be a list of dicts or a data frame, not {shown(records)}")
    return list(records)
