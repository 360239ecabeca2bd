"""What `albatross reproduce` runs, and which stored panels it keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import small_results
from click.testing import CliRunner

from albatross.cli import whole_run
from albatross.cli.commands import albatross
from albatross.experiments import PANELS, results
from albatross.report import page

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    """Run the command on a folder; return what it would have run, by panel, and what it printed."""

    def invoke(*arguments):
        begun = {}

        def run(panel, *, trials, seed, out):
            begun[panel.name] = (panel, trials)
            return results.finished(PANELS[panel.name], trials=1, seed=seed, out=out)  # what is there

        with monkeypatch.context() as patched:
            patched.setattr(results, "run", run)
            patched.setattr(page, "write_report", lambda out: out / "report.html")  # takes seconds
            patched.setattr(whole_run, "default_workers", lambda: 1)  # in this process, where `run` is
            done = CliRunner(env={"COLUMNS": "300"}).invoke(
                albatross, ["reproduce", *arguments, "--out", str(tmp_path)], catch_exceptions=False
            )
        assert done.exit_code == 0, done.output
        return begun, done.output

    return invoke


@pytest.mark.parametrize(
    ("panel", "fewer", "wanted"), [("c", ["--quick"], 5), ("c", ["--trials", "2"], 2), ("scaling", ["--quick"], 2)]
)
def test_a_panel_is_not_replaced_by_less(tmp_path, reproduce, panel, fewer, wanted):
    small_results.write_panel(tmp_path, panel, trials=PANELS[panel].trials)
    begun, said = reproduce(panel, *fewer)
    assert begun == {}
    assert f"already, with {PANELS[panel].trials} trials instead of {wanted}." in said


def test_a_panel_is_replaced_by_one_with_more_trials(tmp_path, reproduce):
    small_results.write_panel(tmp_path, "c", trials=PANELS["c"].trials)
    begun, said = reproduce("c", "--trials", "26")
    assert begun["c"][1] == 26
    assert "was made with trials 25 instead of 26: it is made again." in said


def test_a_stored_panel_does_not_stand_for_a_run_on_own_data(tmp_path, reproduce):
    for panel in ("users", "flock"):
        small_results.write_panel(tmp_path, panel, trials=PANELS[panel].trials)
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("user,item,rating\n" + "".join(f"{u},{i},{(u * i) % 5}\n" for u in range(30) for i in range(30)))
    begun, said = reproduce("users", "--data", str(ratings))
    assert begun["users"][0].settings["path"] == str(ratings)
    assert "was made with other settings: it is made again." in said


def test_the_help_and_its_page_say_how_many_trials_each_panel_has():
    option = next(each for each in albatross.commands["reproduce"].params if each.name == "trials")
    _, _, help_text = option.help.partition("default: 25; ")
    line = next(each for each in (ROOT / "docs/commands.md").read_text().splitlines() if "| trials per panel |" in each)
    _, _, page_text = line.replace("`", "").partition("25, as in the paper; ")
    for text in (help_text, page_text):
        found = {
            name: int(number)
            for names, number in re.findall(r"((?:[a-z-]+(?:, | and | ))+)(\d+)", text)
            for name in re.findall(r"[a-z-]+", names)
            if name != "and"
        }
        assert found == {name: panel.trials for name, panel in PANELS.items() if panel.trials != 25}
