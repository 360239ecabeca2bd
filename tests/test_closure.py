"""The sources that a module depends on, found without importing it."""

from __future__ import annotations

import ast
import compileall
import copy
import enum
import importlib
import math
import shutil
import sys
import tracemalloc
import types
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import processes
import pytest

import albatross
from albatross import closure as closure_module
from albatross import compiling
from albatross.closure import closure, digest
from albatross.compiling import compiled
from albatross.constants import Reader
from albatross.picking import pick_best

ROOT = Path(albatross.__file__).parent
FILES = {
    ".".join(["albatross", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def names(module):
    return {path.relative_to(ROOT).as_posix() for path in closure(module)}


def test_a_module_depends_on_itself_and_on_what_its_imports_import():
    found = names("albatross.policies.arms.alb_norm")
    assert {"policies/arms/alb_norm.py", "policies/arms/oful_plus.py", "protocol.py", "compiling.py"} <= found
    assert not {path for path in found if path.startswith(("environments/", "policies/ball/"))}


def test_a_name_that_a_package_passes_on_leads_to_its_file_and_not_to_the_package(tmp_path):
    digest = in_a_copy(
        tmp_path, "from albatross.policies import (\n    UCB,  # one of many\n    LinTS as Thompson,\n)\n"
    )
    assert "policies/arms/ucb.py" in digest.files
    assert "policies/arms/lints.py" in digest.files
    assert "policies/__init__.py" not in digest.files
    assert "policies/arms/alb_norm.py" not in digest.files


@pytest.mark.parametrize("use", ["", "kinds = vars(policies)", "policies.UCB; print(policies)"])
def test_a_package_taken_as_a_whole_is_all_that_it_passes_on(tmp_path, use):
    found = in_a_copy(tmp_path, f"from albatross import policies\n{use}\n").files
    assert {"policies/__init__.py", "policies/arms/ucb.py", "policies/ball/alb_dim.py"} <= found


def test_of_a_package_only_the_names_that_are_used_count(tmp_path):
    found = in_a_copy(tmp_path, "from albatross import policies as rivals\nrivals.UCB(); rivals.LinTS()\n").files
    assert {"policies/arms/ucb.py", "policies/arms/lints.py"} <= found
    assert not {"policies/__init__.py", "policies/arms/alb_norm.py"} & found


def test_a_lazily_loaded_name_of_the_library_leads_to_its_file(tmp_path):
    digest = in_a_copy(tmp_path, "def late():\n    from albatross import simulate\n")
    assert "simulation.py" in digest.files
    assert "__init__.py" not in digest.files


class in_a_copy:
    """What a module with this text, in a copy of the package, depends on."""

    def __init__(self, folder, text):
        copy = folder / "albatross"
        if not copy.exists():
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "data"))
        (copy / "new.py").write_text(text)
        script = (
            "from albatross.closure import closure, digest; from pathlib import Path;"
            f"print(digest('albatross.new'), *(path.relative_to({str(copy)!r}) for path in closure('albatross.new')))"
        )
        done = processes.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(folder)})
        self.value, *files = done.stdout.split()
        self.files = {Path(file).as_posix() for file in files}


def test_the_digest_changes_with_a_source_in_the_closure_and_with_no_other(tmp_path):
    text = "from albatross.policies import UCB\n"
    before = in_a_copy(tmp_path, text).value
    with open(tmp_path / "albatross" / "environments" / "mixture.py", "a") as file:
        file.write("# elsewhere\n")
    assert in_a_copy(tmp_path, text).value == before
    with open(tmp_path / "albatross" / "picking.py", "a") as file:
        file.write("# here\n")
    assert in_a_copy(tmp_path, text).value != before


