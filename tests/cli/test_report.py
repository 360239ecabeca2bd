"""`albatross report`: looking at stored results costs nothing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import processes
import pytest
import small_results

import albatross

VALID = """
import sys
from pathlib import Path
from albatross.experiments import PANELS, results
print(*(name for name in "af" if results.finished(PANELS[name], trials=4, seed=0, out=Path(sys.argv[1]))))
"""
# Whatever is simulated fails.
REPORT = """
import albatross.fleet, albatross.simulation
from albatross.cli import main
def refuse(*_, **__):
    raise AssertionError("something was simulated")
albatross.simulation._play_trial = albatross.fleet.Fleet.__init__ = refuse
main()
"""


@pytest.fixture
def sources(tmp_path):
    """A copy of the package to change."""
    copy = tmp_path / "src" / "albatross"
    shutil.copytree(Path(albatross.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", "data"))
    return copy


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def python(sources, script, *args):
    env = {**os.environ, "PYTHONPATH": str(sources.parent)}
    return processes.run([sys.executable, "-c", script, *map(str, args)], env=env, check=True).stdout


@pytest.fixture
def folder(tmp_path):
    for panel in "af":
        small_results.write_panel(tmp_path / "results", panel)
    return tmp_path / "results"


def test_a_new_caption_and_a_new_label_need_no_run(folder, sources):
    change(sources / "report" / "page.py", "theta* has norm 0.1, and OFUL+ is given 10.", "Here theta* is short.")
    change(sources / "report" / "figures" / "norm.py", "ridge greedy", "greedy, by ridge regression")
    assert python(sources, VALID, folder).split() == ["a", "f"]
    assert "Everything on one page" in python(sources, REPORT, "report", folder)
    text = (folder / "report.html").read_text()
    assert "Here theta* is short." in text
    assert "greedy, by ridge regression" in text
    assert all((folder / panel / f"figure.{suffix}").is_file() for panel in "af" for suffix in ("png", "pdf"))


def test_a_change_in_what_computes_a_panel_needs_a_run(folder, sources):
    with open(sources / "policies" / "arms" / "oful_plus.py", "a") as file:
        file.write("# other\n")
    assert python(sources, VALID, folder).split() == ["f"]


def test_a_folder_without_results_is_one_line(tmp_path):
    done = processes.albatross("report", tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"Error: there are no results in {tmp_path}: run `albatross reproduce` first\n"


def test_a_page_of_somebody_elses_is_not_written_over(folder):
    (folder / "report.html").write_text("my own page")
    done = processes.albatross("report", folder)
    assert done.returncode == 1
    assert done.stderr == f"Error: {folder / 'report.html'} was not written by albatross: choose another folder\n"
    assert (folder / "report.html").read_text() == "my own page"


def test_a_figure_that_is_a_link_is_not_followed(folder, tmp_path):
    (tmp_path / "photo.png").write_text("mine")
    (folder / "f" / "figure.png").symlink_to(tmp_path / "photo.png")
    done = processes.albatross("report", folder)
    assert done.returncode == 1
    assert done.stderr == f"Error: {folder / 'f' / 'figure.png'} is a link, and would be written over: remove it\n"
    assert (tmp_path / "photo.png").read_text() == "mine"
