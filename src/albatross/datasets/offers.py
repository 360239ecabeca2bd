"""What the rounds of a log offered: eligible arms, a context for each of them, and whom the round was for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.datasets.tables import MISSING, Table
from albatross.environments.log_contexts import Offers
from albatross.store.decision_log import COLUMNS

ELIGIBLE, CONTEXTS, USER = "eligible", "contexts", "user"
# Columns that are no features: these, and the ids of the decisions.
SPECIAL = (ELIGIBLE, CONTEXTS, USER, "decision")

Lists = Sequence[list[Any] | None]


def read_eligible(table: Table) -> list[list[str] | None] | None:
    """Return the names of the eligible arms of each round, None if there is no such column or it is empty."""
    lists = _read_lists(table, ELIGIBLE)
    if lists is None:
        return None
    named: list[list[str] | None] = []
    for row, arms in enumerate(lists):
        if arms is None:
            named.append(None)
            continue
        if not all(map(_is_name, arms)):
            raise ValueError(f"{table.place(row)}: eligible is {shown(arms)}, not a list of names of arms")
        names = [str(arm).strip() for arm in arms]  # as those of the actions
        if len(set(names)) < len(names):
            raise ValueError(f"{table.place(row)}: eligible lists an arm twice: {shown(arms)}")
        named.append(names)
    return named


def _is_name(arm: Any) -> bool:
    """Return whether an action can have this name; that of a missing value, as after the last | of a|b|, is none."""
    return isinstance(arm, str | int) and not isinstance(arm, bool) and str(arm).strip() not in MISSING


def eligible_mask(
    table: Table, named: Sequence[list[str] | None], codes: dict[str, int], actions: np.ndarray
) -> np.ndarray:
    """Return which arms (n, K) are eligible; none where that is missing. Actions (n,) are NaN where missing."""
    checks.fits_in_memory(f"{table.n_rows} rounds with {len(codes)} arms", table.n_rows * len(codes), "take fewer")
    mask = np.zeros((table.n_rows, len(codes)), bool)
    for row, arms in enumerate(named):
        for arm in arms or ():
            if arm not in codes:
                known = shown(list(codes))
                raise ValueError(
                    f"{table.place(row)}: arm {shown(arm)} in eligible is unknown: the actions are {known}"
                )
            mask[row, codes[arm]] = True
    given = mask.any(axis=1) & ~np.isnan(actions)
    wrong = np.flatnonzero(given)[~mask[given, actions[given].astype(np.int64)]]
    if wrong.size:
        row = int(wrong[0])
        action = list(codes)[int(actions[row])]
        raise ValueError(
            f"{table.place(row)}: action is {shown(action)}, which is not among the eligible arms {shown(named[row])}"
        )
    return mask


def read_contexts(table: Table) -> Lists | None:
    """Return the contexts of each round as they are in the file, None if there is no such column or it is empty."""
    return _read_lists(table, CONTEXTS)


def offers(table: Table, lists: Lists, named: Sequence[list[str] | None] | None, codes: dict[str, int]) -> Offers:
    """Return the contexts of the eligible arms, checked."""
    if named is None:
        raise ValueError(
            f"{table.name} has a column 'contexts', so it needs a column 'eligible': the arms that the contexts are of"
        )
    first, rows = next((row, rows) for row, rows in enumerate(lists) if rows is not None)
    dim = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    if not dim:
        wanted = "a list of numbers for each eligible arm"
        raise ValueError(f"{table.place(first)}: contexts must be {wanted}, not {shown(rows)}")
    parts, places = [np.empty((0, dim))], [np.empty(0, np.int64)]
    for row, (given, arms) in enumerate(zip(lists, named, strict=True)):
        if given is None or arms is None:
            continue
        try:
            part = checks.finite_array("contexts", given, (len(arms), dim))
        except ValueError as error:
            raise ValueError(f"{table.place(row)}: with {len(arms)} eligible arms, {error}") from None
        numbers = np.array([codes[arm] for arm in arms], np.int64)
        order = np.argsort(numbers)
        parts.append(part[order])
        places.append(row * len(codes) + numbers[order])
    return Offers(contexts=np.concatenate(parts), places=np.concatenate(places), length=table.n_rows, n_arms=len(codes))


def read_users(table: Table) -> np.ndarray | None:
    """Return the users (n,) as texts, None where missing; None if there is no such column or it is empty."""
    if USER not in table.names:
        return None
    names, places = table.labels(USER)
    if not len(names):
        return None
    as_written = table.names == COLUMNS or not table.may_have_floats(USER)  # by a LogWriter, or as texts
    return table.texts(USER) if as_written else np.array([*map(str, names), None], dtype=object)[places]


def _read_lists(table: Table, name: str) -> Lists | None:
    if name not in table.names:
        return None
    lists = table.lists(name)
    return None if all(each is None for each in lists) else lists
