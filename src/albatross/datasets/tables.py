"""Read tables by column with DuckDB: CSV, whitespace-separated or Parquet, plain or gzipped."""

from __future__ import annotations

import csv
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from albatross.checks import fits_in_memory, shortened, shown
from albatross.datasets.extras import load
from albatross.datasets.files import LONGEST_LINE, PARQUET, is_gzipped, is_parquet, lines
from albatross.queries import ctrl_c, exact_pattern

# Prefixes of columns without a name, here or in a data frame.
UNNAMED = ("unnamed column ", "Unnamed: ", "__index_level_")
_MOST_COLUMNS = 10_000  # take half a minute and 2 GB, even with few rows
_MOST_CELLS = 2**30  # 8 GB of floats
_PER_CELL = 24  # bytes while a number is read: in DuckDB, out of it, and in the array
MISSING = ("", "NA", "NULL", "null", "None", "nan", "NaN")
# DuckDB drops a field too many without an error if it is one of its NULL strings: no text of a file is one.
_NO_VALUE = "\x1e no value \x1e"
_NUMERIC = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# A 64-bit integer, with the .0 that data frames add if values are missing.
_WHOLE = r"[+-]?\d{1,18}(\.0*)?"
_LIST = r"\[\s*[-.\d\[\]\"].*\]|\[\s*\]"  # in JSON: of numbers, texts or lists
_NAME = r"\+.*|-?0\d.*"  # 007 and +7, as of a telephone, are names: as numbers they would be the same as 7

_MISPLACED = "quotes must surround a whole value, and a quote within them is doubled"
_INDENTED = "a quote stands after several blanks: leave at most one between a separator and a quote"

_Source = tuple[str, Callable[[int], str]]  # the source to select from, and SQL for the j-th value


