"""A service in this process, with a clock that tests set, called as HTTP clients call it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from albatross.service.engine import Engine
from albatross.service.http import Service
from albatross.service.keys import new_key
from albatross.service.sqlite import SQLiteStore

TOPICS = ("sport", "politics")
NEWS: dict[str, Any] = {
    "arms": ["anzeiger", "bote", "chronik"],
    "features": {
        "topic": {"kind": "category", "values": list(TOPICS)},
        "age": {"kind": "number", "mean": 6.0, "sd": 6.0},
        "device": {"kind": "category", "values": ["phone", "desktop"], "of": "situation"},
    },
    "policy": "linucb",
    "rewards": {"wait": "1h"},
}


class Served:
    """An engine and its HTTP application in a loop of their own."""

    def __init__(self, folder: Path, *, memory: int = 2**30) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.now, self._memory = folder, 1_000_000.0, memory
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        if not (folder / "log.db").exists():
            _make_log(folder / "log.db")
        self.start()

    def start(self) -> None:
        """Start the service on what the folder holds."""
        store = SQLiteStore(self.folder / "log.db")
        known = [row.name for row in store.all_keys()]
        if "admin" not in known:
            self.key, row = new_key("admin", ["admin"], None, None, 1e6)
            store.add_key(row)
        self.engine = Engine(store, memory=self._memory, clock=lambda: self.now)
        self.service = Service(self.engine)
        transport = httpx.ASGITransport(app=self.service, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://service")
        self.run(self.engine.start())

    def run(self, work: Any, timeout: float = 60) -> Any:
        """Run a coroutine in the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def stop(self) -> None:
        """Stop the service; the folder stays."""
        self.run(self.http.aclose())
        self.run(self.engine.stop())

    def close(self) -> None:
        """Stop everything."""
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def restart(self) -> None:
        """Stop, and start again on the same log."""
        self.stop()
        self.start()

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **options: Any
    ) -> httpx.Response:
        """Send a request."""
        headers = {"Authorization": f"Bearer {self.key if key is None else key}", **options.pop("headers", {})}
        if body is not None:
            options["json"] = body
        return self.run(self.http.request(method, path, headers=headers, **options))

    def model(self, name: str = "news", **changes: Any) -> None:
        """Create a model."""
        answer = self.call("PUT", f"/v1/models/{name}", {**NEWS, **changes})
        assert answer.status_code in (200, 201), answer.text

    def rank(self, user: str = "anna", **more: Any) -> dict[str, Any]:
        """Decide, and return the answer."""
        answer = self.call("POST", "/v1/models/news/rank", {"user": user, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def decide(self, user: str = "anna", **more: Any) -> str:
        """Decide, and return the id of the decision."""
        return self.rank(user, **more)["decisions"][0]["id"]

    def reward(self, decision: str, value: float = 1.0) -> tuple[int, str]:
        """Reward a decision, and return code and status."""
        answer = self.call("POST", f"/v1/decisions/{decision}/reward", {"value": value})
        return answer.status_code, answer.json()["status"]

    def sweep(self, seconds: float) -> None:
        """Let time pass, and close what is due."""
        self.now += seconds
        self.run(self.engine.close_due())

    def rows(self, name: str = "news") -> dict[bytes, bytes]:
        """Return the state of every user in memory."""
        model = self.engine.models[name]
        return {user: model.bandits.row(user) for user in model.hot if user in model.bandits}


def _make_log(path: Path) -> None:
    """Make a log with a secret that is always the same, so that no test depends on what the floor draws."""
    SQLiteStore(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE about SET value = ? WHERE name = 'secret'", (bytes(32),))
