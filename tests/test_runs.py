"""Results as data frames, pictures and tables for notebooks."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from albatross import Agent, Fleet, environments, plot_regret, policies, runs_frame, simulate
from albatross.frames import as_frame, columns_of, is_frame


@pytest.fixture(scope="module")
def runs():
    env = environments.FixedArms(n_arms=3, dim=3, arms="axes", noise_sd=0.1)
    return simulate({"ucb": policies.UCB(), "uniform": policies.Uniform()}, env, horizon=40, trials=2, record=4, seed=0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_a_row_for_every_policy_trial_and_round(runs, library):
    pytest.importorskip(library)
    frame = runs_frame(runs, library)
    assert type(frame).__module__.startswith(library)
    columns = columns_of(frame)
    assert list(columns) == ["policy", "trial", "round", "regret", "reward"]
    assert len(columns["round"]) == 2 * 2 * 4
    row = 2 * 4 + 4 + 3  # uniform, trial 1, the last round
    assert [columns[name][row] for name in ("policy", "trial", "round")] == ["uniform", 1, 40]
    assert columns["regret"][row] == runs["uniform"].regret[1, -1]
    assert columns["reward"][row] == runs["uniform"].reward[1, -1]
    assert set(columns_of(runs["ucb"].frame(library))["policy"]) == {"UCB"}


def test_libraries_that_are_unknown_or_missing_are_named(monkeypatch):
    with pytest.raises(ValueError, match="library must be one of 'pandas', 'polars', 'pyarrow', not 'excel'"):
        as_frame({"a": [1]}, "excel")
    monkeypatch.setattr("albatross.frames.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="a data frame needs pandas, polars or pyarrow"):
        as_frame({"a": [1]})


def test_missing_values_and_twin_columns_of_a_frame():
    polars = pytest.importorskip("polars")
    assert columns_of(polars.DataFrame({"a": [1, None], "b": ["x", None]})) == {"a": [1, None], "b": ["x", None]}
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="two columns called 'a'"):
        columns_of(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="two columns called '1'"):
        columns_of(pandas.DataFrame([[1, 2]], columns=[1, "1"]))


class Speaking:
    """A frame of a library that we do not know: it has one method, of a protocol."""

    def __init__(self, protocol, frame):
        setattr(type(self), protocol, lambda _, *given, **named: getattr(frame, protocol)(*given, **named))


@pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated")
@pytest.mark.parametrize(("protocol", "library"), [("__arrow_c_stream__", "polars"), ("__dataframe__", "pandas")])
def test_frames_of_other_libraries_are_read_by_the_protocols(protocol, library):
    frame = pytest.importorskip(library).DataFrame({"a": [1, 2], "b": ["x", "y"]})
    other = type("Other", (Speaking,), {})(protocol, frame)
    assert is_frame(other)
    assert columns_of(other) == {"a": [1, 2], "b": ["x", "y"]}


def test_frames_of_pandas_and_polars_are_read_without_duckdb(monkeypatch):
    """Which takes a hundred times as long for the few rows of an offer, and is not in the core."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    numbers, texts = pandas.array([1, None], dtype="Int64"), pandas.Categorical(["x", None])
    frame = pandas.DataFrame({"a": numbers, "b": texts, "c": [0.5, np.nan], 3: [[1.0, 2.0], None]})
    assert columns_of(frame) == {"a": [1, None], "b": ["x", None], "c": [0.5, None], "3": [[1.0, 2.0], None]}
    assert columns_of(type("Mine", (pandas.DataFrame,), {})({"a": [True]})) == {"a": [True]}
    columns = {"a": [1, None], "b": ["x", None], "c": [[1.0], [2.0]]}
    assert columns_of(polars.DataFrame(columns)) == columns


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_single_column_is_no_frame(library):
    assert not is_frame(pytest.importorskip(library).Series(["art"]))


@pytest.mark.parametrize("wrong", [{}, 3, {"ucb": 1}], ids=["none", "a number", "no run"])
def test_what_is_no_run_is_refused_with_a_sentence(wrong):
    for show in (runs_frame, plot_regret):
        with pytest.raises(ValueError, match="runs must be a Run or a dict of them by name, as simulate returns"):
            show(wrong)


def test_a_single_run_is_a_frame_with_the_name_of_its_policy(runs):
    assert set(columns_of(runs_frame(runs["ucb"]))["policy"]) == {"UCB"}


def test_regret_is_drawn_with_a_line_and_a_band_per_policy(runs, tmp_path):
    figure = plot_regret(runs, "fixed arms")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ucb", "uniform"]
    np.testing.assert_allclose(axes.lines[1].get_ydata()[-1], runs["uniform"].regret[:, -1].mean())
    figure.savefig(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert plot_regret(runs["ucb"]).axes


def test_many_policies_look_different(runs):
    figure = plot_regret({f"policy {number}": runs["ucb"] for number in range(10)})
    assert len({(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}) == 10


def test_runs_of_other_rounds_or_trials_are_not_drawn_together(runs):
    for change in ({"rounds": runs["ucb"].rounds + 1}, {"regret": runs["ucb"].regret[:1]}):
        with pytest.raises(ValueError, match="runs must have the same recorded rounds and the same number of trials"):
            plot_regret({**runs, "another": replace(runs["ucb"], **change)})


def test_notebooks_show_tables_with_escaped_names(runs):
    agent = Agent(policies.LinUCB(), arms=["<b>bold</b>", "plain"], dim=1, seed=0)
    decision = agent.select([[1.0], [2.0]], eligible=["<b>bold</b>"])
    fleet = Fleet(policies.UCB(), n_users=2, n_arms=2, dim=1)
    for thing in (runs["ucb"], agent, decision, fleet):
        shown = thing._repr_html_()
        assert shown.startswith("<table>")
        assert "<b>" not in shown
