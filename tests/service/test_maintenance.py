"""Verify, export, back up, erase, keys: what an operator does with a log."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from serving_tests import NEWS, Served

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
