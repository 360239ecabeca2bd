"""Features: a declared schema that turns records into contexts, one named coordinate at a time."""

from __future__ import annotations

import os
import tomllib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from albatross import checks
from albatross.checks import shown
from albatross.features.encoding import Plan, fill
from albatross.features.kinds import KINDS, Category, Feature, Number, Whose
from albatross.features.plain_tables import build, describe, to_toml
from albatross.features.records import in_order, listed
from albatross.frames import columns_of, is_frame
from albatross.store.files import replacing

if TYPE_CHECKING:
    from albatross.datasets.logs import Log

MOST_COORDINATES = 10_000


class Features:
    """Named features and products of two of them. `encode` returns the contexts of all arms.

    `names` lists the coordinates, `dim` is their number. `missing` counts the missing values of every feature so far;
    each was encoded as 0.

    Scaling is declared, never learnt while playing: theta would change its meaning. A feature of the situation is the
    same for all arms: only its product with a feature of the arm changes which of them is best.

    >>> features = Features(
    ...     {
    ...         "topic": Category(values=["sport", "politics"]),
    ...         "age": Number(mean=12.0, sd=6.0),
    ...         "device": Category(values=["phone", "desktop"], of="situation"),
    ...     },
    ...     products=[("topic", "device")],
    ... )
    >>> articles = [{"topic": "sport", "age": 18.0}, {"topic": "politics", "age": 6.0}]
    >>> features.encode({"device": "phone"}, articles)[:, :5].tolist()
    [[1.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, 1.0, 0.0]]
    >>> features.names[2:6]
    ('age', 'device=phone', 'device=desktop', 'topic=sport * device=phone')
    """

    def __init__(self, schema: Mapping[str, Feature], *, products: Iterable[Sequence[str]] = ()) -> None:
        if not isinstance(schema, Mapping):
            raise ValueError(f"a schema is a dict of features by name, not {shown(schema)}")
        self.schema = dict(schema)
        self.products = _pairs(products)
        _check_schema(self.schema, self.products)
        self._own: dict[str, list[str]] = {"arm": [], "situation": []}
        for name, feature in self.schema.items():
            self._own[feature.of].append(name)
        blocks = {name: feature.coordinates(name) for name, feature in self.schema.items()}
        self._places: dict[str, slice] = {}
        names: list[str] = []
        for name, block in blocks.items():
            self._places[name] = slice(len(names), len(names) + len(block))
            names += block
        for left, right in self.products:
            names += [f"{one} * {other}" for one, other in product(blocks[left], blocks[right])]
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise ValueError(f"two coordinates would be called {shown(twice)}: rename a feature or a value")
        self.names = tuple(names)
        self.missing = dict.fromkeys(self.schema, 0)
        self._names_of_rows, self._plan = self._planned()
        empty = np.empty((0, 1))
        self._fill = fill.prepared(self._plan, empty, empty, empty, np.zeros(0, np.int64))

    def _planned(self) -> tuple[list[str], Plan]:
        """Return the feature of every row of raw values, and what compiled code needs to know."""
        names: list[str] = []
        rows: list[tuple[float, ...]] = []
        for name in (*self._own["arm"], *self._own["situation"]):
            feature, place = self.schema[name], self._places[name]
            if isinstance(feature, Category):
                rows.append((place.start, place.stop - place.start, 0.0, 1.0))
            elif isinstance(feature, Number):
                rows.append((place.start, 0, feature.mean, feature.sd))
            else:
                rows += [(start, 0, 0.0, 1.0) for start in range(place.start, place.stop)]
            names += [name] * (len(rows) - len(names))
        sides = [[self._places[name] for name in pair] for pair in self.products]
        products = [(one.start, one.stop - one.start, other.start, other.stop - other.start) for one, other in sides]
        return names, Plan(np.array(rows, float), np.array(products, np.int64).reshape(-1, 4))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    def __repr__(self) -> str:
        return f"Features({self.schema}, products={list(self.products)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self._ordered == other._ordered

    def __hash__(self) -> int:
        return hash(self._ordered)

    @property
    def _ordered(self) -> tuple[Any, ...]:
        """What a schema is: the order of its features, which is that of the coordinates, too."""
        return tuple(self.schema.items()), self.products

    # ------------------------------------------------------------------------------------------------------- encoding

    def encode(
        self, situation: Mapping[str, Any] | None, arms: Any, *, order: Iterable[Any] | None = None
    ) -> np.ndarray:
        """Return the contexts (K, d) of K arms in one situation.

        `arms` is a list of dicts, a NumPy record array or a data frame, with one record per arm, in the order of the
        rows. It may be a dict of records by name if `order` lists the names, as `agent.arms` does. A value that is
        None, NaN or absent from a dict is encoded as 0 and counted in `missing`. Unknown names, absent columns, wrong
        types and values that a category does not list are errors.
        """
        given = {} if situation is None else situation
        if not isinstance(given, Mapping):
            raise ValueError(f"situation must be a dict of its features, not {shown(situation)}")
        return self._encoded(self._columns("arm", in_order(arms, order)), self._columns("situation", [given]))

    def encode_rows(self, situations: Any, arms: Any) -> np.ndarray:
        """Return contexts (n, d): one situation and one arm per row, each a list of dicts or a data frame."""
        of_arms, of_situations = self._columns("arm", arms), self._columns("situation", situations)
        if of_arms[0] != of_situations[0]:
            raise ValueError(f"{of_situations[0]} situations do not match {of_arms[0]} arms: one of each per row")
        return self._encoded(of_arms, of_situations)

    def by_name(self, theta: np.ndarray) -> dict[str, float]:
        """Return the coordinates of theta by name; a policy may use only the first ones."""
        return dict(zip(self.names, theta.tolist(), strict=False))

    def _encoded(self, of_arms: _Columns, of_situations: _Columns) -> np.ndarray:
        contexts = np.empty((of_arms[0], self.dim))
        missing = np.zeros(len(self._names_of_rows), np.int64)
        raw = [self._raw(*columns) for columns in (of_arms, of_situations)]
        wrong = self._fill(self._plan, *raw, contexts, missing)
        if wrong >= 0:
            self._refuse_number(self._names_of_rows[wrong], of_arms, of_situations)
        if wrong == -1:  # only now: a refused call counts nothing
            for name, count in dict(zip(self._names_of_rows, missing.tolist(), strict=True)).items():  # vectors once
                self.missing[name] += count
        return contexts

    def _raw(self, n: int, columns: list[tuple[str, Sequence[Any]]]) -> np.ndarray:
        values: list[float] = []
        try:
            for name, given in columns:
                values += self.schema[name].raw(name, given)
            return np.frombuffer(array("d", values)).reshape(-1, n) if values else np.empty((0, n))
        except OverflowError:  # an integer that no float can hold
            numbers = [(name, given) for name, given in columns if isinstance(self.schema[name], Number)]
            wrong = next(name for name, given in numbers if any(map(_is_huge, given)))
            self._refuse_number(wrong, (n, numbers))

    def _refuse_number(self, name: str, *given: _Columns) -> NoReturn:
        values = next(values for _, columns in given for each, values in columns if each == name)
        numbers = (each.item() if isinstance(each, np.generic) else each for each in values)
        wrong = next(each for each in numbers if isinstance(each, int | float) and abs(each) > checks.LARGEST)
        raise ValueError(f"{name} must be a number of at most {checks.LARGEST:g} in size, not {shown(wrong)}")

    def _columns(self, whose: Whose, records: Any) -> _Columns:
        """Return the number of records, and names and values of the features that they have."""
        names = self._own[whose]
        if not isinstance(records, list) and is_frame(records):
            found = columns_of(records)
            unknown = [name for name in found if name not in names]
            if unknown:
                raise ValueError(self._unknown(unknown[0], whose))
            absent = [name for name in names if name not in found]
            if absent:
                known = ", ".join(map(repr, found)) or "none"
                raise ValueError(
                    f"the frame has no column {shown(absent[0])}, a feature of the {whose}: it has {known}"
                )
            return len(next(iter(found.values()), ())), [(name, found[name]) for name in names]
        records = listed(records, whose)
        try:
            # All there, nothing unknown: the common case. Fewer than all would be a KeyError.
            if sum(map(len, records)) == len(names) * len(records):
                return len(records), [(name, [record[name] for record in records]) for name in names]
        except (KeyError, TypeError):
            pass
        for record in records:
            if not isinstance(record, Mapping):
                raise ValueError(f"a record of the {whose} must be a dict of its features, not {shown(record)}")
            for name in record:
                if name not in names:
                    raise ValueError(self._unknown(name, whose))
        return len(records), [(name, [record.get(name) for record in records]) for name in names]

    def _unknown(self, name: Any, whose: str) -> str:
        if name in self.schema:
            return f"{shown(name)} is a feature of the {self.schema[name].of}, not of the {whose}"
        known = ", ".join(map(repr, self._own[whose])) or "none"
        return f"the {whose} has no feature {shown(name)}: the schema declares {known}"

    # ---------------------------------------------------------------------------------------------------- on disk

    @classmethod
    def from_log(cls, log: Any, items: Any = None) -> Features:
        """Propose a schema for a log: a path of a CSV or Parquet file, or a data frame. See `propose`."""
        from albatross.features.proposal import propose

        return propose(log, items).features

    def read_log(self, path: str | os.PathLike[str], *, items: str | os.PathLike[str] | None = None) -> Log:
        """Read a log whose columns are these features, for `Logged.from_log`.

        Those of the arm are columns of `items`, a table with a row for each action, or of the log, if they are the same
        in all rows of an action. The other columns are as for `datasets.read_log`.
        """
        from albatross.features.logs import read_log

        return read_log(self, path, items=items)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Features:
        """Build features from `{"features": {name: {"kind": ..., ...}}, "products": [[name, name]]}`, as in TOML."""
        unknown = [key for key in table if key not in ("features", "products")]
        if unknown:
            raise ValueError(f"a schema has features and products, not {shown(unknown[0])}")
        declared = table.get("features")
        if not isinstance(declared, Mapping):
            raise ValueError("a schema needs a table [features.NAME] for every feature")
        schema = {name: build(name, given) for name, given in declared.items()}
        return cls(schema, products=table.get("products", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain tables, lists, texts and numbers; `from_dict` reads them."""
        described = {name: describe(feature) for name, feature in self.schema.items()}
        return {"features": described, "products": [list(pair) for pair in self.products]}

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Features:
        """Read a schema from a TOML file."""
        try:
            with open(path, "rb") as file:
                return cls.from_dict(tomllib.load(file))
        except (ValueError, RecursionError) as error:  # not TOML, not UTF-8 or not a schema
            raise ValueError(f"{Path(path).name} is not a schema of features: {error}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a TOML file that people can edit."""
        with replacing(Path(path)) as file:
            file.write(self.to_toml().encode())

    def to_toml(self) -> str:
        """Return the schema as TOML.

        >>> print(Features({"age": Number(mean=30, sd=10, of="situation")}).to_toml())
        products = []
        <BLANKLINE>
        [features.age]
        kind = "number"
        mean = 30
        sd = 10
        of = "situation"
        <BLANKLINE>
        """
        return to_toml(self.to_dict())


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > checks.LARGEST


_Columns = tuple[int, list[tuple[str, Sequence[Any]]]]


def _pairs(products: Any) -> tuple[tuple[str, str], ...]:
    """Return the products as pairs of names."""
    if isinstance(products, str) or not isinstance(products, Iterable):
        raise ValueError(f"products must be a list of pairs of features, not {shown(products)}")
    pairs = list(products)
    for pair in pairs:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
            raise ValueError(f"a product has two features, not {shown(pair)}")
    return tuple((left, right) for left, right in pairs)


def _check_schema(schema: dict[str, Feature], products: tuple[tuple[str, str], ...]) -> None:
    if not schema:
        raise ValueError("a schema needs at least one feature")
    for name, feature in schema.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"the name of a feature must be a text, not {shown(name)}")
        if not isinstance(feature, tuple(KINDS.values())):
            raise ValueError(f"feature {shown(name)} must be a Number, a Category or a Vector, not {shown(feature)}")
    for pair in products:
        for name in pair:
            if name not in schema:
                raise ValueError(f"the product {shown(pair)} needs a feature {shown(name)}, which is not declared")
    if len(set(map(frozenset, products))) < len(products):
        raise ValueError("a product is listed twice")
    # Before the names are made, which would fill the memory.
    dim = sum(each.width for each in schema.values()) + sum(schema[a].width * schema[b].width for a, b in products)
    if dim > MOST_COORDINATES:
        raise ValueError(f"the schema has {dim} coordinates, but at most {MOST_COORDINATES} are allowed")


def given_dim(dim: Any, features: Any) -> int:
    """Return the number of features, given as such or by a schema."""
    if features is None:
        checks.whole("dim", dim, least=1)
        return int(dim)
    if not isinstance(features, Features):
        raise ValueError(f"features must be albatross.features.Features, not {checks.shown(features)}")
    if dim not in (None, features.dim):
        raise ValueError(f"the schema has {features.dim} coordinates, but dim is {dim}")
    return features.dim
