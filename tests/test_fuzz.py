"""Saved files with a value changed at random are refused or harmless, whatever the policy.

In processes of their own, because they must not crash.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import warnings

import numpy as np
import pytest
from variants import VARIANTS, new_agent, offered

from albatross import Agent, saving
from albatross.errors import UnreadableFile

CHANGES = 200  # of every policy's file
ODD_NUMBERS = [0.0, 1.0, -1.0, 2.0, 0.5, -60.0, 60.0, 1e9, -1e9, 1e18, -1e18, 1e300, np.nan, np.inf, -np.inf]


def changed_at_random(arrays, rng):
    """The arrays with one value of one of them, of a state or of a pending decision, replaced."""
    names = [name for name in arrays if name != "header" and arrays[name].size]
    name = names[rng.integers(len(names))]
    array = arrays[name].copy()
    value = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
    if array.dtype.kind == "b":
        value = rng.integers(2)
    elif array.dtype.kind == "i":
        value = int(np.clip(np.nan_to_num(value), -(2.0**62), 2.0**62))
    array.flat[rng.integers(array.size)] = value
    file = io.BytesIO()
    np.savez(file, **{**arrays, name: array})
    file.seek(0)
    return file


def attack(name):
    """Load and play changed files of this policy: how many were refused."""
    rng, agent, refused = np.random.default_rng(5), new_agent(name, seed=0), 0
    for _ in range(40):
        agent.update(agent.select(*offered(name, rng)), float(rng.standard_normal()))
    for _ in range(3):
        agent.select(*offered(name, rng))
    with np.load(saving.in_memory(agent)) as file:
        arrays = {key: file[key] for key in file.files}
    for _ in range(CHANGES):
        try:
            loaded = Agent.load(changed_at_random(arrays, rng))
        except UnreadableFile:
            refused += 1
            continue
        for pending in list(loaded._pending.kept):
            with contextlib.suppress(ValueError):
                loaded.update(pending, 0.5)
        for _ in range(25):
            with contextlib.suppress(ValueError):
                loaded.update(loaded.select(*offered(name, rng)), float(rng.standard_normal()))
        with contextlib.suppress(ValueError, ArithmeticError):
            loaded.diagnostics()
    return refused


def report_attack(name, answer):
    warnings.simplefilter("ignore")
    answer.send(attack(name))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the process plays on its own and then ends
@pytest.mark.parametrize("name", VARIANTS)
def test_a_value_changed_at_random_is_refused_or_harmless(name):
    forking = multiprocessing.get_context("fork")  # what is compiled here need not be compiled there
    answer, told = forking.Pipe(duplex=False)
    process = forking.Process(target=report_attack, args=(name, told))
    process.start()
    process.join(timeout=300)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0
    assert answer.recv() > 0  # a pending arm cannot be 1e18
