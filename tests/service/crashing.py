"""Kill a service under load, again and again, and look whether it kept what it acknowledged: `make crash`.

The load has duplicates, conflicts, deferred decisions, rankings of several slots, and arms that come and go. Whatever
is not answered is repeated with the same request id.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from refolding import refold

from albatross.client import AsyncClient, ImportedDecision
from albatross.client import answers as retrying
from albatross.service.events import EFFECTS, NOTHING, Decision, Happening, Outcome
from albatross.service.identity import Identity
from albatross.service.keys import new_key
from albatross.service.serving import LOG, MODELS
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify
from albatross.service.wire import RankAnswer

WORKERS, USERS, MEMORY = 12, 400, "1 MiB"
# The second model closes decisions by the clock, with a default reward, while the load goes on.
TOML = """
policy = "{policy}"
arms = ["a", "b", "c", "d", "e"]
features.x = {{kind = "vector", length = 4}}
rewards = {rewards}
"""
DECLARED = {
    "often": TOML.format(policy="flock", rewards='{wait = "1h"}'),
    "soon": TOML.format(policy="albatross", rewards='{wait = "1s", default = 0.0}'),
}


class Server:
    """The real server, as a process of its own that is killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / MODELS).mkdir()
        for name, text in DECLARED.items():
            (folder / MODELS / f"{name}.toml").write_text(text)
        text, row = new_key("crash", ["admin"], None, None, 1e9)
        store = SQLiteStore(folder / LOG, create=True)
        store.add_key(row)
        store.close()
        self.key, self.process = text, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; it is ready some seconds later."""
        command = [sys.executable, "-m", "albatross", "serve", self.folder, "--port", str(self.port)]
        self.said = open(self.folder / "said.txt", "ab")  # noqa: SIM115
        self.process: Any = subprocess.Popen([*command, "--memory", MEMORY], stdout=self.said, stderr=self.said)

    def end(self, sign: int = signal.SIGKILL) -> int:
        """Send a signal, and wait for the end."""
        if self.process is None:
            return 0
        self.process.send_signal(sign)
        code = self.process.wait(60)
        self.said.close()
        self.process = None
        return code


class Load:
    """Requests without end, and everything that was acknowledged."""

    def __init__(self, client: AsyncClient, rng: random.Random) -> None:
        self.client, self.rng = client, rng
        self.ranks: dict[tuple[str, str], list[RankAnswer]] = {}  # answers by model and request id
        self.users: dict[tuple[str, str], str] = {}
        self.rewards: list[tuple[str, float, str]] = []  # decision, value and status
        self.activated: list[str] = []
        self.arms: set[tuple[str, str, str]] = set()  # kind of happening, model and arm
        self.asked: list[dict[str, Any]] = []
        self.ending = False

    async def work(self) -> None:
        """Ask and reward, until the end."""
        rng = self.rng
        while not self.ending:
            if self.asked and rng.random() < 0.1:
                asked = rng.choice(self.asked)  # the same again, perhaps across a kill
            else:
                asked = self.new_request(defer=rng.random() < 0.1, slots=2 if rng.random() < 0.1 else 1)
            answer = await self.rank(asked, copies=rng.choice((1, 1, 1, 2, 3)))
            for made in answer.decisions:
                await self.follow(made.id, asked)

    def new_request(self, **options: Any) -> dict[str, Any]:
        """Return the arguments of a request that was not made before."""
        rng = self.rng
        user = f"user {int(USERS * rng.random() ** 4)}"
        given = {arm: {"x": [round(rng.gauss(0, 1), 3) for _ in range(4)]} for arm in "abcde"}
        asked = {
            "model": rng.choice(list(DECLARED)),
            "user": user,
            "arms": given,
            "id": f"{len(self.asked)}",
            **options,
        }
        self.asked.append(asked)
        return asked

    async def rank(self, asked: dict[str, Any], *, copies: int) -> RankAnswer:
        """Ask several times at once; all answers must be the same."""
        answers = await asyncio.gather(*(self.client.rank(**asked) for _ in range(copies)))
        key = asked["model"], asked["id"]
        self.users[key] = asked["user"]
        self.ranks.setdefault(key, []).extend(answers)
        return answers[0]

    async def follow(self, decision: str, asked: dict[str, Any]) -> None:
        """Reward a decision: once, twice, with another value, later, or never."""
        rng = self.rng
        value = round(rng.gauss(0, 1), 3)
        values = rng.choice(([], [value], [value], [value, value], [value, value + 1.0], [value, value, value - 1.0]))
        results = await asyncio.gather(*(self.client.reward(decision, value) for value in values))
        self.rewards += [(decision, value, result.status) for value, result in zip(values, results)]
        shown = asked.get("defer") and rng.random() < 0.7
        if shown and (await self.client.activate(decision)).status != "closed":
            self.activated.append(decision)
        if rng.random() < 0.1:
            await asyncio.sleep(1.5 * rng.random())
            result = await self.client.reward(decision, value)
            self.rewards.append((decision, value, result.status))

    async def resumed(self) -> None:
        """Wait until all workers have noticed that the service is back, so that the next kill meets a full load."""
        before = len(self.rewards)
        for _ in range(1_000):
            if len(self.rewards) >= before + 4 * WORKERS:
                return
            await asyncio.sleep(0.02)

    async def begin(self) -> None:
        """Give one user a history that is long enough for a snapshot."""
        for model in DECLARED:
            past = [ImportedDecision(user="user 0", arm="a", reward=self.rng.gauss(0, 1)) for _ in range(140)]
            await self.client.import_decisions(model, past)

    async def churn(self) -> None:
        """Add and retire arms, until the end."""
        for number in range(1_000_000):
            model, arm = self.rng.choice(list(DECLARED)), f"extra {number}"
            await self.client.put_arm(model, arm)
            self.arms.add(("arm", model, arm))
            await asyncio.sleep(0.5)
            if number % 2 and number < 20:  # some stay, and make rows wider
                continue
            try:
                await self.client.retire_arm(model, arm)
                self.arms.add(("retired", model, arm))
            except Exception:  # it is not repeated, and may have been done
                pass
            if self.ending:
                return


async def crash(folder: Path, kills: int, seed: int = 0, say: Any = lambda text: None) -> dict[str, int]:
    """Kill the service so many times. Raise an AssertionError if it broke a promise; return what was counted."""
    rng = random.Random(seed)
    retrying._LONGEST_PAUSE = 0.2  # seconds: clients come back soon after a kill
    server = Server(folder)
    try:
        server.start()
        async with AsyncClient(server.url, server.key, timeout=30.0, patience=180.0) as client:
            await client.models()
            load = Load(client, rng)
            await load.begin()
            work = [asyncio.create_task(load.work()) for _ in range(WORKERS)] + [asyncio.create_task(load.churn())]
            for kill in range(kills):
                await asyncio.sleep(rng.uniform(0.0, 0.5))
                asked = load.new_request()
                together = asyncio.create_task(load.rank(asked, copies=50))
                await asyncio.sleep(rng.uniform(0.0, 0.05))
                server.end()
                server.start()
                if rng.random() < 0.1:
                    await asyncio.sleep(rng.uniform(0.0, 2.0))  # perhaps before it is ready
                    server.end()
                    server.start()
                await together
                await load.resumed()
                for task in work:
                    if task.done():
                        task.result()  # what broke it
                say(f"{kill + 1} kills, {len(load.ranks)} requests and {len(load.rewards)} rewards acknowledged")
            load.ending = True
            await asyncio.gather(*work)
            last, seen = await live_users(server, client)
        assert server.end(signal.SIGTERM) == 0, "SIGTERM must end it in order"
        said = (folder / "said.txt").read_text()
        assert '"level": "error"' not in said, said
        return check(folder, load, last, seen) | {"kills": kills}
    finally:
        server.end()


async def live_users(server: Server, client: AsyncClient) -> tuple[int, dict[tuple[str, str], Any]]:
    """Return what the living service says of all users, and the sequence number of that moment.

    An answer waits until what it shows is on disk. So if the log has not grown meanwhile, all answers rest on it.
    """
    store = SQLiteStore(server.folder / LOG)
    try:
        for _ in range(60):
            last, _ = store.last()
            named = [(model, f"user {number}") for model in DECLARED for number in range(USERS)]
            found = [
                user for part in range(0, len(named), 50) for user in await together(client, named[part : part + 50])
            ]
            if store.last()[0] == last:
                return last, {pair: user.estimates for pair, user in zip(named, found)}
            await asyncio.sleep(0.5)  # decisions are still being closed
    finally:
        store.close()
    raise AssertionError("the log does not come to rest")


async def together(client: AsyncClient, named: list[tuple[str, str]]) -> list[Any]:
    """Return what the service says of some users."""
    return await asyncio.gather(*(client.user(*pair) for pair in named))


def check(folder: Path, load: Load, last: int, seen: dict[tuple[str, str], Any]) -> dict[str, int]:
    """Compare the log with what was acknowledged, and live states with the fold over the log."""
    store = SQLiteStore(folder / LOG)
    try:
        identity = Identity(store.secret)
        events = list(store.events(0))
        decisions = {event.seq: event for event in events if isinstance(event, Decision)}
        outcomes: dict[int, list[Outcome]] = {}
        for event in events:
            if isinstance(event, Outcome):
                outcomes.setdefault(event.decision, []).append(event)
        models = {event.content["name"]: event.model for event in events if getattr(event, "kind", "") == "model"}
        check_decisions(load, identity, decisions, models)
        check_requests(store, load, identity, decisions, models)
        statuses = check_rewards(load, identity, outcomes)
        happened = [event for event in events if isinstance(event, Happening)]
        numbers = {number: name for name, number in models.items()}
        logged = {(event.kind, numbers[event.model], event.content.get("name")) for event in happened}
        assert load.arms <= logged, "an arm that was acknowledged is lost"
        folds, compared = refold(store, last)
        for (model, user), estimates in seen.items():
            bandits, digest = folds[models[model]].bandits, identity.user(models[model], user)
            expected = bandits.describe(digest) if digest in bandits else {}
            assert estimates == json.loads(msgspec.json.encode(expected)), f"{user} differs from the log"
        assert verify(store).wrong == []
        populations = sum(event.kind == "population" for event in happened)
        return {
            "records": len(events),
            "decisions acknowledged": sum(len(answers[0].decisions) for answers in load.ranks.values()),
            "rewards acknowledged": len(load.rewards),
            **statuses,
            "populations": populations,
            "users compared": len(seen),
            "snapshots compared": compared,
        }
    finally:
        store.close()


def check_decisions(load: Load, identity: Identity, decisions: dict[int, Decision], models: dict[str, int]) -> None:
    """Look for every acknowledged decision in the log, as it was acknowledged."""
    for (model, request), said in load.ranks.items():
        assert all(answer == said[0] for answer in said), f"request {request} was answered differently"
        user = identity.user(models[model], load.users[model, request])
        for answered in said[0].decisions:
            found = identity.parse(answered.id)
            made = decisions.get(found.seq) if found else None
            assert made is not None, f"decision {answered.id} is lost"
            acknowledged = models[model], user, answered.arm, answered.propensity, answered.by, answered.slot
            assert acknowledged == (made.model, made.user, made.arm, made.propensity, made.by, made.place)


def check_requests(
    store: SQLiteStore, load: Load, identity: Identity, decisions: dict[int, Decision], models: dict[str, int]
) -> None:
    """Look whether every decision of the log belongs to one request: all requests of the load have ids."""
    belong: Counter[int] = Counter()
    for asked in load.asked:
        stored = store.request(identity.request(models[asked["model"]], asked["id"]), 0)
        if stored:
            for answered in msgspec.json.decode(stored[1], type=RankAnswer).decisions:
                belong[identity.parse(answered.id).seq] += 1
        else:
            assert (asked["model"], asked["id"]) not in load.ranks, f"request {asked['id']} is forgotten"
    decided = [seq for seq, made in decisions.items() if made.by != "import"]
    assert belong == Counter(decided), "a request made more than one decision"


def check_rewards(load: Load, identity: Identity, outcomes: dict[int, list[Outcome]]) -> Counter[str]:
    """Look for every acknowledged reward in the log, and for decisions that were closed twice."""
    for decision, came in outcomes.items():
        closings = [outcome for outcome in came if EFFECTS[outcome.status] != NOTHING]
        assert len(closings) <= 1, f"decision {decision} was closed {len(closings)} times"
    statuses: Counter[str] = Counter()
    for decision, value, status in load.rewards:
        statuses[status] += 1
        came = outcomes.get(identity.parse(decision).seq, [])
        rewarded = [outcome.value for outcome in came if outcome.value is not None]
        if status in ("learnt", "waits", "late", "inactive"):
            assert (value, status) in [(outcome.value, outcome.status) for outcome in came], (
                f"a reward is lost: {status}"
            )
        elif status == "duplicate":
            assert value in rewarded, "the first of two equal rewards is lost"
        elif status == "conflict":
            assert any(other != value for other in rewarded), "the first of two different rewards is lost"
        else:
            raise AssertionError(f"an acknowledged decision is {status}")
    first = Counter((decision, status) for decision, _, status in load.rewards if status in ("learnt", "waits"))
    assert max(first.values(), default=1) == 1, "a reward was learnt twice"
    for decision in load.activated:
        assert "activated" in [outcome.status for outcome in outcomes[identity.parse(decision).seq]], (
            "an activation is lost"
        )
    return statuses


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as place:
        counted = asyncio.run(crash(Path(place), n, seed=int.from_bytes(os.urandom(4), "big"), say=print))
    print("nothing lost, nothing applied twice:", ", ".join(f"{name} {count:,}" for name, count in counted.items()))
