from __future__ import annotations

import gzip
import os
from pathlib import Path

import duckdb
import numpy as np
import pytest
from scipy.sparse import csr_array

from albatross.datasets import item_factors, ratings, read_ratings

LONG = "user,item,rating,timestamp\n7,30,1,881250949\n7,20,5,881250949\n9,20,0,881250949\n9,30,2.5,881250949\n"
MATRIX = [[5, 1], [0, 2.5]]


def put(folder: Path, text: str | bytes, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def low_rank(n_users: int, n_items: int, strengths: tuple[float, ...]) -> np.ndarray:
    """Ratings of these factors, already without means of users and items."""
    rng = np.random.default_rng(0)
    centre = [
        np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, len(strengths)))])[0][:, 1:] for n in (n_users, n_items)
    ]
    return centre[0] * strengths @ centre[1].T


def headless(text: str) -> str:
    return text.split("\n", 1)[1]


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.replace("user,item", "userId,movieId"),
        LONG.replace("user,item", "User_ID,item_id"),
        LONG.replace("\n", "\r\n"),
        LONG.replace("\n", "\r"),
        headless(LONG).replace(",", "\t"),
        headless(LONG).replace(",", "   "),
        headless(LONG).replace(",", "::"),
        headless(LONG).replace(",881250949", ""),
        headless(LONG),
        gzip.compress(LONG.encode(), mtime=0),
    ],
    ids=[
        "csv",
        "MovieLens csv",
        "other names",
        "Windows",
        "old Mac",
        "tabs",
        "blanks",
        "::",
        "triplets",
        "no header",
        "gzip",
    ],
)
def test_the_same_ratings_however_they_are_written(tmp_path, text):
    found = read_ratings(put(tmp_path, text), rank=1)
    assert found.matrix.toarray().tolist() == MATRIX
    assert found.matrix.nnz == 4, "a rating of 0 is a rating"
    assert (found.users.tolist(), found.items.tolist()) == ([7, 9], [20, 30])
    assert found.item_means.tolist() == [2.5, 1.75]


def test_parquet_will_do(tmp_path):
    rows = "(7, 30, 1), (7, 20, 5), (9, 20, 0), (9, 30, 2.5)"
    path = tmp_path / "ratings.parquet"
    duckdb.execute(f"COPY (SELECT * FROM (VALUES {rows}) AS t(user_id, item_id, rating)) TO '{path}' (FORMAT parquet)")
    assert read_ratings(path, rank=1).matrix.toarray().tolist() == MATRIX


def test_a_column_for_every_item_will_do(tmp_path):
    with pytest.warns(UserWarning, match="left out 1 column\\(s\\) without numbers: part"):
        found = read_ratings(put(tmp_path, "user,part,j1,j2,j3\n1,play,2,,-3\n2,play,,0,4\n3,fit,1,1,\n"), rank=1)
    assert found.matrix.toarray().tolist() == [[2, 0, -3], [0, 0, 4], [1, 1, 0]]
    assert found.matrix.nnz == 6
    assert found.items.tolist() == ["j1", "j2", "j3"]


@pytest.mark.parametrize("user", ["user", "userId", "USER_ID"])
def test_items_may_be_called_by_numbers(tmp_path, user):
    found = read_ratings(put(tmp_path, f"{user},10,20,30\n1,2,,-3\n2,,0,4\n3,1,1,\n"), rank=1)
    assert found.items.tolist() == ["10", "20", "30"]
    assert found.matrix.toarray().tolist() == [[2, 0, -3], [0, 0, 4], [1, 1, 0]]


@pytest.mark.parametrize("first", ["1_0", "nan", "inf", "\u0661"])
def test_only_plain_numbers_in_the_first_line_say_that_there_is_no_header(tmp_path, first):
    with pytest.raises(ValueError, match=f"needs columns user, item and rating, .* it has {first}, tea, good$"):
        read_ratings(put(tmp_path, f"{first},tea,good\n7,rum,1\n"), rank=1)


def test_users_and_items_may_have_names(tmp_path):
    found = read_ratings(put(tmp_path, "ann tea 1\nann rum 5\nbob tea 4\nbob rum 2\n", "u.data"), rank=1)
    assert (found.users.tolist(), found.items.tolist()) == (["ann", "bob"], ["rum", "tea"])
    assert found.matrix.toarray().tolist() == [[5, 1], [2, 4]]


@pytest.mark.filterwarnings("ignore:.*left out columns:UserWarning", "ignore:.*dropped:UserWarning")
def test_a_set_of_your_own_reads():
    path = os.environ.get("ALBATROSS_RATINGS")
    if not path:
        pytest.skip("set ALBATROSS_RATINGS to a file of ratings to try it")
    found = read_ratings(path)
    assert found.factors.shape == (len(found.items), 10)


