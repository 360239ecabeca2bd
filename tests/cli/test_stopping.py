"""A command is stopped: by Ctrl-C, by SIGTERM, or not at all where it was started to ignore Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from types import ModuleType

import processes
import pytest

from albatross.cli import Terminated, _terminate, main
from albatross.cli.plainly import plainly

COMMAND = [sys.executable, "-c", "from albatross.cli import main; main()"]
STOPPED = "stopped; what was finished is kept\n"


@pytest.fixture
def begun(request, tmp_path):
    """A long run in several processes, all of which are at work; its file of errors."""
    errors = tmp_path / "errors"
    command = [*COMMAND, "reproduce", "a", "b", "--trials", "1000", "--out", str(tmp_path / "results")]
    with (
        errors.open("w") as file,
        processes.started(command, ignores_ctrl_c=request.param, stdout=subprocess.PIPE, stderr=file) as process,
    ):
        for _ in range(600):
            if "begins" in errors.read_text():
                break
            time.sleep(0.1)
        time.sleep(3.0)
        assert process.poll() is None
        yield process, errors, tmp_path / "results"


def said_last(errors):
    """All but the lines that say which part begins."""
    return "".join(line for line in errors.read_text().splitlines(keepends=True) if "begins" not in line)


@pytest.mark.parametrize("begun", [False, True], indirect=True, ids=["plain", "ignores ctrl-c"])
@pytest.mark.parametrize("everybody", [False, True], ids=["the parent", "all"])
def test_sigterm_ends_a_run_in_one_line_and_leaves_nothing_behind(begun, everybody):
    process, errors, results = begun
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGTERM)
    assert process.wait(60.0) == 143
    assert said_last(errors) == STOPPED
    assert processes.all_gone(process)
    assert list(results.iterdir()) == []


@pytest.mark.parametrize("begun", [True], indirect=True, ids=["ignores ctrl-c"])
def test_a_run_that_was_started_to_ignore_ctrl_c_goes_on(begun):
    process, errors, _ = begun
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(1.0)
    assert process.poll() is None
    assert said_last(errors) == ""


@pytest.mark.parametrize("begun", [False], indirect=True, ids=["plain"])
def test_ctrl_c_ends_any_other(begun):
    process, errors, _ = begun
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60.0) == 130
    assert said_last(errors) == "\n" + STOPPED
    assert processes.all_gone(process)


def test_sigterm_that_a_library_turned_into_another_error_still_counts_as_such(monkeypatch, capsys):
    monkeypatch.setattr(Terminated, "came", False)

    @plainly
    def command():
        with contextlib.suppress(Terminated):
            _terminate()
        raise KeyboardInterrupt  # as an interrupted query of DuckDB

    with pytest.raises(SystemExit) as stopped:
        command()
    assert stopped.value.code == 143
    assert capsys.readouterr().err == STOPPED


def test_ctrl_c_while_the_commands_are_loaded_is_no_traceback(monkeypatch):
    class Loading(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "albatross.cli.commands", Loading("albatross.cli.commands"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 128 + signal.SIGINT
