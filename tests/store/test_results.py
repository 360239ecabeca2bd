"""A results folder: what is valid there, what must be made again, and what is never replaced."""

from __future__ import annotations

import json
import os

import pytest
import small_results

from albatross.closure import closure
from albatross.experiments import PANELS, results
from albatross.race import run
from albatross.store.identity import differences
from albatross.store.results import Stored, check_ours

KNOWN = {"trials": small_results.TRIALS, "seed": 0}


def trials_of(folder):
    return json.loads((folder / "summary.json").read_text())["trials"]


def test_a_panel_is_replaced_but_never_a_file_of_somebody_elses(tmp_path):
    for trials in (1, 2):
        small_results.write_panel(tmp_path, "f", trials=trials)
        assert trials_of(tmp_path / "f") == trials
    (tmp_path / "f" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.tex was not written by albatross: choose another folder"):
        small_results.write_panel(tmp_path, "f", trials=3)
    assert (tmp_path / "f" / "thesis.tex").read_text() == "mine"
    assert trials_of(tmp_path / "f") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_folder_that_is_a_link_stays_one(tmp_path):
    (tmp_path / "disk" / "f").mkdir(parents=True)
    (tmp_path / "f").symlink_to(tmp_path / "disk" / "f")
    for trials in (1, 2):
        small_results.write_panel(tmp_path, "f", trials=trials)
    assert (tmp_path / "f").is_symlink()
    assert trials_of(tmp_path / "disk" / "f") == 2


def test_a_damaged_panel_is_replaced(tmp_path):
    small_results.write_panel(tmp_path, "f", trials=1)
    (tmp_path / "f" / "summary.json").write_text("{")
    small_results.write_panel(tmp_path, "f", trials=2)
    assert trials_of(tmp_path / "f") == 2


@pytest.fixture
def out(tmp_path):
    small_results.write_panel(tmp_path, "f")
    return tmp_path


def test_a_panel_is_valid_for_its_settings_trials_and_seed(out):
    panel = PANELS["f"]
    assert results.finished(panel, **KNOWN, out=out) == Stored(out).summaries["f"]
    assert results.finished(panel, trials=small_results.TRIALS + 1, seed=0, out=out) is None
    assert results.finished(panel, trials=small_results.TRIALS, seed=1, out=out) is None
    other = panel._replace(settings={**panel.settings, "more": 1})
    assert results.finished(other, **KNOWN, out=out) is None
    assert results.why_again(other, **KNOWN, out=out) == f"{out / 'f'} was made with other settings"


def test_a_panel_with_more_trials_is_as_good(out):
    panel = PANELS["f"]
    assert results.finished(panel, trials=1, seed=0, out=out) == Stored(out).summaries["f"]
    assert results.finished(panel, trials=1, seed=1, out=out) is None


@pytest.mark.parametrize("name", ["summary.json", "curves.parquet"])
def test_a_panel_that_lacks_a_file_is_not_trusted(out, name):
    (out / "f" / name).unlink()
    assert results.finished(PANELS["f"], **KNOWN, out=out) is None
    assert results.why_again(PANELS["f"], **KNOWN, out=out) == f"{out / 'f'} is damaged"


def test_figures_are_not_needed_for_a_panel_to_be_valid(out):
    assert sorted(path.name for path in (out / "f").iterdir()) == ["curves.parquet", "summary.json"]
    assert "f" in Stored(out)


def test_another_version_of_the_library_with_the_same_sources_is_no_difference(out):
    summary = Stored(out).summaries["f"]
    older = {**summary, "versions": {**summary["versions"], "albatross": "0.0.1"}}
    assert differences(older, results.identity_of(PANELS["f"], **KNOWN)) == []
    older["versions"]["numpy"] = "1.0"
    assert [each.split()[:2] for each in differences(older, results.identity_of(PANELS["f"], **KNOWN))] == [
        ["numpy", "1.0"]
    ]


@pytest.mark.parametrize("panel", PANELS)
def test_drawings_claims_and_commands_are_no_part_of_what_computes_a_panel(panel):
    parts = {part for path in closure(PANELS[panel].module) for part in path.parts[-3:-1]}
    assert "experiments" in parts
    assert not parts & {"report", "figures", "claims", "cli", "race"}


def test_a_summary_that_lacks_something_is_not_trusted_and_said_to_be_damaged(tmp_path):
    small_results.write_panel(tmp_path, "f", trials=1)
    panel, path = PANELS["f"], tmp_path / "f" / "summary.json"
    assert results.finished(panel, trials=1, seed=0, out=tmp_path)
    summary = json.loads(path.read_text())
    path.write_text(json.dumps({**summary, "policies": None}))
    assert results.finished(panel, trials=1, seed=0, out=tmp_path) is None
    assert results.why_again(panel, trials=1, seed=0, out=tmp_path) == f"{tmp_path / 'f'} is damaged"


@pytest.mark.parametrize("text", ["[]", "3", '{"regret": 5}', "{"])
def test_a_stored_problem_that_is_damaged_is_raced_again(tmp_path, text):
    (tmp_path / "problem.json").write_text(text)
    assert run._stored(tmp_path / "problem.json", {}) is None


def test_a_stored_problem_is_raced_again_unless_every_policy_has_its_trials(tmp_path):
    wanted = {"trials": 2, "contenders": {"ucb": "UCB()"}, "content": "of both"}
    for regret, valid in (
        ({"ucb": [1.0, 2.0]}, True),
        ({"ucb": [1.0]}, False),
        ({"ucb": [1.0, "x"]}, False),
        ({"ucb": [1.0, float("nan")]}, False),
        ({"greedy": [1.0, 2.0]}, False),
    ):
        kept = {**wanted, "regret": regret, "microseconds": {"ucb": 1.0}}
        (tmp_path / "problem.json").write_text(json.dumps(kept))
        assert (run._stored(tmp_path / "problem.json", wanted) is not None) == valid


@pytest.mark.parametrize("name", ["race/standings-the-unit-ball.json", "f/summary.json", "f/figure.png"])
def test_a_link_in_a_folder_is_not_ours(tmp_path, name):
    small_results.write_panel(tmp_path, "f")
    small_results.write_race(tmp_path)
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(ValueError, match="was not written by albatross: choose another folder"):
        check_ours(tmp_path, [name.partition("/")[0]])


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(out):
    (out / "f" / "summary.json").unlink()
    os.mkfifo(out / "f" / "summary.json")
    with pytest.raises(ValueError, match=r"summary\.json was not written by this version of albatross"):
        Stored(out).check_format()


@pytest.mark.parametrize("name", ["f/summary.json", "race/standings-the-unit-ball.json"])
def test_json_that_is_nested_too_deeply_is_damaged(out, name):
    small_results.write_race(out)
    (out / name).write_text("[" * 100_000)
    with pytest.raises(ValueError, match="was not written by this version of albatross, or is damaged"):
        Stored(out).check_format()
    assert Stored(out).summaries.keys() == {"f"} - {name.partition("/")[0]}
