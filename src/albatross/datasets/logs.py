"""Logs of somebody else's decisions: one action a round, its reward, and the probability it was taken with."""

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
_FEW = 100  # whole numbers below this count the actions from 0; larger ones do if half of those up to them occur
_MOST_ACTIONS = 1_000_000  # all of them have names here
_MOST_CELLS = 2**30  # of indicators: 8 GB
_ROUNDING = 1e-9  # a probability may be above 1 by so much


class Log(NamedTuple):
    """Rounds of a log in the order they were played: what off-policy estimates and replay start from."""

    actions: np.ndarray  # (n,) int64, counted from 0
    rewards: np.ndarray  # (n,)
    propensities: np.ndarray  # (n,) in (0, 1]
    features: np.ndarray  # (n, d) of the round, the same for every action
    n_actions: int
    feature_names: tuple[str, ...]  # d of them
    action_names: tuple[str, ...]  # what the file calls them
    action_features: np.ndarray | None = None  # (n_actions, q)
    positions: np.ndarray | None = None  # (n,) int64 slot of the page, counted from 0
    action_feature_names: tuple[str, ...] = ()  # q of them, where a table of the actions tells


def read_log(
    path: str | os.PathLike[str],
    *,
    items: str | os.PathLike[str] | None = None,
    n_actions: int | None = None,
) -> Log:
    """A log from CSV or Parquet: columns action, reward, propensity and features, or the Open Bandit Dataset's.

    Actions are whole numbers from 0, or names; whole numbers of which few occur are names too. `items` is a table of
    the actions' own features (an Open Bandit log finds `item_context.csv` beside it); `n_actions` says how many there
    are where nothing else does. Rows with something missing or a propensity of 0 are dropped with a warning, values
    that cannot be are errors.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("action,reward,propensity,age\\n1,0.5,0.25,31\\n0,1,0.75,27\\n")
    ...     log = read_log(path)
    >>> log.actions.tolist(), log.rewards.tolist(), log.features.tolist(), log.feature_names
    ([1, 0], [0.5, 1.0], [[31.0], [27.0]], ('age',))
    """
    table = Table(path, unread=_AFFINITY)  # a column for every action, almost all of it 0
    if n_actions is not None:
        check_n_actions(n_actions)
    if set(_OPEN_BANDIT) <= set(table.names):
        return _open_bandit(table, items, n_actions)
    return _plain(table, items, n_actions)


def check_n_actions(n_actions: int) -> None:
    """A whole number, and not so large that names for all actions fill the memory."""
    checks.whole("n_actions", n_actions, least=1)
    if n_actions > _MOST_ACTIONS:
        raise ValueError(f"n_actions={n_actions}, but a log has at most {_MOST_ACTIONS} actions, counted from 0")


def _plain(table: Table, items: str | os.PathLike[str] | None, n_actions: int | None) -> Log:
    absent = [name for name in _PLAIN if name not in table.names]
    if absent:
        raise ValueError(
            f"{table.name} has no column {' or '.join(map(repr, absent))}: a log needs {', '.join(_PLAIN)} "
            f"(or {', '.join(_OPEN_BANDIT)}), this file has {_listed(table.names)}"
        )
    others = [name for name in table.names if name not in _PLAIN]
    named = [name for name in others if not name.startswith(UNNAMED)]  # a column without a name counts the rows
    numeric, texts = table.numeric_and_text(named)
    if texts:
        warnings.warn(f"{table.name}: left out columns without numbers, {len(texts)}: {_listed(texts)}", stacklevel=3)
    known = _known_actions(table, "action", items, n_actions)
    return _finished(table, _PLAIN, known, table.numbers(numeric), numeric)


def _open_bandit(table: Table, items: str | os.PathLike[str] | None, n_actions: int | None) -> Log:
    if items is None:
        beside = table.path.parent / "item_context.csv"
        items = beside if beside.exists() else None
    n_affinities = sum(name.startswith(_AFFINITY) for name in table.names)  # one for every action
    known = _known_actions(table, "item_id", items, n_actions or (n_affinities or None if items is None else None))
    features, names = _indicators(table, [name for name in table.names if name.startswith(_USER)])
    positions = None
    if "position" in table.names:
        positions = table.numbers(["position"])[:, 0]
        positions -= np.nanmin(positions, initial=1.0) >= 1.0  # the data set counts slots from 1, its pipeline from 0
    order = table.order("timestamp") if "timestamp" in table.names else None
    return _finished(table, _OPEN_BANDIT, known, features, names, positions=positions, order=order)


