"""Logs of decisions: one action per round, its reward and its probability."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.checks import shortened
from albatross.datasets.tables import UNNAMED, Table

_PLAIN = ("action", "reward", "propensity")
_OPEN_BANDIT = ("item_id", "click", "propensity_score")
_USER, _AFFINITY = "user_feature_", "user-item_affinity_"
_FEW = 100  # whole numbers below this are indices from 0; larger ones only if half of the numbers up to them occur
_MOST_ACTIONS = 1_000_000  # every action has a name in memory
_MOST_CELLS = 2**30  # indicators: 8 GB
_ROUNDING = 1e-9  # tolerance for probabilities above 1


class Log(NamedTuple):
    """A log in the order of play, the input of replay and off-policy estimates."""

    actions: np.ndarray  # (n,) int64, counted from 0
    rewards: np.ndarray  # (n,)
    propensities: np.ndarray  # (n,) in (0, 1]
    features: np.ndarray  # (n, d) features of the round, shared by all actions
    n_actions: int
    feature_names: tuple[str, ...]  # d of them
    action_names: tuple[str, ...]  # names in the file
    action_features: np.ndarray | None = None  # (n_actions, q) features of the actions
    positions: np.ndarray | None = None  # (n,) int64 position on the page, counted from 0
    action_feature_names: tuple[str, ...] = ()  # q of them, if a table of the actions is given


def read_log(
    path: str | os.PathLike[str],
    *,
    items: str | os.PathLike[str] | None = None,
    n_actions: int | None = None,
) -> Log:
    """Read a log from CSV or Parquet, with columns action, reward, propensity and features, or an Open Bandit log.

    Actions are whole numbers from 0, or names; large whole numbers with gaps are names too. `items` is a table of
    features of the actions (for an Open Bandit log, `item_context.csv` in the same folder is the default). `n_actions`
    is the number of actions, if the files do not show it. Rows with a missing value or a propensity of 0 are dropped
    with a warning; impossible values are errors.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("action,reward,propensity,age\\n1,0.5,0.25,31\\n0,1,0.75,27\\n")
    ...     log = read_log(path)
    >>> log.actions.tolist(), log.rewards.tolist(), log.features.tolist(), log.feature_names
    ([1, 0], [0.5, 1.0], [[31.0], [27.0]], ('age',))
    """
    table = Table(path, unread=_AFFINITY)  # one column per action, almost all zeros
    if n_actions is not None:
        check_n_actions(n_actions)
    if set(_OPEN_BANDIT) <= set(table.names):
        return _open_bandit(table, items, n_actions)
    return _plain(table, items, n_actions)


def check_n_actions(n_actions: int) -> None:
    """Require a whole number, small enough to keep a name for every action in memory."""
    checks.whole("n_actions", n_actions, least=1)
    if n_actions > _MOST_ACTIONS:
        raise ValueError(f"n_actions must be at most {_MOST_ACTIONS}, not {n_actions}")


def _plain(table: Table, items: str | os.PathLike[str] | None, n_actions: int | None) -> Log:
    absent = [name for name in _PLAIN if name not in table.names]
    if absent:
        raise ValueError(
            f"{table.name} has no column {' or '.join(map(repr, absent))}: a log needs {', '.join(_PLAIN)} "
            f"(or {', '.join(_OPEN_BANDIT)}), this file has {_listed(table.names)}"
        )
    others = [name for name in table.names if name not in _PLAIN]
    named = [name for name in others if not name.startswith(UNNAMED)]  # a column without a name is a row index
    numeric, texts = table.numeric_and_text(named)
    if texts:
        warnings.warn(f"{table.name}: left out {len(texts)} column(s) without numbers: {_listed(texts)}", stacklevel=3)
    known = _known_actions(table, "action", items, n_actions)
    return _finished(table, _PLAIN, known, table.numbers(numeric), numeric)


def _open_bandit(table: Table, items: str | os.PathLike[str] | None, n_actions: int | None) -> Log:
    if items is None:
        beside = table.path.parent / "item_context.csv"
        items = beside if beside.exists() else None
    n_affinities = sum(name.startswith(_AFFINITY) for name in table.names)  # one per action
    known = _known_actions(table, "item_id", items, n_actions or (n_affinities or None if items is None else None))
    features, names = _indicators(table, [name for name in table.names if name.startswith(_USER)])
    positions = None
    if "position" in table.names:
        positions = table.numbers(["position"])[:, 0]
        positions -= np.nanmin(positions, initial=1.0) >= 1.0  # the data set counts from 1, its pipeline from 0
    order = table.order("timestamp") if "timestamp" in table.names else None
    return _finished(table, _OPEN_BANDIT, known, features, names, positions=positions, order=order)


class _Actions(NamedTuple):
    codes: np.ndarray  # (n,) float, NaN where missing
    names: tuple[str, ...]
    features: np.ndarray | None
    feature_names: tuple[str, ...]


def _known_actions(table: Table, column: str, items: str | os.PathLike[str] | None, n_actions: int | None) -> _Actions:
    """Number the actions, including those that only the items or the caller know."""
    distinct, places = table.labels(column)
    if not len(distinct):
        raise ValueError(f"{table.name}: {column} is missing in every row")
    odd = table.first_not_whole(column)
    if odd is not None and table.numeric_and_text([column])[0]:
        table.numbers([column])  # raises an error for a name among numbers
        raise ValueError(
            f"{table.place(odd[0])}: {column} is {shortened(odd[1])}, but actions must be whole numbers of up to 18 "
            "digits, or names"
        )
    counted = distinct.dtype.kind == "i" and distinct[-1] < max(_FEW, 2 * len(distinct), n_actions or 0)
    if counted and distinct[0] < 0:
        row = int(np.flatnonzero(places == 0)[0])
        raise ValueError(f"{table.place(row)}: {column} is {distinct[0]}, but actions are counted from 0")
    features = None
    feature_names: tuple[str, ...] = ()
    if items is not None:
        names, features, feature_names = _read_items(items)
    elif counted:
        names = tuple(map(str, range(n_actions or int(distinct[-1]) + 1)))
    else:
        names = tuple(map(str, distinct))
        names += tuple(f"unnamed {j + 1}" for j in range((n_actions or 0) - len(names)))
    if n_actions is not None and len(names) != n_actions:
        known_by = table.name if items is None else Path(items).name
        raise ValueError(f"n_actions={n_actions}, but {known_by} has {len(names)} actions: {_listed(names)}")
    codes = {name: code for code, name in enumerate(names)}
    numbers = np.array([codes.get(str(label), -1) for label in distinct])
    if (numbers < 0).any():
        worst = int(np.argmin(numbers))
        row = int(np.flatnonzero(places == worst)[0])
        label = shortened(str(distinct[worst]))
        raise ValueError(f"{table.place(row)}: {column} is {label}, but the {len(names)} actions are {_listed(names)}")
    return _Actions(np.where(places < 0, np.nan, numbers[places]), names, features, feature_names)


def _read_items(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """Read names and features of the actions, and the features' names; text columns become indicators."""
    table = Table(path)
    column = next((name for name in ("item_id", "action") if name in table.names), None)
    if column is None:
        raise ValueError(f"{table.name} has no column 'item_id' or 'action': it has {_listed(table.names)}")
    distinct, places = table.labels(column)
    if len(distinct) < table.n_rows or (places < 0).any():
        raise ValueError(f"{table.name} must have one row per action, each with a different {column}")
    others = [name for name in table.names if name != column and not name.startswith(UNNAMED)]
    numeric, texts = table.numeric_and_text(others)
    indicators, titles = _indicators(table, texts)
    features = np.hstack([table.numbers(numeric), indicators])[np.argsort(places)]
    if not np.isfinite(features).all():
        row = int(np.argsort(places)[np.argmin(np.isfinite(features).all(axis=1))])
        raise ValueError(f"{table.place(row)}: a feature is missing or infinite")
    return tuple(map(str, distinct)), features, (*numeric, *titles)


