"""Policies and environments in files of a user's own: loading them, keeping their machine code, and what goes wrong."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import textwrap
from pathlib import Path

import numba
import processes
import pytest

from albatross import compiling, own_files
from albatross.closure import digest
from albatross.policies.in_words import build
from albatross.race.problems import read_problem
from albatross.store.identity import identity

MINE = textwrap.dedent("""
    from typing import NamedTuple
    import numpy as np
    from albatross.protocol import begin, draw, init, score, update
    from my_widths import WIDTH, width

    START = 0.0

    class Mine(NamedTuple):
        scale: float = 1.0
        sigma: float = 1.0

    class MyState(NamedTuple):
        pulls: np.ndarray
        sums: np.ndarray
        priority: np.ndarray

    @init.register
    def init_mine(policy: Mine, n_arms, dim, rng):
        return MyState(np.zeros(n_arms), np.zeros(n_arms), rng.permutation(n_arms))

    @score.register
    def score_mine(policy: Mine, state, offer, noise):
        scores, widths = np.zeros(offer.arms.size), np.zeros(offer.arms.size)
        for row in range(offer.arms.size):
            n = state.pulls[offer.arms[row]]
            widths[row] = policy.scale * width(n)
            scores[row] = START + state.sums[offer.arms[row]] / max(n, 1.0) + widths[row]
        return scores, widths

    @update.register
    def update_mine(policy: Mine, state, choice, reward, n):
        state.pulls[choice.arm] += n
        state.sums[choice.arm] += reward

    class Steps(NamedTuple):
        n_arms: int = 3
        dim: int = 1
        gap: float = 0.5

    class StepsTrial(NamedTuple):
        gap: float

    @begin.register
    def begin_steps(env: Steps, rng):
        return StepsTrial(env.gap)

    @draw.register
    def draw_steps(trial: StepsTrial, chunk, rng):
        chunk.contexts[:] = 1.0
        chunk.means[:] = trial.gap * np.arange(chunk.means.shape[1])
        chunk.noise[:] = 0.1 * rng.standard_normal(chunk.noise.shape)
""")
WIDTHS = textwrap.dedent("""
    from albatross.compiling import compiled

    WIDTH = 1.0

    @compiled
    def width(n):
        return WIDTH / (1.0 + n)
""")
PLAY = (
    "import mine; {}; from albatross import environments, simulate;"
    "env = environments.Mixture(n_arms=4, dim=2); print(simulate(mine.Mine(), env, horizon=300).regret[0, -1])"
)


def write(folder: Path) -> Path:
    (folder / "mine.py").write_text(MINE)
    (folder / "my_widths.py").write_text(WIDTHS)
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the two files, and nothing loaded from it yet."""
    monkeypatch.setattr(own_files, "_LOADED", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield write(tmp_path)
    for name in set(sys.modules) - set(before):
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


# -------------------------------------------------------------------------------------------------------- machine code


def play(folder: Path, before: str = "pass") -> tuple[float, set[str]]:
    """The regret of a short run of the policy in this folder, and the names of the files that it added to the cache."""
    place = folder / "cache" / "machine-code"
    known = set(os.listdir(place)) if place.exists() else set()
    env = {**os.environ, "ALBATROSS_CACHE": str(folder / "cache")}
    done = processes.run([sys.executable, "-c", PLAY.format(before)], cwd=folder, env=env, check=True)
    return float(done.stdout), set(os.listdir(place)) - known


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    folder = write(tmp_path_factory.mktemp("played"))
    return folder, *play(folder)


@pytest.fixture
def copy(tmp_path, played):
    """The files and the cache, for a test to edit."""
    return shutil.copytree(played[0], tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__"))


def test_code_of_ones_own_file_is_kept_and_a_second_process_compiles_nothing(copy, played):
    assert any(".play-" in name for name in played[2])
    assert play(copy) == (played[1], set())


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("mine.py", "START + state", "START - state"), ("my_widths.py", "(1.0 + n)", "(1.0 + n * n)")],
    ids=["the file", "its neighbour"],
)
def test_an_edit_of_the_file_or_of_a_neighbour_that_it_imports_is_compiled(copy, played, file, old, new):
    text = (copy / file).read_text()
    (copy / file).write_text(text.replace(old, new))
    regret, added = play(copy)
    assert regret != played[1]
    assert any(".play-" in name for name in added)


