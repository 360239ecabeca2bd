from __future__ import annotations

import gzip
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import duckdb
import numpy as np
import pytest

from albatross import checks
from albatross.datasets import read_ranking, tables
from albatross.datasets.files import LONGEST_LINE, fingerprint, is_gzipped, lines
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


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (("10", "9", "", "9.5"), [1, 3, 0, 2]),
        (("2020-01-02 10:00:00", "2020-01-02 9:59", "", "2020-01-02 09:59:30"), [1, 3, 0, 2]),
        (("2020-01-02 10:00:00+02:00", "2020-01-02 09:00:00+00:00", "", "2020-01-02T08:30Z"), [0, 3, 1, 2]),
    ],
    ids=["numbers", "times", "zones"],
)
def test_rows_are_ordered_by_numbers_or_times_those_without_last(tmp_path, times, order):
    (tmp_path / "table.csv").write_text("when,x\n" + "".join(f"{time},0\n" for time in times))
    assert Table(tmp_path / "table.csv").order("when").tolist() == order


@pytest.mark.parametrize("times", [("10:00", "9:59"), ("02/01/2020", "01/02/2020"), ("b", "a")])
def test_rows_with_other_texts_stay_in_the_order_of_the_file_with_a_warning(tmp_path, times):
    (tmp_path / "table.csv").write_text("when,x\n" + "".join(f"{time},0\n" for time in times))
    with pytest.warns(UserWarning, match=rf"table.csv, line 2: when is '{times[0]}', not a time .* order of the file"):
        assert Table(tmp_path / "table.csv").order("when").tolist() == [0, 1]


def test_texts_with_leading_zeros_are_names(tmp_path):
    (tmp_path / "table.csv").write_text("id,plain\n007,7\n7,-1\n07,0\n")
    names, places = Table(tmp_path / "table.csv").labels("id")
    assert (names.tolist(), places.tolist()) == (["007", "07", "7"], [0, 2, 1])
    assert Table(tmp_path / "table.csv").labels("plain")[0].tolist() == [-1, 0, 7]


def test_texts_with_a_plus_are_names(tmp_path):
    (tmp_path / "table.csv").write_text("id\n+49171\n49171\n")
    names, places = Table(tmp_path / "table.csv").labels("id")
    assert (names.tolist(), places.tolist()) == (["+49171", "49171"], [0, 1])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_missing_value_is_missing_whatever_the_blanks_around_it_and_the_kind_of_file(tmp_path, kind):
    texts = ["a", "", " ", "NA", " NA ", "NULL", "None", "NAN"]
    if kind == "csv":
        (tmp_path / "table").write_text("t,x\n" + "".join(f"{text},0\n" for text in texts))
    else:
        rows = ", ".join(f"('{text}', 0)" for text in texts)
        duckdb.sql(f"COPY (SELECT * FROM (VALUES {rows}) AS r(t, x)) TO '{tmp_path}/table' (FORMAT parquet)")
    assert Table(tmp_path / "table").texts("t").tolist() == ["a", *[None] * 6, "NAN"]


@pytest.mark.parametrize("row", ['"x" "y",1', '"x"y,1', '"x" y,1', '"a\nb" "c",1'])
def test_quotes_that_do_not_surround_a_whole_value_are_refused(tmp_path, row):
    (tmp_path / "table.csv").write_text(f"a,b\nz,0\n{row}\n")
    with pytest.raises(ValueError, match=r"table.csv, line 3: quotes must surround a whole value"):
        Table(tmp_path / "table.csv")


@pytest.mark.skipif(os.sep != "/", reason="a backslash separates folders here")
def test_a_path_that_duckdb_would_take_for_another_is_refused(tmp_path):
    (tmp_path / "d[0]" / "a").mkdir(parents=True)
    (tmp_path / "d[0]" / "a" / "b.csv").write_text("x,y\n1,2\n")
    (tmp_path / "d[0]" / "a\\b.csv").write_text("x,y\n3,4\n")
    with pytest.raises(ValueError, match="has a backslash and one of"):
        Table(tmp_path / "d[0]" / "a\\b.csv")
    (tmp_path / "a\\b.csv").write_text("x,y\n3,4\n")
    assert Table(tmp_path / "a\\b.csv").numbers(["x"]).tolist() == [[3]]


