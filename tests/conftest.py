"""Helpers that several test files use."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

# Before NumPy is loaded: tests compare what a service did with a fold in this process, which needs the same kernels.
import albatross.service  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "benchmarks"))

# A worker per core is at work already: further threads of linear algebra would only wait for each other, busily.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give all tests of one policy to one worker, and the other tests of a file to one, unless they say otherwise.

    Most of the time goes into compiling, and a worker compiles what a policy does once for all tests that it gets.
    Tests of panels stay together even so: they share results that take longer.
    """
    if item.get_closest_marker("xdist_group"):
        return
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    policy, file = parameters.get("name"), item.nodeid.partition("::")[0]
    alone = isinstance(policy, str) and policy in _variants() and item.path.parent.name != "experiments"
    item.add_marker(pytest.mark.xdist_group(policy if alone else file))


@functools.cache
def _variants() -> set[str]:
    from variants import VARIANTS  # it imports the library, which a run of other tests may never need

    return set(VARIANTS)
