from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from albatross.cli.whole_run import Pace, WholeRun
from albatross.simulation import progress_bar


def test_a_run_is_as_far_as_its_parts_are_expected_to_take():
    pace = Pace({"a": 10.0, "b": 30.0})
    assert pace.share("a", 5.0) == pytest.approx(5 / 40)
    assert pace.left("a", 5.0) == pytest.approx(35.0)
    pace.finish("a", 20.0)  # twice as slow as expected
    assert pace.share("b", 30.0) == pytest.approx((10 + 15) / 40)
    assert pace.left("b", 30.0) == pytest.approx(2 * 15.0)


def test_a_part_that_takes_too_long_is_almost_done():
    assert Pace({"a": 1.0}).share("a", 100.0) == pytest.approx(0.97)


def test_a_part_that_was_done_before_says_nothing_of_the_machine():
    pace = Pace({"a": 10.0, "b": 10.0})
    pace.finish("a", 0.0)
    assert pace.left("b", 0.0) == pytest.approx(10.0)


def test_the_bar_says_which_part_runs_and_how_long_it_may_take():
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    whole = WholeRun({"panel a": 200.0, "panel b": 400.0}, console)
    with whole.part("panel a"):
        time.sleep(0.7)
    assert "panel a, 1 of 2" in written.getvalue()
    assert "about 10 min left" in written.getvalue()


def test_elsewhere_than_on_a_terminal_it_names_the_part():
    written = io.StringIO()
    with WholeRun({"panel a": 1.0}, Console(file=written)).part("panel a"):
        pass
    assert written.getvalue() == "panel a, 1 of 1\n"


def test_no_second_bar_is_drawn_within(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    whole = WholeRun({"a": 1.0}, Console(file=io.StringIO(), force_terminal=True))
    with whole.part("a"), progress_bar(10, None) as advance:
        advance(1)  # rich would refuse a second live display


def test_an_error_within_ends_the_bar():
    whole = WholeRun({"a": 1.0}, Console(file=io.StringIO(), force_terminal=True))
    with pytest.raises(KeyError), whole.part("a"):
        raise KeyError
