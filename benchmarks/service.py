"""What a durable decision costs: `make bench-service`, or with --short.

The server is a process of its own, with the real policies, 20 arms and 16 features; the load comes from this process,
on the same machine. The yardstick is the same server without a log and without a policy: it checks keys, parses,
encodes features, and answers as many bytes. A second one has the policy and no log: it says what durability costs. A
bare application that only parses and answers says what HTTP costs. Only CPU time and ratios within one run are worth
reading on a machine that others use too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

K, D, CONNECTIONS = 20, 16, 32
FLOOR = 0.5  # of what the application without log and policy answers
YARDSTICKS = ("bare", "same")
ARMS = [f"arm {number}" for number in range(K)]
MODEL = """
policy = "{policy}"
arms = {arms}
features.x = {{kind = "vector", length = {d}}}
"""
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
HEADERS = (
    "HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: {n}\r\n\r\n"
)


# ------------------------------------------------------------------------------------------------------------- servers


class Server:
    """A server process: its address, key, CPU time and memory."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, key: str, folder: Path) -> None:
        self.process, self.port, self.key, self.folder = process, port, key, folder

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE


@contextmanager
def running(policy: str, *, memory: str = "1 GiB", logged: bool = True) -> Iterator[Server]:
    """A service with a model of this policy; "bare", "same" and one that does not log are yardsticks."""
    from albatross.service.keys import new_key
    from albatross.service.sqlite import SQLiteStore

    with tempfile.TemporaryDirectory() as place, socket.socket() as free:
        folder = Path(place)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        key, row = new_key("bench", ["admin"], None, None, 1e9)
        (folder / "models").mkdir()
        arms = msgspec.json.encode(ARMS).decode()
        text = MODEL.format(policy="flock" if policy in YARDSTICKS else policy, arms=arms, d=D)
        (folder / "models" / "m.toml").write_text(text)
        store = SQLiteStore(folder / "log.db", create=True)
        store.add_key(row)
        store.close()
        if policy in YARDSTICKS:
            command = [sys.executable, __file__, "--stub", policy, str(port), place]
        elif not logged:
            command = [sys.executable, __file__, "--stub", "unlogged", str(port), place]
        else:
            command = [sys.executable, "-m", "albatross", "serve", place, "--port", str(port), "--memory", memory]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port, process)
            yield Server(process, port, key, folder)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens."""
    for _ in range(1_200):
        if process.poll() is not None:
            raise SystemExit("the server did not start")
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start within two minutes")


def stub(kind: str, port: int, folder: Path) -> None:
    """Serve answers of the usual size.

    "bare" HTTP and parsing; the "same" server without a log and a policy; or "unlogged", with a policy and without a
    log.
    """
    import uvicorn

    from albatross.service import serving
    from albatross.service.engine import Engine
    from albatross.service.http import Service

    app: Any = bare
    if kind == "unlogged":
        store = serving.prepare(folder)
        engine = Engine(store)
        serving.declare(engine, serving.declared(folder))
        store.write = lambda group: None  # type: ignore[method-assign]
        app = Service(engine)
    elif kind == "same":
        app = Service(NoEngine(folder))  # type: ignore[arg-type]
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, server_header=False)


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Parse a body and answer."""
    from albatross.service.http import read_body
    from albatross.service.wire import RankRequest, RewardRequest, RewardResult, parse

    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = await read_body(receive, None)
    if scope["path"].endswith("/rank"):
        request = parse(body, RankRequest)
        content = answer_to(request, ID)
    else:
        parse(body, RewardRequest)
        content = msgspec.json.encode(RewardResult(id=ID, status="learnt"))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


ID = "00-4k7-yv1b29xs"


def answer_to(request: Any, decision: str) -> bytes:
    """Return an answer of the usual size: the first arm."""
    from albatross.service.wire import Decided, RankAnswer

    made = Decided(id=decision, arm=request.arms[0], propensity=0.981, by="policy", slot=0)
    return msgspec.json.encode(RankAnswer(decisions=[made], model_version=1, new_user=False))


