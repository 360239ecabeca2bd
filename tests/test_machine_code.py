"""Machine code is kept for exactly its sources: an edit compiles what it touches, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import processes
import pytest

import albatross
from albatross import environments, machine_code, policies, simulate

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

PACKAGE = Path(albatross.__file__).parent
PLAY = (
    "import sys; from albatross import environments, policies, simulate;"
    "policy = eval('policies.' + sys.argv[1]);"
    "env = environments.Mixture(n_arms=4, dim=2); print(simulate(policy, env, horizon=300).regret[0, -1])"
)

# Ends where `play` would be compiled: compiling it takes three times as long as all else.
PLAY_OR_STOP = (
    "import albatross.inlining as inlining, sys; compile_extra = inlining.OuterCompiler.compile_extra;"
    "inlining.OuterCompiler.compile_extra = lambda self, function: sys.exit('compiles it')"
    " if function.__name__ == 'play' else compile_extra(self, function);"
) + PLAY


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A copy of the package, and a cache with what a short run compiles."""
    folder = tmp_path_factory.mktemp("played")
    shutil.copytree(PACKAGE, folder / "src" / "albatross", ignore=shutil.ignore_patterns("__pycache__", "data"))
    return folder, *play(folder)


@pytest.fixture
def copy(tmp_path, played):
    """The same again, for a test to edit."""
    return shutil.copytree(played[0], tmp_path / "copy")


@pytest.fixture
def as_it_was(played):
    """The regret of the short run before any edit."""
    assert played[2]  # it compiled something
    return played[1]


def play(copy: Path, policy: str = "UCB()") -> tuple[float, set[str]]:
    """The regret of a short run from the copy, and the names of the files that the run added to the cache."""
    place = copy / "cache" / "machine-code"
    before = set(os.listdir(place)) if place.exists() else set()
    done = run(copy, PLAY, policy, check=True)
    return float(done.stdout), set(os.listdir(place)) - before


def run(copy: Path, script: str, policy: str = "UCB()", **options) -> subprocess.CompletedProcess:
    """Run a script with the copy and its cache."""
    env = {**os.environ, "ALBATROSS_CACHE": str(copy / "cache"), "PYTHONPATH": str(copy / "src")}
    return processes.run([sys.executable, "-c", script, policy], env=env, **options)


def edit(copy: Path, module: str, *, old: str = "", new: str = "# a comment\n") -> None:
    path = copy / "src" / "albatross" / module
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


def test_a_second_run_compiles_nothing(copy, as_it_was):
    assert play(copy) == (as_it_was, set())
    assert float(run(copy, PLAY_OR_STOP, check=True).stdout) == as_it_was  # which can say so as well


def test_edits_elsewhere_compile_nothing(copy, as_it_was):
    for module in ("policies/arms/lints.py", "environments/ball.py", "agent.py", "policies/__init__.py"):
        edit(copy, module)
    assert play(copy) == (as_it_was, set())


@pytest.mark.parametrize("module", ["policies/arms/ucb.py", "confidence.py", "loops.py", "protocol.py"])
def test_an_edit_of_what_a_policy_imports_compiles_it_again(copy, module):
    edit(copy, module)
    assert run(copy, PLAY_OR_STOP).stderr == "compiles it\n"


def test_an_edited_policy_runs_as_edited_and_the_former_one_is_still_kept(copy, as_it_was):
    edit(copy, "policies/arms/ucb.py", old="means(state) + widths, offer", new="means(state) - widths, offer")
    assert play(copy)[0] != as_it_was
    edit(copy, "policies/arms/ucb.py", old="means(state) - widths, offer", new="means(state) + widths, offer")
    assert play(copy) == (as_it_was, set())


def test_a_damaged_file_is_compiled_again(copy, as_it_was):
    for path in (copy / "cache" / "machine-code").iterdir():
        path.write_bytes(b"not a pickle")
    assert play(copy)[0] == as_it_was


def test_a_file_with_a_damaged_page_is_compiled_again(copy, as_it_was):
    for path in (copy / "cache" / "machine-code").iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 4_096] = bytes(4_096)
        path.write_bytes(content)
    assert play(copy)[0] == as_it_was


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners and modes here")
@pytest.mark.parametrize("planted", ["by somebody else", "writable", "link", "pipe"])
def test_a_file_that_others_may_have_written_is_not_read(planted, tmp_path):
    path = tmp_path / "code"
    machine_code._write(path, b"content")
    assert path.stat().st_mode & 0o777 == 0o600
    assert machine_code._read(path) == b"content"
    if planted == "by somebody else":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, 12_345, 12_345)
    elif planted == "writable":
        path.chmod(0o666)
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere") if planted == "link" else os.mkfifo(path)
    assert machine_code._read(path) is None  # a pipe must not be waited for either


def test_code_is_not_kept_if_its_sources_were_edited_after_they_were_imported(copy, as_it_was):
    source = copy / "src" / "albatross" / "policies" / "arms" / "ucb.py"
    later = f"import pathlib; path = pathlib.Path({str(source)!r}); path.write_text(path.read_text() + '# later')"
    env = {**os.environ, "ALBATROSS_CACHE": str(copy / "other"), "PYTHONPATH": str(copy / "src")}
    script = PLAY.replace("policy = eval", f"import time; time.sleep(0.1); {later}; policy = eval")
    assert float(processes.run([sys.executable, "-c", script, "UCB()"], env=env, check=True).stdout) == as_it_was
    assert not [name for name in os.listdir(copy / "other" / "machine-code") if ".play-" in name]


def test_past_its_size_the_files_that_were_not_used_for_longest_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_code, "folder", lambda: tmp_path)
    monkeypatch.setattr(machine_code, "MOST_BYTES", 250)
    for age, name in enumerate(["new", "old", "older"]):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    machine_code._read(tmp_path / "older")  # which is a use
    machine_code._make_room.cache_clear()
    machine_code._make_room()
    assert sorted(os.listdir(tmp_path)) == ["new", "older"]


@pytest.mark.parametrize("again", [False, True])
def test_several_processes_on_one_cache_get_the_right_code(again, tmp_path_factory):
    """Once all of them at the same time on an empty cache, once after each other on what they left there."""
    cache = tmp_path_factory.getbasetemp() / "shared-cache"
    named = {"UCB()": policies.UCB(), "UCB1()": policies.UCB1(), "Uniform()": policies.Uniform()}
    env = {**os.environ, "ALBATROSS_CACHE": str(cache)}
    begun = []
    for name in named:
        begun.append(subprocess.Popen([sys.executable, "-c", PLAY, name], stdout=subprocess.PIPE, text=True, env=env))
        if again:
            begun[-1].wait(processes.LIMIT)
    said = [float(process.communicate(timeout=processes.LIMIT)[0]) for process in begun]
    problem = environments.Mixture(n_arms=4, dim=2)
    assert said == [simulate(policy, problem, horizon=300).regret[0, -1] for policy in named.values()]


def test_settings_of_numba_that_change_code_have_code_of_their_own(copy, as_it_was, monkeypatch):
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert play(copy)[1]
