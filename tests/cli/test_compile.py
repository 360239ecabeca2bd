"""`albatross compile` fills the cache: what is used afterwards is compiled already."""

from __future__ import annotations

import os
import sys

import numba
import processes
import pytest

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

ALBATROSS = [sys.executable, "-c", "from albatross.cli import main; main()"]
USE = """
import numpy as np
from albatross import Agent, Fleet, environments, policies, simulate
agent = Agent(policies.UCB1(), n_arms=7, dim=4)
agent.update(agent.select(np.ones((7, 4))), 1.0)
fleet = Fleet(policies.UCB1(), n_users=3, n_arms=7, dim=4)
fleet.update(fleet.select([0, 1], np.ones((2, 7, 4))), [1.0, 0.0])
simulate(policies.UCB1(), environments.Mixture(n_arms=7, dim=4), horizon=9)
agent = Agent(policies.UCB1(), arms=["a", "b"], dim=4, floor=0.1)
agent.update(agent.select(np.ones((2, 4))), 1.0)
fleet = Fleet(policies.UCB1(), users=[], arms=["a", "b"], dim=4, floor=0.1)
fleet.update(fleet.select(["user", "other"], np.ones((2, 2, 4)), [["a"], ["a", "b"]]), [1.0, 0.0])
fleet.add_arm("c")
fleet.put("third", fleet.row("user"))
"""


USE_A_FLOCK = """
from albatross import machine_code
made = []
machine_code._write = lambda path, content: made.append(path.name)

from albatross.service.bandits import Bandits
from albatross.service.settings import ModelSettings
features = {"age": {"kind": "number"}, "x": {"kind": "vector", "length": 3}}
settings = ModelSettings(arms=["a", "b", "c"], features=features, products=[("age", "x")], floor=0.1)
schema = settings.schema()
bandits, user, other = Bandits(settings, schema, 1), b"0" * 16, b"1" * 16
rows = bandits.rows(["a", "b", "c"], schema.encode({}, [{"age": 1.0, "x": [1.0, 2.0, 3.0]}] * 3))
bandits.fix({"unit": bandits.missing_unit(rows)})
bandits.fix({"level": 1.0})
for one in (user, other):
    bandits.admit(one)
    for _ in range(20):
        bandits.learn(one, bandits.decide(one, rows), 1.0)
bandits.take_up(bandits.look())
bandits.explain(user, rows)
bandits.describe(user)
choice = bandits.decide(user, rows)
bandits.drop(user, choice)
bandits.record(user, choice)
bandits.add_arm("d", 3)
bandits.put(user, bandits.release(user))
bandits.retire_arm("d")
print(made)
"""


REHEARSE = """
from albatross import machine_code
made = []
machine_code._write = lambda path, content: made.append(path.name)

from albatross.service.bandits import Bandits
from albatross.service.settings import ModelSettings
settings = ModelSettings(arms=["a", "b"], features={"age": {"kind": "number"}}, policy="linucb")
Bandits(settings, settings.schema(), 1).rehearse()
print(made)
"""


def run(command, folder):
    return processes.run(command, env={**os.environ, "ALBATROSS_CACHE": str(folder)})


def test_what_was_compiled_beforehand_is_not_compiled_again(tmp_path):
    folder = tmp_path / "cache"
    done = run([*ALBATROSS, "compile", "ucb1"], folder)
    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout
    files = set(os.listdir(folder / "machine-code"))
    assert run([sys.executable, "-c", USE], folder).returncode == 0
    assert set(os.listdir(folder / "machine-code")) == files


def test_what_the_service_does_with_a_flock_is_compiled_beforehand():
    pytest.importorskip("msgspec")
    done = processes.run([*ALBATROSS, "compile", "flock"])  # into the cache of all tests: it takes long
    assert done.returncode == 0, done.stderr
    done = processes.run([sys.executable, "-c", USE_A_FLOCK])
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_what_the_service_does_with_a_policy_is_compiled_beforehand(tmp_path):
    pytest.importorskip("msgspec")
    assert run([*ALBATROSS, "compile", "linucb"], tmp_path / "cache").returncode == 0
    done = run([sys.executable, "-c", REHEARSE], tmp_path / "cache")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_it_says_that_there_is_no_such_policy(tmp_path):
    done = run([*ALBATROSS, "compile", "lintz"], tmp_path / "cache")
    assert done.returncode == 1
    assert "there is no policy 'lintz'" in done.stderr


def test_it_says_that_there_is_no_private_folder(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    done = run([*ALBATROSS, "compile", "ucb1"], tmp_path / "cache")
    assert done.returncode == 1
    assert "set ALBATROSS_CACHE" in done.stderr
