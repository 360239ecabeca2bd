"""`albatross schema`."""

from __future__ import annotations

import subprocess
import sys

import processes
import pytest
from click.testing import CliRunner

from albatross.cli.commands import albatross
from albatross.features import Category, Features, Number

LOG = "action,reward,colour,hour\n" + "".join(f"{t % 2},1,{('red', 'blue')[t % 2]},{t % 5}\n" for t in range(40))


def run(*arguments):
    return CliRunner().invoke(albatross, ["schema", *map(str, arguments)])


def test_it_proposes_features_as_toml(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    printed = run(tmp_path / "log.csv")
    written = run(tmp_path / "log.csv", "--out", tmp_path / "features.toml")
    assert printed.exit_code == written.exit_code == 0
    assert (tmp_path / "features.toml").read_text() == printed.output
    features = Features.read(tmp_path / "features.toml")
    assert features.schema == {
        "colour": Category(values=("blue", "red")),
        "hour": Number(mean=2.0, sd=1.414, of="situation"),
    }


def test_the_log_and_its_items_are_never_replaced(tmp_path):
    items = "action,size\n0,1\n1,2\n"
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "items.csv").write_text(items)
    for out, what in (("log.csv", "log"), ("items.csv", "table of items")):
        done = run(tmp_path / "log.csv", "--items", tmp_path / "items.csv", "--out", tmp_path / out)
        assert done.exit_code == 1
        assert f"--out is the {what} itself" in done.output
    assert (tmp_path / "log.csv").read_text() == LOG
    assert (tmp_path / "items.csv").read_text() == items


def test_a_table_of_items_describes_the_arms(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "items.csv").write_text("action,size\n0,1\n1,2\n")
    done = run(tmp_path / "log.csv", "--items", tmp_path / "items.csv")
    assert done.exit_code == 0
    assert "[features.size]" in done.output


@pytest.mark.parametrize(
    ("items", "message"),
    [(LOG, "the table of items must have one row per action"), ("size\n1\n2\n", "the table of items needs a column")],
)
def test_what_is_no_table_of_items_is_refused(tmp_path, items, message):
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "items.csv").write_text(items)
    done = run(tmp_path / "log.csv", "--items", tmp_path / "items.csv")
    assert done.exit_code == 1
    assert message in done.output


def test_a_log_without_actions_is_refused_in_one_line(tmp_path):
    (tmp_path / "log.csv").write_text("reward,colour\n1,red\n0,blue\n")
    done = run(tmp_path / "log.csv")
    assert done.exit_code == 1
    assert "the log needs a column 'action', but has 'reward', 'colour'" in done.output


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        (("1e-150", "2e-150"), "'size' has no usable spread: its numbers are too close together"),
        (("1e200", "-1e200"), "'size' has numbers above 1e+100 in size"),
    ],
)
def test_a_column_of_numbers_that_no_feature_can_hold_is_left_out_by_name(tmp_path, numbers, why):
    log = "action,colour,size\n" + "".join(f"{t % 2},{('red', 'blue')[t % 2]},{numbers[t % 2]}\n" for t in range(40))
    (tmp_path / "log.csv").write_text(log)
    done = run(tmp_path / "log.csv")
    assert done.exit_code == 0
    assert done.output.startswith(f"# {why}\n")
    assert done.stderr == ""


def test_a_folder_that_does_not_exist_is_named_without_a_temporary_file(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    done = run(tmp_path / "log.csv", "--out", tmp_path / "nowhere" / "features.toml")
    assert done.exit_code == 1
    assert f"No such file or directory: '{tmp_path / 'nowhere' / 'features.toml'}'" in done.output


def test_a_reader_who_has_seen_enough_is_no_error(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    command = [sys.executable, "-m", "albatross", "schema", tmp_path / "log.csv"]
    with processes.started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