@pytest.mark.skipif(sys.platform != "linux", reason="names are text here")
def test_a_file_name_that_is_not_utf8_is_refused_in_words(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    Path(path).write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"caf\\udce9.csv' is not UTF-8: rename it"):
        Table(path)


def test_numbers_have_nan_where_a_value_is_missing(table):
    np.testing.assert_array_equal(table.numbers(["size", "id"]), [[1, 3], [np.nan, np.nan], [2.5, 1], [4, 3]])


def test_a_column_holds_numbers_if_most_of_its_values_are(table):
    assert table.numeric_and_text(table.names) == (["id", "size"], ["when", "note"])


def test_texts_are_none_where_missing(table):
    assert table.texts("when").tolist() == ["b", "a", None, "a"]
    assert table.texts("note").tolist() == ["x", "y", "7", "x"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "::"])
def test_a_quote_may_follow_one_blank_and_not_several(tmp_path, separator):
    path = tmp_path / "table.csv"
    path.write_text('a,   "b"\n1, "red"\n2,"red"\n3, "re""d" \n'.replace(",", separator))
    assert Table(path).texts("b").tolist() == ["red", "red", 're"d']
    path.write_text('a,b\n1,"red"\n2,  "red"\n'.replace(",", separator))
    with pytest.raises(ValueError, match=r"^table.csv, line 3: a quote stands after several blanks"):
        Table(path)


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


@pytest.mark.parametrize("header", ['a;"b, in kg, dry";c', "a;b, in kg;c"])
def test_the_separator_is_the_one_that_stands_most_often_between_names(tmp_path, header):
    (tmp_path / "table.csv").write_text(f"{header}\n1;2;3\n")
    table = Table(tmp_path / "table.csv")
    assert table.names == tuple(header.replace('"', "").split(";"))
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
    assert list(lines(path)) == [b"one\n", b"two"]


def test_a_missing_library_is_named_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text(TEXT)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ModuleNotFoundError, match=r"this needs duckdb: run pip install '\.\[lab\]'"):
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
    assert table.order("c1").tolist() == [1, 2, 0, 3]
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


@KINDS
def test_more_columns_than_any_table_has_are_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_COLUMNS", 2)
    path = written(tmp_path, kind, ("a", "b", "c"), [(1, 2, 3)])
    with pytest.raises(ValueError, match=r"^table has 3 columns, but a table has at most 2$"):
        Table(path)


@KINDS
def test_more_cells_than_memory_holds_are_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_CELLS", 8)
    assert Table(written(tmp_path, kind, ("a", "b"), [(1, 2)] * 4)).n_rows == 4
    path = written(tmp_path, kind, ("a", "b"), [(1, 2)] * 5)
    with pytest.raises(ValueError, match=r"^table has more than 4 rows of 2 columns, but a table has at most 8 cells$"):
        Table(path)
    assert Table(path, unread="b").n_rows == 5


@KINDS
def test_more_cells_than_are_free_are_refused_before_they_are_read(tmp_path, kind, monkeypatch):
    path = written(tmp_path, kind, ("a", "b"), [(1, 2)] * 10)
    monkeypatch.setattr(tables, "_PER_CELL", 10**9)  # as if there were many more
    monkeypatch.setattr(checks, "free_memory", lambda: 15e9)
    with pytest.raises(ValueError, match=r"^table with 10 rows of 2 columns would take 20 GB of memory, but 15 GB are"):
        Table(path)
    assert Table(path, unread="b").n_rows == 10


# ----------------------------------------------------------------------------------------------- long lines and fields


@pytest.mark.parametrize("row", ["5,6,", "5,6,NA", '5,6,""', "5,6,nan"])
def test_a_field_too_many_is_refused_even_if_it_is_empty(tmp_path, row):
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n1,2\n{row}\n3,4\n")
    with pytest.raises(ValueError, match=r"table\.csv, line 3: 3 fields where the first line has 2"):
        Table(path)


