"""Tables in files: CSV, whitespace-separated or Parquet, plain or gzipped, read by DuckDB column by column."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from albatross.datasets.extras import load
from albatross.datasets.files import DAMAGED, damaged, damaged_line, exact_pattern, is_gzipped, is_parquet, open_lines

UNNAMED = ("unnamed column ", "Unnamed: ")  # how a column begins that has no name here, or had none in a data frame
_MISSING = ("", "NA", "NULL", "null", "None")
_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_WHOLE = (
    r"[+-]?\d{1,18}(\.0*)?"  # what a 64-bit integer holds, with the .0 that data frames add where values are missing
)

_Source = tuple[tuple[str, ...], str, Callable[[int], str]]  # names, what to select from, SQL for the j-th value


class Table:
    """A file's columns by name, and for every row the line to name in an error.

    Without a header (`headless` names the columns then, as many as there are) a file is told by a number in its first
    line. Columns whose names begin with `unread` are listed but not kept.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, headless: Sequence[str] = (), unread: str | None = None
    ) -> None:
        self._duckdb = load("duckdb", package="duckdb")
        self.path = Path(path)
        self.name = self.path.name
        self._connection = self._duckdb.connect()
        # Every query here is a plain scan, and the optimizer's work grows with the square of the columns.
        self._ask("PRAGMA disable_optimizer")
        self._has_header = True
        self._separator = ","
        self.names, source, value = self._parquet() if is_parquet(path) else self._text(headless)
        # Inside, columns are called c0, c1, ...: no name in a file can hide another column or DuckDB's own rowid.
        self._columns = {
            name: f"c{j}" for j, name in enumerate(self.names) if unread is None or not name.startswith(unread)
        }
        kept = [f"{value(j)} AS c{j}" for j, name in enumerate(self.names) if name in self._columns]
        self._ask(f"CREATE TABLE rows AS SELECT {', '.join(kept) or 'NULL'} FROM {source}")
        self._types = {row[0]: row[1] for row in self._ask("DESCRIBE rows").fetchall()}
        self.n_rows = self._ask("SELECT count(*) FROM rows").fetchall()[0][0]
        if not self.n_rows:
            raise ValueError(f"{self.name} has no rows")

    # ------------------------------------------------------------------------------------------------ columns

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Columns (n, k) of floats, NaN where a value is missing; a value that is no number is an error."""
        table = np.empty((self.n_rows, len(names)))
        if not names:
            return table
        chosen = ", ".join(f"{self._as_number(name)} AS n{j}" for j, name in enumerate(names))
        found = self._ask(f"SELECT {chosen} FROM rows").fetchnumpy()
        present = self._ask(
            f"SELECT {', '.join(f'count({self._columns[name]})' for name in names)} FROM rows"
        ).fetchall()
        for j, (name, n_values) in enumerate(zip(names, present[0], strict=True)):
            if n_values > np.ma.count(found[f"n{j}"]):
                self._refuse_text(name)
            table[:, j] = np.ma.filled(found[f"n{j}"], np.nan)
        return table

    def numeric_and_text(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns that are meant to hold numbers, because more than half of their values are, and the others."""
        numeric: list[str] = []
        text: list[str] = []
        for name, (n_values, n_numbers) in self._counts(names).items():
            (numeric if 2 * n_numbers > n_values else text).append(name)
        return numeric, text

    def texts(self, name: str) -> np.ndarray:
        """One column (n,) of strings, None where a value is missing."""
        found = self._ask(f"SELECT {self._as_text(name)} AS t FROM rows").fetchnumpy()["t"]
        values = np.array(np.ma.getdata(found), dtype=object)
        values[np.ma.getmaskarray(found)] = None
        return values

    def labels(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Different values of a column in ascending order, as integers if all are, and for every row its place (n,).

        A missing value has place -1.
        """
        text = self._as_text(name)
        other = f"NOT regexp_full_match({text}, '{_WHOLE}')"
        if not self._ask(f"SELECT count(*) FROM rows WHERE {other}").fetchall()[0][0]:
            found = self._ask(f"SELECT CAST({text} AS BIGINT) AS n FROM rows").fetchnumpy()["n"]
            missing = np.ma.getmaskarray(found)
            distinct, places = np.unique(np.ma.getdata(found)[~missing], return_inverse=True)
            everywhere = np.full(self.n_rows, -1)
            everywhere[~missing] = places
            return distinct, everywhere
        values = self._ask(f"SELECT DISTINCT {text} FROM rows WHERE {text} IS NOT NULL").fetchall()
        names = sorted(value for (value,) in values)
        place = {None: -1, **{value: j for j, value in enumerate(names)}}
        return np.array(names), np.array([place[value] for value in self.texts(name)])

    def order(self, name: str) -> np.ndarray:
        """The rows (n,) in ascending order of a column's text, those without it last."""
        query = f"SELECT rowid AS i FROM rows ORDER BY {self._as_text(name)} NULLS LAST, rowid"
        return np.asarray(self._ask(query).fetchnumpy()["i"])

    def place(self, row: int) -> str:
        """How an error names a row: `log.csv, line 12`."""
        if is_parquet(self.path):
            return f"{self.name}, row {row + 1}"
        with open_lines(self.path) as file, io.TextIOWrapper(file, "utf-8", "replace", newline="") as lines:
            line = next(islice(self._filled_lines(lines), row + int(self._has_header), None))
        return f"{self.name}, line {line}"

    def _filled_lines(self, lines: Iterable[str]) -> Iterator[int]:
        """The numbers of the lines that are not empty; where a quoted value holds line ends, the last of its lines."""
        if self._separator in (" ", "::"):
            yield from (number for number, line in enumerate(lines, start=1) if line.strip())
        else:
            reader = csv.reader(lines, delimiter=self._separator)
            yield from (reader.line_num for fields in reader if fields)

    # ------------------------------------------------------------------------------------------------- sources

    def _parquet(self) -> _Source:
        source = f"read_parquet({_literal(exact_pattern(self.path))}, hive_partitioning = false)"
        names = tuple(row[0] for row in self._ask(f"DESCRIBE SELECT * FROM {source}").fetchall())
        return names, f"{source} AS file({_listed('c{}', len(names))})", lambda j: f"c{j}"

    def _text(self, headless: Sequence[str]) -> _Source:
        try:
            with open_lines(self.path) as file:
                first = file.readline().decode("utf-8", "replace").strip("\r\n")
        except DAMAGED as error:
            raise damaged(self.path, 1) from error
        if not first.strip():
            raise ValueError(f"{self.name} has no columns: its first line is empty")
        self._separator = next((mark for mark in (",", "\t", ";", "::") if mark in first), " ")
        fields = first.split() if self._separator == " " else _split(first, self._separator)
        names = [field.strip() for field in fields]
        if headless and any(_is_number(name) for name in names):
            self._has_header = False
            names = [*headless, *(f"{UNNAMED[0]}{j + 1}" for j in range(len(headless), len(names)))][: len(names)]
        names = [name or f"{UNNAMED[0]}{j + 1}" for j, name in enumerate(names)]
        counts = Counter(name.lower() for name in names)
        if len(counts) < len(names):
            twice = [name for name in names if counts[name.lower()] > 1][-1]
            raise ValueError(f"{self.name}, line 1: the column {twice!r} is named twice")
        return tuple(names), *(self._whitespace if self._separator == " " else self._delimited)(len(names))

    def _delimited(self, n_columns: int) -> tuple[str, Callable[[int], str]]:
        source = self._read_csv(_listed("'c{}': 'VARCHAR'", n_columns), self._separator, _literal('"'))
        return source, lambda j: f"nullif(trim(c{j}), '')"  # blanks around values mean nothing

    def _whitespace(self, n_columns: int) -> tuple[str, Callable[[int], str]]:
        """Any run of blanks separates: the lines come whole and are split here."""
        lines = self._read_csv("'line': 'VARCHAR'", "\x1f", "''")
        trimmed = "trim(line, ' \t\r')"
        split = f"SELECT regexp_split_to_array({trimmed}, '\\s+') AS fields FROM {lines} WHERE {trimmed} <> ''"
        self._ask(f"CREATE TABLE split AS {split}")
        counted = f"SELECT rowid, len(fields) FROM split WHERE len(fields) <> {n_columns}"
        odd = self._ask(f"{counted} ORDER BY rowid LIMIT 1").fetchall()
        if odd:
            raise ValueError(f"{self.place(odd[0][0])}: {_count_fields(odd[0][1], n_columns)}")
        missing = ", ".join(map(_literal, _MISSING))
        return "split", lambda j: f"CASE WHEN fields[{j + 1}] NOT IN ({missing}) THEN fields[{j + 1}] END"

    def _read_csv(self, columns: str, separator: str, quote: str) -> str:
        missing = ", ".join(map(_literal, _MISSING))
        compression = "gzip" if is_gzipped(self.path) else "none"
        return (
            f"read_csv({_literal(exact_pattern(self.path))}, hive_partitioning = false, auto_detect = false, "
            f"columns = {{{columns}}}, header = false, skip = {int(self._has_header)}, "
            f"delim = {_literal(separator)}, quote = {quote}, escape = {quote}, nullstr = [{missing}], "
            f"compression = '{compression}')"
        )

    # ---------------------------------------------------------------------------------------------------- asking

    def _ask(self, query: str) -> Any:
        try:
            return self._connection.execute(query)
        except self._duckdb.Error as error:
            raise self._explained(error) from error

    def _as_text(self, name: str) -> str:
        return f"CAST({self._columns[name]} AS VARCHAR)"

    def _as_number(self, name: str) -> str:
        column = self._columns[name]
        if self._types[column].removeprefix("U").startswith(_NUMERIC):
            return f"CAST({column} AS DOUBLE)"
        return f"TRY_CAST({self._as_text(name)} AS DOUBLE)"

    def _counts(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """How many values each column has, and how many of them are numbers."""
        if not names:
            return {}
        counted = [f"count({self._columns[name]}), count({self._as_number(name)})" for name in names]
        counts = self._ask(f"SELECT {', '.join(counted)} FROM rows").fetchall()[0]
        return dict(zip(names, zip(counts[::2], counts[1::2], strict=True), strict=True))

    def _refuse_text(self, name: str) -> None:
        text = self._as_text(name)
        wrong = f"{text} IS NOT NULL AND {self._as_number(name)} IS NULL"
        row, value = self._ask(f"SELECT rowid, {text} FROM rows WHERE {wrong} ORDER BY rowid LIMIT 1").fetchall()[0]
        raise ValueError(f"{self.place(row)}: {name} is {value!r}, not a number")

    def _explained(self, error: Exception) -> ValueError:
        """DuckDB's error in one line that begins with the file and the line."""
        text = str(error)
        line = re.search(r"CSV Error on Line: (\d+)", text)
        if not line:
            cut = damaged_line(self.path)
            return damaged(self.path, cut) if cut else ValueError(f"{self.name}: {text.splitlines()[0]}")
        place = f"{self.name}, line {line[1]}"
        fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if fields:
            return ValueError(f"{place}: {_count_fields(int(fields[2]), int(fields[1]))}")
        if "unterminated quote" in text:
            return ValueError(f"{place}: a quote is opened and never closed")
        if "unicode" in text:
            return ValueError(f"{place}: the text is not UTF-8")
        return ValueError(f"{place}: {text.splitlines()[-1]}")


def _count_fields(found: int, needed: int) -> str:
    return f"{found} field{'s' * (found != 1)} where the first line has {needed}"


def _split(line: str, separator: str) -> list[str]:
    return line.split(separator) if len(separator) > 1 else next(csv.reader([line], delimiter=separator))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(template: str, n_columns: int) -> str:
    return ", ".join(template.format(j) for j in range(n_columns))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