def test_a_constant_that_a_program_sets_is_compiled_and_not_taken_from_the_cache(copy, played):
    regret, added = play(copy, "import my_widths; my_widths.WIDTH = 0.0")
    assert regret != played[1]
    assert any(".play-" in name for name in added)


def test_code_of_a_class_inside_a_function_or_of_a_script_is_not_kept(tmp_path):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
        from typing import NamedTuple
        from albatross.compiling import generic

        area = generic("area")

        class Square(NamedTuple):
            side: float

        @area.register
        def area_square(shape: Square):
            return shape.side ** 2

        def made(factor):
            class Scaled(NamedTuple):
                side: float

            def area_scaled(shape):
                return factor * shape.side

            area_scaled.__annotations__ = {"shape": Scaled}
            area.register(area_scaled)
            return Scaled

        if __name__ == "__main__":
            print(area(Square(2.0)))
    """)
    )
    env = {**os.environ, "ALBATROSS_CACHE": str(tmp_path / "cache")}
    use = "import script; print(script.area(script.Square(2.0)), script.area(script.made(3.0)(2.0)))"
    for command, said in ((["script.py"], "4.0\n"), (["-c", use], "4.0 6.0\n")):
        done = processes.run([sys.executable, *command], cwd=tmp_path, env=env, check=True)
        assert done.stdout == said
    assert [name.partition("-")[0] for name in os.listdir(tmp_path / "cache" / "machine-code")] == [
        "script.area_square"
    ]


def test_no_value_in_a_file_breaks_compiling_and_code_is_kept_if_all_can_be_read(tmp_path):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    text = textwrap.dedent("""
        import numpy
        from albatross.compiling import compiled

        class Stubborn:
            def __getattr__(self, name):
                raise RuntimeError("not configured")

        class Unreadable(tuple):
            def __iter__(self):
                raise RuntimeError("not configured")

        value = {}

        @compiled
        def double(x):
            return 2.0 * x
    """)
    values = {"array": "numpy.ndarray", "number": "numpy.float64", "lazy": "Stubborn()", "unreadable": "Unreadable()"}
    for name, value in values.items():
        (tmp_path / f"with_{name}.py").write_text(text.format(value))
    env = {**os.environ, "ALBATROSS_CACHE": str(tmp_path / "cache")}
    use = "; ".join(f"import with_{name}; print(with_{name}.double(3.0))" for name in values)
    done = processes.run([sys.executable, "-c", use], cwd=tmp_path, env=env, check=True)
    assert done.stdout.split() == ["6.0"] * 4
    kept = {name.partition(".")[0] for name in os.listdir(tmp_path / "cache" / "machine-code")}
    assert kept == {"with_array", "with_number", "with_lazy"}


def test_policies_whose_classes_share_a_name_have_code_of_their_own(tmp_path):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    place = tmp_path / "bandits"
    place.mkdir()
    (place / "__init__.py").write_text("from bandits import fast, slow\n")
    for name, factor in (("fast", 1.0), ("slow", 5.0)):
        text = (
            "from typing import NamedTuple\nfrom albatross.compiling import generic\nfrom bandits.verbs import area\n"
        )
        text += "class Square(NamedTuple):\n    side: float\n"
        (place / f"{name}.py").write_text(
            f"{text}@area.register\ndef area_{name}(shape: Square):\n    return {factor} * shape.side\n"
        )
    verbs = "from albatross.compiling import compiled, generic\narea = generic('area')\n"
    (place / "verbs.py").write_text(f"{verbs}@compiled\ndef doubled(shape):\n    return 2.0 * area(shape)\n")
    env = {**os.environ, "ALBATROSS_CACHE": str(tmp_path / "cache")}
    use = "import bandits; from bandits.verbs import doubled; print(doubled(bandits.{}.Square(3.0)))"
    both = [
        processes.run([sys.executable, "-c", use.format(name)], cwd=tmp_path, env=env, check=True).stdout
        for name in ("fast", "slow", "fast")
    ]
    assert both == ["6.0\n", "30.0\n", "6.0\n"]


BESIDE = {  # with it in the file, the code is kept or not
    "nothing": ("", True),
    "a logger": ("import logging; log = logging.getLogger('mine')", True),
    "a pattern": ("import re; words = re.compile('a')", True),
    "a lock": ("import threading; lock = threading.Lock()", True),
    "a generator": ("import numpy\nrng = numpy.random.default_rng(0)", True),
    "an array of objects": ("import numpy\nnames = numpy.array(['a', None], dtype=object)", True),
    "a ufunc of SciPy": ("from scipy.special import expit", True),
    "a generator's maker": ("from numpy.random import default_rng, normal", True),
    "a name of Numba's for something else": ("core = 3\nclass A: pass\nA.extending = 1", True),
    "memory": ("view = memoryview(b'abc')", False),
    "a stencil": ("@numba.stencil(cval=1.0)\ndef near(a): return a[-1]", False),
    "code that Numba keeps": ("@numba.njit(cache=True)\ndef half(x): return x / 2", False),
    "code that Numba compiled before": ("@numba.njit('f8(f8)')\ndef half(x): return x / 2", False),
    "code that Numba compiles": ("@numba.njit\ndef half(x): return x / 2", True),
    "a list of Numba's": ("rates = numba.typed.List([1.0])", False),
    "an overload": (
        "def f(x): pass\nfrom numba.extending import overload\noverload(f)(lambda x: lambda x: 1.0)",
        False,
    ),
    "a class of Numba's": ("Box = numba.experimental.jitclass([('x', numba.float64)])", False),
    "code by types": ("from albatross.compiling import code_of", False),
}


@pytest.mark.parametrize(("text", "kept"), BESIDE.values(), ids=BESIDE)
def test_code_is_kept_if_nothing_in_its_file_can_hide_a_number(tmp_path, text, kept):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    double = "@compiled\ndef double(x):\n    return 2.0 * x\n"
    (tmp_path / "beside.py").write_text(f"import numba\nfrom albatross.compiling import compiled\n{text}\n{double}")
    env = {**os.environ, "ALBATROSS_CACHE": str(tmp_path / "cache")}
    use = "import beside; print(beside.double(3.0))"
    assert processes.run([sys.executable, "-c", use], cwd=tmp_path, env=env, check=True).stdout == "6.0\n"
    place = tmp_path / "cache" / "machine-code"
    assert bool(place.exists() and os.listdir(place)) == kept


def test_the_identity_of_a_result_is_the_same_in_every_process(tmp_path):
    (tmp_path / "steady.py").write_text(
        textwrap.dedent("""
        import os, random, sqlite3, sys, threading, weakref
        from abc import ABC
        from contextvars import ContextVar
        from functools import singledispatch
        from os import environ
        from random import gauss
        from sys import argv
        from typing import Protocol
        import numba
        import numpy as np
        from albatross import Agent, policies
        from albatross.protocol import score
        from numpy.random import default_rng, normal
        from scipy.special import expit
        from scipy.stats import norm
        FROZEN, STATES = norm(0, 1), {"a", "b", "c"}
        rng = default_rng(0)
        AGENT = Agent(policies.LinUCB(), n_arms=2, dim=2, seed=0)
        HANDLES = sqlite3.connect(":memory:"), ContextVar("x"), (i for i in range(3)), threading.Event()

        class Base(ABC):
            pass

        class Shape(Protocol):
            side: float

        @singledispatch
        def area(shape): return 1.0

        @numba.njit
        def half(x): return x / 2

        class Holder:
            def __init__(self): self.half, self.score, self.itself, self.kind = half, score, weakref.ref(self), Base

        HOLDER = Holder()
    """)
    )
    use = "import steady; from albatross.store.identity import identity;"
    use += "print(identity('steady', trials=1, seed=0)['sources'])"
    said = [
        processes.run(
            [sys.executable, "-c", use, str(number)], cwd=tmp_path, env={**os.environ, "N": str(number)}
        ).stdout
        for number in range(2)
    ]
    assert said[0] == said[1] != ""


def test_a_file_with_ordinary_things_has_its_code_kept(folder):
    usual = "import polars\nfrom polars import col\nFRAME = polars.DataFrame({'a': [1]})\n"
    (folder / "ordinary.py").write_text(MINE + usual)
    build(f"{folder}/ordinary.py:Mine", {}, files=True)
    assert digest("ordinary", reader=compiling._Frozen)  # or a ValueError says what cannot be known


def test_what_cannot_be_read_is_equal_to_nothing(tmp_path, folder):
    (folder / "secretive.py").write_text(
        f"{MINE}\nclass Secretive:\n    def __reduce__(self): raise RuntimeError\nX = Secretive()\n"
    )
    build(f"{folder}/secretive.py:Mine", {}, files=True)
    one, other = (identity("secretive", trials=1, seed=0)["sources"] for _ in range(2))
    assert one != other


def test_code_is_not_kept_if_a_value_was_set_after_a_helper_was_compiled(tmp_path):
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    (tmp_path / "late.py").write_text(
        textwrap.dedent("""
        from albatross.compiling import compiled

        FACTOR = 2.0

        @compiled
        def scaled(x):
            return FACTOR * x

        @compiled
        def one(x):
            return scaled(x)

        @compiled
        def other(x):
            return scaled(x)
    """)
    )
    env = {**os.environ, "ALBATROSS_CACHE": str(tmp_path / "cache")}
    said = []
    for use in (
        "print(late.one(1.0)); late.FACTOR = 3.0; late.other(1.0)",
        "late.FACTOR = 3.0; print(late.other(1.0))",
    ):
        done = processes.run([sys.executable, "-c", f"import late; {use}"], cwd=tmp_path, env=env, check=True)
        said.append(done.stdout)
    assert said == ["2.0\n", "3.0\n"]


READS = {
    "a frame": "TABLE = pandas.read_csv(PATH)",
    "an object": "class Model:\n    def __init__(self): self.table, self.lock = pandas.read_csv(PATH), Lock()\n"
    "MODEL = Model()",
    "a method": "class Model:\n    def __init__(self): self.table = pandas.read_csv(PATH)\n"
    "    def read(self): return self.table\nread = Model().read",
    "a mapping": "from types import MappingProxyType\nTABLE = MappingProxyType({'a': pandas.read_csv(PATH)})",
    "a view": "TABLE = {'a': pandas.read_csv(PATH)}.values()",
    "a partial": "from functools import partial\nf = partial(lambda table: table, table=pandas.read_csv(PATH))",
    "slots": "from dataclasses import dataclass\n@dataclass(slots=True)\nclass Config:\n    f: object\n"
    "    table: object\n"
    "CONFIG = Config(lambda: 0, pandas.read_csv(PATH))",
    "an object in itself": "class Model:\n    def __init__(self): self.me, self.f, self.table = self, lambda: 0, "
    "pandas.read_csv(PATH)\nMODEL = Model()",
}


@pytest.mark.parametrize("text", READS.values(), ids=READS)
def test_the_identity_of_a_result_changes_with_a_table_that_its_file_reads(folder, text):
    head = "import pandas\nfrom pathlib import Path\nfrom threading import Lock\n"
    head += "PATH = Path(__file__).with_name('table.csv')\n"
    (folder / "reads.py").write_text(f"{MINE}{head}{text}\n")
    found = []
    for row in ("1,2", "1,3", "1,2"):
        (folder / "table.csv").write_text(f"a,b\n{row}\n")
        own_files._LOADED.clear()
        sys.modules.pop("reads", None)
        build(f"{folder}/reads.py:Mine", {}, files=True)
        found.append(identity("reads", trials=1, seed=0)["sources"])
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_the_identity_of_a_result_changes_with_the_file_its_neighbours_and_no_other(folder):
    build(f"{folder}/mine.py:Mine", {}, files=True)
    before = digest("mine")
    (folder / "other.py").write_text("x = 1\n")
    assert digest("mine") == before
    for name in ("mine.py", "my_widths.py"):
        with open(folder / name, "a") as file:
            file.write("# a comment\n")
        assert digest("mine") != before
        before = digest("mine")


# ------------------------------------------------------------------------------------------------------------- loading


def test_a_policy_in_a_file_takes_keywords_and_what_the_problem_provides(folder):
    policy = build(f"{folder}/mine.py:Mine(scale=0.5)", {"sigma": 0.7, "norm_bound": 3.0}, files=True)
    assert policy == (0.5, 0.7)
    assert build(f"{folder}/mine.py", {}, files=True) == (1.0, 1.0)  # the only policy there


def test_an_environment_in_a_file_takes_keywords_and_a_horizon(folder):
    problem = read_problem(f"{folder}/mine.py:Steps(gap=0.2, horizon=70)")
    assert (problem.env, problem.horizon) == ((3, 1, 0.2), 70)
    assert read_problem(f"{folder}/mine.py:Steps").env == (3, 1, 0.5)


def test_a_file_is_not_loaded_unless_the_caller_allows_it(folder):
    (folder / "loud.py").write_text("raise SystemExit('I was run')")
    with pytest.raises(ValueError, match="there is no policy"):
        build(f"{folder}/loud.py:Mine", {})


def test_a_file_is_run_once_and_never_shadows_an_installed_module(folder):
    (folder / "json.py").write_text(MINE + "print('run')\n")
    one, two = (build(f"{folder}/json.py:Mine", {}, files=True) for _ in range(2))
    assert type(one) is type(two)
    import json

    assert json.dumps(1) == "1"
    assert type(one).__module__ not in ("json", "mine")


@pytest.mark.parametrize("depth", [0, 1], ids=["its neighbour", "that of its neighbour"])
def test_files_whose_neighbours_have_one_name_are_refused_together(tmp_path, folder, depth):
    other = tmp_path / "other"
    other.mkdir()
    write(other)
    (other / "mine.py").rename(other / "yours.py")
    if depth:
        for path in (folder / "mine.py", other / "yours.py"):
            path.write_text(path.read_text().replace("from my_widths", f"from between_{path.stem}"))
            path.with_name(f"between_{path.name}").write_text("from my_widths import WIDTH, width\n")
    assert build(f"{folder}/mine.py:Mine", {}, files=True) == (1.0, 1.0)
    message = r"/other/my_widths.py' and '.*/my_widths.py' cannot be used together, .* rename one of them$"
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            build(f"{other}/yours.py:Mine", {}, files=True)
    (other / "my_widths.py").rename(other / "your_widths.py")
    for file in other.glob("*.py"):
        file.write_text(file.read_text().replace("from my_widths", "from your_widths"))
    for name in ("between_yours", "yours"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    assert build(f"{other}/yours.py:Mine", {}, files=True) == (1.0, 1.0)


def test_a_neighbour_that_is_never_imported_may_be_broken(folder):
    (folder / "broken_neighbour.py").write_text("x = (\n")
    with open(folder / "mine.py", "a") as file:
        file.write("def later():\n    import broken_neighbour\n")
    assert build(f"{folder}/mine.py:Mine", {}, files=True) == (1.0, 1.0)


WRONG = {
    "no file": ("absent.py:Mine", "there is no file '.*absent.py'$"),
    "a folder": ("folder.py:Mine", "there is no file"),
    "a pipe": ("pipe.py:Mine", "there is no file"),
    "a null": ("a\0.py:Mine", "there is no file"),
    "a loop of links": ("loop.py:Mine", "there is no file"),
    "a long name": ("a" * 5_000 + ".py:Mine", "there is no file"),
    "no such class": ("mine.py:Yours", "mine.py has no policy 'Yours': it has .*mine.py:Mine$"),
    "no policy but an environment": ("mine.py:Steps", "mine.py has no policy 'Steps': it has .*mine.py:Mine$"),
    "no class": ("mine.py:START", "mine.py has no policy 'START'"),
    "a class of no kind": (
        "my_widths.py:Mine",
        "my_widths.py has no policy 'Mine': no class in it has the verbs of one",
    ),
    "several": ("two.py", "two.py has several: take one of .*two.py:Mine, .*two.py:Other$"),
    "unknown parameter": ("mine.py:Mine(width=3)", "Mine has no parameter 'width'; it has scale, sigma"),
    "no keyword": ("mine.py:Mine(3)", "cannot read"),
    "called twice": ("mine.py:Mine(scale=2.0)()", "cannot read"),
    "code as a value": ("mine.py:Mine(scale=open('x'))", "cannot read"),
    "not Python": ("syntax.py:Mine", r"syntax.py cannot be loaded: .*\(syntax.py, line 2\)$"),
    "not text": ("bytes.py:Mine", "bytes.py cannot be loaded: "),
    "a missing package": ("imports.py:Mine", r"ModuleNotFoundError: No module named 'absent' \(imports.py, line 1\)$"),
    "it raises": ("raises.py:Mine", r"cannot be loaded: ZeroDivisionError: division by zero \(raises.py, line 2\)$"),
    "it exits": ("exits.py:Mine", "cannot be loaded: SystemExit: 3"),
    "its constructor raises": ("fussy.py:Fussy()", "cannot make .*fussy.py:Fussy of these parameters: 'scale'"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_is_said_in_one_line(folder, text, message):
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "two.py").write_text(MINE + MINE.replace("Mine", "Other"))
    (folder / "syntax.py").write_text("x = 1\ny = (\n")
    (folder / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (folder / "imports.py").write_text("import absent\n")
    (folder / "raises.py").write_text("x = 0\n1 / x\n")
    (folder / "exits.py").write_text("import sys; sys.exit(3)\n")
    fussy = "class Fussy(Mine):\n    def __new__(cls, **given):\n        raise KeyError('scale')\n"
    (folder / "fussy.py").write_text(MINE + fussy)
    with pytest.raises(ValueError, match=message) as caught:
        build(f"{folder}/{text}", {}, files=True)
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
