"""Logs of decisions: one action per round, its reward and its probability."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.datasets.log_actions import Actions, Encoder, indicators, known_actions, listed
from albatross.datasets.offers import SPECIAL, Lists, eligible_mask, offers, read_contexts, read_eligible, read_users
from albatross.datasets.tables import UNNAMED, Table
from albatross.environments.log_contexts import Encoded, Offers
from albatross.store.decision_log import is_journal, journal_of, write_table

_PLAIN = ("action", "reward", "propensity")
_OPEN_BANDIT = ("item_id", "click", "propensity_score")
_USER, _AFFINITY = "user_feature_", "user-item_affinity_"
_MOST_ACTIONS = 1_000_000  # every action has a name in memory
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
    eligible: np.ndarray | None = None  # (n, n_actions) bool, which actions could be taken
    users: np.ndarray | None = None  # (n,) whom each round was for, as texts
    contexts: Offers | Encoded | None = None  # (n, n_actions, d) in place of features, from the log or by a schema


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

    Three columns are optional. `eligible` lists the actions that could be taken in the round: names joined by `|`, a
    list in JSON, or a list in Parquet. `contexts` has a list of numbers for each of them, in place of features, as an
    `albatross.LogWriter` writes it. `user` is whom the round was for. The journal of a log that was not closed can be
    read too. `Features.read_log` reads a log with a schema.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "log.csv")
    ...     _ = path.write_text("action,reward,propensity,age\\n1,0.5,0.25,31\\n0,1,0.75,27\\n")
    ...     log = read_log(path)
    >>> log.actions.tolist(), log.rewards.tolist(), log.features.tolist(), log.feature_names
    ([1, 0], [0.5, 1.0], [[31.0], [27.0]], ('age',))
    """
    return read_with(None, path, items=items, n_actions=n_actions)


def read_with(
    encode: Encoder | None,
    path: str | os.PathLike[str],
    *,
    items: str | os.PathLike[str] | None,
    n_actions: int | None,
    declared: Collection[str] = (),
) -> Log:
    """Read a log; if there is an encoder, it makes the contexts, of the columns that are `declared`."""
    if n_actions is not None:
        check_n_actions(n_actions)
    if is_journal(path):
        with tempfile.TemporaryDirectory() as folder:
            stem = Path(path).stem
            joined = Path(folder, stem).with_suffix(".parquet" if stem.endswith(".parquet") else ".csv")
            write_table(Path(path), joined)
            return read_with(encode, joined, items=items, n_actions=n_actions, declared=declared)
    if not Path(path).exists() and journal_of(path).exists():
        raise ValueError(
            f"{path} is not there yet, because its writer was not closed: read {journal_of(path)}, or close it with "
            f"albatross.LogWriter({os.fspath(path)!r}).close()"
        )
    wants_affinities = any(name.startswith(_AFFINITY) for name in declared)
    table = Table(path, unread=None if wants_affinities else _AFFINITY)  # one column per action, almost all zeros
    is_open_bandit, is_plain = (set(columns) <= set(table.names) for columns in (_OPEN_BANDIT, _PLAIN))
    if is_open_bandit and is_plain:
        raise ValueError(
            f"{table.name} has the columns {', '.join(_PLAIN)} and those of an Open Bandit log, "
            f"{', '.join(_OPEN_BANDIT)}: leave out or rename either"
        )
    if is_open_bandit:
        return _open_bandit(table, encode, items, n_actions)
    return _plain(table, encode, items, n_actions)


def check_n_actions(n_actions: int) -> None:
    """Require a whole number, small enough to keep a name for every action in memory."""
    checks.whole("n_actions", n_actions, least=1)
    if n_actions > _MOST_ACTIONS:
        raise ValueError(f"n_actions must be at most {_MOST_ACTIONS}, not {n_actions}")


