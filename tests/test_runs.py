"""Results as data frames, pictures and tables for notebooks."""

from __future__ import annotations

import numpy as np
import pytest

from albatross import Agent, Fleet, environments, plot_regret, policies, runs_frame, simulate
from albatross.frames import as_frame, columns_of


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


def test_regret_is_drawn_with_a_line_and_a_band_per_policy(runs, tmp_path):
    figure = plot_regret(runs, "fixed arms")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ucb", "uniform"]
    np.testing.assert_allclose(axes.lines[1].get_ydata()[-1], runs["uniform"].regret[:, -1].mean())
    figure.savefig(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert plot_regret(runs["ucb"]).axes


def test_notebooks_show_tables_with_escaped_names(runs):
    agent = Agent(policies.LinUCB(), arms=["<b>bold</b>", "plain"], dim=1, seed=0)
    decision = agent.select([[1.0], [2.0]], eligible=["<b>bold</b>"])
    fleet = Fleet(policies.UCB(), n_users=2, n_arms=2, dim=1)
    for thing in (runs["ucb"], agent, decision, fleet):
        shown = thing._repr_html_()
        assert shown.startswith("<table>")
        assert "<b>" not in shown