class Table:
    """The columns of a file by name, and the line of every row for error messages.

    A file whose first line has a number and none of `titles` (in lower case) has no header; `headless` then names its
    columns. Columns whose names start with `unread` are listed but not kept.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        headless: Sequence[str] = (),
        titles: Sequence[str] = (),
        unread: str | None = None,
    ) -> None:
        self._duckdb = load("duckdb", package="duckdb")
        self.path = Path(path)
        self.name = self.path.name
        self._connection = self._duckdb.connect()
        # Every query here is a plain scan, and the optimizer's time grows with the square of the columns.
        self._rows("PRAGMA disable_optimizer")
        self._has_header = True
        self._separator = ","
        self._is_parquet = is_parquet(path)
        self.names = self._schema() if self._is_parquet else self._header(headless, titles)
        if len(self.names) > _MOST_COLUMNS:
            raise ValueError(f"{self.name} has {len(self.names)} columns, but a table has at most {_MOST_COLUMNS}")
        # Columns are called c0, c1, ... in queries: no name in a file can hide another column or DuckDB's rowid.
        self._columns = {
            name: f"c{j}" for j, name in enumerate(self.names) if unread is None or not name.startswith(unread)
        }
        n_rows = self._count_rows()  # raises errors for files that DuckDB misreads
        source, value = self._source()
        kept = [f"{value(j)} AS c{j}" for j, name in enumerate(self.names) if name in self._columns]
        self._rows(f"CREATE TABLE rows AS SELECT {', '.join(kept) or 'NULL'} FROM {source}")
        self._rows("DROP TABLE IF EXISTS split")
        self._types = {row[0]: row[1] for row in self._rows("DESCRIBE rows")}
        self.n_rows = self._rows("SELECT count(*) FROM rows")[0][0]
        if self.n_rows != n_rows:  # DuckDB may silently lose rows
            raise ValueError(
                f"{self.name} has {n_rows} rows, but {self.n_rows} were read: check its quotes and line ends, and that "
                "no other program writes to it"
            )
        if not self.n_rows:
            raise ValueError(f"{self.name} has no rows")

    # ------------------------------------------------------------------------------------------------ columns

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Return columns (n, k) of floats, NaN for missing values; raise an error for a value that is not a number."""
        table = np.empty((self.n_rows, len(names)))
        if not names:
            return table
        chosen = ", ".join(f"{self._as_number(name)} AS n{j}" for j, name in enumerate(names))
        found = self._arrays(f"SELECT {chosen} FROM rows")
        present = self._rows(f"SELECT {', '.join(f'count({self._columns[name]})' for name in names)} FROM rows")
        for j, (name, n_values) in enumerate(zip(names, present[0], strict=True)):
            if n_values > np.ma.count(found[f"n{j}"]):
                self._refuse_text(name)
            table[:, j] = np.ma.filled(found[f"n{j}"], np.nan)
        return table

    def numeric_and_text(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Split columns into numeric ones, where more than half of the values are numbers, and text."""
        numeric: list[str] = []
        text: list[str] = []
        for name, (n_values, n_numbers) in self._counts(names).items():
            (numeric if 2 * n_numbers > n_values else text).append(name)
        return numeric, text

    def is_numeric(self, name: str) -> bool:
        """Return whether the file says that a column holds numbers."""
        return bool(_NUMERIC.fullmatch(self._types[self._columns[name]]))

    def may_have_floats(self, name: str) -> bool:
        """Return whether 7.0 in a column of whole numbers is 7: in text, where data frames write it beside gaps."""
        return not self._is_parquet or self.is_numeric(name)

    def texts(self, name: str) -> np.ndarray:
        """Return a column (n,) of strings, None for missing values."""
        found = self._arrays(f"SELECT {self._as_text(name)} AS t FROM rows")["t"]
        values = np.array(np.ma.getdata(found), dtype=object)
        values[np.ma.getmaskarray(found)] = None
        return values

    def is_nested(self, name: str) -> bool:
        """Return whether a column has lists or structs of a Parquet file, or lists in JSON."""
        if not self.is_numeric(name) and self._types[self._columns[name]].endswith(("]", ")")):
            return True
        return self._first(name, f"NOT regexp_full_match({self._as_text(name)}, '{_LIST}')") is None

    def lists(self, name: str) -> list[list[Any] | None]:
        """Return a column of lists, None for missing values: lists of a Parquet file, JSON, or texts joined by |."""
        column = self._columns[name]
        if not self._types[column].endswith("]"):
            texts = self.texts(name)
        else:
            texts = np.array([text for (text,) in self._rows(f"SELECT to_json({column}) FROM rows")], dtype=object)
        return [None if text is None else self._list(name, row, text) for row, text in enumerate(texts)]

    def _list(self, name: str, row: int, text: str) -> list[Any]:
        if not text.startswith("["):
            return [part.strip() for part in text.split("|")]
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            wanted = 'a list such as ["a", "b"] or a|b'
            raise ValueError(f"{self.place(row)}: {shortened(name)} is {shown(text)}, not {wanted}") from None

    def labels(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values of a column in ascending order, and for every row the index of its value (n,).

        The values are integers if all of them are, none with a leading zero or a plus. A missing value has index -1.
        """
        text = self._as_text(name)
        named = self._first(name, f"regexp_full_match({text}, '{_NAME}')")
        if self.first_not_whole(name) is None and named is None:
            found = self._arrays(f"SELECT CAST({text} AS BIGINT) AS n FROM rows")["n"]
            missing = np.ma.getmaskarray(found)
            distinct, places = np.unique(np.ma.getdata(found)[~missing], return_inverse=True)
            everywhere = np.full(self.n_rows, -1)
            everywhere[~missing] = places
            return distinct, everywhere
        values = self._rows(f"SELECT DISTINCT {text} FROM rows WHERE {text} IS NOT NULL")
        names = sorted(value for (value,) in values)
        place = {None: -1, **{value: j for j, value in enumerate(names)}}
        return np.array(names, dtype=object), np.array([place[value] for value in self.texts(name)])

    def first_not_whole(self, name: str) -> tuple[int, str] | None:
        """Return the first row whose value is not a whole number of up to 18 digits, and its text; or None."""
        return self._first(name, f"NOT regexp_full_match({self._as_text(name)}, '{_WHOLE}')")

    def order(self, name: str, *of_day: str, missing_first: bool = False) -> np.ndarray:
        """Return the rows (n,) in ascending order of a column of numbers or of times, or of days and times of day.

        Missing values come last unless the caller wants them first. If the columns hold anything else, the rows stay in
        the order of the file, with a warning.
        """
        n_values, n_numbers = self._counts([name])[name]
        key, text = self._as_number(name), " || ' ' || ".join(map(self._as_text, (name, *of_day)))
        if n_numbers < n_values or of_day:
            self._rows("SET TimeZone = 'UTC'")  # of times that do not name theirs
            key = f"TRY_CAST({text} AS TIMESTAMPTZ)"
            odd = self._first(name, f"{text} IS NOT NULL AND {key} IS NULL")
            if odd is not None:
                called = " ".join((name, *of_day))
                warnings.warn(
                    f"{self.place(odd[0])}: {called} is {shown(odd[1])}, not a time such as 2020-01-31 09:59:00: the "
                    "rows stay in the order of the file",
                    stacklevel=4,
                )
                return np.arange(self.n_rows)
        nulls = "NULLS FIRST" if missing_first else "NULLS LAST"
        # Numbers of more than 15 digits may be equal as floats.
        query = f"SELECT rowid AS i FROM rows ORDER BY {key} {nulls}, {self._columns[name]} {nulls}, rowid"
        return np.asarray(self._arrays(query)["i"])

    def place(self, row: int) -> str:
        """Name a row for an error message: `log.csv, line 12`."""
        if self._is_parquet:
            return f"{self.name}, row {row + 1}"
        rows = (number for number, filled in self._records() if filled)
        line = next(islice(rows, row + int(self._has_header), None), None)
        return f"{self.name}, row {row + 1}" if line is None else f"{self.name}, line {line}"  # None: the file changed

    def _records(self) -> Iterator[tuple[int, bool]]:
        """Yield the first line of every record and empty line, and whether it is filled.

        A quoted value may contain line ends; if blanks separate the fields, quotes have no meaning. Files that some
        versions of DuckDB misread raise an error.
        """
        in_blanks = self._separator == " "
        separator = re.escape(self._separator.encode())
        opening, closing = re.compile(b'(?:^|%b) *"' % separator), re.compile(b" *(?:%b|[\r\n]|$)" % separator)
        first, quoted, usual = 1, False, b""
        for number, line in enumerate(lines(self.path), start=1):
            if not quoted:
                first = number
            if b'"' in line and not in_blanks:
                try:
                    is_header = self._has_header and first == 1
                    quoted = _ends_in_quotes(line, opening, closing, quoted=quoted, is_header=is_header)
                except ValueError as error:
                    raise ValueError(f"{self.name}, line {first}: {error}") from None
            if not quoted:
                text = line.rstrip(b"\r\n")
                end = line[len(text) :]
                usual = usual or end
                if end != usual and end:
                    raise ValueError(
                        f"{self.name}, line {number}: the line ends in {end.decode()!r}, but earlier lines end in "
                        f"{usual.decode()!r}: use the same end for all lines"
                    )
                yield first, bool(text.strip(b" \t") if in_blanks else text)
        if quoted:
            raise ValueError(f"{self.name}, line {first}: a quote is opened and never closed")

    # ------------------------------------------------------------------------------------------------- sources

    def _schema(self) -> tuple[str, ...]:
        return tuple(row[0] for row in self._rows(f"DESCRIBE SELECT * FROM {self._read_parquet()}"))

    def _header(self, headless: Sequence[str], titles: Sequence[str]) -> tuple[str, ...]:
        first = next(lines(self.path), b"").rstrip(b"\r\n")
        if not first.strip():
            raise ValueError(f"{self.name} has no columns: its first line is empty")
        try:
            text = first.decode()
        except UnicodeDecodeError:
            text = "\0"
        if first.startswith(PARQUET):
            raise ValueError(f"{self.name} is Parquet within gzip: unzip it")
        if "\0" in text:  # in UTF-16, every other byte is 0
            raise ValueError(f"{self.name}, line 1: the text is not UTF-8")
        try:
            names = [field.strip() for field in self._fields(text)]
        except csv.Error as error:
            raise ValueError(f"{self.name}, line 1: cannot read the names of the columns: {error}") from None
        if headless and any(map(_NUMBER.fullmatch, names)) and not any(name.lower() in titles for name in names):
            self._refuse_unclear(names, headless)
            self._has_header = False
            names = list(headless[: len(names)])
        names = [name or f"{UNNAMED[0]}{j + 1}" for j, name in enumerate(names)]
        counts = Counter(name.lower() for name in names)
        if len(counts) < len(names):
            twice = [name for name in names if counts[name.lower()] > 1][-1]
            raise ValueError(f"{self.name}, line 1: the column {shown(twice)} is named twice")
        return tuple(names)

    def _refuse_unclear(self, first: Sequence[str], headless: Sequence[str]) -> None:
        """Refuse a first line with numbers that may be another table's: one with a column for every item."""
        needed = f"give it a header, {','.join(headless[:3])} or {headless[0]} and a name for every other column"
        if len(first) > len(headless):
            raise ValueError(f"{self.name} has {len(first)} columns and no header: {needed}")
        if not _NUMBER.fullmatch(first[0]) and all(map(str.isdecimal, first[1:])) and len(set(first)) == len(first):
            raise ValueError(f"{self.name}, line 1: {shown(first[0])} and numbers may be a header or a row: {needed}")

    def _fields(self, first: str) -> list[str]:
        """Return the fields of the first line, and find their separator."""
        bare = re.sub('"[^"]*"', "", first)  # a name may have any of them, within quotes
        most = max((",", "\t", ";", "::"), key=bare.count)
        self._separator = most if most in bare else " "
        if self._separator == " ":
            if first.count('"') % 2:
                raise csv.Error("a quote is opened and never closed")
            return re.split("[ \t]+", first.strip(" \t"))
        mark = "\x1f" if self._separator == "::" else self._separator  # csv takes a single character
        text = first.replace(self._separator, mark)
        fields = next(csv.reader([text], delimiter=mark, skipinitialspace=True, strict=True))
        return [field.replace(mark, self._separator) for field in fields]

    def _count_rows(self) -> int:
        most = _MOST_CELLS // max(1, len(self._columns))
        if self._is_parquet:
            n_rows = self._rows(f"SELECT count(*) FROM {self._read_parquet()}")[0][0]
        else:
            ones = (1 for _, filled in self._records() if filled)
            n_rows = sum(islice(ones, most + 2)) - int(self._has_header)
        if n_rows > most:
            raise ValueError(
                f"{self.name} has more than {most} rows of {len(self._columns)} columns, but a table has at most "
                f"{_MOST_CELLS} cells"
            )
        what = f"{self.name} with {n_rows} rows of {len(self._columns)} columns"
        fits_in_memory(what, _PER_CELL * n_rows * len(self._columns), "take fewer")
        return n_rows

    def _source(self) -> _Source:
        if self._is_parquet:
            source = f"{self._read_parquet()} AS file({_listed('c{}', len(self.names))})"
            types = [row[1] for row in self._rows(f"DESCRIBE SELECT * FROM {self._read_parquet()}")]
            return source, lambda j: _typed_value(f"c{j}", types[j])
        return self._whitespace(len(self.names)) if self._separator == " " else self._delimited(len(self.names))

    def _delimited(self, n_columns: int) -> _Source:
        source = self._read_csv(_listed("'c{}': 'VARCHAR'", n_columns), self._separator, _literal('"'))
        return source, lambda j: _present(f"trim(c{j})")  # ignore blanks around values

    def _whitespace(self, n_columns: int) -> _Source:
        """Read whole lines and split them at runs of blanks."""
        source = self._read_csv("'line': 'VARCHAR'", "\x1f", "''")
        trimmed = "trim(line, ' \t')"
        split = f"SELECT regexp_split_to_array({trimmed}, '[ \t]+') AS fields FROM {source} WHERE {trimmed} <> ''"
        self._rows(f"CREATE TABLE split AS {split}")
        counted = f"SELECT rowid, len(fields) FROM split WHERE len(fields) <> {n_columns}"
        odd = self._rows(f"{counted} ORDER BY rowid LIMIT 1")
        if odd:
            raise ValueError(f"{self.place(odd[0][0])}: {_count_fields(odd[0][1], n_columns)}")
        return "split", lambda j: _present(f"fields[{j + 1}]")

    def _read_parquet(self) -> str:
        return f"read_parquet({_literal(exact_pattern(self.path))}, hive_partitioning = false)"

    def _read_csv(self, columns: str, separator: str, quote: str) -> str:
        compression = "gzip" if is_gzipped(self.path) else "none"
        # A parallel reader starts in the middle of the file, and cannot tell lines within quotes from rows.
        return (
            f"read_csv({_literal(exact_pattern(self.path))}, hive_partitioning = false, auto_detect = false, "
            f"columns = {{{columns}}}, header = false, skip = {int(self._has_header)}, "
            f"delim = {_literal(separator)}, quote = {quote}, escape = {quote}, nullstr = '{_NO_VALUE}', "
            f"compression = '{compression}', parallel = false, "
            f"max_line_size = {2 * LONGEST_LINE}, buffer_size = {8 * LONGEST_LINE})"
        )

    # --------------------------------------------------------------------------------------------------- queries

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._in_words():
            return self._connection.execute(query).fetchall()

    def _arrays(self, query: str) -> dict[str, np.ndarray]:
        with self._in_words():
            return self._connection.execute(query).fetchnumpy()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            with ctrl_c():
                yield
        except self._duckdb.Error as error:
            raise self._explained(str(error)) from None  # the original may quote megabytes of the file

    def _as_text(self, name: str) -> str:
        column = self._columns[name]
        return column if self._types[column] == "VARCHAR" else f"CAST({column} AS VARCHAR)"

    def _as_number(self, name: str) -> str:
        if self.is_numeric(name):
            return f"CAST({self._columns[name]} AS DOUBLE)"
        text = self._as_text(name)
        # DuckDB reads 1_0 as 10 and +-1 as -1.
        return (
            f"CASE WHEN NOT contains({text}, '_') AND NOT starts_with({text}, '+-') THEN TRY_CAST({text} AS DOUBLE) END"
        )

    def _counts(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count the values of each column, and the numbers among them."""
        if not names:
            return {}
        counted = [f"count({self._columns[name]}), count({self._as_number(name)})" for name in names]
        counts = self._rows(f"SELECT {', '.join(counted)} FROM rows")[0]
        return dict(zip(names, zip(counts[::2], counts[1::2], strict=True), strict=True))

    def _first(self, name: str, condition: str) -> tuple[int, str] | None:
        """Return the first row that satisfies the condition, and the text of a column in it; or None."""
        found = f"SELECT min(rowid), arg_min({self._as_text(name)}, rowid) FROM rows WHERE {condition}"
        row, text = self._rows(found)[0]
        return None if row is None else (row, text)

    def _refuse_text(self, name: str) -> None:
        wrong = self._first(name, f"{self._columns[name]} IS NOT NULL AND {self._as_number(name)} IS NULL")
        if wrong:
            raise ValueError(f"{self.place(wrong[0])}: {shortened(name)} is {shown(wrong[1])}, not a number")

    def _explained(self, text: str) -> ValueError:
        """Return DuckDB's error as one line that starts with file and line number."""
        found = re.search(r"CSV Error on Line: (\d+)", text)
        if not found:
            return ValueError(f"{self.name}: {text.splitlines()[0]}")
        # DuckDB counts a record with quoted line ends as one line.
        line = next(islice((first for first, _ in self._records()), int(found[1]) - 1, None), found[1])
        fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if fields:
            what = _count_fields(int(fields[2]), int(fields[1]))
        elif "unterminated quote" in text:
            what = "quotes must enclose a whole value, and a quote inside must be doubled"
        elif "unicode" in text:
            what = "the text is not UTF-8"
        elif "Maximum line size" in text:
            what = f"the row is longer than {2 * LONGEST_LINE} bytes"
        else:
            what = "this is not CSV"
        return ValueError(f"{self.name}, line {line}: {what}")


def _count_fields(found: int, needed: int) -> str:
    return f"{found} field{'s' * (found != 1)} where the first line has {needed}"


def _ends_in_quotes(
    line: bytes, opening: re.Pattern[bytes], closing: re.Pattern[bytes], *, quoted: bool, is_header: bool
) -> bool:
    """Return whether a quoted value continues after this line, given whether one continued into it."""
    place = 0
    while True:
        if not quoted:
            found = opening.search(line, place)
            if not found:
                return False
            if b'  "' in found[0] and not is_header:  # DuckDB would keep the quotes
                raise ValueError(_INDENTED)
            place = found.end()
        place = line.find(b'"', place) + 1
        if not place:
            return True
        quoted = line.startswith(b'"', place)  # a doubled quote is part of the value
        if not (quoted or closing.match(line, place)):  # DuckDB reads "x" "y" as x y
            raise ValueError(_MISPLACED)
        place += quoted


def _listed(template: str, n_columns: int) -> str:
    return ", ".join(template.format(j) for j in range(n_columns))


def _present(text: str) -> str:
    """SQL for a text, NULL where it stands for a missing value."""
    return f"CASE WHEN {text} NOT IN ({', '.join(map(_literal, MISSING))}) THEN {text} END"


def _typed_value(column: str, kind: str) -> str:
    """SQL for a value of a Parquet file. Booleans are 0 and 1; NaN is a missing value, as it is in text."""
    if kind == "BOOLEAN":
        return f"CAST({column} AS TINYINT)"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN NOT isnan({column}) THEN {column} END"
    return _present(f"trim({column})") if kind == "VARCHAR" else column


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