def test_nan_is_a_missing_value_in_text_and_in_parquet(tmp_path):
    (tmp_path / "table.csv").write_text("item\n2\nnan\n1\nNaN\n")
    items = "(VALUES (2.0::DOUBLE), ('nan'::DOUBLE), (1.0), (NULL)) AS rows(item)"
    duckdb.sql(f"SELECT * FROM {items}").write_parquet(str(tmp_path / "table.parquet"))
    for name in ("table.csv", "table.parquet"):
        labels, places = Table(tmp_path / name).labels("item")
        assert (labels.tolist(), places.tolist()) == ([1, 2], [1, -1, 0, -1])


def test_booleans_of_parquet_are_0_and_1(tmp_path):
    path = tmp_path / "table.parquet"
    duckdb.sql("SELECT * FROM (VALUES (true), (false), (NULL)) AS rows(action)").write_parquet(str(path))
    table = Table(path)
    labels, places = table.labels("action")
    assert (labels.tolist(), places.tolist()) == ([0, 1], [1, 0, -1])
    np.testing.assert_array_equal(table.numbers(["action"]), [[1.0], [0.0], [np.nan]])


def test_names_between_double_colons_may_be_quoted(tmp_path):
    path = tmp_path / "table.dat"
    path.write_text('"user"::"a::b"::c:d\n1::2::3\n')
    assert Table(path).names == ("user", "a::b", "c:d")


def test_a_line_is_named_after_fields_of_any_length(tmp_path):
    (tmp_path / "table.csv").write_text(f'a,b\n1,"{"x" * 200_000}\n"\ny,{"z" * 200_000}\n')
    with pytest.raises(ValueError, match=r"^table\.csv, line 4: a is 'y', not a number$"):
        Table(tmp_path / "table.csv").numbers(["a"])


def test_names_too_long_for_a_header_are_refused(tmp_path):
    (tmp_path / "table.csv").write_text(f"a,{'b' * 200_000}\n1,2\n")
    with pytest.raises(ValueError, match=r"^table\.csv, line 1: cannot read the names of the columns: "):
        Table(tmp_path / "table.csv")


def test_a_line_may_be_as_long_as_the_limit_says(tmp_path):
    rows = [("x" * (LONGEST_LINE - 9 - row), str(row)) for row in range(5)]
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    table = Table(tmp_path / "table.csv")
    assert list(map(len, table.texts("a"))) == [len(a) for a, _ in rows]
    assert table.texts("b").tolist() == [b for _, b in rows]