class _Actions(NamedTuple):
    codes: np.ndarray  # (n,) float, NaN where missing
    names: tuple[str, ...]
    features: np.ndarray | None
    feature_names: tuple[str, ...]


def _known_actions(table: Table, column: str, items: str | os.PathLike[str] | None, n_actions: int | None) -> _Actions:
    """The actions by number, and all of them that the log, the items or the caller know of."""
    distinct, places = table.labels(column)
    if not len(distinct):
        raise ValueError(f"{table.name}: {column} is missing in every row")
    odd = table.first_not_whole(column)
    if odd is not None and table.numeric_and_text([column])[0]:
        table.numbers([column])  # refuses a name among numbers
        raise ValueError(
            f"{table.place(odd[0])}: {column} is {shortened(odd[1])}, but actions are whole numbers of up to 18 "
            "digits, or names"
        )
    counted = distinct.dtype.kind == "i" and distinct[-1] < max(_FEW, 2 * len(distinct), n_actions or 0)
    if counted and distinct[0] < 0:
        row = int(np.flatnonzero(places == 0)[0])
        raise ValueError(f"{table.place(row)}: {column} is {distinct[0]}, but actions count from 0")
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
        raise ValueError(f"n_actions={n_actions}, but {known_by} names {len(names)}: {_listed(names)}")
    codes = {name: code for code, name in enumerate(names)}
    numbers = np.array([codes.get(str(label), -1) for label in distinct])
    if (numbers < 0).any():
        worst = int(np.argmin(numbers))
        row = int(np.flatnonzero(places == worst)[0])
        label = shortened(str(distinct[worst]))
        raise ValueError(f"{table.place(row)}: {column} is {label}, but the {len(names)} actions are {_listed(names)}")
    return _Actions(np.where(places < 0, np.nan, numbers[places]), names, features, feature_names)


def _read_items(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """The actions' names, in order, their features and the names of these; columns of text become indicators."""
    table = Table(path)
    column = next((name for name in ("item_id", "action") if name in table.names), None)
    if column is None:
        raise ValueError(f"{table.name} has no column 'item_id' or 'action': it has {_listed(table.names)}")
    distinct, places = table.labels(column)
    if len(distinct) < table.n_rows or (places < 0).any():
        raise ValueError(f"{table.name} must have one row for every action, each with its own {column}")
    others = [name for name in table.names if name != column and not name.startswith(UNNAMED)]
    numeric, texts = table.numeric_and_text(others)
    indicators, titles = _indicators(table, texts)
    features = np.hstack([table.numbers(numeric), indicators])[np.argsort(places)]
    if not np.isfinite(features).all():
        row = int(np.argsort(places)[np.argmin(np.isfinite(features).all(axis=1))])
        raise ValueError(f"{table.place(row)}: a feature is missing or infinite")
    return tuple(map(str, distinct)), features, (*numeric, *titles)


def _indicators(table: Table, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """0/1 columns for the levels of each category but the first, which the arms' biases already tell."""
    columns = [np.empty((table.n_rows, 0))]
    titles: list[str] = []
    for name in names:
        levels, places = table.labels(name)
        if (len(titles) + len(levels)) * table.n_rows > _MOST_CELLS:
            raise ValueError(
                f"{table.name}: {shortened(name)} has {len(levels)} different values in {table.n_rows} rows, too many "
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
    """The log without the rows that miss something, in `order`; what cannot be in a log is an error.

    Missing values are NaN, in actions and positions too. `place` names a row in an error.
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
            f"{name}: {never.size} of {log.n_actions} actions never logged: {names}. They stay, but nothing here "
            "says what they earn",
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
    """Missing values pass: no comparison with NaN is true."""
    largest = np.abs(log.features).max(axis=1, initial=0.0)
    slots = np.zeros(1) if log.positions is None else log.positions
    for title, values, wrong, needed in (
        (
            "propensity",
            log.propensities,
            (log.propensities < 0) | (log.propensities > 1 + _ROUNDING),
            "above 0, at most 1",
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
