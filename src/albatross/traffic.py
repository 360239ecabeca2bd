"""Simulated readers for a decision service, and what the service earns from them: `albatross simulate-traffic`.

Every reader has tastes of their own. Outlet readers choose by outlet alone: their theta is 0. Topic readers share a
taste for topics, each with a norm and a deviation of their own. Rewards are clicks. They come late and out of order,
some come twice, and outlets come and go.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from albatross.client import AsyncClient, RankAnswer, ServiceError

TOPICS = ("sport", "politics", "culture", "science", "money", "local")
_FEATURES = {
    "topic": {"kind": "category", "values": list(TOPICS)},
    "age": {"kind": "number", "mean": 6.0, "sd": 6.0},
}
_AT_ONCE = 64  # requests on the way
_USUAL, _LEAST = 0.3, 0.01  # probability of a click
_AGEING = -0.01  # of that probability, per hour
_OUTLETS, _OUTLET_READERS, _TOPIC_READERS = 0.05, 0.2, 0.05  # spread of biases: common, and of the two kinds
_TASTE, _DEVIATION = 0.2, 0.07  # of topic readers: common, and their own


@dataclass(frozen=True)
class Plan:
    """How much traffic, of which kind."""

    decisions: int = 2_000
    seconds: float = 120.0
    rate: float = 100.0  # decisions per second
    users: int = 200
    arms: int = 10
    delay: float = 0.5  # mean seconds from a decision to its reward
    duplicates: float = 0.05  # share of rewards that are sent twice
    churn: int = 500  # decisions after which an outlet goes and another comes; 0: never
    policy: str = "flock"
    seed: int = 0


@dataclass
class Result:
    """What the service earned, and how fast it was. Clicks are expected ones, as only the simulation knows them."""

    earned: list[float] = field(default_factory=list)
    random: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    early: list[bool] = field(default_factory=list)  # whether it was one of a reader's first 20 decisions
    rank_seconds: list[float] = field(default_factory=list)
    reward_seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def share(self, which: Any = slice(None)) -> float:
        """Return how much of what is possible beyond random choices was earned, of some decisions.

        >>> Result(earned=[0.4], random=[0.3], best=[0.5]).share()
        0.5
        """
        earned, random, best = (np.array(column)[which].sum() for column in (self.earned, self.random, self.best))
        return round(float((earned - random) / (best - random)), 12) if best > random else float("nan")


class World:
    """Readers and outlets, with the probability of every click."""

    def __init__(self, plan: Plan) -> None:
        self.rng = np.random.default_rng(plan.seed)
        n = plan.users
        self.by_outlet = self.rng.random(n) < 0.5
        common = self.rng.standard_normal(len(TOPICS))
        norms = np.where(self.by_outlet, 0.0, self.rng.lognormal(0.0, 0.3, n))
        own = _DEVIATION * self.rng.standard_normal((n, len(TOPICS)))
        self._tastes = norms[:, None] * (_TASTE * common + own)  # (users, topics)
        self._opened = 0
        self._biases: dict[str, np.ndarray] = {}  # of outlets, one number per reader
        for _ in range(plan.arms):
            self.new_outlet()

    @property
    def outlets(self) -> list[str]:
        """The outlets of today."""
        return list(self._biases)

    def new_outlet(self) -> str:
        """Add an outlet, and return its name."""
        self._opened += 1
        name = f"outlet {self._opened}"
        spread = np.where(self.by_outlet, _OUTLET_READERS, _TOPIC_READERS)
        bias = _OUTLETS * self.rng.standard_normal() + spread * self.rng.standard_normal(len(spread))
        self._biases[name] = bias
        return name

    def close(self, outlet: str) -> None:
        """Remove an outlet."""
        del self._biases[outlet]

    def offer(self, user: int) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
        """Return the present article of every outlet, and the probability of a click on it."""
        topics = self.rng.integers(len(TOPICS), size=len(self._biases))
        ages = self.rng.exponential(6.0, len(self._biases)).round(1)
        articles, clicks = {}, {}
        for (outlet, bias), topic, age in zip(self._biases.items(), topics.tolist(), ages.tolist(), strict=True):
            articles[outlet] = {"topic": TOPICS[topic], "age": age}
            mean = _USUAL + bias[user] + self._tastes[user, topic] + _AGEING * (age - 6.0)
            clicks[outlet] = float(np.clip(mean, _LEAST, 1.0 - _LEAST))
        return articles, clicks


class Traffic:
    """Readers who come, read, and click later. `stop` ends it; what is on the way is still waited for."""

    def __init__(self, client: AsyncClient, model: str, plan: Plan) -> None:
        self._client, self._model, self.plan = client, model, plan
        self.world, self.result = World(plan), Result()
        self._visits: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking = 0  # requests for decisions on the way
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Send no further requests."""
        self._stopped.set()

    async def run(self, report: Callable[[Result], None] = lambda result: None) -> Result:
        """Create the model, and send traffic as planned."""
        plan, rng = self.plan, self.world.rng
        settings = {
            "arms": self.world.outlets,
            "features": _FEATURES,
            "policy": plan.policy,
            "rewards": {"wait": "1h", "low": 0.0, "high": 1.0},
        }
        await self._client.put_model(self._model, settings)
        end = time.monotonic() + plan.seconds
        due = time.monotonic()
        for number in range(plan.decisions):
            due += float(rng.exponential(1.0 / plan.rate))
            await self._pause(min(due, end) - time.monotonic())
            if self._stopped.is_set() or time.monotonic() >= end:
                break
            while len(self._tasks) >= _AT_ONCE + plan.rate * 4.0 * plan.delay:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            if plan.churn and number % plan.churn == plan.churn - 1:
                await self._change_outlets()
            self._spawn(self._visit(int(plan.users * rng.random() ** 2)))
            report(self.result)
        while self._tasks and not self._stopped.is_set():
            await asyncio.wait(self._tasks, timeout=0.2)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return self.result

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until somebody stops it."""
        if seconds > 0.0 and not self._stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _visit(self, user: int) -> None:
        """One reader gets an article, and clicks or not."""
        result, rng = self.result, self.world.rng
        articles, clicks = self.world.offer(user)
        try:
            answer = await self._ask(user, articles)
            (made,) = answer.decisions
            self._visits[user] += 1
            result.earned.append(clicks[made.arm])
            result.random.append(float(np.mean(list(clicks.values()))))
            result.best.append(max(clicks.values()))
            result.early.append(self._visits[user] <= 20)
            clicked = float(rng.random() < clicks[made.arm])
            delay, twice = float(rng.exponential(self.plan.delay)), bool(rng.random() < self.plan.duplicates)
            await asyncio.sleep(delay)
            start = time.perf_counter()
            came = [await self._client.reward(made.id, clicked)]
            result.reward_seconds.append(time.perf_counter() - start)
            if twice:
                came.append(await self._client.reward(made.id, clicked))
            result.statuses.update(each.status for each in came)
        except ServiceError as error:
            result.failures[str(error)] += 1

    async def _ask(self, user: int, articles: dict[str, dict[str, Any]]) -> RankAnswer:
        start = time.perf_counter()
        self._asking += 1
        try:
            return await self._client.rank(self._model, f"reader {user}", arms=articles)
        finally:
            self._asking -= 1
            self.result.rank_seconds.append(time.perf_counter() - start)

    async def _change_outlets(self) -> None:
        """Close the oldest outlet, and open a new one. Clicks on the old one still come."""
        oldest = self.world.outlets[0]
        self.world.close(oldest)
        while self._asking:  # perhaps for the old one
            await asyncio.sleep(0.005)
        await self._client.retire_arm(self._model, oldest)
        await self._client.put_arm(self._model, self.world.new_outlet())
