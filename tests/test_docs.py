"""What the documents say works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("block", python_blocks("README.md"))
def test_every_python_block_of_the_readme_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})


def test_every_dependency_has_its_sentence():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [name for extra in project["optional-dependencies"].values() for name in extra]
    names = {re.match(r"[a-z-]+", name)[0] for name in wanted} - {"albatross"}
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in sorted(names) if name not in table] == []