@pytest.mark.parametrize("module", FILES)
def test_no_import_of_the_package_is_missed(module):
    path, found = FILES[module], names(module)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, which is not followed"
            modules = [f"{node.module}.{each.name}" for each in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        else:
            continue
        for name in modules:
            file = ROOT.parent.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("albatross.") and file.is_file():
                assert file.relative_to(ROOT).as_posix() in found


# ------------------------------------------------------------------------------------- values in a user's own module


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of a user's own, which is imported."""
    (tmp_path / "values_of_ones_own.py").write_text("x = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("values_of_ones_own")
    del sys.modules["values_of_ones_own"]


def digest_with(own, value):
    own.x = value
    return digest(own.__name__)


class Mode(enum.Enum):
    A = 1
    B = 2


class Level(enum.IntEnum):
    A = 1
    B = 2


class Pair(NamedTuple):
    a: float
    b: float


class Other(NamedTuple):
    a: float
    b: float


class Text(str):
    """A text that hides which it is."""

    def __repr__(self):
        return "a text"


DIFFERENT = {
    "classes": (np.ndarray, np.float64, np.float32, np.int64, float),
    "numbers": (1, 1.0, True, np.float64(1.0), np.float32(1.0), "1", b"1"),
    "arrays": (np.arange(6), np.arange(6.0), np.arange(6).reshape(2, 3), np.arange(6)[::-1], np.arange(0)),
    "dates": (np.array(["2026-01-01"], "M8[D]"), np.array(["2026-01-02"], "M8[D]"), np.datetime64("2026-01-01")),
    "records": (np.zeros(2, [("a", "i4"), ("b", "f8")]), np.ones(2, [("a", "i4"), ("b", "f8")])),
    "lists": ([1, 2, 3], [[1, 2], 3], [1, [2, 3]], {1: 2}, [np.arange(2)], [np.arange(1), np.arange(1)]),
    "sets": ({1, 2}, {1, 3}, frozenset({1, 2}), {"a", "b"}, {"a", "c"}),
    "slices": (slice(1), slice(2), slice(1, 2), range(2), range(3), ...),
    "types": (np.dtype("f4"), np.dtype("f8"), np.float32, numba.float32, numba.float64, numba.float64[:]),
    "members": (*Mode, *Level, 1, 2),
    "named tuples": (Pair(1.0, 2.0), Other(1.0, 2.0), (1.0, 2.0), Pair(1.0, 3.0)),
    "made tuples": [namedtuple("Settings", names)(0.1, 9.0) for names in ("low high", "high low")],
    "subclasses": (Text("a"), Text("b"), "a"),
    "functions of others": (
        len,
        abs,
        math.sin,
        math.cos,
        np.sin,
        np.cos,
        np.mean,
        np.median,
        np.random.normal,
        pick_best,
    ),
    "masked arrays": (np.ma.array([1, 2]), np.ma.array([1, 2], mask=[True, False]), np.array([1, 2])),
}


HELD_BY_CODE = [name for name in DIFFERENT if name not in ("lists", "sets")]


@pytest.mark.parametrize("name", HELD_BY_CODE)
def test_each_value_that_compiled_code_may_hold_has_a_digest_of_its_own(own, name):
    found = []
    for own.x in DIFFERENT[name]:
        found.append(digest(own.__name__, reader=compiling._Frozen))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("values", DIFFERENT.values(), ids=DIFFERENT)
def test_each_value_of_a_variable_has_a_digest_of_its_own(own, values):
    found = [digest_with(own, value) for value in values]
    assert len(set(found)) == len(values)
    assert found == [digest_with(own, copy.copy(value)) for value in values]


def multiplied(factor):
    """A function that a factory makes: what it does is not in its file."""
    return lambda x: factor * x


def twice(function):
    return lambda x: function(function(x))


def abs_of(x):
    return abs(x)


def with_default(factor):
    def function(x, factor=factor):
        return factor * x

    return function


MADE = {
    "by a factory": multiplied,
    "by a factory for Numba": lambda k: numba.njit(multiplied(k)),
    "by a factory for arrays": lambda k: numba.vectorize(multiplied(k)),
    "by a factory for this package": lambda k: compiled(multiplied(k)),
    "of a function": lambda k: numba.njit(twice(numba.njit(multiplied(k)))),
    "with a default": with_default,
    "from a text": lambda k: eval(f"lambda x: {k} * x"),
    "with options": lambda k: numba.njit(abs_of, fastmath=k > 1.0),
    "with options for this package": lambda k: compiled(abs_of, fastmath=k > 1.0),
    "with types of variables": lambda k: numba.njit(abs_of, locals={"x": numba.float32 if k > 1.0 else numba.float64}),
    "in a tuple": lambda k: ((((((multiplied(k),),),),),),),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_function_counts_by_what_it_holds(own, make):
    found = [digest_with(own, make(k)) for k in (1.0, 2.0, 1.0)]
    assert found[0] != found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize("name", ["_x", "__x", "__x__"])
def test_a_private_variable_counts(own, name):
    found = []
    for number in (1.0, 2.0):
        vars(own)[name] = number
        found.append(digest(own.__name__))
    assert found[0] != found[1]


def test_what_python_keeps_in_a_module_does_not_count(own):
    before = digest(own.__name__)
    vars(own).update(__warningregistry__={"version": 5}, __annotations__={"x": int})
    assert digest(own.__name__) == before


def test_the_attributes_of_a_class_of_the_module_count(own):
    found = []
    for number in (1.0, 2.0, 1.0):
        exec(f"class Table:\n    rate = {number}\n    def __init__(self): super().__init__()", vars(own))
        found.append(digest(own.__name__))
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_a_verb_counts_whose_name_is_taken_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = (
        "import os\nfrom typing import NamedTuple\nfrom albatross.protocol import init, update\n"
        "class Verbs(NamedTuple):\n    scale: float = 1.0\n"
        "@{}.register\ndef _(policy: Verbs, a, b, c, rate=float(os.environ['RATE'])): return rate\n"
        "def _(): pass\n"
    )
    for verb in ("init", "update"):
        (tmp_path / f"verbs_{verb}.py").write_text(text.format(verb))
        found = []
        for rate in ("1", "2", "1"):
            monkeypatch.setenv("RATE", rate)
            script = f"import verbs_{verb}; from albatross.closure import digest; print(digest('verbs_{verb}'))"
            done = processes.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
            found.append(done.stdout)
        assert found[0] != found[1]
        assert found[0] == found[2]


def from_a_text(number):
    """A function with globals of its own."""
    exec(f"A = {number}\ndef scaled(x): return [A * part for part in x]", found := {})
    return found["scaled"]


def enumerated(number):
    return enum.IntEnum("Mode", {"A": number})


@pytest.mark.parametrize("make", [from_a_text, enumerated])
@pytest.mark.parametrize("reader", [Reader, compiling._Frozen])
def test_what_code_reaches_through_a_variable_counts(own, make, reader):
    found = []
    for k in (1, 2, 1):
        own.x = make(k)
        found.append(digest(own.__name__, reader=reader))
    assert found[0] != found[1]
    assert found[0] == found[2]


LOADED = {
    "imported": "importlib.import_module('helper_of_ones_own')",
    "by its path": "by_its_path('helper_of_ones_own.py')",
    "its function": "importlib.import_module('helper_of_ones_own').scaled",
    "its function by its path": "by_its_path('helper_of_ones_own.py').scaled",
    "its function in a list": "[importlib.import_module('helper_of_ones_own').scaled]",
    "its function in a function": "wrapped(importlib.import_module('helper_of_ones_own').scaled)",
    "its class": "importlib.import_module('helper_of_ones_own').Scaled",
}
LOADER = """
import importlib.util
from pathlib import Path

def by_its_path(name):
    spec = importlib.util.spec_from_file_location("nowhere", Path(__file__).with_name(name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def wrapped(function):
    return lambda x: function(x)

"""


@pytest.mark.parametrize("load", LOADED.values(), ids=LOADED)
def test_a_module_counts_that_no_statement_imports(tmp_path, monkeypatch, load):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "user_of_ones_own.py").write_text(f"{LOADER}helper = {load}\n")
    found = []
    for number in (1.0, 2.0, 1.0):
        (tmp_path / "helper_of_ones_own.py").write_text(
            f"A = {number}\ndef scaled(x): return A * x\nclass Scaled: pass\n"
        )
        importlib.invalidate_caches()
        found.append(digest(importlib.import_module("user_of_ones_own").__name__))
        for name in ("user_of_ones_own", "helper_of_ones_own"):
            sys.modules.pop(name, None)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)  # files of the same size and second
    assert found[0] != found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize("kind", ["archive", "compiled file", "made by hand"])
def test_a_module_without_a_source_counts_by_what_it_holds_and_its_code_is_not_kept(own, tmp_path, monkeypatch, kind):
    name, found = "helper_without_source", []
    Path(own.__file__).write_text(f"import {name}\n")
    monkeypatch.setattr(closure_module, "_IMPORTED", 2**63)
    for number in (1.0, 2.0, 1.0):
        sys.modules.pop(name, None)
        text = f"A = {number}\ndef scaled(x): return A * x\n"
        if kind == "made by hand":
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
            exec(text, vars(sys.modules[name]))
        elif kind == "archive":
            with zipfile.ZipFile(tmp_path / f"{number}.zip", "w") as archive:
                archive.writestr(f"{name}.py", text)
            monkeypatch.syspath_prepend(tmp_path / f"{number}.zip")
        else:
            (tmp_path / f"{name}.py").write_text(text)
            compileall.compile_file(tmp_path / f"{name}.py", quiet=2, legacy=True, force=True)
            (tmp_path / f"{name}.py").unlink()
            importlib.invalidate_caches()
        importlib.import_module(name)
        found.append(digest(own.__name__))
        assert closure_module.hashes_for_code(own.__name__, reader=Reader) is None
    sys.modules.pop(name, None)
    assert found[0] != found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize("text", ["\ufeffx = 1\n", "# -*- coding: latin-1 -*-\nname = 'ä'\n"], ids=["BOM", "latin-1"])
def test_a_source_may_be_in_any_encoding_that_python_reads(own, text):
    Path(own.__file__).write_bytes(text.encode("latin-1" if "latin" in text else "utf-8"))
    assert digest(own.__name__)


def test_a_neighbour_that_was_never_imported_may_be_broken(own):
    before = digest(own.__name__)
    Path(own.__file__).with_name("broken_one.py").write_text("x = (\n")
    Path(own.__file__).write_text("def later():\n    import broken_one\n")
    assert digest(own.__name__) != before


def recursive(factor):
    def down(n):
        return factor * down(n - 1) if n else 0

    return down


def in_a_class(factor):
    return type("Made", (), {"__module__": "values_of_ones_own", "scaled": lambda self: factor})


def with_attributes(factor):
    def function():
        return function.factor

    function.factor = factor
    return function


@pytest.mark.parametrize("make", [recursive, in_a_class, with_attributes])
def test_a_function_may_hold_itself_and_values_that_count(own, make):
    found = [digest_with(own, make(k)) for k in (1.0, 2.0, 1.0)]
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_the_digest_of_an_array_does_not_depend_on_how_it_lies_in_memory(own):
    array = np.arange(6.0).reshape(2, 3)
    assert digest_with(own, array) == digest_with(own, np.asfortranarray(array))


def test_a_large_array_is_hashed_without_a_copy(own):
    own.x = np.zeros(1_000_000)
    tracemalloc.start()
    try:
        digest(own.__name__)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < own.x.nbytes / 4


def test_a_package_counts_by_its_version_wherever_it_is_installed(own, tmp_path):
    for place in ("installed.py", "installed_too/__init__.py", "beside.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("")
    about = tmp_path / "anything-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: anything\nVersion: 1.0\n")
    (about / "RECORD").write_text("installed.py,,\ninstalled_too/__init__.py,,\nanything-1.0.dist-info/RECORD,,\n")
    Path(own.__file__).write_text("import installed, beside\nfrom installed_too import x\n")
    sources = tmp_path / "everything.egg-info"  # of an editable installation
    sources.mkdir()
    (sources / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: everything\nVersion: 1.0\n")
    (sources / "SOURCES.txt").write_text("beside.py\n")
    closure_module._installed_in.cache_clear()
    assert {path.name for path in closure(own.__name__)} == {Path(own.__file__).name, "beside.py"}


class Stubborn:
    """It raises whenever it is asked for anything, even for its class."""

    def __getattribute__(self, name):
        raise RuntimeError("not configured")


class Unreadable(dict):
    def items(self):
        raise RuntimeError("not configured")


def test_a_value_that_compiled_code_cannot_hold_is_not_touched(own):
    assert digest_with(own, Stubborn()) == digest_with(own, Stubborn())


def test_a_value_that_cannot_be_read_is_a_value_error(own):
    with pytest.raises(ValueError, match="values in the module values_of_ones_own cannot be read: RuntimeError"):
        digest_with(own, Unreadable())
