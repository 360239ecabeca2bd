"""What a type checker says of code that uses the library: right uses pass, wrong ones are named."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import processes
import pytest

import albatross

pytest.importorskip("mypy")

USES = """
from typing import NamedTuple
from albatross import Agent, environments, policies, simulate

class Mine(NamedTuple):
    x: float

env = environments.Mixture(n_arms=3, dim=2)
Agent(policies.LinTS(sigma=0.3), n_arms=3, dim=2)
Agent(Mine(1.0), n_arms=3, dim=2)
simulate(policies.LinTS(), env, horizon=3).regret
simulate({"ours": policies.LinTS(), "mine": Mine(2.0)}, env, horizon=3)["mine"]
simulate(lambda truth: policies.UCB(), env, horizon=3)
Agent(policies.LinTS, n_arms=3, dim=2)  # wrong: a class
Agent("lints", n_arms=3, dim=2)  # wrong: a text
simulate(policies.LinTS(), 3, horizon=3)  # wrong: not an environment
policies.LinTS(sgma=1.0)  # wrong: no such keyword
"""


def test_a_type_checker_finds_wrong_uses_and_no_others(tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "uses.py"]
    sources = str(Path(albatross.__file__).parent.parent)
    said = processes.run(command, cwd=tmp_path, env={**os.environ, "MYPYPATH": sources}).stdout
    wrong = [number for number, line in enumerate(USES.splitlines(), 1) if "# wrong" in line]
    assert sorted({int(line) for line in re.findall(r"^uses\.py:(\d+): error", said, re.MULTILINE)}) == wrong, said
