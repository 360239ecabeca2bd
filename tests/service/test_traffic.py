"""Simulated readers, and what is earned from them."""

from __future__ import annotations

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from albatross.cli.commands import albatross
from albatross.client import AsyncClient
from albatross.traffic import Plan, Result, Traffic, World


def send(served, plan, stop_after=None):
    async def run():
        async with AsyncClient("http://service", served.key) as client:
            client._http = httpx.AsyncClient(**client._options, transport=httpx.ASGITransport(app=served.service))
            traffic = Traffic(client, "readers", plan)

            def report(result):
                if stop_after is not None and len(result.earned) >= stop_after:
                    traffic.stop()

            return await traffic.run(report)

    return served.run(run())


def test_the_service_earns_more_than_random_choices(served):
    plan = Plan(decisions=800, rate=2_000.0, users=20, arms=5, delay=0.01, churn=300, policy="linucb", duplicates=0.2)
    result = send(served, plan)
    assert not result.failures
    assert len(result.earned) == 800
    # Random choices earn 0, the best ones 1. Answers come in any order, so that no two runs are the same: the second
    # half earned 0.36 with a standard deviation of 0.06 in 30 of them, where random choices have one of 0.04.
    assert result.share(slice(400, None)) > 0.12
    assert result.statuses["learnt"] == 800
    assert result.statuses["duplicate"] > 80
    assert len(served.engine.models["readers"].arms) == 5
    assert len(served.engine.store.happenings(None, ("retired",))) == 2


def test_it_can_be_stopped(served):
    result = send(
        served, Plan(decisions=10**6, rate=500.0, users=5, arms=3, delay=0.001, policy="linucb"), stop_after=20
    )
    assert 20 <= len(result.earned) < 200


def test_outlet_readers_do_not_care_for_topics():
    world = World(Plan(users=100, arms=3))
    (reader,) = np.flatnonzero(world.by_outlet)[:1]
    seen = [world.offer(reader) for _ in range(200)]
    ages = np.array([articles["outlet 1"]["age"] for articles, _ in seen])
    clicks = np.array([chances["outlet 1"] for _, chances in seen])
    inside = (clicks > 0.02) & (clicks < 0.98)
    assert np.allclose((clicks + 0.01 * ages)[inside], (clicks + 0.01 * ages)[inside][0])


def test_what_is_earned_lies_between_random_and_best():
    result = Result(earned=[0.2, 0.5], random=[0.2, 0.1], best=[0.6, 0.5])
    assert result.share(slice(0, 1)) == 0.0
    assert result.share(slice(1, 2)) == 1.0
    assert result.share() == 0.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://192.0.2.1:8000", "--key", "x"], "not on this machine"),
        (["http://127.0.0.1:8000"], "--key"),
        (["http://127.0.0.1:99999", "--key", "x"], "'http://127.0.0.1:99999' is not an address: it needs a host"),
        (["http://127.0.0.1:port", "--key", "x"], "'http://127.0.0.1:port' is not an address: Invalid port: 'port'"),
        (["http://", "--key", "x"], "'http://' is not an address: it needs a host"),
        (["127.0.0.1:8000", "--key", "x"], "url must begin with http:// or https://"),
        (["http://127.0.0.1:8000", "--key", "x", "--rate", "nan"], "nan is not a number"),
    ],
)
def test_wrong_arguments_are_refused(arguments, said, monkeypatch):
    monkeypatch.delenv("ALBATROSS_KEY", raising=False)
    result = CliRunner().invoke(albatross, ["simulate-traffic", *arguments])
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit)  # not a traceback
    assert said in result.output
