"""The command line, as a person meets it: processes of its own, of a new Python where the start matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import processes
import pytest
from processes import albatross

COMMAND = [sys.executable, "-c", "from albatross.cli import main; main()"]


def test_help_loads_nothing_heavy():
    script = """if True:
        import sys
        from albatross.cli import main

        sys.argv = ["albatross", "--help"]
        try:
            main()
        finally:
            print([name for name in ("numba", "numpy", "matplotlib", "duckdb", "rich") if name in sys.modules])
    """
    done = processes.run([sys.executable, "-c", script], check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "reproduce" in done.stdout


def test_reproduce_writes_a_panel_and_does_not_run_it_twice(tmp_path):
    args = ("reproduce", "c", "--trials", "2", "--seed", "5", "--out", str(tmp_path / "new" / "results"))
    first = albatross(*args, check=True)
    folder = tmp_path / "new" / "results" / "c"
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["trials"], summary["seed"]) == (2, 5)
    assert {"summary.json", "curves.parquet", "figure.png", "figure.pdf"} == {path.name for path in folder.iterdir()}
    assert "holds" in first.stdout
    assert '<section id="c" class="panel">' in (folder.parent / "report.html").read_text()
    stamp = (folder / "summary.json").stat().st_mtime_ns
    second = albatross(*args, check=True)
    assert "already" in second.stdout
    assert (folder / "summary.json").stat().st_mtime_ns == stamp
    third = albatross(*args[:3], "3", *args[4:], check=True, env={**os.environ, "COLUMNS": "300"})
    assert f"{folder} was made with trials 2 instead of 3: it is made again." in third.stdout
    assert json.loads((folder / "summary.json").read_text())["trials"] == 3


def test_compare_prints_intervals_and_paired_differences_and_draws(tmp_path):
    figure = tmp_path / "race.png"
    done = albatross(
        *("compare", "--env", "mixture", "--policies", "alb-norm(norm_bound=5),lints,greedy,oracle"),
        *("--dim", "4", "--arms", "6", "--theta-norm", "1", "--horizon", "300", "--trials", "4", "--out", str(figure)),
        check=True,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert "alb-norm(norm_bound=5)" in done.stdout
    assert "oracle" in done.stdout
    assert done.stdout.count("±") == 7
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_policies_lists_the_whole_catalogue():
    done = albatross("policies", check=True, env={**os.environ, "COLUMNS": "200"})
    from albatross.policies import CATALOGUE

    for name, entry in CATALOGUE.items():
        assert name in done.stdout
        assert entry.citation in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("reproduce", "z"),
            "there is no panel 'z'; known are a, b, c, d, e, f, g, h, nested, simple, users, flock, drift, scaling, "
            "e-literal, news, theorems and race",
        ),
        (("reproduce", "--trials", "0"), "'--trials'"),
        (("compare", "--policies", "best"), "there is no policy 'best'"),
        (("compare", "--policies", "LinTS"), "did you mean lints?"),
        (("race", "--quick", "--policies", "albatross lints"), "separate names by commas, albatross,lints"),
        (("compare", "--policies", ","), "name at least one policy"),
        (("compare", "--policies", "alb-norm(explore=3)", "--dim", "5"), "explore=3 pairs cannot estimate 5"),
        (("compare", "--out", "nowhere/x.png"), "nowhere is not a folder"),
        (("compare", "--out", "."), ". is a folder: --out is the figure's file name"),
        (("compare", "--noise-sd", "0"), "'--noise-sd'"),
        (("compare", "--norm-bound", "nan"), "nan is not a number"),
        (("compare", "--policies", f"oful(sigma={'9' * 400})"), "Error: "),
        (("compare", "--policies", "oful(sigma={[]:1})"), "write it as oful(parameter=value, ...)"),
        (("race", "--policies", f"oful(sigma={'-' * 100_000}1)"), "has 100,013 characters"),
        (("race", "--problem", f"Mixture(n_arms=2, dim={'1+' * 4_000}1)"), "cannot read 'Mixture(n_arms=2, dim=1+1"),
        (("compare", "--trials", "1000000000"), "take fewer trials"),
        (("race", "--problem", "Mixture(n_arms=2, dim=1000000000)"), "GB of memory"),
        (("race", "--problem", "Ball(dim=1000000000, sparsity=5, smallest=0.1)"), "GB of memory"),
    ],
)
def test_wrong_input_is_one_line_and_not_a_traceback(args, message, tmp_path):
    done = albatross(*args, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    done = albatross("reproduce", "c", "--trials", "1", "--out", str(tmp_path / "file" / "results"))
    assert done.returncode != 0
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_is_a_command_of_its_own():
    done = processes.run([sys.executable, "-m", "albatross", "--version"], check=True)
    assert done.stdout.startswith("albatross, version ")


def test_a_results_folder_of_another_version_is_refused_before_anything_is_run(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "summary.json").write_text('{"panel": "b", "versions": {"albatross": "0.0.1"}}')
    done = albatross("reproduce", "c", "--trials", "1", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "b/summary.json was not written by this version of albatross" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_family_of_another_version_that_is_not_raced_again_is_refused_at_once(tmp_path):
    (tmp_path / "race").mkdir()
    (tmp_path / "race" / "standings-your-problems.json").write_text('{"format": 0}')
    done = albatross("reproduce", "race", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "standings-your-problems.json was not written by this version" in done.stderr
    assert len(list((tmp_path / "race").iterdir())) == 1


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (("reproduce", "c"), "c/main.c"),
        (("reproduce", "c"), "c/figure.png"),
        (("reproduce", "c"), "c/summary.json"),
        (("reproduce", "c"), "c/data/summary.json"),
        (("reproduce", "c"), "c"),
        (("reproduce", "c"), "report.html"),
        (("race", "--problem", "Mixture(n_arms=2, dim=1, horizon=2)"), "race/car.py"),
        (("race", "--problem", "Mixture(n_arms=2, dim=1, horizon=2)"), "race/figure.png"),
    ],
)
def test_a_file_of_somebody_elses_in_the_output_folder_is_refused_at_once_and_left_alone(command, path, tmp_path):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("{}")
    done = albatross(*command, "--out", str(tmp_path))
    message = " was not written by albatross: choose another folder\n"
    assert (done.returncode, done.stderr.endswith(message)) == (1, True)
    assert str(tmp_path / path).startswith(done.stderr.removeprefix("Error: ").partition(" was not written")[0])
    assert (tmp_path / path).read_text() == "{}"
    assert sum(each.is_file() for each in tmp_path.rglob("*")) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["race", "--help"], ["policies"]])
def test_output_that_finds_no_room_is_one_line(words):
    command = [sys.executable, "-m", "albatross", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=processes.LIMIT)
    assert done.returncode == 1
    assert done.stderr == "Error: [Errno 28] No space left on device\n"


def test_a_disk_that_fills_up_leaves_one_line_and_nothing_half_written(tmp_path):
    # No file may grow beyond 20,000 bytes: the kernel refuses to write, as it does on a full disk.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
    command = [COMMAND[0], "-c", limit + COMMAND[2], "reproduce", "c", "--trials", "1", "--out", str(tmp_path)]
    done = processes.run(command)
    assert done.returncode == 1
    assert "Error: no room for" in done.stderr
    assert "Traceback" not in done.stderr
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == ["c/curves.parquet", "c/summary.json"]  # which are whole; the figure is not there


def test_want_of_memory_is_one_line_and_not_a_traceback(tmp_path):
    without = "import albatross.simulation; albatross.simulation.simulate = lambda *_, **__: bytearray(1 << 62); "
    command = [COMMAND[0], "-c", without + COMMAND[2], "compare", "--out", str(tmp_path / "race.png")]
    done = processes.run(command)
    assert (done.returncode, done.stderr) == (1, "Error: out of memory: take less data or fewer features\n")


def test_without_the_extra_the_command_says_which_one_is_missing(tmp_path):
    # A click that cannot be imported stands for one that is not installed.
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError(\"No module named 'click'\", name='click')")
    done = processes.run([*COMMAND, "--help"], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode != 0
    assert done.stderr == "albatross: this needs click: run pip install '.[lab]' in your clone of Albatross\n"
