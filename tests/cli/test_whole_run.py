from __future__ import annotations

import io
import os
import signal
import sys
import time
from functools import partial

import processes
import pytest
from rich.console import Console

from albatross.cli.whole_run import Bar, Pace, run_parts
from albatross.parallel import progress_bar


def test_a_run_is_as_far_as_its_parts_are_expected_to_take():
    pace = Pace({"a": 10.0, "b": 30.0})
    pace.begin("a", 100.0)
    assert pace.share(105.0) == pytest.approx(5 / 40)
    assert pace.left(101.0) == pytest.approx(39.0)  # as expected
    pace.finish("a", 120.0)  # twice as slow as expected
    pace.begin("b", 120.0)
    assert pace.share(150.0) == pytest.approx((10 + 15) / 40)
    assert pace.left(150.0) == pytest.approx(50.0 * 15 / 25)  # at the pace so far


def test_parts_side_by_side_are_all_counted():
    pace = Pace({"a": 10.0, "b": 10.0, "c": 20.0})
    pace.begin("a", 0.0)
    pace.begin("b", 0.0)
    assert pace.share(5.0) == pytest.approx(10 / 40)
    assert pace.left(5.0) == pytest.approx(5.0 * 30 / 10)
    assert (pace.running, pace.done) == (["a", "b"], 0)


def test_a_part_that_takes_too_long_is_almost_done_and_tells_of_the_others():
    pace = Pace({"a": 1.0, "b": 9.0})
    pace.begin("a", 0.0)
    assert pace.share(100.0) == pytest.approx(0.09)
    pace.begin("b", 100.0)
    assert pace.share(105.0) == pytest.approx(0.09 + 5.0 / 105.0 / 10.0)  # 105 times slower, as far as is known


def test_the_bar_says_which_parts_run_and_how_long_they_may_take():
    written = io.StringIO()
    with Bar({"panel a": 200.0, "panel b": 400.0}, Console(file=written, force_terminal=True, width=100)) as bar:
        bar.begin("panel a")
        time.sleep(1.2)
    assert "panel a (0 of 2 done)" in written.getvalue()
    assert "about 10 min left" in written.getvalue()


def test_elsewhere_than_on_a_terminal_it_says_what_begins():
    written = io.StringIO()
    list(run_parts({"panel a": str}, {"panel a": 1.0}, Console(file=written)))
    assert written.getvalue() == "panel a begins; 0 of 1 are done\n"


def draw_a_bar():
    with progress_bar(10, None) as advance:
        advance(1)  # rich would refuse a second live display
    return "drawn"


def test_no_second_bar_is_drawn_within(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    console = Console(file=io.StringIO(), force_terminal=True)
    assert list(run_parts({"a": draw_a_bar}, {"a": 1.0}, console)) == [("a", "drawn")]


def fail():
    raise KeyError("no")


@pytest.mark.parametrize("others", [{}, {"b": partial(time.sleep, 60.0)}], ids=["alone", "beside another"])
def test_an_error_within_ends_the_run(others):
    parts = {"a": fail, **others}
    begun = time.monotonic()
    with pytest.raises(KeyError, match="no"):
        list(run_parts(parts, dict.fromkeys(parts, 1.0), Console(file=io.StringIO(), force_terminal=True)))
    assert time.monotonic() - begun < 30.0


def test_a_process_that_is_killed_ends_the_run_in_words():
    parts = {"killed": partial(os._exit, 9), "b": partial(time.sleep, 10.0)}
    with pytest.raises(OSError, match="was killed, perhaps because memory ran out"):
        list(run_parts(parts, dict.fromkeys(parts, 1.0), Console(file=io.StringIO())))


def test_nothing_to_run_is_nothing():
    assert list(run_parts({}, {}, Console(file=io.StringIO(), force_terminal=True))) == []


def test_every_part_is_run_once_in_processes_of_their_own():
    parts = {str(number): partial(pow, number, 2) for number in range(5)} | {"who": os.getpid}
    found = dict(run_parts(parts, dict.fromkeys(parts, 1.0), Console(file=io.StringIO())))
    assert found.pop("who") != os.getpid()
    assert found == {str(number): number**2 for number in range(5)}


# Two parts: one that a signal meets in a finalizer, where an exception is ignored, and one that removes what it left
# half done.
STUBBORN = """
import sys, time
from functools import partial
from pathlib import Path
from rich.console import Console
from albatross.cli.whole_run import run_parts

class Last:
    def __del__(self):
        time.sleep(60.0)

def deaf():
    for _ in range(10):
        Last()

def tidy(path):
    path.touch()
    try:
        time.sleep(60.0)
    finally:
        path.unlink()

if __name__ == "__main__":
    parts = {"deaf": deaf, "tidy": partial(tidy, Path(sys.argv[1]))}
    list(run_parts(parts, dict.fromkeys(parts, 1.0), Console(stderr=True)))
"""


@pytest.mark.parametrize("how", ["ctrl-c", "killed"])
def test_no_process_outlives_the_run(tmp_path, how):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    half, errors = tmp_path / "half", tmp_path / "errors"
    command = [sys.executable, str(tmp_path / "stubborn.py"), str(half)]
    with errors.open("w") as file, processes.started(command, stderr=file) as running:
        for _ in range(600):
            if half.exists():
                break
            time.sleep(0.1)
        else:
            pytest.fail("it did not begin")
        time.sleep(0.5)
        if how == "ctrl-c":
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        else:
            running.kill()
        assert running.wait(30.0) != 0
        assert processes.all_gone(running)  # the one who cleans up after the others stays a moment longer
    assert not half.exists()
    assert "ignored" not in errors.read_text()  # a process that ends does not tell of it