# ---------------------------------------------------------------------------------------------------------- factors


def test_factors_are_those_of_a_matrix_of_low_rank():
    matrix = low_rank(40, 30, (9.0, 5.0, 2.0))
    means, factors = item_factors(csr_array(matrix + 3.0), rank=3)
    np.testing.assert_allclose(means, 3.0)
    projected = factors @ (factors.T @ matrix.T) / 30
    np.testing.assert_allclose(projected, matrix.T, atol=1e-12)


def test_factors_have_mean_square_one_are_orthogonal_and_have_one_sign():
    _, factors = item_factors(csr_array(np.random.default_rng(0).standard_normal((50, 20))), rank=4)
    np.testing.assert_allclose(factors.T @ factors / 20, np.eye(4), atol=1e-12)
    assert (factors[np.abs(factors).argmax(axis=0), np.arange(4)] > 0).all()


def test_the_truncated_decomposition_is_the_whole_one(monkeypatch):
    matrix = csr_array(low_rank(60, 40, (9.0, 7.0, 5.0, 2.0)) + 1.0)
    _, whole = item_factors(matrix, rank=3)
    monkeypatch.setattr(ratings, "_MOST_CELLS", 0)
    _, truncated = item_factors(matrix, rank=3)
    np.testing.assert_allclose(truncated, whole, atol=1e-9)
    assert np.array_equal(truncated, item_factors(matrix, rank=3)[1]), "the same at every call"


def test_ratings_that_were_never_given_count_as_average(tmp_path):
    rows = [f"{u},{i},{(u * i) % 5}" for u in range(8) for i in range(6) if (u + i) % 4]
    found = read_ratings(put(tmp_path, "user,item,rating\n" + "\n".join(rows)), rank=2)
    assert found.matrix.nnz == len(rows)
    assert found.factors.shape == (6, 2)


# ----------------------------------------------------------------------------------------------------------- dropped


def test_of_a_rating_given_twice_the_last_counts(tmp_path):
    with pytest.warns(UserWarning, match="dropped 1 of 5 ratings: rated again later"):
        found = read_ratings(put(tmp_path, LONG.replace("timestamp\n", "timestamp\n7,20,3,1\n")), rank=1)
    assert found.matrix.toarray().tolist() == MATRIX


def test_of_a_rating_given_twice_the_last_in_time_counts(tmp_path):
    later_first = LONG.replace("timestamp\n", "timestamp\n7,20,5,881250950\n").replace("7,20,5,881250949", "7,20,3,1")
    with pytest.warns(UserWarning, match="dropped 1 of 5 ratings: rated again later"):
        found = read_ratings(put(tmp_path, later_first), rank=1)
    assert found.matrix.toarray().tolist() == MATRIX


def test_a_rating_without_a_time_is_the_first(tmp_path):
    text = LONG.replace("timestamp\n", "timestamp,date\n").replace("881250949\n", "881250949,2020-01-01\n")
    with pytest.warns(UserWarning, match="dropped 1 of 5 ratings: rated again later"):
        found = read_ratings(put(tmp_path, text + "7,20,3,,2021-01-01\n"), rank=1)
    assert found.matrix.toarray().tolist() == MATRIX


def test_within_a_day_the_time_of_day_counts(tmp_path):
    head = "user,item,rating,date,time\n"
    rows = ["7,30,1,2020-01-01,01:00", "7,20,5,2020-01-02,12:00:00", "7,20,3,2020-01-02,09:00:00"]
    with pytest.warns(UserWarning, match="dropped 1 of 5 ratings: rated again later"):
        found = read_ratings(
            put(tmp_path, head + "\n".join([*rows, "9,20,0,2020-01-01,01:00", "9,30,2.5,2020-01-01,02:00"])), rank=1
        )
    assert found.matrix.toarray().tolist() == MATRIX


def test_times_that_cannot_be_read_leave_the_order_of_the_file(tmp_path):
    text = (
        LONG.replace("timestamp", "date").replace("7,20,5,881250949", "7,20,3,2021-01-01").replace("881250949", "soon")
    )
    stays, dropped = "the rows stay in the order of the file", "dropped 1 of 5 ratings"
    with pytest.warns(UserWarning, match=stays), pytest.warns(UserWarning, match=dropped):
        found = read_ratings(put(tmp_path, text + "7,20,5,\n"), rank=1)
    assert found.matrix.toarray().tolist() == MATRIX


