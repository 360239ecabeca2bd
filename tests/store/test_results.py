"""A results folder holds our files, and only they are ever replaced."""

from __future__ import annotations

import json

import pytest
import small_results

from albatross.experiments import PANELS, results
from albatross.race import run


def trials_of(folder):
    return json.loads((folder / "summary.json").read_text())["trials"]


def test_a_panel_is_replaced_but_never_a_file_of_somebody_elses(tmp_path):
    for trials in (1, 2):
        small_results.write_panel(tmp_path, "f", trials=trials)
        assert trials_of(tmp_path / "f") == trials
    (tmp_path / "f" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"thesis\.tex is not ours: name another --out"):
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
