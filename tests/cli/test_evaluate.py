"""`albatross evaluate`, as a person meets it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import processes
import pytest

COMMAND = [sys.executable, "-c", "from albatross.cli import main; main()", "evaluate"]


def evaluate(*args, width=80, **options):
    return processes.albatross("evaluate", *args, env={**os.environ, "COLUMNS": str(width)}, **options)


@pytest.fixture
def plain(tmp_path):
    """Colours that were shown, without any features."""
    path = tmp_path / "log.csv"
    lines = ["action,reward,propensity"]
    lines += [f"{'red' if t % 3 else 'blue'},{t % 5},{0.7 if t % 3 else 0.3}" for t in range(60)]
    path.write_text("\n".join(lines))
    return path


def test_the_shipped_log_fits_a_terminal_and_uniform_play_earns_what_was_logged():
    done = evaluate("open-bandit", "--arms", "actions", "--policies", "ucb,greedy(ridge=100)", check=True)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("open-bandit: 10,000 rounds, 80 actions, 38 features")
    table = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(" ") and line.split()}
    assert table["logged"] == ["0.00380", "10,000"]
    assert table["uniform"][:2] == ["0.00380", "0.00380"]
    assert {"ucb", "greedy(ridge=100)"} <= set(table)
    assert done.stderr == ""
    assert "features of the actions: item_feature_" in done.stdout
    assert "features of the round" not in done.stdout  # --arms actions makes no use of them


def test_a_log_with_names_for_actions_and_no_features(plain):
    done = evaluate(str(plain), "--policies", "ucb", "--folds", "3", "--trials", "2", "--seed", "4", check=True)
    assert "60 rounds, 2 actions, 1 feature" in done.stdout
    assert "ucb" in done.stdout
    assert "note: replay can use about 18 of the 60 rounds, because the least propensity is 0.3" in done.stderr
    assert "features of" not in done.stdout
    again = evaluate(str(plain), "--policies", "ucb", "--folds", "3", "--trials", "2", "--seed", "4", check=True)
    assert again.stdout == done.stdout


def test_features_of_actions_are_read_from_their_table(plain, tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("action,price,size,weight\nred,1,2,5\nblue,3,4,5\ngreen,2,9,5\n")
    done = evaluate(str(plain), "--items", str(items), "--policies", "ucb", check=True)
    assert "60 rounds, 3 actions, 2 features" in done.stdout
    assert "features of the actions: price, size\n" in done.stdout
    assert "note: log.csv: 1 of 3 actions never logged: green" in done.stderr
    assert "note: 1 of 3 features of the actions are constant and were dropped" in done.stderr
    assert (
        "note: uniform: no IPS, SNIPS or DR, because it spends 20 of 60 rounds on 1 action that was never logged"
        in done.stderr
    )


def test_a_log_without_randomness_gives_no_estimates_of_other_policies_and_says_so(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["action,reward,propensity", *(f"{int(t < 20)},{t % 3},1" for t in range(200))]))
    done = evaluate(str(path), "--policies", "ucb1", check=True)
    rows = {
        line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(" ") and line.split()
    }
    assert rows["logged"][0] == "0.995"
    assert rows["uniform"][:3] == ["–"] * 3
    assert "–: no round was accepted, or the log does not support an estimate" in " ".join(done.stdout.split())
    assert (
        "note: uniform: no IPS, SNIPS or DR, because it spends 100 of 200 rounds on actions that the logging policy "
        "could not take: the logged action had propensity 1" in done.stderr
    )
    wanted = r"note: ucb1: no replay, because \d+ rounds were accepted where about 200 are expected: the log"
    assert re.search(wanted, done.stderr)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.csv",), "there is no file nowhere.csv; the included logs are open-bandit, open-bandit-bts"),
        (("open-bandit", "--policies", "alb-dim"), "alb-dim plays actions of the unit ball, a log has 80 arms"),
        (
            ("open-bandit", "--policies", "oracle"),
            "an oracle needs the true parameters, and a log does not contain them",
        ),
        (("open-bandit", "--policies", "best"), "there is no policy 'best'"),
        (("open-bandit", "--policies", "LinTS"), "did you mean lints?"),
        (("open-bandit", "--policies", "ucb,ucb"), "none twice"),
        (("open-bandit", "--folds", "1"), "'--folds'"),
        (("open-bandit", "--arms", "none"), "'--arms'"),
    ],
)
def test_wrong_input_is_one_line_and_not_a_traceback(args, message, tmp_path):
    done = evaluate(*args, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_every_other_column_of_numbers_is_named_as_a_feature_and_the_marks_are_explained(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"{t % 2},1,0.5,{t},{t * t % 7},3,red" for t in range(40)]
    path.write_text("\n".join(["action,reward,propensity,user [id],hour,always,colour", *rows]))
    done = evaluate(str(path), "--policies", "ucb", check=True)
    assert "features of the round: user [id], hour\n" in done.stdout
    said = " ".join(done.stdout.split())
    assert "±?: the error is unknown, because all averaged values are equal." in said
    assert "–: no round was accepted, or the log does not support an estimate; a note says why." in said


def test_rows_that_were_dropped_are_told_of_also_where_too_few_are_left(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("action,reward,propensity\n0,1,0.5\n1,,0.5\n0,1,0\n")
    done = evaluate(str(path), "--policies", "ucb")
    assert done.returncode != 0
    assert "note: log.csv: dropped 2 of 3 rows: 1 without a reward, 1 with a propensity of 0" in done.stderr
    assert "folds=2 needs at least 2 rounds, but the log has 1" in done.stderr


def test_contexts_that_the_log_has_no_features_for_are_refused(plain):
    done = evaluate(str(plain), "--arms", "products")
    assert done.returncode != 0
    assert "arms='products' needs features of the actions" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "terminated"]
)
def test_it_can_be_stopped(number, code):
    with processes.started(
        [*COMMAND, "open-bandit", "--policies", "lints", "--draws", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        time.sleep(8.0)
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == code
    assert errors.splitlines()[-1] == "stopped; what was finished is kept"
    assert "Traceback" not in errors


@pytest.fixture
def wide(tmp_path):
    """40 rounds with 20 features, and 3 actions with 11: 231 products. The log, and the table of the actions."""
    rng = np.random.default_rng(0)
    log, items = tmp_path / "log.csv", tmp_path / "items.csv"
    rounds = [f"{t % 3},{t % 2},0.5," + ",".join(map(str, rng.random(20))) for t in range(40)]
    log.write_text("\n".join(["action,reward,propensity," + ",".join(f"x{j}" for j in range(20)), *rounds]))
    actions = [f"{k}," + ",".join(map(str, rng.random(11))) for k in range(3)]
    items.write_text("\n".join(["action," + ",".join(f"a{j}" for j in range(11)), *actions]))
    return str(log), "--items", str(items), "--policies", "ucb"


def test_hundreds_of_features_are_told_of_before_the_work_begins(wide):
    late = (  # in place of the work
        "import albatross.evaluation, sys; from albatross.cli import main;"
        "albatross.evaluation.evaluate = lambda *_, **__: sys.exit('the work begins'); main()"
    )
    done = processes.run([sys.executable, "-c", late, "evaluate", *wide])
    note, work = done.stderr.splitlines()
    assert note.startswith("note: contexts have 231 features, 11 of the actions times 21 of the round")
    assert "--arms actions" in note
    assert work == "the work begins"
    few = processes.run([sys.executable, "-c", late, "evaluate", *wide, "--arms", "actions"])
    assert few.stderr == "the work begins\n"


def test_a_bar_with_the_time_left_is_drawn_on_a_terminal_and_nowhere_else(wide):
    screen, terminal = pty.openpty()
    drawn = []

    def watch():
        with contextlib.suppress(OSError):  # the other end is closed
            while True:
                drawn.append(os.read(screen, 4096))

    watcher = threading.Thread(target=watch)
    watcher.start()
    with processes.started([*COMMAND, *wide], stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        table, _ = process.communicate()
    watcher.join(60.0)
    os.close(screen)
    assert process.returncode == 0
    assert re.search(r"playing.*━.*\d+:\d\d:\d\d", b"".join(drawn).decode())
    elsewhere = evaluate(*wide, check=True)
    assert elsewhere.stdout == table
    assert elsewhere.stderr.count("\n") == elsewhere.stderr.count("note: ")


def test_names_of_files_and_columns_are_printed_as_they_are_and_control_characters_are_spelt_out(tmp_path):
    path = tmp_path / "log[old] a[[]b :smile:.csv"
    lines = ["action,reward,propensity,a\x1b[2Jge,te\x1b[2Jxt"]
    lines += [f"{t % 2},{t % 5},0.5,{t % 7},x" for t in range(60)]
    path.write_text("\n".join(lines))
    done = evaluate(str(path), "--policies", "uniform", "--arms", "disjoint", width=200, check=True)
    assert done.stdout.startswith("log[old] a[[]b :smile:.csv: 60 rounds")
    assert "features of the round: a\\x1b[2Jge" in done.stdout
    assert "te\\x1b[2Jxt" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_help_loads_nothing_heavy():
    script = """if True:
        import sys
        from albatross.cli import main

        sys.argv = ["albatross", "evaluate", "--help"]
        try:
            main()
        finally:
            print([name for name in ("numba", "numpy", "duckdb", "rich") if name in sys.modules])
    """
    done = processes.run([sys.executable, "-c", script], check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_output_without_the_signs_of_the_table_still_shows_the_numbers(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("action,reward,propensity\n" + "0,1,0.5\n1,3,0.5\n" * 50)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = processes.run([*COMMAND, log, "--policies", "uniform"], env=environment, check=True)
    assert "2.00" in done.stdout
    assert "?0.10" in done.stdout
