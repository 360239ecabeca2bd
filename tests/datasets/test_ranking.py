from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from albatross import checks
from albatross.datasets import Ranking, generate_ranking, read_ranking, write_ranking

GOOD = "2 qid:10 1:0.5 3:1.25\n0 qid:10 2:0.25\n4 qid:11 1:1 2:-3 3:7\n"
TABLE = [[0.5, 0.0, 1.25], [0.0, 0.25, 0.0], [1.0, -3.0, 7.0]]


def put(folder: Path, text: str | bytes, name: str = "set2.test.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_good(ranking: Ranking) -> None:
    assert ranking.features.tolist() == TABLE
    assert ranking.ratings.tolist() == [2, 0, 4]
    assert ranking.queries.tolist() == [10, 10, 11]
    assert (ranking.features.dtype, ranking.ratings.dtype, ranking.queries.dtype) == (float, float, np.int64)


# ------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.rstrip("\n"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", " # comment\r"),
        GOOD.replace("\n", "   \n"),
        GOOD.replace(" ", "\t"),
        GOOD.replace(" ", "  "),
        GOOD.replace("\n", " # docid = GX008-86 inc = 1 prob = 0.08\n"),
        GOOD.replace("\n", "#docid\n"),
        "# a comment alone\n\n" + GOOD + "\n\n",
        "\ufeff" + GOOD,
        GOOD.replace("0.5", "5e-1").replace("1.25", "+.125E1").replace("2 qid", "2.0 qid"),
        GOOD.replace("1:0.5 3:", "1:0.5 2:0 3:"),
    ],
    ids=[
        "plain",
        "no line end at the end",
        "Windows line ends",
        "old Mac line ends",
        "old Mac line ends after comments",
        "trailing blanks",
        "tabs",
        "double blanks",
        "comments",
        "comments without a blank",
        "empty lines",
        "byte order mark",
        "scientific notation",
        "zeros written out",
    ],
)
def test_the_same_rows_however_they_are_written(tmp_path, text):
    assert_good(read_ranking(put(tmp_path, text)))


@pytest.mark.parametrize("name", ["set2.test.txt", "set2.test.txt.gz", "rows"])
def test_gzip_is_told_by_content_and_not_by_name(tmp_path, name):
    assert_good(read_ranking(put(tmp_path, gzip.compress(GOOD.encode()), name)))
    assert_good(read_ranking(put(tmp_path, GOOD, name)))


def test_a_path_may_be_a_string(tmp_path):
    assert_good(read_ranking(str(put(tmp_path, GOOD))))


def test_a_row_without_features_is_a_row_of_zeros(tmp_path):
    ranking = read_ranking(put(tmp_path, "1 qid:1\n2 qid:1 2:3\n"))
    assert ranking.features.tolist() == [[0, 0], [0, 3]]


def test_columns_count_from_0_if_one_is_called_0(tmp_path):
    ranking = read_ranking(put(tmp_path, "1 qid:1 0:5\n2 qid:1 1:6\n"))
    assert ranking.features.tolist() == [[5, 0], [0, 6]]


def test_without_queries_all_rows_belong_to_one(tmp_path):
    ranking = read_ranking(put(tmp_path, "1 1:5\n2 1:6\n"))
    assert ranking.queries.tolist() == [0, 0]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), n=st.integers(1, 6), p=st.integers(1, 5), gzipped=st.booleans())
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, data, n, p, gzipped):
    numbers = st.floats(-1e100, 1e100, allow_subnormal=False)
    features = data.draw(arrays(float, (n, p), elements=numbers))
    features[0, -1] = 1.0  # so that the last column is told
    ranking = Ranking(features, data.draw(arrays(float, n, elements=numbers)), np.arange(n) * 2**40)
    path = tmp_path_factory.mktemp("ranking") / ("rows.txt.gz" if gzipped else "rows.txt")
    write_ranking(path, ranking)
    back = read_ranking(path)
    assert all(np.array_equal(one, other) for one, other in zip(back, ranking))


def test_generated_rows_survive_a_file(tmp_path):
    ranking = generate_ranking(200, 30, seed=1)
    write_ranking(tmp_path / "rows.gz", ranking)
    assert gzip.decompress((tmp_path / "rows.gz").read_bytes()).startswith(b"0 qid:1 1:0.03 2:1 6:0.82 ")
    back = read_ranking(tmp_path / "rows.gz")
    assert all(np.array_equal(one, other) for one, other in zip(back, ranking))