class NoEngine:
    """What the HTTP server calls, without a log and without a policy."""

    def __init__(self, folder: Path) -> None:
        from albatross.service.identity import DecisionId, Identity
        from albatross.service.settings import read_model
        from albatross.service.sqlite import SQLiteStore

        self.store = SQLiteStore(folder / "log.db")
        self.identity, self._seq, self._id = Identity(self.store.secret), 0, DecisionId
        self._settings = read_model(folder / "models" / "m.toml")
        self._features = self._settings.schema()

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to write."""

    async def rank(self, name: str, request: Any, body: bytes) -> bytes:
        """Encode the features, and answer with the first arm."""
        from albatross.service.offers import offered

        offered(request, self._features, self._settings.first_arms)
        self._seq += 1
        return answer_to(request, self.identity.decision(self._id(0, self._seq)))

    async def reward(self, name: str | None, item: Any, *, may: Any) -> Any:
        """Check the id, and answer."""
        from albatross.service.wire import RewardResult

        known = self.identity.parse(item.id)
        return RewardResult(id=item.id, status="learnt" if known else "unknown")


# --------------------------------------------------------------------------------------------------------------- load


class Connection:
    """One connection that is kept; requests go one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        return self

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a body and return the answer's."""
        head = f"POST {path} " + HEADERS.format(key=self._server.key, n=len(body))
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        content = await self._reader.readexactly(length)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{answer[:60]!r} {content!r}")
        return content

    async def rank(self, body: bytes) -> str:
        """Ask for a decision and return its id."""
        answer = await self.post("/v1/models/m/rank", body)
        return answer.partition(b'"id":"')[2].partition(b'"')[0].decode()

    async def reward(self, decision: str) -> None:
        """Reward a decision."""
        await self.post(f"/v1/decisions/{decision}/reward", b'{"value":%.3f}' % random.gauss(0.0, 1.0))


class Bodies:
    """Requests of many users, in the fast form, each with an id."""

    def __init__(self, n_users: int) -> None:
        self._n_users, self.made = n_users, 0
        rng = np.random.default_rng(0)
        shown = rng.standard_normal((200, K, D)).astype("<f4")
        self._features = [b64encode(rows.tobytes()).decode() for rows in shown]
        self._arms = msgspec.json.encode(ARMS).decode()

    def next(self) -> bytes:
        """Return the next request: users in turn, so that all come equally often."""
        self.made += 1
        features = self._features[self.made % len(self._features)]
        user = self.made * 7919 % self._n_users
        return (f'{{"user":"u{user}","arms":{self._arms},"features_b64":"{features}","id":"r{self.made}"}}').encode()


async def share_out(server: Server, work: list[Any], do: Callable[[Connection, Any], Awaitable[Any]]) -> list[Any]:
    """Do all work on some connections, as fast as it goes; return the results."""
    left, results = iter(work), []

    async def one() -> None:
        connection = await Connection(server).open()
        for each in left:
            results.append(await do(connection, each))

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return results