def test_a_column_of_dates_is_no_item(tmp_path):
    with pytest.warns(UserWarning, match="left out date: times, not items"):
        found = read_ratings(put(tmp_path, "user,20,30,date\n7,5,1,20200101\n9,0,2.5,20200102\n"), rank=1)
    assert found.items.tolist() == ["20", "30"]


def test_a_magazine_may_be_called_time(tmp_path):
    found = read_ratings(put(tmp_path, "user,Time,Date\n7,5,1\n9,0,2.5\n"), rank=1)
    assert found.items.tolist() == ["Time", "Date"]


@pytest.mark.parametrize("name", ["timestamp", "DateTime"])
def test_a_time_is_no_item(tmp_path, name):
    with pytest.warns(UserWarning, match=f"left out {name}: times, not items"):
        found = read_ratings(put(tmp_path, f"user,20,{name},30\n7,5,881250949,1\n9,0,881250949,2.5\n"), rank=1)
    assert found.items.tolist() == ["20", "30"]
    assert found.matrix.toarray().tolist() == MATRIX


@pytest.mark.parametrize("line", ["7,40,,1", ",20,1,1", "7,,1,1", "7,40,NA,1"])
def test_lines_that_miss_something_are_dropped_with_a_warning(tmp_path, line):
    with pytest.warns(UserWarning, match="dropped 1 of 5 ratings: without a user, an item or a rating"):
        read_ratings(put(tmp_path, LONG + line + "\n"), rank=1)


# ----------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG.replace("2.5", "good"), r"ratings\.csv, line 5: rating is 'good', not a number"),
        (LONG.replace("2.5", "inf"), r"ratings\.csv, line 5: a rating is inf"),
        (LONG[: LONG.rindex(",30")], r"ratings\.csv, line 5: 1 field where the first line has 4"),
        ("7 20 5\n7 30 1\n\n9 20\n", r"ratings\.csv, line 4: 2 fields where the first line has 3"),
        ("7 20 5\n7 30 many\n9 20 4\n", r"ratings\.csv, line 2: rating is 'many'"),
        ("user,item\n1,2\n", "needs columns user, item and rating"),
        ("who,what,rating\n1,2,3\n", "needs columns user, item and rating"),
        ("customer,item,2020\n1,2,3\n", "needs columns user, item and rating"),
        ("user,part\n1,play\n", "has no column of ratings besides 'user'"),
        ("user,a,b\n1,1,2\n1,2,1\n", "one row per user"),
        ("", "has no columns"),
        ("user,item,rating\n", "has no rows"),
        ("1 1 3\n1 2 3\n2 1 3\n2 2 3\n", "the ratings have no factors: after centring by item and user, they are all"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_ratings(put(tmp_path, text), rank=1)


@pytest.mark.parametrize("head", ["user,item,score,rating", "user,user_id,item,rating", "user,item,movieId,rating"])
def test_columns_that_mean_the_same_are_refused(tmp_path, head):
    with pytest.raises(ValueError, match="which mean the same: leave out one"):
        read_ratings(put(tmp_path, f"{head}\n1,20,4,7\n1,30,1,7\n2,20,1,7\n2,30,5,8\n"), rank=1)


def test_more_factors_than_the_ratings_have_are_refused():
    with pytest.raises(
        ValueError, match="rank=3, but after centring by item and user, the ratings have only 2 factors"
    ):
        item_factors(csr_array(low_rank(20, 15, (9.0, 5.0)) + 1.0), rank=3)


def test_more_factors_than_items_are_refused(tmp_path):
    with pytest.raises(ValueError, match="rank=10, but 2 users and 2 items have at most 2 factors"):
        read_ratings(put(tmp_path, LONG))
    with pytest.raises(ValueError, match="rank must be a whole number"):
        read_ratings(put(tmp_path, LONG), rank=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5,3.20,-2.50,1.50,1.50,99.00\n4,99,1,2,3,4\n", r"ratings\.csv has 6 columns and no header: give it a header"),
        ("uid,1,2,3\n7,5,1,2\n9,0,2.5,1\n", r"line 1: 'uid' and numbers may be a header or a row: give it a header"),
        ("uid,1,2\n7,5,1\n9,0,2.5\n", "user,item,rating or user and a name for every other column"),
    ],
    ids=["Jester", "four columns", "three columns"],
)
def test_a_table_with_a_column_for_every_item_needs_a_header(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_ratings(put(tmp_path, text), rank=1)


def test_users_with_names_need_no_header_where_it_cannot_be_one(tmp_path):
    found = read_ratings(put(tmp_path, "ann,x,5\nann,y,1\nbob,x,0\nbob,y,2.5\n"), rank=1)
    assert found.users.tolist() == ["ann", "bob"]
