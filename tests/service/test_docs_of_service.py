"""What the pages on the service say is so: every call on them is made, in order, to a service that the unit starts."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import typing
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import click
import processes
import pytest

from albatross import cache, client
from albatross.cli.commands import albatross
from albatross.policies.in_words import build
from albatross.service import hot, http, keys, model, openapi, settings, wire
from albatross.service.events import EFFECTS
from albatross.service.metrics import Metrics
from albatross.service.settings import ModelSettings, RewardRules, read_model
from albatross.service.sqlite import SQLiteStore

ROOT = Path(__file__).resolve().parent.parent.parent
UNIT, DOCKERFILE = ROOT / "deploy" / "albatross.service", ROOT / "deploy" / "Dockerfile"
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "service").glob("*.md"))]
MARK = "-- end of block --"


def text(page):
    return (ROOT / page).read_text()


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```", text(page), flags=re.DOTALL | re.MULTILINE)


def section(page, heading):
    return re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text(page), flags=re.DOTALL | re.MULTILINE)[1]


def words(found):
    """Everything that is set as code."""
    return set(re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", found, flags=re.DOTALL | re.MULTILINE)))


# ------------------------------------------------------------------------------------------------ calls on the pages


def exec_start(port):
    """The command of the unit, with this interpreter and another port."""
    command = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT.read_text(), flags=re.MULTILINE)[1])
    assert (command[0], command[-2]) == ("/opt/albatross/bin/albatross", "--port")
    return [sys.executable, "-m", "albatross", *command[1:-1], str(port)]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [word.replace("%S", str(folder)) for word in exec_start(port)]
    out = folder / "out"
    with open(out, "w") as file, processes.started(command, stdout=file, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + processes.LIMIT
        while not answers(port):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.2)
        key = re.search(r"alb_\S+", out.read_text())[0]
        yield {"URL": f"http://127.0.0.1:{port}", "KEY": key}
        process.send_signal(signal.SIGTERM)
        assert process.wait(45) == 0
        assert not list((folder / "albatross").glob("*-wal"))


def answers(port):
    with suppress(OSError), closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        connection.request("GET", "/readyz")
        return connection.getresponse().read() == b'{"status":"ok"}'
    return False


EXACT = ("status", "title", "detail", "at", "slot", "learnt", "model")  # values that are no matter of chance or time


def assert_alike(said, found, name=""):
    """The same keys and types, and the same words where they are promised."""
    if isinstance(said, dict):
        assert said.keys() == found.keys()
        for key in said:
            assert_alike(said[key], found[key], key)
    elif isinstance(said, list) and name != "top":
        assert len(said) == len(found), name
        for one, other in zip(said, found):
            assert_alike(one, other, name)
    elif name in EXACT:
        assert said == found
    elif not isinstance(said, list):
        numbers = (int, float)
        assert isinstance(found, numbers if type(said) in numbers else type(said)), name


@pytest.mark.parametrize("page", [page for page in PAGES if "curl" in text(page)])
def test_every_call_on_the_page_is_answered_as_it_says(page, service):
    calls = [
        (block, blocks(page)[number + 1 : number + 2])
        for number, (kind, block) in enumerate(blocks(page))
        if kind == "bash" and "curl" in block
    ]
    script = "".join(f"{block}\nprintf '\\n{MARK}\\n'\n" for block, _ in calls)
    done = processes.run(["bash", "-euo", "pipefail", "-c", script], env={**os.environ, **service})
    assert (done.returncode, done.stderr) == (0, "")
    for (_, after), said in zip(calls, done.stdout.split(MARK)):
        if after and after[0][0] == "json":
            assert_alike(json.loads(after[0][1]), json.loads(said))
        else:
            assert '"status":4' not in said


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if "```python" in text(page)])
def test_the_python_blocks_of_the_page_run_and_print_what_it_says(page, service, monkeypatch, capsys):
    for name, value in service.items():
        monkeypatch.setenv(name, value)
    namespace = {"__name__": "page"}
    for kind, block in blocks(page):
        if kind == "python":
            capsys.readouterr()
            exec(compile(block, page, "exec"), namespace)
        elif kind == "text":
            assert capsys.readouterr().out == block


@pytest.mark.parametrize("page", PAGES)
def test_every_json_block_is_json(page):
    for kind, block in blocks(page):
        if kind == "json":
            json.loads(block)


@pytest.mark.parametrize("page", [page for page in PAGES if "```toml" in text(page)])
def test_the_models_of_the_page_are_models(page, tmp_path):
    for number, block in enumerate(block for kind, block in blocks(page) if kind == "toml"):
        (tmp_path / f"model-{number}.toml").write_text(block)
        read_model(tmp_path / f"model-{number}.toml")


# ----------------------------------------------------------------------------------------------------------- the API

API = "docs/service/api.md"
DOCUMENT = json.loads(openapi.document())


def test_the_page_has_every_call_with_its_scope():
    rows = re.findall(r"^\| ([A-Z]+) \| `(\S+)` \| `?(\w+)`? \|", section(API, "Calls"), flags=re.MULTILINE)
    wanted = set()
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            scope = re.search(r"scope `(\w+)`", operation.get("description", ""))
            wanted.add((method.upper(), path, scope[1] if scope else "none"))
    assert set(rows) == wanted
    assert len(rows) == len(wanted)


def test_the_page_has_every_field_and_value():
    def fields(kind):
        return set(kind.__struct_fields__)

    def values(kind, field):
        return set(typing.get_args(typing.get_type_hints(kind)[field]))

    rank, models, rewards = section(API, "Rank"), section(API, "Models"), section(API, "Rewards")
    answer = fields(wire.Decided) | fields(wire.RankAnswer)
    assert fields(wire.RankRequest) | (answer - {"decisions", "arm"}) <= words(rank)
    assert values(wire.Decided, "by") <= words(rank)
    assert fields(ModelSettings) | fields(RewardRules) <= words(models)
    for field in ("users", "mode", "log_offers"):
        assert values(ModelSettings, field) <= words(models)
    assert values(RewardRules, "combine") <= words(models)
    codes = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", rewards, flags=re.MULTILINE))
    assert codes == {status: str(wire.CODES.get(status, 200)) for status in typing.get_args(wire.Status)}
    assert values(wire.ActivatedAnswer, "status") <= words(section(API, "Deferred decisions"))
    assert fields(wire.ImportedDecision) <= set(re.findall(r'"(\w+)"', section(API, "Import")))
    assert words(section(API, "Keys and scopes")) >= set(keys.SCOPES)


def test_the_page_has_every_code():
    said = re.findall(r"^\| (\d{3}) \|", section(API, "Problems"), flags=re.MULTILINE)
    used = {code for each in DOCUMENT["paths"].values() for one in each.values() for code in one["responses"]}
    assert {code for code in used if code >= "400"} <= set(said)


def test_the_page_has_every_limit():
    rows = dict(re.findall(r"^\| (.+?) \| (\S+)", section(API, "Limits"), flags=re.MULTILINE))
    wanted = {
        "a body": http.MOST_BYTES,
        "active arms of a model, arms of a call": settings.MOST_ARMS,
        "coordinates of the features": settings.MOST_FEATURES,
        "slots of a request": settings.MOST_SLOTS,
        "requests of a batch": wire.MOST_REQUESTS,
        "rewards of a call": wire.MOST_REWARDS,
        "decisions of an import": wire.MOST_IMPORTED,
        "names of users and arms": wire.MOST_BYTES,
        "size of a number": settings.LARGEST,
        "open decisions of a user": model.MOST_OPEN,
        "open decisions of a model with shared users": model.MOST_OPEN_SHARED,
        "requests of a key": keys.RATE,
        "commands that wait for the disk": hot.MOST_WAITING,
    }
    assert {name: float(rows[name].replace(",", "")) for name in wanted} == wanted


def test_the_page_has_every_metric():
    found = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in Metrics().registry.collect()
    }
    assert found == {word for word in words(section(API, "Metrics")) if word.startswith("albatross_")}


def test_the_page_has_every_method_and_error_of_the_clients():
    said = words(section(API, "From Python"))
    for kind in (client.Client, client.AsyncClient):
        assert [name for name in vars(kind) if not name.startswith("_") and name not in said] == []
    errors = [name for name, each in vars(client).items() if isinstance(each, type) and issubclass(each, Exception)]
    assert [name for name in errors if name not in said] == []


# ----------------------------------------------------------------------------------------------------------- the log

LOG = "docs/service/log.md"


def test_the_page_has_every_table_and_column(tmp_path):
    SQLiteStore(tmp_path / "log.db", create=True).close()
    connection = sqlite3.connect(tmp_path / "log.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        row = re.search(rf"^\| `{table}` \| (.*?) \|", text(LOG), flags=re.MULTILINE)
        begin = text(LOG).find(f"**`{table}`**")
        said = row[1] if row else text(LOG)[begin : text(LOG).find("\n\n", text(LOG).find("|---", begin))]
        assert columns <= words(said), table
    connection.close()
    assert {"decisions", "outcomes", "happenings", "open", "snapshots"} <= set(tables)


def test_the_page_has_every_status_and_what_it_does():
    table = text(LOG)[text(LOG).index("| status | effect") : text(LOG).index("**`happenings`**")]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", table, flags=re.MULTILINE)
    assert dict(rows) == EFFECTS


def test_the_page_has_every_kind_of_happening():
    sources = "".join(path.read_text() for path in (ROOT / "src" / "albatross" / "service").rglob("*.py"))
    kinds = {"model", *re.findall(r'\bhappen\(\s*"(\w+)"', sources)}
    table = text(LOG)[text(LOG).index("| kind | body |") : text(LOG).index("## What is derived")]
    assert kinds == set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE))


def test_the_lines_of_an_export_have_the_fields_of_the_page(service):
    call = f"curl -s {service['URL']}/v1/models/news/log -H 'Authorization: Bearer {service['KEY']}'"
    body = '{"user": "exported"}'
    first = call.replace("/log", "/rank") + f" -H 'Content-Type: application/json' -d '{body}'"
    decision = json.loads(processes.run(["bash", "-c", first]).stdout)["decisions"][0]["id"]
    reward = call.replace("/v1/models/news/log", f"/v1/decisions/{decision}/reward")
    processes.run(["bash", "-c", reward + """ -H 'Content-Type: application/json' -d '{"value": 1}'"""])
    lines = [json.loads(line) for line in processes.run(["bash", "-c", call]).stdout.splitlines()]
    for said in (json.loads(block) for kind, block in blocks(LOG) if kind == "json"):
        found = [line for line in lines if line["record"] == said["record"]]
        assert found
        assert {tuple(line) for line in found} == {tuple(said)}


# ------------------------------------------------------------------------------------------- promises and deployment


def test_every_promise_names_tests_that_are_there():
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text("docs/service/promises.md"))
    folder = Path(__file__).parent
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^(async )?def {name}\(", (folder / file).read_text(), flags=re.MULTILINE)
    ]
    assert missing == []
    rows = re.findall(r"^\| .*", text("docs/service/promises.md"), flags=re.MULTILINE)
    assert [row for row in rows if "::test_" not in row and row != "| promise | tests |"] == []


def test_the_unit_is_sound(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    here = shutil.which("albatross", path=str(Path(sys.executable).parent)) or sys.executable
    (tmp_path / UNIT.name).write_text(UNIT.read_text().replace("/opt/albatross/bin/albatross", here))
    done = processes.run(["systemd-analyze", "verify", tmp_path / UNIT.name])
    assert (done.returncode, done.stderr) == (0, "")


def test_the_cache_of_the_unit_is_trusted_although_systemd_makes_its_parent_a_link(tmp_path, monkeypatch):
    (tmp_path / "private" / "albatross").mkdir(parents=True, mode=0o700)
    (tmp_path / "albatross").symlink_to(tmp_path / "private" / "albatross")
    place = re.search(r"^Environment=ALBATROSS_CACHE=(.*)$", UNIT.read_text(), flags=re.MULTILINE)[1]
    monkeypatch.setenv("ALBATROSS_CACHE", place.replace("%C", str(tmp_path)))
    assert cache.private_folder("machine-code") is not None


def test_the_image_starts_and_compiles_what_there_is():
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE.read_text(), flags=re.MULTILINE)[1])
    compiled = shlex.split(re.search(r"^RUN albatross compile (.*)$", DOCKERFILE.read_text(), flags=re.MULTILINE)[1])
    assert entry[:2] == ["albatross", "serve"]
    command = albatross.commands["serve"]
    options, left, _ = command.make_parser(click.Context(command)).parse_args(entry[2:])
    assert left == []
    assert options["behind_proxy"]
    for name in compiled:
        assert name == "flock" or build(name, {"horizon": 1_000})
    copied = {line.removeprefix("!") for line in text("deploy/Dockerfile.dockerignore").splitlines() if line[0] == "!"}
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_caddyfile_is_that_of_the_page():
    snippet = next(block for kind, block in blocks("docs/service/proxy.md") if kind == "caddy")
    assert snippet in text("deploy/Caddyfile")
