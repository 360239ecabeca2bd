"""A log of many events, with users who leave memory and come back, and arms that come and go; and its fold.

python tests/service/replaying.py 50000
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from refolding import refold

from albatross.service.engine import Engine
from albatross.service.settings import ModelSettings, RewardRules
from albatross.service.sqlite import SQLiteStore
from albatross.service.verifying import verify
from albatross.service.wire import RankRequest, RewardItem

DIM, AT_ONCE = 3, 25
SHORT = RewardRules(wait="60s")
# Rewards at once, and at the end of the wait with a default.
RULES = {"flock": SHORT, "albatross": RewardRules(wait="60s", default=0.0), "lints": SHORT}


class Replayed(NamedTuple):
    """What was compared."""

    events: int
    users: int
    snapshots: int
    loads: int
    populations: int
    reused: int  # slots of retired arms
    live_seconds: float  # of CPU
    fold_seconds: float


class Traffic:
    """Commands for an engine, drawn with a seed."""

    def __init__(self, engine: Engine, clock: list[float], n_users: int, seed: int) -> None:
        self.engine, self.clock, self.n_users = engine, clock, n_users
        self.rng = np.random.default_rng(seed)
        self.waiting: list[str] = []
        self.n_arms = 0

    async def one(self, name: str) -> None:
        """Decide, or reward one of the decisions that wait, in any order."""
        rng = self.rng
        if self.waiting and rng.random() < 0.5:
            place = int(rng.integers(len(self.waiting)))
            decision = self.waiting[place]
            if rng.random() < 0.9:  # otherwise it comes again
                self.waiting[place] = self.waiting[-1]
                self.waiting.pop()
            await self.engine.reward(name, RewardItem(id=decision, value=float(rng.standard_normal())))
            return
        user = f"u{int(self.n_users * rng.random() ** 2)}"
        arms = self.engine.models[name].arms
        offered = {
            arm: {"x": rng.standard_normal(DIM).round(2).tolist()} for arm in arms if rng.random() < 0.8 or arm == "a"
        }
        body = {"user": user, "arms": offered, "defer": bool(rng.random() < 0.05)}
        if rng.random() < 0.1 and len(offered) > 1:
            body["slots"] = 2
        answer = await self.engine.rank(name, msgspec.convert(body, RankRequest), b"")
        made = msgspec.json.decode(answer)["decisions"]
        for each in made:
            if body["defer"] and rng.random() < 0.5:
                await self.engine.activate(each["id"])
            if rng.random() < 0.9:  # others expire
                self.waiting.append(each["id"])

    async def change_arms(self, name: str) -> None:
        """Add an arm, or retire one."""
        model, rng = self.engine.models[name], self.rng
        others = [arm for arm in model.arms if arm != "a"]
        if len(others) > 6 or (len(others) > 3 and rng.random() < 0.5):
            arm = str(rng.choice(others))
            await self.engine.happen(model, lambda group, ticket: model.retire_arm(arm, group, ticket))
        else:
            self.n_arms += 1
            await self.engine.put_arm(model, f"new {self.n_arms}", {})

    async def run(self, names: list[str], n_events: int) -> None:
        """Go on until there are so many events."""
        round_, every = 0, max(4, n_events // (40 * AT_ONCE))  # some forty changes of arms
        while self.engine.seq < n_events:
            await asyncio.gather(*(self.one(names[int(self.rng.integers(len(names)))]) for _ in range(AT_ONCE)))
            self.clock[0] += float(self.rng.exponential(10.0))
            round_ += 1
            if round_ % every == 0:
                await self.change_arms(names[round_ // every % len(names)])
            if round_ % 4 == 0:
                await self.engine.close_due()


async def replay(folder: Path, n_events: int, *, policies: list[str], n_users: int, memory: int, seed: int) -> Replayed:
    """Write a log, and compare the state of every user with its fold, bit for bit: raise an AssertionError if not."""
    store, clock = SQLiteStore(folder / "log.db", create=True), [1_000_000.0]
    engine = Engine(store, memory=memory, clock=lambda: clock[0])
    await engine.start()
    try:
        for policy in policies:
            features: Any = {"x": {"kind": "vector", "length": DIM}}
            await engine.put_model(
                policy, ModelSettings(arms=list("abcd"), features=features, policy=policy, rewards=RULES[policy])
            )
            engine.models[policy].compile()
        begun = time.process_time()
        await Traffic(engine, clock, n_users, seed).run(policies, n_events)
        live_seconds = time.process_time() - begun
        seq = -1
        while engine.seq > seq or engine._looking:  # until everything that is due is done
            seq = engine.seq
            await engine.close_due()
            await asyncio.sleep(0.01)
        live: dict[tuple[int, bytes], bytes] = {}
        for name in policies:
            model = engine.models[name]
            users = {engine.user(model, f"u{number}") for number in range(n_users)}
            for user in (*(user for user in model.hot), *(users - model.hot.keys())):  # those in memory as they are
                await engine.in_memory(model.number, user)
                if user in model.bandits:
                    live[model.number, user] = model.bandits.row(user)
        loads = int(engine.metrics.loads._value.get())
        numbers = {name: engine.models[name].number for name in policies}
    finally:
        await engine.stop()
    store = SQLiteStore(folder / "log.db")
    try:
        verified = verify(store)
        assert verified.wrong == [], verified.wrong
        begun = time.process_time()
        folds, compared = refold(store)
        fold_seconds = time.process_time() - begun
        for (number, user), row in live.items():
            assert folds[number].bandits.row(user) == row, f"the state of {user.hex()} differs from the log"
        assert sum(fold.bandits.n_users for fold in folds.values()) == len(live)
        arms = [
            event.content["slot"] for event in store.happenings(None, ("arm",)) if event.model == numbers[policies[0]]
        ]
        populations = len(store.happenings(None, ("population",)))
        return Replayed(
            store.last()[0],
            len(live),
            compared,
            loads,
            populations,
            len(arms) - len(set(arms)),
            live_seconds,
            fold_seconds,
        )
    finally:
        store.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        n = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
        print(asyncio.run(replay(Path(place), n, policies=list(RULES), n_users=n // 20, memory=2**20, seed=n)))
