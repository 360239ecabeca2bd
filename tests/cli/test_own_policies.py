"""Policies and environments of one's own in the commands: those of docs/own-policy.md, and broken ones."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path

import processes
import pytest
from click.testing import CliRunner

from albatross.cli.commands import albatross

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own-policy.md"
HEAD = "from typing import NamedTuple\nimport numpy as np\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The examples of the page, saved as it says."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    folder = tmp_path_factory.mktemp("own")
    (folder / "forgetful.py").write_text(next(block for block in blocks if "class Forgetful(" in block))
    drifting = next(block for block in blocks if "class Drifting(" in block)
    (folder / "drifting.py").write_text(HEAD + drifting.partition("\ncontenders")[0])
    return folder


def run(*args):
    return CliRunner().invoke(albatross, list(map(str, args)))


def test_the_example_of_the_page_keeps_the_contract(folder):
    done = run("check-policy", f"{folder}/forgetful.py:Forgetful(memory=0.995)")
    lines = done.output.splitlines()
    assert done.exit_code == 0, done.output
    assert lines[-1] == "Forgetful keeps the contract: 14 checks passed"
    assert all(line.startswith("ok      ") and line.endswith(".") for line in lines[:-1])


def test_plain_python_never_takes_a_file_of_the_current_folder_for_a_module_of_python(folder, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('I was run')")
    talks = "\nimport atexit\nprint('hello', end='')\natexit.register(print, 'bye')\n"
    (tmp_path / "talkative.py").write_text((folder / "forgetful.py").read_text() + talks)
    policy = f"{tmp_path}/talkative.py:Forgetful"
    script = (
        "import sys; from albatross.cli.check_policy import _compare_with_python, _played_in_python, built;"
        "from albatross.contract import Case;"
        "_compare_with_python(_played_in_python(sys.argv[1]), Case(built(sys.argv[1]), None))"
    )
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # compiling would take a minute
    done = processes.run([sys.executable, "-P", "-c", script, policy], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr


def test_a_policy_and_an_environment_of_ones_own_race_and_are_in_the_report(folder, tmp_path):
    policy, problem = f"{folder}/forgetful.py:Forgetful", f"{folder}/drifting.py:Drifting(speed=0.05, horizon=200)"
    command = ["race", "--problem", problem, "--policies", f"{policy},uniform", "--out", tmp_path]
    first, second = run(*command), run(*command)
    assert first.exit_code == second.exit_code == 0, first.output
    assert "1 of 1: 1: " in first.output
    assert "1 of 1: 1: " not in second.output  # it is stored
    assert run("report", tmp_path).exit_code == 0
    assert "forgetful.py:Forgetful" in (tmp_path / "report.html").read_text()


def test_compare_takes_them_too(folder, tmp_path):
    args = ("--problem", f"{folder}/drifting.py:Drifting(n_arms=3)", "--policies", f"{folder}/forgetful.py,uniform")
    done = run("compare", *args, "--horizon", 100, "--trials", 2, "--out", tmp_path / "compare.png")
    assert done.exit_code == 0, done.output
    assert "100 rounds, 2 trials" in " ".join(done.output.split())  # the line is wrapped where the path is long


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--problem", "FixedArms(n_arms=3, dim=1)", "--arms", "4"), "--arms says nothing about --problem"),
        (("--problem", "FixedArms(n_arms=3, dim=1)", "--env", "ball"), "--problem takes the place of --env"),
        (("--problem", "absent.py:Env"), "there is no file 'absent.py'"),
        (("--problem", "FixedArms(n_arms=3, dim=1)", "--policies", "oracle"), "there is no oracle here"),
        (("--policies", "absent.py:Mine"), "there is no file 'absent.py'"),
    ],
)
def test_what_compare_cannot_use_is_one_line(args, message, tmp_path):
    done = run("compare", *args, "--out", tmp_path / "compare.png")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert message in done.output


def test_an_environment_without_a_size_is_refused(folder):
    (folder / "sizes.py").write_text((folder / "drifting.py").read_text().replace("n_arms: int = 5", "arms: int = 5"))
    done = run("race", "--problem", f"{folder}/sizes.py:Drifting")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "n_arms of" in done.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "state.counts.sum()",
            "state.cuonts.sum()",
            r"Numba .*: Unknown attribute 'cuonts' of .* \(broken.py, line \d+\)$",
        ),
        ("np.zeros(n_arms), np", "[0.0], np", r"TypeError: the state of Forgetful holds counts=\[0.0\]: it must be"),
        ("rng.permutation(n_arms)", "rng.permute(n_arms)", r"AttributeError: .*permute.* \(broken.py, line \d+\)$"),
        ("counts[choice.arm]", "counts[choice.arm + 9]", r"it raises IndexError: .* \(broken.py, line \d+\)$"),
        ("@update.register", "", "TypeError: update is not defined for Forgetful: register it$"),
    ],
    ids=["Numba", "state", "init", "index", "no update"],
)
def test_a_mistake_is_a_sentence_and_not_a_traceback(folder, tmp_path, old, new, message):
    text = (folder / "forgetful.py").read_text()
    assert old in text
    line = 1 + text.partition(old)[0].count("\n")
    (tmp_path / "broken.py").write_text(text.replace(old, new, 1))
    done = run("check-policy", f"{tmp_path}/broken.py")
    failed, last = done.output.splitlines()
    assert done.exit_code == 1
    assert failed.startswith("FAILED  It compiles and plays: ")
    assert re.search(message.replace(r"\d+", str(line)), failed)
    assert last == "Forgetful breaks the contract: 1 of 2 checks failed"


BROKEN = textwrap.dedent("""
    import sys
    from typing import NamedTuple
    import numpy as np
    from albatross.contract import Broken, Case, checks
    from albatross.protocol import diagnostics, init, score, update

    class State(NamedTuple):
        counts: np.ndarray
        priority: np.ndarray

    class Sound(NamedTuple):
        pass

    class Writes(Sound): pass
    class WritesContexts(Sound): pass
    class Forgets(Sound): pass
    class Warns(Sound): pass
    class Overflows(Sound): pass

    @init.register
    def init_sound(policy: Sound, n_arms, dim, rng):
        return State(np.zeros(n_arms), rng.permutation(n_arms))

    @score.register
    def score_sound(policy: Sound, state, offer, noise):
        return -state.counts[offer.arms], np.zeros(offer.arms.size)

    @score.register
    def score_writes(policy: Writes, state, offer, noise):
        state.counts[0] += 1.0
        return -state.counts[offer.arms], np.zeros(offer.arms.size)

    @score.register
    def score_writes_contexts(policy: WritesContexts, state, offer, noise):
        offer.contexts[:] *= 0.5
        return -state.counts[offer.arms], np.zeros(offer.arms.size)

    @score.register
    def score_overflows(policy: Overflows, state, offer, noise):
        with np.errstate(all="ignore"):
            return (offer.contexts**4).sum(axis=1) - (offer.contexts**4).sum(axis=1), np.zeros(offer.arms.size)

    @update.register
    def update_sound(policy: Sound, state, choice, reward, n):
        state.counts[choice.arm] += n

    @update.register
    def update_forgets(policy: Forgets, state, choice, reward, n):
        state.counts[choice.arm] += 1.0

    @diagnostics.register
    def diagnostics_warns(policy: Warns, state):
        return {"warnings": "none"}

    for check in (checks.select_writes_nothing, checks.a_block_is_single_plays, checks.diagnostics_have_warnings,
                  checks.no_size_of_contexts_gives_nan, checks.ineligible_arms_are_never_played,
                  checks.saving_and_loading_changes_nothing):
        for policy in (Sound(), Writes(), WritesContexts(), Forgets(), Warns(), Overflows()):
            try:
                check(Case(policy, None))
            except (Broken, ValueError) as error:
                print(type(policy).__name__, check.__name__, error, sep=": ")
""")


def test_each_check_fails_for_the_policy_that_breaks_it(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}  # compiling would take a minute
    done = processes.run([sys.executable, "broken.py"], cwd=tmp_path, env=env, check=True)
    assert done.stdout.splitlines() == [
        "Writes: select_writes_nothing: select wrote into counts",
        "WritesContexts: select_writes_nothing: select wrote into the contexts, which are the caller's",
        "Forgets: a_block_is_single_plays: after 6 blocks another arm is played than after single plays: update gets "
        "the number of plays n and the sum of their rewards",
        "Warns: diagnostics_have_warnings: warnings are 'none'",
        "Overflows: no_size_of_contexts_gives_nan: Overflows gave arm 0 the score nan: scores must be numbers, or inf "
        "to ask for a first play",
    ]