class Cost:
    """CPU of the server and seconds, per request."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def of(self, n: int, work: Awaitable[Any]) -> Any:
        cpu, begun, own = self._server.cpu, time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        result = await work
        self.cpu, self.seconds = (self._server.cpu - cpu) / n, (time.perf_counter() - begun) / n
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.own = (after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime) / n
        return result


async def rank_and_reward(server: Server, bodies: Bodies, n: int) -> tuple[Cost, Cost]:
    """Return what a rank costs, and what a reward."""
    rank, reward = Cost(server), Cost(server)
    ids = await rank.of(n, share_out(server, [bodies.next() for _ in range(n)], Connection.rank))
    await reward.of(n, share_out(server, ids, Connection.reward))
    return rank, reward


async def latencies(server: Server, bodies: Bodies, rate: float, seconds: float) -> tuple[float, float]:
    """Return p50 and p99 of ranks and rewards, in seconds, with Poisson arrivals of so many requests a second."""
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        idle.put_nowait(await Connection(server).open())
    took: list[float] = []

    async def one() -> None:
        begun = time.perf_counter()
        connection = await idle.get()
        decision = await connection.rank(bodies.next())
        middle = time.perf_counter()
        await connection.reward(decision)
        took.extend((middle - begun, time.perf_counter() - middle))
        idle.put_nowait(connection)

    tasks, due, end = [], time.perf_counter(), time.perf_counter() + seconds
    while due < end:
        due += random.expovariate(rate / 2.0)  # a pair each
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    return tuple(np.quantile(took, (0.5, 0.99)).tolist())  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------------ measures


async def measure(short: bool) -> bool:
    """Print all measures; return whether the floor is kept."""
    n, users = (1_500, 500) if short else (10_000, 10_000)
    good = True
    yardsticks = {}
    for kind in YARDSTICKS:
        with running(kind) as server:
            await rank_and_reward(server, Bodies(users), n // 10)
            yardsticks[kind] = await rank_and_reward(server, Bodies(users), n)
        say({"bare": "HTTP and parsing alone", "same": "the same without log and policy"}[kind], yardsticks[kind])
    plain = yardsticks["same"]
    for policy in ("flock", "albatross"):
        with running(policy, logged=False) as server:
            bodies = Bodies(users)
            await rank_and_reward(server, bodies, users)
            without = await rank_and_reward(server, bodies, n)
            say(f"{policy}, without log", without)
            unlogged = sum(cost.seconds for cost in without)
        with running(policy) as server:
            bodies = Bodies(users)
            await rank_and_reward(server, bodies, 100)
            before = server.memory
            first = await rank_and_reward(server, bodies, users)
            say(f"{policy}, every user for the first time", first)
            hot = (server.memory - before) / users
            measured = await rank_and_reward(server, bodies, n)
            say(f"{policy}, durable", measured)
            seconds = [sum(cost.seconds for cost in pair) for pair in (plain, measured)]
            cpu = [sum(cost.cpu for cost in pair) for pair in (plain, measured)]
            ratio = seconds[0] / seconds[1]
            good &= ratio >= FLOOR
            print(f"  requests a second, to the same without log and policy: {ratio:.2f} (at least {FLOOR})")
            print(f"  CPU of the server, to the same without log and policy: {cpu[1] / cpu[0]:.2f}")
            print(f"  requests a second, to the same without log: {unlogged / seconds[1]:.2f}")
            half = 1.0 / seconds[1]  # a pair is two requests
            p50, p99 = await latencies(server, bodies, half, 3.0 if short else 15.0)
            print(
                f"  at half of capacity, {half:.0f} requests a second: p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms"
            )
            await asyncio.sleep(3.0)  # for a checkpoint
            disk = (server.folder / "log.db").stat().st_size / bodies.made
            print(f"  a user in memory: {hot:,.0f} bytes; a decision with its reward on disk: {disk:,.0f} bytes")
    n_many, memory = (3_000, "1 MiB") if short else (100_000, "64 MiB")
    n = min(n, n_many // 4)
    with running("flock", memory=memory) as server:
        before, bodies = server.memory, Bodies(n_many)
        many = await rank_and_reward(server, bodies, n_many)
        full = server.memory
        again = await rank_and_reward(server, bodies, n // 2)
        say(f"flock, {n_many:,} users who are new, in {memory}", many)
        say(f"flock, {n_many:,} users who come back from the log", again)
        sizes = [f"{size / 2**20:.0f} MiB" for size in (before, full, server.memory)]
        print(f"  memory of the server at the start, then, and at the end: {', '.join(sizes)}")
    return good


def say(what: str, costs: tuple[Cost, Cost]) -> None:
    """Print what a rank and a reward cost."""
    print(what)
    for name, cost in zip(("rank", "reward"), costs, strict=True):
        times = f"{1e6 * cost.cpu:.0f} µs of CPU in the server, {1e6 * cost.own:.0f} in the load"
        print(f"  {name}: {times}; {1.0 / cost.seconds:,.0f} a second", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer users and requests")
    parser.add_argument("--stub", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stub:
        stub(given.stub[0], int(given.stub[1]), Path(given.stub[2]))
    else:
        sys.exit(not asyncio.run(measure(given.short)))