def _plain(table: Table, encode: Encoder | None, items: str | os.PathLike[str] | None, n_actions: int | None) -> Log:
    absent = [name for name in _PLAIN if name not in table.names]
    if absent:
        raise ValueError(
            f"{table.name} has no column {' or '.join(map(repr, absent))}: a log needs {', '.join(_PLAIN)} "
            f"(or {', '.join(_OPEN_BANDIT)}), this file has {listed(table.names)}"
        )
    named, given = read_eligible(table), _read_contexts(table, encode, items)
    known = known_actions(table, "action", items, n_actions, encode, named)
    numeric: list[str] = []
    if given is None and encode is None:
        others = [name for name in table.names if name not in (*_PLAIN, *SPECIAL)]
        named_columns = [name for name in others if not name.startswith(UNNAMED)]  # one without a name is a row index
        numeric, texts = table.numeric_and_text(named_columns)
        if texts:
            left_out = f"left out {len(texts)} column(s) without numbers: {listed(texts)}"
            warnings.warn(f"{table.name}: {left_out}", stacklevel=4)
    log = _gathered(table, _PLAIN, known, table.numbers(numeric), numeric)
    return checked(_with_offers(log, table, known, named, given), name=table.name, place=table.place)


def _open_bandit(
    table: Table, encode: Encoder | None, items: str | os.PathLike[str] | None, n_actions: int | None
) -> Log:
    named, given = read_eligible(table), _read_contexts(table, encode, items)
    if items is None and given is None:
        beside = table.path.parent / "item_context.csv"
        items = beside if beside.exists() else None
    n_affinities = sum(name.startswith(_AFFINITY) for name in table.names)  # one per action
    n_known = n_actions or (n_affinities or None if items is None else None)
    known = known_actions(table, "item_id", items, n_known, encode, named)
    has_features = given is None and encode is None
    columns = [name for name in table.names if has_features and name.startswith(_USER)]
    features, names = indicators(table, columns)
    positions = None
    if "position" in table.names:
        positions = table.numbers(["position"])[:, 0]
        positions -= np.nanmin(positions, initial=1.0) >= 1.0  # the data set counts from 1, its pipeline from 0
    order = table.order("timestamp") if "timestamp" in table.names else None
    log = _gathered(table, _OPEN_BANDIT, known, features, names)
    log = _with_offers(log, table, known, named, given)._replace(positions=positions)
    return checked(log, name=table.name, place=table.place, order=order)


def _read_contexts(table: Table, encode: Encoder | None, items: str | os.PathLike[str] | None) -> Lists | None:
    given = read_contexts(table)
    if given is not None and (encode is not None or items is not None):
        raise ValueError(
            f"{table.name} has a column 'contexts' with the features of every offered action: it takes no schema and "
            "no items"
        )
    return given


def _with_offers(
    log: Log, table: Table, known: Actions, named: Sequence[list[str] | None] | None, given: Lists | None
) -> Log:
    """Return the log with its optional columns: eligible actions, contexts and users."""
    codes = {name: code for code, name in enumerate(known.names)}
    return log._replace(
        eligible=None if named is None else eligible_mask(table, named, codes, known.codes),
        contexts=known.contexts if given is None else offers(table, given, named, codes),
        users=read_users(table),
    )


def _gathered(
    table: Table, columns: tuple[str, str, str], known: Actions, features: np.ndarray, feature_names: Sequence[str]
) -> Log:
    rewards, propensities = table.numbers(columns[1:]).T
    return Log(
        known.codes,
        rewards,
        propensities,
        features,
        len(known.names),
        tuple(feature_names),
        known.names,
        known.features,
        action_feature_names=known.feature_names,
    )


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
    if log.eligible is not None:
        reasons["without eligible arms"] = ~log.eligible.any(axis=1)
    if log.users is not None:
        reasons["without a user"] = np.array([user is None for user in log.users])
    if isinstance(log.contexts, Offers):
        reasons["without contexts"] = ~log.contexts.eligible.any(axis=1)
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
        names = listed([log.action_names[action] for action in never])
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
        eligible=None if log.eligible is None else log.eligible[rows],
        users=None if log.users is None else log.users[rows],
        contexts=None if log.contexts is None else log.contexts.rows(rows),
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
