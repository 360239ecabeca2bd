"""What Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from albatross.service.wire import RankAnswer

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Missing(Collector):
    """How often features were missing: a counter whose values are those of the schemas."""

    def __init__(self) -> None:
        self.counts: dict[str, Mapping[str, int]] = {}  # by model and feature

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the counter."""
        family = CounterMetricFamily(
            "albatross_features_missing", "Missing features so far.", labels=["model", "feature"]
        )
        for model, counts in self.counts.items():
            for feature, n in counts.items():
                family.add_metric([model, feature], n)
        yield family


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        common: Any = {"registry": self.registry, "namespace": "albatross"}
        self.rank = Histogram("rank_seconds", "From a request to its answer on disk.", buckets=_SECONDS, **common)
        self.commit = Histogram("commit_seconds", "One commit.", buckets=_SECONDS, **common)
        self.group_events = Histogram(
            "group_events", "Records per commit.", buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500), **common
        )
        self.rewards = Counter("rewards_total", "Rewards by what became of them.", ["status"], **common)
        self.decisions = Counter("decisions_total", "Decisions by who made them.", ["model", "by"], **common)
        self.loads = Counter("loads_total", "Users read from the log.", **common)
        self.load = Histogram("load_seconds", "Reading users from the log.", buckets=_SECONDS, **common)
        self.hot_users = Gauge("hot_users", "Users in memory.", ["model"], **common)
        self.pending = Gauge("pending", "Open decisions of users in memory.", ["model"], **common)
        self.propensity_min = Gauge("propensity_min", "Smallest propensity so far.", ["model"], **common)
        self.reward_mean = Gauge("reward_mean", "Mean of the rewards since the start.", ["model"], **common)
        self.missing = Missing()
        self.registry.register(self.missing)
        self.log_bytes = Gauge("log_bytes", "Size of the log.", **common)
        self._smallest: dict[str, float] = {}

    def decided(self, model: str, answer: RankAnswer, seconds: float) -> None:
        """Count decisions."""
        self.rank.observe(seconds)
        for made in answer.decisions:
            self.decisions.labels(model, made.by).inc()
            if made.propensity is not None and made.propensity < self._smallest.get(model, 2.0):
                self._smallest[model] = made.propensity
                self.propensity_min.labels(model).set(made.propensity)

    def smallest(self, model: str) -> float | None:
        """Return the smallest propensity of a model so far, None if none is known."""
        return self._smallest.get(model)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)