@pytest.mark.parametrize(
    ("read", "head"),
    [(Table, b""), (Table, b"a,b\n1,2\n"), (Table, b"a b\n1 2\n"), (read_ranking, b""), (read_ranking, b"1 1:2\n")],
)
@pytest.mark.parametrize("tail", [b"x", b"1,", b"1 "])
@pytest.mark.parametrize("zipped", [False, True])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, read, zipped, head, tail):
    path = tmp_path / "lines"
    with gzip.open(path, "wb", compresslevel=1) if zipped else open(path, "wb") as file:
        file.write(head)
        for _ in range(64):
            file.write(tail * (2**20 // len(tail)))
    line = head.count(b"\n") + 1
    import_module("sklearn.datasets")  # takes more memory than reading
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=rf"^lines, line {line}: the line is longer than 4194304 bytes"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------------------------------------- wrong in silence


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text(TEXT)
    read_csv = Table._read_csv

    def grown(table, *options):
        with open(path, "a") as file:
            file.write("5,c,6,z\n")
        return read_csv(table, *options)

    monkeypatch.setattr(Table, "_read_csv", grown)
    with pytest.raises(ValueError, match=r"^table\.csv has 4 rows, but 5 were read: .* no other program writes to it$"):
        Table(path)


@pytest.mark.parametrize("ends", [("\\n", "\\r\\n"), ("\\r\\n", "\\n"), ("\\n", "\\r"), ("\\r", "\\n")])
def test_line_ends_of_several_kinds_are_refused(tmp_path, ends):
    usual, odd = (end.encode().decode("unicode_escape") for end in ends)
    (tmp_path / "table.csv").write_text(f"a,b{usual}1,2{usual}3,4{odd}5,6", newline="")
    message = re.escape(f"table.csv, line 3: the line ends in '{ends[1]}', but earlier lines end in '{ends[0]}'")
    with pytest.raises(ValueError, match=f"^{message}: use the same end for all lines$"):
        Table(tmp_path / "table.csv")


@pytest.mark.parametrize("usual", ["\n", "\r\n", "\r"])
def test_a_value_in_quotes_may_hold_any_line_end(tmp_path, usual):
    (tmp_path / "table.csv").write_text(f'a,b{usual}"1\n2","3\r4"{usual}"5\r\n6",7', newline="")
    table = Table(tmp_path / "table.csv")
    assert table.texts("a").tolist() == ["1\n2", "5\r\n6"]
    assert table.texts("b").tolist() == ["3\r4", "7"]


@pytest.mark.parametrize("lines", [1_000, 20_000])
def test_quoted_lines_that_look_like_rows_are_text_in_a_large_file(tmp_path, lines):
    """A reader that starts at some megabyte of the file would take them for rows."""
    quoted = "\n".join(f"{j},8,9" for j in range(lines))
    n_rows = 12_000_000 // len(quoted)
    with open(tmp_path / "table.csv", "w") as file:
        file.write("id,b,text\n")
        for row in range(n_rows):
            file.write(f'{row},2,"{quoted}"\n')
    table = Table(tmp_path / "table.csv")
    np.testing.assert_array_equal(table.numbers(["id", "b"]), [[row, 2.0] for row in range(n_rows)])
    assert set(table.texts("text")) == {quoted}


def test_errors_name_the_first_line_of_a_row_with_line_ends_in_quotes(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1,"x\ny\nz"\n\n"2\n",y\nz\n')
    with pytest.raises(ValueError, match=r"^table\.csv, line 8: 1 field where the first line has 2$"):
        Table(path)
    path.write_text('a,b\n1,"x\ny\nz"\n\n"u\n",y\n3,4\n')
    with pytest.raises(ValueError, match=r"^table\.csv, line 6: a is 'u\\n', not a number$"):
        Table(path).numbers(["a"])


def test_gzipped_data_with_a_wrong_checksum_are_refused(tmp_path):
    data = bytearray(gzip.compress(TEXT.encode()))
    data[-8] ^= 1
    (tmp_path / "table.csv").write_bytes(data)
    with pytest.raises(ValueError, match=r"^table\.csv, line \d: the gzip data end here"):
        Table(tmp_path / "table.csv")


# ------------------------------------------------------------------------------------------------- no files at all


@pytest.mark.parametrize("read", [Table, read_ranking, fingerprint])
def test_what_is_no_file_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ValueError, match=f"^{path} is a folder, a pipe or a device, not a regular file"):
            read(path)


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "a"), ("utf-16-le", "a"), ("utf-16-be", "a"), ("latin-1", "größe")]
)
def test_a_header_in_another_encoding_is_refused(tmp_path, encoding, name):
    (tmp_path / "table.csv").write_text(f"{name},b\n1,2\n", encoding=encoding)
    with pytest.raises(ValueError, match=r"^table\.csv, line 1: the text is not UTF-8$"):
        Table(tmp_path / "table.csv")


def test_parquet_within_gzip_is_called_so(tmp_path):
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/plain.parquet'")
    (tmp_path / "table.parquet.gz").write_bytes(gzip.compress((tmp_path / "plain.parquet").read_bytes()))
    with pytest.raises(ValueError, match=r"^table\.parquet\.gz is Parquet within gzip: unzip it$"):
        Table(tmp_path / "table.parquet.gz")


@pytest.mark.parametrize("header", ['"a,b', '"a"x,b', '"a\nb",c'])
def test_a_header_with_misplaced_quotes_is_refused(tmp_path, header):
    (tmp_path / "table.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(ValueError, match=r"^table\.csv, line 1: cannot read the names of the columns"):
        Table(tmp_path / "table.csv")


def test_ctrl_c_in_a_query_is_ctrl_c(table):
    class Stopped:
        def execute(self, query):
            raise RuntimeError("Query interrupted")

    table._connection = Stopped()
    with pytest.raises(KeyboardInterrupt):
        table.texts("id")
