"""Compiled functions may be called from Python, from each other, and from functions that a user compiles."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numba
import numpy as np
import pytest

from albatross.compiling import compiled, generic
from albatross.errors import NotCompiled
from albatross.linalg.vectors import norm
from albatross.machine_code import announced


@compiled
def doubled(x):
    """Twice x."""
    return 2.0 * x


@compiled
def quadrupled(x):
    return doubled(doubled(x))


@compiled
def shifted(x, by=1.0):
    return x + by


@compiled
def shifted_twice(x):
    return shifted(shifted(x), by=10.0)


@numba.njit
def users_own(x):
    return quadrupled(x) + norm(np.array([3.0, 4.0]))


@compiled
def with_users_own(x):
    return users_own(x) + 1.0


def test_a_compiled_function_keeps_its_name_and_what_it_says_of_itself():
    assert (doubled.__name__, doubled.__doc__, doubled.py_func(2)) == ("doubled", "Twice x.", 4.0)


def test_it_can_be_called_from_python_and_from_compiled_code():
    assert quadrupled(2.0) == 8.0
    assert doubled(2.0) == 4.0


def test_defaults_and_keywords_work_inside():
    assert shifted_twice(0.0) == 11.0


def test_a_users_compiled_function_may_call_it_and_be_called_by_it_and_by_python():
    assert with_users_own(1.0) == 10.0
    assert users_own(1.0) == 9.0


class Circle(NamedTuple):
    radius: float


class Pair(NamedTuple):
    first: Circle
    second: Circle


area = generic("area")


@area.register
def area_circle(shape: Circle):
    return math.pi * shape.radius**2


@area.register
def area_pair(shape: Pair):
    return area(shape.first) + area(shape.second)


def test_a_verb_may_meet_itself_with_other_types():
    pair = Pair(Circle(1.0), Circle(2.0))
    assert area(pair) == pytest.approx(5.0 * math.pi)


@compiled
def misspelt(circle):
    return circle.raduis


@compiled
def twice_misspelt(circle):
    return 2.0 * misspelt(circle)


@compiled
def opens_a_file(x):
    with open("x") as file:
        return file


@compiled
def misspells_numpy(x):
    return np.sqtr(x)


@compiled
def scales_in_place(x, factor):
    x *= factor
    return x


@compiled
def raises(x):
    if x > 0.0:
        raise AttributeError("of the function's own")
    return x


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_an_error_of_numba_that_is_pythons_says_file_and_line():
    for function, arguments, cause in (
        (misspells_numpy, (1.0,), "module 'numpy' has no attribute 'sqtr'"),
        (scales_in_place, (np.ones(2), "text"), ".*"),  # Numba fails in itself
    ):
        for call in (function, function.prepared):
            with pytest.raises(
                NotCompiled, match=rf"^Numba cannot compile this: {cause} \(test_compiling.py, line \d+\)$"
            ):
                call(*arguments)
    with pytest.raises(AttributeError, match=r"^of the function's own$"):
        raises(1.0)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (misspelt, Circle(1.0), r"Unknown attribute 'raduis' of type Circle\(.*\) \(test_compiling.py, line \d+\)$"),
        (
            twice_misspelt,
            Circle(1.0),
            r"Unknown attribute 'raduis' of type Circle\(.*\) \(test_compiling.py, line \d+\)$",
        ),
        (twice_misspelt, "a", r"Unknown attribute 'raduis' of type unicode_type \(test_compiling.py, line \d+\)$"),
        (opens_a_file, 1.0, r"construct is not supported$"),
    ],
)
def test_an_error_of_numba_is_one_line_with_its_cause_and_kept_in_full(function, argument, message):
    for call in (function, function.prepared):
        with pytest.raises(NotCompiled, match="^Numba cannot compile this: .*" + message) as caught:
            call(argument)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value.__context__)) >= len(str(caught.value)) - len("Numba cannot compile this: ")


def test_a_type_without_the_verb_is_named():
    with pytest.raises(TypeError, match="area is not defined for float"):
        area(1.0)


def test_compiling_that_takes_long_is_announced_on_a_terminal_only(capsys, monkeypatch):
    monkeypatch.setattr("albatross.machine_code._PATIENCE", 0.0)

    def said():
        with announced("loops.play for UCB"):
            time.sleep(0.2)
        return capsys.readouterr().err

    monkeypatch.delenv("ALBATROSS_QUIET", raising=False)
    assert said() == ""  # standard error is no terminal here
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert "compiling loops.play for UCB" in said()
    assert said().count("\n") == 1
    monkeypatch.setenv("ALBATROSS_QUIET", "1")
    assert said() == ""
