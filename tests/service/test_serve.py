"""`albatross serve` as a process: the first start, signals, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from running import Running
from serving_tests import Served

from albatross.service.identity import Identity
from albatross.service.serving import declared
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify


@pytest.fixture
def running(tmp_path):
    service = Running(tmp_path / "data")
    yield service
    service.close()


def serve(folder, *options):
    """Run a service that should refuse to start, and return its exit code and what it said."""
    command = [sys.executable, "-m", "albatross", "serve", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_the_first_start_prints_a_key_and_two_calls_that_work(running):
    said = running.process.stdout.peek().decode()
    calls = [line for line in said.splitlines() if line.startswith("curl ")]
    assert len(calls) == 2
    answers = [
        json.loads(subprocess.run(["sh", "-c", call], capture_output=True, timeout=60, check=True).stdout)
        for call in calls
    ]
    assert answers[0]["decisions"][0]["arm"] in ("tagesblatt", "morgenpost")
    assert answers[1]["status"] == "learnt"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_a_first_start_that_cannot_show_its_key_makes_none(tmp_path, where):
    command = [sys.executable, "-m", "albatross", "serve", str(tmp_path), "--no-example", "--port", "0"]
    shell = ["sh", "-c", f'exec "$@" {where}', "sh", *command]
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert "the key cannot be shown" in done.stderr or "no standard output to show the key on" in done.stderr
    store = SQLiteStore(tmp_path / "log.db")
    assert store.all_keys() == []
    store.close()


def test_a_host_that_has_no_name_is_refused(tmp_path):
    code, said = serve(tmp_path, "--host", "ü..x", "--behind-proxy", "--no-example", "--port", "0")
    assert (code, "cannot be listened on" in said, "Traceback" in said) == (1, True, False)


def test_a_second_process_is_refused(running):
    code, said = serve(running.folder, "--port", "0")
    assert (code, "in use by another process" in said) == (1, True)


def test_sigterm_answers_what_is_open_and_leaves_a_log_that_verifies(running):
    headers, stop, codes = {"Authorization": f"Bearer {running.key}"}, threading.Event(), []

    def ask(number):
        with httpx.Client(base_url=running.url, headers=headers, timeout=20) as client:
            while not stop.is_set():
                try:
                    answer = client.post("/v1/models/news/rank", json={"user": f"u{number}"})
                except httpx.TransportError:
                    return
                codes.append((answer.status_code, answer.json()["decisions"][0]["id"]))

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
    for asker in askers:
        asker.start()
    time.sleep(0.5)
    assert running.terminate() == 0
    stop.set()
    for asker in askers:
        asker.join(30)
    assert len(codes) > 3
    store = SQLiteStore(running.folder / "log.db")
    identity = Identity(store.secret)
    assert all(store.decision(identity.parse(each).seq) for _, each in codes)
    assert verify(store).wrong == []
    store.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_sync_comes_before_every_answer(tmp_path):
    trace = tmp_path / "trace"
    calls = "--trace=fsync,fdatasync,sendto,sendmsg,write,writev"
    under = ["strace", "--follow-forks", "--decode-fds", calls, "--output", str(trace)]
    running = Running(tmp_path / "data", under=under)
    try:
        headers = {"Authorization": f"Bearer {running.key}"}
        with httpx.Client(base_url=running.url, headers=headers, timeout=20) as client:
            for number in range(20):
                made = client.post("/v1/models/news/rank", json={"user": f"u{number}"}).json()["decisions"][0]
                client.post(f"/v1/decisions/{made['id']}/reward", json={"value": 1.0})
        (server,) = map(
            int, Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
        )
        os.kill(server, signal.SIGTERM)
        running.process.wait(60)
    finally:
        running.close()
    done = [
        "sync" if "sync" in line else "answer"
        for line in trace.read_text().splitlines()
        if re.search(r"sync\(.*log\.db-wal.* = 0$|sync resumed.* = 0$|HTTP/1\.1 200", line)
    ]
    answers = [place for place, what in enumerate(done) if what == "answer"][1:]  # the first one is that of a look
    assert len(answers) == 40
    assert all(done[place - 1] == "sync" for place in answers)


def test_a_second_signal_ends_it_at_once(running):
    # A connection that has sent half a request keeps the first signal waiting.
    with socket.create_connection(("127.0.0.1", running.port)) as half:
        half.sendall(b"POST /v1/models/news/rank HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n")
        half.sendall(f"Content-Type: application/json\r\nAuthorization: Bearer {running.key}\r\n\r\n{{".encode())
        time.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        start = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(30)
        assert time.monotonic() - start < 8  # the first one alone would wait ten seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--tls-cert, or --behind-proxy"),
        (["--memory", "much"], "memory must be a size"),
        (["--memory", "1 KB"], "at least 1 MiB"),
        (["--tls-cert", __file__], "belong together"),
        (["--tls-cert", __file__, "--tls-key", __file__], "not a certificate and its key"),
    ],
)
def test_what_it_cannot_serve_is_refused_in_one_line(tmp_path, options, words):
    code, said = serve(tmp_path, *options)
    assert (code, words in said, said.count("\n")) == (1, True, 1), said


def test_a_port_that_is_taken_is_refused_before_a_key_is_made(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, said = serve(tmp_path, "--port", str(other.getsockname()[1]))
    assert (code, "take another --port" in said, "albatross serves" in said) == (1, True, False)
    store = SQLiteStore(tmp_path / "log.db")
    assert store.all_keys() == []
    store.close()


MODEL = 'policy = "linucb"\narms = ["a", "b"]\n[features.age]\nkind = "number"\nof = "situation"\n'


@pytest.mark.parametrize("beside", [".#shop.toml", ".shop.toml", "._shop.toml"])
def test_hidden_files_beside_models_are_those_of_editors(tmp_path, beside):
    (tmp_path / "shop.toml").write_bytes(b"\xef\xbb\xbf" + MODEL.encode())  # as Notepad writes it
    (tmp_path / "models").mkdir()
    (tmp_path / "shop.toml").rename(tmp_path / "models" / "shop.toml")
    (tmp_path / "models" / beside).symlink_to("nowhere")
    assert list(declared(tmp_path)) == ["shop"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "brackets"])
def test_what_is_no_model_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "models" / "shop.toml"
    path.parent.mkdir()
    if kind == "brackets":
        path.write_text("arms = " + "[" * 5_000)
    else:
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(ValueError, match=r"^shop\.toml is not a model: "):
        declared(tmp_path)


def test_a_model_file_that_is_wrong_is_named(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "shop.toml").write_text('policy = "flock"\n')
    code, said = serve(tmp_path)
    assert (code, "shop.toml is not a model" in said) == (1, True)
    store = SQLiteStore(tmp_path / "log.db")
    assert store.all_keys() == []  # the next start makes the key, and shows it
    store.close()


def test_a_log_that_was_restored_gets_no_example(tmp_path):
    served = Served(tmp_path / "data")
    served.model("shop")
    served.close()
    with socket.create_server(("127.0.0.1", 0)) as other:
        serve(served.folder, "--port", str(other.getsockname()[1]))  # stops after the models were read
    store = SQLiteStore(served.folder / "log.db")
    assert [event.content["name"] for event in store.happenings(None, ("model",))] == ["shop"]
    store.close()


def test_a_model_file_that_was_changed_later_is_noted(running):
    file, said = running.folder / "models" / "news.toml", running.folder.parent / "serve.log"
    for changed in (False, True):
        running.terminate()
        running.close()
        if changed:
            file.write_text(file.read_text().replace("floor = 0.02", "floor = 0.5"))
        running.start()
        assert ("note: news.toml is not as the log has it" in said.read_text()) == changed


def test_a_model_that_its_policy_cannot_play_is_not_in_the_log(tmp_path):
    """It could not be read again."""
    (tmp_path / "models").mkdir()
    text = 'policy = "alb-dim-finite(dims=(1,))"\narms = ["a"]\n[features.x]\nkind = "number"\n'
    (tmp_path / "models" / "shop.toml").write_text(text)
    code, said = serve(tmp_path)
    assert (code, "shop.toml is not a model: n_arms must be at least 2" in said) == (1, True)
    store = SQLiteStore(tmp_path / "log.db")
    assert store.happenings(None) == []
    store.close()
