"""A Ctrl-C, at whatever moment, is a KeyboardInterrupt and leaves agents and fleets consistent."""

from __future__ import annotations

import gc
import itertools
import signal
import time

import numpy as np
import pytest

from albatross import Agent, Fleet, Flock, policies

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that send signals here")

INTERRUPTS, USERS, ARMS = 2_000, 50, 4


@pytest.fixture
def interrupted_often():
    """Repeat a function that is interrupted at random moments; every interrupt must be a KeyboardInterrupt."""
    rng = np.random.default_rng(0)
    gc.disable()  # a callback of the garbage collector, such as hypothesis has, would swallow an interrupt
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def play_on(play):
        end = time.monotonic() + 60.0
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 3e-4))
        while time.monotonic() < end:
            play()

    def repeat(play):
        for _ in range(INTERRUPTS):
            with pytest.raises(KeyboardInterrupt):
                play_on(play)

    yield repeat
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)
    gc.enable()


def test_an_agent_loses_and_repeats_nothing(interrupted_often):
    agent, contexts = Agent(policies.LinTS(), n_arms=ARMS, dim=3, seed=0), np.ones((ARMS, 3))
    agent.update(agent.select(contexts), 1.0)  # compiled
    interrupted_often(lambda: agent.update(agent.select(contexts), 1.0))
    found = agent.diagnostics()
    assert found["decisions"] == found["pulls"].sum() + found["pending"]
    pending = np.bincount([kept[0] for kept in agent._pending.kept.values()], minlength=ARMS)
    np.testing.assert_array_equal(agent._pending.of_arm, pending)


def test_a_fleet_loses_and_repeats_nothing(interrupted_often):
    fleet, users = Fleet(policies.UCB(), n_users=USERS, n_arms=ARMS, dim=3, seed=0), np.arange(USERS)
    contexts, rewards = np.ones((USERS, ARMS, 3)), np.ones(USERS)
    fleet.update(fleet.select(users, contexts), rewards)  # compiled
    interrupted_often(lambda: fleet.update(fleet.select(users, contexts), rewards))
    pulls = np.array([fleet.diagnostics(user)["pulls"].sum() for user in users])
    np.testing.assert_array_equal(fleet._crowd.rows.decisions, pulls + fleet._crowd.rows.pending.sum(axis=1))


def test_arms_come_and_go_whole_or_not_at_all(interrupted_often):
    agent = Agent(policies.LinUCB(), arms=["first", "second"], dim=3, seed=0)

    numbers = itertools.count()

    def come_and_go():
        if agent.n_arms > ARMS:
            agent.retire_arm(agent.arms[0])
        else:
            agent.add_arm(next(numbers))
        agent.reset_arm(agent.arms[-1])

    interrupted_often(come_and_go)
    arms = agent._arms
    np.testing.assert_array_equal(arms.active, list(arms._slots.values()))
    assert sorted([*arms._slots.values(), *arms._retired]) == list(range(arms.n_slots))
    assert agent._state.pulls.size == agent._pending.of_arm.size >= arms.n_slots
    for name in agent.arms:
        decision = agent.select(np.ones((agent.n_arms, 3)), eligible=[name])
        assert decision.arm == name
        agent.update(decision, 1.0)


def chain(after, first):
    """The rows of a table that are chained through another column."""
    found = []
    while first >= 0:
        found.append(int(first))
        first = after[first]
    return found


def test_a_flock_keeps_all_its_users_and_arms_in_order(interrupted_often):
    """Users come and go as bytes, arms come and go, the population is learnt: every row is somebody's, or spare."""
    flock, rng = Flock(users=[], arms=["first", "second"], dim=2, seed=0), np.random.default_rng(1)

    def play():
        users, verb = [f"user {number}" for number in rng.integers(9, size=5)], rng.integers(9)
        if verb < 6:
            choices = flock.select(users, rng.standard_normal((5, flock.n_arms, 2)))
            flock.update(choices, rng.standard_normal(5))
        elif verb == 6 and users[0] in flock:
            flock.put(users[0], flock.release(users[:1], pending=True)[0])
        elif verb == 7:
            flock.reset_arm(flock.arms[0])
        elif flock.n_arms < ARMS:
            flock.add_arm(int(rng.integers(10**9)))
        else:
            flock.retire_arm(flock.arms[0])

    for _ in range(40):
        play()  # compiled
    interrupted_often(play)
    crowd, memory = flock._crowd, flock._crowd.state.memory
    assert len(flock.shared.mean) == crowd.n_slots + 2
    assert crowd.pending.min() >= 0
    lists = [chain(memory.before, last) for last in memory.last]
    spare = chain(memory.before, memory.free[0])
    assert sorted(sum(lists, spare)) == list(range(len(memory.before)))
    assert len(spare) == memory.free[2]
    for slot in crowd.users.in_use:
        assert memory.place[slot] >= 0 or len(lists[slot]) == memory.plays[slot]
    spare = chain(memory.spare, memory.free[1])
    assert sorted(spare + memory.place[memory.place >= 0].tolist()) == list(range(len(memory.spare)))
    assert len(spare) == memory.free[3]