def test_a_set_of_your_own_reads():
    path = os.environ.get("ALBATROSS_RANKING")
    if not path:
        pytest.skip("set ALBATROSS_RANKING to a ranking file, such as set2.test.txt, to try it")
    ranking = read_ranking(path)
    assert len(ranking.features) == len(ranking.ratings) == len(ranking.queries)
    assert np.isfinite(ranking.features).all()


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("relevant qid:1 1:2", "the rating 'relevant' is not a number"),
        ("1,2 qid:1 1:2", "the rating '1,2' is not a number"),
        ("nan qid:1 1:2", "the rating 'nan' is not a number"),
        ("inf qid:1 1:2", "the rating 'inf' is not a number"),
        ("2,10,0.5,0.25", "the rating '2,10,0.5,0.25' is not a number"),
        ("1 qid:one 1:2", "the query 'one' is not a whole number"),
        ("1 qid: 1:2", "the query '' is not a whole number"),
        ("1 qid:99999999999999999999 1:2", "the query '99999999999999999999' is not a whole number"),
        ("1 1:2 qid:1", "must follow the rating"),
        ("1 1:2", r"has no query \(qid\), but line 1 has one"),
        ("1 qid:1 3:1 2:1", "column 2 follows column 3"),
        ("1 qid:1 3:1 3:2", "column 3 is given twice"),
        ("1 qid:1 3:", "column 3 has the value '', which is not a number"),
        ("1_0 qid:1 3:1", "the rating '1_0' is not a number"),
        ("1 qid:1_0 3:1", "the query '1_0' is not a whole number"),
        ("1 qid:1 1_0:3", "'1_0:3' is not column:value"),
        ("1 qid:1 3:1_0", "column 3 has the value '1_0', which is not a number"),
        ("1 qidx:1 3:1", "'qidx:1' is not column:value"),
        ("1 qid:1 3:x", "column 3 has the value 'x', which is not a number"),
        ("1 qid:1 3:nan", "column 3 has the value 'nan', which is not a number"),
        ("1 qid:1 3:1e999", "column 3 has the value '1e999', which is not a number"),
        ("1 qid:1 3", "'3' is not column:value"),
        ("1 qid:1 a:3", "'a:3' is not column:value"),
        ("1 qid:1 -1:3", "'-1:3' is not column:value"),
        ("1 qid:1 99999999999999999999:3", "is not column:value"),
        ("1 qid:1 2147483648:3", "'2147483648:3' is not column:value"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = put(tmp_path, GOOD + "# between\n" + line + "\n" + GOOD)
    with pytest.raises(ValueError, match=rf"^set2\.test\.txt, line 5: .*{message}"):
        read_ranking(path)


def test_a_query_in_some_lines_only_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"line 3: has a query \(qid\), but line 1 has none"):
        read_ranking(put(tmp_path, "1 1:2\n2 1:3\n1 qid:4 1:2\n"))


def test_a_file_cut_within_a_field_names_its_last_line(tmp_path):
    with pytest.raises(ValueError, match="line 3: column 2 has the value ''"):
        read_ranking(put(tmp_path, GOOD[: GOOD.index("-3")]))


def test_a_cut_gzip_names_the_line_it_breaks_off_in(tmp_path):
    ranking = generate_ranking(300, 20)
    write_ranking(tmp_path / "rows.gz", ranking)
    whole = (tmp_path / "rows.gz").read_bytes()
    with pytest.raises(ValueError, match=r"^rows, line \d+: the gzip data end here"):
        read_ranking(put(tmp_path, whole[: len(whole) // 2], "rows"))
    with pytest.raises(ValueError, match=r"^rows, line \d+: the gzip data end here"):
        read_ranking(put(tmp_path, whole[:12], "rows"))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n"])
def test_an_empty_file_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"set2\.test\.txt has no rows"):
        read_ranking(put(tmp_path, text))


def test_an_empty_gzip_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no rows"):
        read_ranking(put(tmp_path, gzip.compress(b"")))


def test_rows_without_any_feature_are_refused(tmp_path):
    with pytest.raises(ValueError, match="has 2 rows but no features"):
        read_ranking(put(tmp_path, "1 qid:1\n2 qid:1\n"))


def test_a_column_number_that_no_table_has_is_refused_before_memory_is(tmp_path):
    with pytest.raises(ValueError, match="columns up to 2000000000"):
        read_ranking(put(tmp_path, "1 qid:1 2000000000:1\n"))


def test_a_column_number_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1e8)
    with pytest.raises(ValueError, match=r"columns up to 20000000 would take 0\.16 GB of memory, but 0\.1 GB are free"):
        read_ranking(put(tmp_path, "1 qid:1 20000000:1\n"))


def test_a_binary_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^picture, line 1: the rating"):
        read_ranking(put(tmp_path, b"\x89PNG\r\n\x1a\n\x00\x00" * 9, "picture"))


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_ranking(tmp_path / "absent.txt")


def test_nothing_that_is_not_finite_is_written(tmp_path):
    with pytest.raises(ValueError, match="features must be finite"):
        write_ranking(tmp_path / "rows", Ranking(np.array([[np.nan]]), np.zeros(1), np.zeros(1, int)))


def test_a_second_query_in_a_line_is_refused(tmp_path):
    (tmp_path / "set").write_text("1 qid:1 1:0.5\n1 qid:1 qid:2 1:0.5\n")
    with pytest.raises(ValueError, match=r"set, line 2: the query \(qid\) must follow the rating"):
        read_ranking(tmp_path / "set")


@pytest.mark.parametrize("name", ["set", "set.gz"])
def test_columns_of_zeros_are_written_too(tmp_path, name):
    ranking = Ranking(np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0]]), np.array([1.0, 0.0]), np.array([3, 4]))
    for features in (ranking.features, np.zeros((2, 3))):
        write_ranking(tmp_path / name, ranking._replace(features=features))
        assert read_ranking(tmp_path / name).features.tolist() == features.tolist()


@pytest.mark.parametrize(
    "queries", [np.array([1.0, 2.0]), np.ma.masked_array([1, 2], [True, False]), np.array([1]), np.array(["a", "b"])]
)
def test_queries_that_are_no_whole_numbers_are_refused_and_the_old_file_stays(tmp_path, queries):
    (tmp_path / "set").write_text("old")
    with pytest.raises(ValueError, match="queries"):
        write_ranking(tmp_path / "set", Ranking(np.ones((2, 1)), np.ones(2), queries))
    assert (tmp_path / "set").read_text() == "old"
