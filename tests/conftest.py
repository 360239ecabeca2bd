"""Helpers that several test files use, and which tests run in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "benchmarks"))


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items):
    """One process a file, so that its fixtures are made once; in the contract's file one a policy: compiled once."""
    for item in items:
        of_policy = item.path.name == "test_contract.py" and hasattr(item, "callspec")
        group = f"{item.path.name} {item.callspec.id}" if of_policy else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
