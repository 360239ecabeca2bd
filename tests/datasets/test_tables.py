from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest

from albatross.datasets.files import is_gzipped, open_lines
from albatross.datasets.tables import Table

TEXT = "id,when,size,note\n3,b,1,x\n,a,,y\n1,,2.5,7\n3,a,4,x\n"


@pytest.fixture
def table(tmp_path) -> Table:
    (tmp_path / "table.csv").write_text(TEXT)
    return Table(tmp_path / "table.csv")


def test_labels_are_sorted_and_missing_ones_have_place_minus_one(table):
    numbers, places = table.labels("id")
    assert (numbers.tolist(), places.tolist()) == ([1, 3], [1, -1, 0, 1])
    names, places = table.labels("when")
    assert (names.tolist(), places.tolist()) == (["a", "b"], [1, 0, -1, 0])


def test_rows_are_ordered_by_text_those_without_it_last(table):
    assert table.order("when").tolist() == [1, 3, 0, 2]


def test_numbers_have_nan_where_a_value_is_missing(table):
    np.testing.assert_array_equal(table.numbers(["size", "id"]), [[1, 3], [np.nan, np.nan], [2.5, 1], [4, 3]])


def test_a_column_holds_numbers_if_most_of_its_values_are(table):
    assert table.numeric_and_text(table.names) == (["id", "size"], ["when", "note"])


def test_texts_are_none_where_missing(table):
    assert table.texts("when").tolist() == ["b", "a", None, "a"]
    assert table.texts("note").tolist() == ["x", "y", "7", "x"]


def test_a_quoted_value_may_hold_separators_quotes_and_line_ends(tmp_path):
    (tmp_path / "table.csv").write_text('a,b\n"1,5","say ""x"""\n"two\nlines",y\nz,zero\n')
    table = Table(tmp_path / "table.csv")
    assert table.texts("a").tolist() == ["1,5", "two\nlines", "z"]
    assert table.place(2) == "table.csv, line 5"


def test_names_in_the_header_may_be_anything(tmp_path):
    (tmp_path / "table.csv").write_text('it\'s,"a ""b""",select\n1,2,3\n')
    table = Table(tmp_path / "table.csv")
    assert table.names == ("it's", 'a "b"', "select")
    assert table.numbers(table.names).tolist() == [[1, 2, 3]]


def test_unread_columns_are_listed(tmp_path):
    (tmp_path / "table.csv").write_text("a,b_1,b_2\n1,2,3\n")
    table = Table(tmp_path / "table.csv", unread="b_")
    assert table.names == ("a", "b_1", "b_2")
    assert table.numbers(["a"]).tolist() == [[1]]


def test_rows_keep_their_order_in_a_large_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("i,x\n" + "".join(f"{i},{i / 7}\n" for i in range(300_000)))
    assert np.array_equal(Table(path).numbers(["i"])[:, 0], np.arange(300_000))
    with open(path, "a") as file:
        file.write("x,1\n")
    with pytest.raises(ValueError, match=r"^table\.csv, line 300002: i is 'x', not a number$"):
        Table(path).numbers(["i"])


def test_lines_are_gunzipped_by_content(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\ntwo"))
    assert is_gzipped(path)
    with open_lines(path) as file:
        assert list(file) == [b"one\n", b"two"]


def test_a_missing_library_is_named_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text(TEXT)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ModuleNotFoundError, match=r"this needs duckdb: pip install 'albatross\[lab\]'"):
        Table(tmp_path / "table.csv")


# ------------------------------------------------------------------------------------- names that mean something


def written(folder: Path, kind: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """The same table as Parquet, or with this separator."""
    path = folder / "table"
    if kind == "Parquet":
        titles = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        values = ", ".join(f"({', '.join(map(repr, row))})" for row in rows)
        duckdb.execute(f"COPY (SELECT * FROM (VALUES {values}) AS t({titles})) TO '{path}' (FORMAT parquet)")
    else:
        path.write_text("".join(kind.join(map(str, row)) + "\n" for row in [names, *rows]))
    return path


KINDS = pytest.mark.parametrize("kind", [",", " ", "\t", "Parquet"])


@KINDS
@pytest.mark.parametrize("name", ["rowid", "ROWID", "RowId", "c0", "n0", "line", "fields", "rows", "i", "file", "t"])
def test_a_column_may_be_called_anything_that_sql_or_this_module_uses(tmp_path, kind, name):
    rows = [(7, "b", 3), (7, "a", 1), (7, "b", 2), (7, "x", 4)]
    table = Table(written(tmp_path, kind, (name, "when", "c1"), rows))
    assert table.names == (name, "when", "c1")
    assert table.numbers(["c1", name]).tolist() == [[3, 7], [1, 7], [2, 7], [4, 7]]
    assert table.order("when").tolist() == [1, 0, 2, 3]
    assert table.labels("when")[1].tolist() == [1, 0, 1, 2]
    with pytest.raises(ValueError, match=r"^table, (line 2|row 1): when is 'b', not a number$"):
        table.numbers(["when"])


def test_four_times_the_columns_take_about_four_times_as_long(tmp_path):
    seconds = []
    for n_columns in (100, 400):
        rows = [range(n_columns)] * 3
        path = written(tmp_path, "  ", [f"x{j}" for j in range(n_columns)], rows)
        start = time.process_time()
        table = Table(path)
        assert np.array_equal(table.numbers(table.numeric_and_text(table.names)[0]), rows)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 8 * seconds[0], "with the square of the columns, it would be sixteen times as long"
