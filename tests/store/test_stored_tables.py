"""Tables on disk."""

from __future__ import annotations

import os
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import processes
import pytest

from albatross.store.tables import read_table, write_table


def test_a_table_is_read_as_it_was_written(tmp_path):
    columns = {"policy": np.array(["a", "b"]), "trial": np.array([0, 1]), "regret": np.array([0.1, np.nan])}
    write_table(columns, tmp_path / "it's.parquet")
    found = read_table(tmp_path / "it's.parquet")
    assert list(found) == list(columns)
    assert found["policy"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(found["regret"], columns["regret"])
    assert [path.name for path in tmp_path.iterdir()] == ["it's.parquet"]


def test_a_query_is_answered_from_the_table(tmp_path):
    write_table({"regret": np.arange(5)}, tmp_path / "curves.parquet")
    found = read_table(tmp_path / "curves.parquet", "SELECT max(regret) AS worst FROM curves", name="curves")
    assert found["worst"].tolist() == [4]


@pytest.mark.parametrize("folder", ["res*", "res?", "res[ab]"])
def test_a_table_is_read_from_its_own_folder_whatever_its_name(tmp_path, folder):
    for regret, name in enumerate(("resa", "resb", folder)):
        (tmp_path / name).mkdir()
        write_table({"regret": np.full(2, regret)}, tmp_path / name / "curves.parquet")
    assert read_table(tmp_path / folder / "curves.parquet")["regret"].tolist() == [2, 2]


def test_a_table_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "curves.parquet"
    write_table({"regret": np.arange(500.0)}, path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(
        OSError, match=r"curves\.parquet cannot be read or written \(.*\): see that there is room, or rem"
    ):
        read_table(path)


def test_ctrl_c_within_a_query_is_ctrl_c(tmp_path, monkeypatch):
    def interrupted(*_):
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("albatross.store.tables.exact_pattern", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_table(tmp_path / "curves.parquet")


def test_threads_read_tables_at_the_same_time(tmp_path):
    path = tmp_path / "curves.parquet"
    write_table({"regret": np.arange(20_000)}, path)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: read_table(path)["regret"].sum(), range(100))
        assert set(found) == {np.arange(20_000).sum()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_reads_tables_too(tmp_path):
    write_table({"regret": np.arange(20_000)}, tmp_path / "curves.parquet")
    script = """
    import os, sys
    from pathlib import Path
    from albatross.store.tables import read_table
    path = Path(sys.argv[1])
    read_table(path)
    child = os.fork()
    if child == 0:
        read_table(path)
        os._exit(7)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), tmp_path / "curves.parquet"]
    with processes.started(command) as forking:
        assert forking.wait(timeout=60.0) == 7
