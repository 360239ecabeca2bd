"""`albatross schema`."""

from __future__ import annotations

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


def test_the_log_itself_is_never_replaced(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    done = run(tmp_path / "log.csv", "--out", tmp_path / "log.csv")
    assert done.exit_code == 1
    assert "--out is the log itself" in done.output
    assert (tmp_path / "log.csv").read_text() == LOG


def test_a_log_without_actions_is_refused_in_one_line(tmp_path):
    (tmp_path / "log.csv").write_text("reward,colour\n1,red\n0,blue\n")
    done = run(tmp_path / "log.csv")
    assert done.exit_code == 1
    assert "the log needs a column 'action', but has 'reward', 'colour'" in done.output
