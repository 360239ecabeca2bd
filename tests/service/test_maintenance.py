"""Verify, export, back up, erase, keys: what an operator does with a log."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from serving_tests import NEWS, Served

from albatross import LogWriter
from albatross.cli.commands import albatross
from albatross.datasets import read_log
from albatross.service.exporting import export
from albatross.service.verifying import verify


def lived(folder, **changes):
    """Return a service with some history: users, late rewards, arms that came and went, several slots."""
    served = Served(folder)
    served.model(**changes)
    rng = np.random.default_rng(0)
    ids = []
    for step in range(120):
        articles = {arm: {"topic": "sport", "age": float(rng.normal())} for arm in ("anzeiger", "bote")}
        ids.append(served.decide(f"user {rng.integers(8)}", arms=articles, slots=1 + step % 2))
        if step % 3:
            served.reward(ids.pop(int(rng.integers(len(ids)))), float(rng.normal()))
        if step == 40:
            served.call("PUT", "/v1/models/news/arms/dorfblatt", {})
        if step == 80:
            served.call("DELETE", "/v1/models/news/arms/chronik")
    return served


def run(*arguments):
    """Run a command, and return its exit code and what it printed."""
    result = CliRunner().invoke(albatross, list(map(str, arguments)))
    return result.exit_code, result.output


@pytest.mark.parametrize("policy", ["flock", "linucb", "lints"])
def test_the_whole_log_folds_to_the_snapshots(tmp_path, monkeypatch, policy):
    monkeypatch.setattr("albatross.service.snapshots._OLD", 5)
    served = lived(tmp_path, policy=policy)
    served.stop()
    code, output = run("verify", tmp_path)
    assert (code, output.splitlines()[-1]) == (0, "everything agrees"), output
    served.start()
    assert verify(served.engine.store).snapshots == 8
    served.close()


def test_a_missing_record_is_found(tmp_path):
    served = lived(tmp_path)
    served.engine.store._connection.execute("DELETE FROM outcomes WHERE seq = (SELECT min(seq) FROM outcomes)")
    assert any("gaps" in sentence for sentence in verify(served.engine.store).wrong)
    served.close()


@pytest.mark.parametrize("policy", ["linucb", "lints"])
def test_an_export_is_a_log_that_can_be_evaluated(tmp_path, policy):
    served = lived(tmp_path / "service", policy=policy)
    path = tmp_path / "log.parquet"
    assert export(served.engine.store, "news", path) == 180
    served.close()
    with pytest.warns(UserWarning, match="without a reward"):
        log = read_log(path)
    assert log.rewards.size > 70
    assert ((log.propensities > 0.0) & (log.propensities <= 1.0)).all()
    code, output = run("evaluate", path, "--policies", "uniform")
    assert code == 0, output


class Stopped(KeyboardInterrupt):
    """Ctrl-C in the midst of it."""


def test_an_export_is_there_once_it_is_whole(tmp_path):
    served, path = lived(tmp_path / "service"), tmp_path / "log.csv"

    def stop(n):
        raise Stopped

    with pytest.raises(Stopped):
        export(served.engine.store, "news", path, stop)
    assert [each.name for each in tmp_path.iterdir()] == ["service"]
    # What another writer has begun under this name is neither taken up nor lost.
    other = tmp_path / "log.csv.unfinished"
    with LogWriter(path) as log:
        log.write_decision("other", action="x", eligible=["x"], propensity=1.0)
        log.pause()
    before = other.read_bytes()
    assert export(served.engine.store, "news", path) == 180
    assert other.read_bytes() == before
    assert "other" not in path.read_text()
    with pytest.raises(ValueError, match="exists already"):
        export(served.engine.store, "news", path)
    served.close()


def test_a_backup_is_there_once_it_is_whole_and_nobody_else_may_read_it(tmp_path):
    resource = pytest.importorskip("resource")
    served, path = lived(tmp_path / "service"), tmp_path / "copy.db"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"copy\.db cannot be written .*: see that there is room"):
            served.engine.store.backup(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [each.name for each in tmp_path.iterdir()] == ["service"]
    served.engine.store.backup(path)
    assert path.stat().st_mode & 0o777 == 0o600
    served.close()


@pytest.mark.parametrize("command", ["backup", "export"])
def test_a_target_in_a_folder_that_is_not_there_is_refused(tmp_path, command):
    lived(tmp_path).close()
    model = ["news"] * (command == "export")
    code, output = run(command, tmp_path, *model, tmp_path / "nowhere" / "x.csv")
    assert (code, output) == (1, f"Error: there is no folder {tmp_path / 'nowhere'}\n")


@pytest.mark.parametrize(
    ("damage", "command", "said"),
    [
        ("DROP TABLE keys", ("keys", "list"), "log.db cannot be used (OperationalError: no such table: keys)"),
        ("DROP TABLE keys", ("serve", "--port", "0"), "log.db cannot be used (OperationalError: no such table: keys)"),
        ("UPDATE decisions SET model = 77", ("verify",), "WRONG: record 2: there is no model 77"),
    ],
)
def test_a_damaged_log_is_one_sentence(tmp_path, monkeypatch, damage, command, said):
    lived(tmp_path / "service").close()
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect(tmp_path / "service" / "log.db") as connection:
        connection.execute(damage)
    connection.close()
    name, *more = command
    code, output = run(name, *more, "service") if name == "keys" else run(name, "service", *more)
    assert code == 1
    assert said in output
    assert not (tmp_path / "log.csv").exists()


@pytest.mark.parametrize(
    "damage",
    [
        "decisions SET choice = zeroblob(length(choice))",
        "decisions SET offer = x'c1'",
        "decisions SET propensity = 7",
        "outcomes SET status = 'lernt'",
    ],
)
def test_an_export_leaves_out_users_whose_records_are_damaged(tmp_path, damage):
    served = lived(tmp_path / "service")
    served.stop()
    with sqlite3.connect(tmp_path / "service" / "log.db") as connection:
        (user, n) = connection.execute("SELECT user, count(*) FROM decisions GROUP BY user").fetchone()
        connection.execute(f"UPDATE {damage} WHERE user = ?", (user,))
    connection.close()
    code, said = run("export", tmp_path / "service", "news", tmp_path / "log.csv")
    assert code == 0
    assert "users with damaged records: 1," in said
    written = int(re.search(r"([\d,]+) decisions", said)[1])
    assert 180 - n <= written < 180 or damage.startswith("outcomes")
    served.start()
    lines = served.call("GET", "/v1/models/news/log").text.splitlines()
    assert len(lines) == served.engine.seq - len(served.engine.store.happenings(None))
    served.close()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("", (), "the name of a key must be a printable text, not ''"),
        ("a\nadmin: admin; all models", (), "the name of a key must be a printable text"),
        ("a", ("--days", "inf"), "36500"),
        ("a", ("--days", "1e300"), "36500"),
        ("a", ("--days", "nan"), "nan is not a number"),
        ("a", ("--rate", "nan"), "nan is not a number"),
        ("a", ("--rate", "inf"), "inf is not in the range"),
    ],
)
def test_keys_that_could_not_be_listed_are_refused(tmp_path, name, options, said):
    Served(tmp_path).close()
    code, output = run("keys", "add", tmp_path, name, *options)
    assert code != 0
    assert isinstance(output, str)
    assert said in output
    assert run("keys", "list", tmp_path) == (0, "admin: admin; all models; 1e+06 a second; works\n")


def test_a_backup_is_a_service_of_its_own(tmp_path):
    served = lived(tmp_path / "service")
    (tmp_path / "copy").mkdir()
    code, output = run("backup", tmp_path / "service", tmp_path / "copy" / "log.db")
    assert code == 0, output
    assert (tmp_path / "copy" / "log.db").stat().st_mode & 0o077 == 0  # it holds the secret
    rows, key = served.rows(), served.key
    served.close()
    copy = Served(tmp_path / "copy")
    copy.key = key
    for number in range(8):
        copy.call("GET", f"/v1/models/news/users/user {number}")
    assert copy.rows() == rows
    copy.close()


def test_commands_refuse_what_is_not_there(tmp_path):
    for command in (["verify"], ["backup", tmp_path / "x"], ["export", "news", tmp_path / "x.csv"], ["erase", "anna"]):
        code, output = run(command[0], tmp_path, *command[1:])
        assert (code, "there is no log" in output) == (1, True), output


def test_erase_by_command_while_nobody_serves(tmp_path):
    served = lived(tmp_path)
    served.stop()
    code, output = run("erase", tmp_path, "user 1")
    assert (code, "records erased" in output) == (0, True), output
    assert run("verify", tmp_path)[0] == 0
    served.start()
    assert served.rank("user 1")["new_user"]
    served.close()


def test_a_backup_that_fails_leaves_nothing_behind(tmp_path):
    resource = pytest.importorskip("resource")
    served = lived(tmp_path / "service")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"no room for|cannot be written"):
            served.engine.store.backup(tmp_path / "b.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    served.close()
    assert [path.name for path in tmp_path.iterdir()] == ["service"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_key_that_nobody_saw_is_not_kept(tmp_path):
    Served(tmp_path).close()
    command = [sys.executable, "-m", "albatross", "keys", "add", str(tmp_path), "shop"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "Error: the key cannot be shown and is not kept: [Errno 28] No space left on device\n"
    assert "shop" not in run("keys", "list", tmp_path)[1]


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_no_key_is_made_where_nobody_can_see_it(tmp_path):
    Served(tmp_path).close()
    command = [sys.executable, "-m", "albatross", "keys", "add", str(tmp_path), "shop"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "Error: there is no standard output to show the key on\n")
    assert "shop" not in run("keys", "list", tmp_path)[1]


def test_keys_are_added_listed_and_revoked_while_it_runs(tmp_path):
    served = Served(tmp_path)
    served.call("PUT", "/v1/models/news", NEWS)
    code, key = run("keys", "add", tmp_path, "shop", "--scope", "decide", "--model", "news", "--days", "1")
    assert code == 0
    served.service.keys.read()
    assert served.call("POST", "/v1/models/news/rank", {"user": "anna"}, key=key.strip()).status_code == 200
    assert "shop: decide; models news; 1000 a second; until" in run("keys", "list", tmp_path)[1]
    assert run("keys", "add", tmp_path, "shop")[0] == 1
    assert run("keys", "add", tmp_path, "x", "--scope", "everything")[0] == 1
    assert run("keys", "revoke", tmp_path, "shop")[0] == 0
    assert run("keys", "revoke", tmp_path, "nobody")[0] == 1
    served.service.keys.read()
    assert served.call("POST", "/v1/models/news/rank", {"user": "anna"}, key=key.strip()).status_code == 401
    served.close()


def test_an_export_of_what_a_log_cannot_hold_says_so_and_blames_no_user(tmp_path):
    served = lived(tmp_path / "service")
    served.call("PUT", "/v1/models/news/arms/NA", {})
    served.decide("anna", arms={"NA": {"topic": "sport", "age": 1.0}})
    served.close()
    code, said = run("export", tmp_path / "service", "news", tmp_path / "log.csv")
    assert code == 1
    assert re.search(r"the name of an arm in a log must be .* not 'NA'", said), said
    assert [path.name for path in tmp_path.iterdir()] == ["service"]


def test_an_export_removes_what_killed_ones_have_left(tmp_path):
    served = lived(tmp_path / "service")
    gone, new, running = (tmp_path / f".albatross-export-{name}" for name in ("gone", "new", "running"))
    for folder in (gone, new, running):
        folder.mkdir()
    (gone / "log.csv.unfinished").write_text("")
    with LogWriter(running / "log.csv") as other:
        for folder in (gone, running):
            os.utime(folder, (1e9, 1e9))
        assert export(served.engine.store, "news", tmp_path / "log.csv") == 180
        other.pause()
    served.close()
    assert [folder.exists() for folder in (gone, new, running)] == [False, True, True]


def test_an_export_knows_the_floor_of_the_time_and_leaves_out_imports(tmp_path):
    served = Served(tmp_path / "service")
    served.model(policy="lints", floor=0.0)
    imported = {"user": "bob", "arm": "bote", "reward": 1.0}
    assert served.call("POST", "/v1/models/news/decisions", {"decisions": [imported]}).status_code == 200
    served.model(policy="lints", floor=0.9)
    for _ in range(30):
        served.reward(served.decide())
    assert export(served.engine.store, "news", tmp_path / "log.parquet") == 30
    served.close()
    assert read_log(tmp_path / "log.parquet").propensities.min() >= 0.9 / 3


def test_a_log_can_be_verified_and_exported_while_the_service_runs(tmp_path):
    served = Served(tmp_path / "service")
    served.model(rewards={"wait": "1h", "default": 0.5})
    for number in range(20):
        served.decide(f"user {number}")

    def live_on(_):
        if served.engine.models["news"].fold.open:
            served.sweep(3_601.0)

    assert verify(served.engine.store, live_on).wrong == []
    served.decide("user 0")
    assert export(served.engine.store, "news", tmp_path / "log.parquet", live_on) == 21
    served.close()
