"""What is given from outside is checked once, at the border, and refused with a ValueError that names it."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from variants import DIM, N_ARMS, ON_THE_BALL, VARIANTS

from albatross import Agent, Fleet, checks, environments, policies, simulate
from albatross.protocol import init, resolve

HIDDEN = np.ma.masked_array(np.ones((2, 3)), mask=[[False, True, False], [False, False, False]])
HUGE = 10**400

ODD_VALUES = [
    *(HUGE, -HUGE, 10**5_000, 2**60, 1e155, np.float64(1e154), 1e300, 1e-155, 1e-320, -0.0, -1, 0, 1),
    *(float("nan"), float("inf"), -float("inf"), 3 + 4j, True, None, "", "x", "random", b"", object()),
    *([], (), {}, {1: 2}, [HUGE], (1, HUGE), [float("nan")], [[1]], np.array([1.0, 2.0]), np.array([]), np.ma.masked),
]


@pytest.mark.parametrize("name", VARIANTS)
def test_whatever_a_parameter_is_the_policy_is_built_or_a_value_error_says_why_not(name):
    policy = VARIANTS[name]
    n_arms = 1 if name in ON_THE_BALL else N_ARMS
    for field in dataclasses.fields(policy):
        for value in ODD_VALUES:
            with contextlib.suppress(ValueError):
                parameters = resolve(dataclasses.replace(policy, **{field.name: value}), n_arms, DIM, 1_000)
                init(parameters, n_arms, DIM, np.random.default_rng(0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: policies.OFUL(sigma=HUGE),
        lambda: policies.NAOFUL(sigma=1e155),
        lambda: policies.ALBNorm(epoch_length=HUGE),
        lambda: policies.UCB(scale=1e-320),
        lambda: simulate(policies.Greedy(), environments.Mixture(n_arms=2, dim=1), horizon=HUGE),
        lambda: simulate(policies.Greedy(), environments.Mixture(n_arms=2, dim=1), horizon=5, trials=HUGE),
        lambda: Agent(policies.Greedy(), n_arms=HUGE, dim=1),
        lambda: environments.Mixture(n_arms=2, dim=1, theta_norm=HUGE),
        lambda: Agent(policies.Uniform(), n_arms=2, dim=1).select([[1.0], [HUGE]]),
    ],
)
def test_numbers_beyond_what_floats_hold_are_value_errors(call):
    with pytest.raises(ValueError, match="must be"):
        call()


def test_a_seed_may_be_as_large_as_one_likes():
    env = environments.Mixture(n_arms=2, dim=1)
    assert simulate(policies.Uniform(), env, horizon=5, seed=HUGE).regret.shape == (1, 5)


def test_a_long_value_is_shortened_in_messages():
    assert checks.shown("x" * 1_000) == "'" + "x" * 100 + "...'"
    assert checks.shown([0.5] * 1_000) == "[" + "0.5, " * 19 + "0.5," + "..."
    assert checks.shown(10**5_000) == "an integer of about 4983 digits"
    assert checks.shown([10**5_000]) == "a list with a huge integer"


def test_masked_arrays_are_refused_where_something_is_hidden():
    agent = Agent(policies.Uniform(), n_arms=2, dim=3)
    fleet = Fleet(policies.Uniform(), n_users=1, n_arms=2, dim=3)
    for call in (
        lambda: agent.select(HIDDEN),
        lambda: agent.select([HIDDEN[0], HIDDEN[1]]),
        lambda: agent.select(np.ones((2, 3)), eligible=np.ma.masked_array([True, True], mask=[True, False])),
        lambda: agent.warm_start(HIDDEN, [0, 1], [1.0, 1.0]),
        lambda: agent.warm_start(np.ones((2, 3)), [0, 1], np.ma.masked_array([1.0, 2.0], mask=[False, True])),
        lambda: fleet.select([0], HIDDEN[None]),
        lambda: fleet.select([0], [[HIDDEN[0], HIDDEN[1]]]),
        lambda: environments.Logged(contexts=HIDDEN[None], actions=[0], rewards=[1.0], propensities=[1.0]),
    ):
        with pytest.raises(ValueError, match="masked"):
            call()
    assert agent.diagnostics()["decisions"] == 0


def test_a_masked_array_that_hides_nothing_is_an_array():
    agent = Agent(policies.Uniform(), n_arms=2, dim=3)
    agent.select(np.ma.masked_array(np.ones((2, 3))))
    assert agent.diagnostics()["decisions"] == 1