def _indicators(table: Table, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
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


def _finished(
    table: Table,
    columns: tuple[str, str, str],
    known: _Actions,
    features: np.ndarray,
    feature_names: Sequence[str],
    *,
    positions: np.ndarray | None = None,
    order: np.ndarray | None = None,
) -> Log:
    rewards, propensities = table.numbers(columns[1:]).T
    log = Log(
        known.codes,
        rewards,
        propensities,
        features,
        len(known.names),
        tuple(feature_names),
        known.names,
        known.features,
        positions,
        known.feature_names,
    )
    return checked(log, name=table.name, place=table.place, order=order)


def checked(log: Log, *, name: str, place: Callable[[int], str], order: np.ndarray | None = None) -> Log:
    """Return the log in `order`, without rows that have missing values; raise an error for impossible values.

    Missing values are NaN, also in actions and positions. `place` names a row in an error.
    """
    _refuse_impossible(log, place)
    reasons = {
        "without an action": np.isnan(log.actions),
        "without a reward": np.isnan(log.rewards),
        "without a propensity": np.isnan(log.propensities),
        "with a propensity of 0": log.propensities == 0,
        "without a feature": np.isnan(log.features).any(axis=1),
    }
    if log.positions is not None:
        reasons["without a position"] = np.isnan(log.positions)
    rows = np.arange(len(log.rewards)) if order is None else order
    dropped = np.any(list(reasons.values()), axis=0)
    if dropped.any():
        causes = ", ".join(f"{int(rows_.sum())} {cause}" for cause, rows_ in reasons.items() if rows_.any())
        if dropped.all():
            raise ValueError(f"{name} has no usable row: {causes}")
        warnings.warn(f"{name}: dropped {int(dropped.sum())} of {len(dropped)} rows: {causes}", stacklevel=5)
    rows = rows[~dropped[rows]]
    actions = log.actions[rows].astype(np.int64)
    never = np.flatnonzero(np.bincount(actions, minlength=log.n_actions) == 0)
    if never.size:
        names = _listed([log.action_names[action] for action in never])
        warnings.warn(
            f"{name}: {never.size} of {log.n_actions} actions never logged: {names}. They are kept, but the log says "
            "nothing about their rewards",
            stacklevel=5,
        )
    return log._replace(
        actions=actions,
        rewards=log.rewards[rows],
        propensities=np.minimum(log.propensities[rows], 1.0),
        features=np.ascontiguousarray(log.features[rows]),
        positions=None if log.positions is None else log.positions[rows].astype(np.int64),
    )


def _refuse_impossible(log: Log, place: Callable[[int], str]) -> None:
    """Raise an error for the first impossible value. Missing values pass, because comparisons with NaN are false."""
    largest = np.abs(log.features).max(axis=1, initial=0.0)
    slots = np.zeros(1) if log.positions is None else log.positions
    for title, values, wrong, needed in (
        (
            "propensity",
            log.propensities,
            (log.propensities < 0) | (log.propensities > 1 + _ROUNDING),
            "above 0, at most 1",
        ),
        (
            "propensity",
            log.propensities,
            (log.propensities > 0) & (log.propensities < 1 / checks.LARGEST),
            f"at least {1 / checks.LARGEST:g}",
        ),
        ("reward", log.rewards, np.abs(log.rewards) > checks.LARGEST, "finite"),
        ("the largest feature", largest, largest > checks.LARGEST, "finite"),
        ("position", slots, (slots < 0) | (slots > 2**53) | (np.floor(slots) < slots), "a whole number up to 2^53"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"{place(row)}: {title} is {values[row]:g}, but must be {needed}")


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(map(shortened, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
