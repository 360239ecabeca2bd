"""What users take in memory, and how it is bounded."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest
from serving_tests import Served

from albatross.service.wire import RankRequest, RewardItem


async def visit(served, user, *, reward):
    """Decide for a user, and reward that or leave it open."""
    answer = await served.engine.rank("news", RankRequest(user=user), b"")
    if reward:
        text = answer.split(b'"id":"')[1].split(b'"')[0].decode()
        await served.engine.reward("news", RewardItem(id=text, value=1.0))


def visits(served, users, *, reward):
    """Let users come, some at once."""

    async def all_of_them():
        for start in range(0, len(users), 50):
            await asyncio.gather(*(visit(served, user, reward=reward) for user in users[start : start + 50]))

    served.run(all_of_them())
    served.engine.models["news"].recent.clear()  # has a bound of its own
    gc.collect()


@pytest.mark.parametrize("policy", ["flock", "ucb"])
@pytest.mark.parametrize("reward", [True, False])
def test_what_users_take_is_counted(served, policy, reward):
    served.model(policy=policy)
    visits(served, [f"early {n}" for n in range(200)], reward=reward)
    tracemalloc.start()
    try:
        model = served.engine.models["news"]
        counted = model.nbytes
        visits(served, [f"user {n}" for n in range(1_000)], reward=reward)
        taken, counted = tracemalloc.get_traced_memory()[0], model.nbytes - counted
    finally:
        tracemalloc.stop()
    assert 0.7 < counted / taken < 1.4, (counted, taken)


def test_open_decisions_count_against_the_memory_and_room_comes_back(tmp_path):
    served = Served(tmp_path, memory=2**20)
    served.model(policy="ucb")
    model = served.engine.models["news"]
    for turn in range(4):
        visits(served, [f"user {n}" for n in range(400)], reward=False)
        assert model.nbytes < 1.2 * 2**20, turn
    assert 0 < model.bandits.n_users < 400
    fewest = model.most_users
    served.sweep(2 * 3_600)  # they all expire
    visits(served, [f"other {n}" for n in range(2 * fewest)], reward=True)
    assert model.bandits.n_users > fewest
    served.close()
