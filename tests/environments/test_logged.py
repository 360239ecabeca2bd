"""Logs as a problem: which contexts are made of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from albatross import policies, simulate
from albatross.datasets import Log
from albatross.environments import Logged

N, K, D, Q = 40, 3, 2, 4


def a_log(*, features=None, action_features=None) -> Log:
    rng = np.random.default_rng(0)
    features = 5.0 + 3.0 * rng.standard_normal((N, D)) if features is None else features
    actions = rng.integers(K, size=N)
    names = tuple(f"x{j}" for j in range(features.shape[1]))
    return Log(
        actions, rng.random(N), np.full(N, 1 / K), features, K, names, tuple("abc"), action_features=action_features
    )


def of_actions():
    return np.random.default_rng(1).standard_normal((K, Q)) * 7.0 - 2.0


def standard(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)


def arrays(**other):
    given = {
        "contexts": np.ones((3, 2, 1)),
        "actions": [0, 1, 1],
        "rewards": [1, 0, 2],
        "propensities": [0.5, 0.5, 1.0],
    }
    return {**given, **other}


def test_products_are_the_actions_features_and_each_times_each_of_the_round():
    log = a_log(action_features=of_actions())
    env = Logged.from_log(log, "products")
    assert (env.length, env.n_arms, env.dim) == (N, K, Q * (D + 1))
    x, a = standard(log.features)[7], standard(of_actions())[2]
    wanted = [factor * one for factor in a for one in (1.0, *x)]
    np.testing.assert_allclose(env.contexts[[7]][0, 2], wanted, rtol=1e-12)


def test_actions_alone_have_the_same_contexts_in_every_round():
    env = Logged.from_log(a_log(action_features=of_actions()), "actions")
    assert env.dim == Q
    np.testing.assert_allclose(env.contexts[[3, 30]], [standard(of_actions())] * 2, rtol=1e-12)


def test_disjoint_arms_have_the_rounds_features_in_a_block_of_their_own():
    log = a_log()
    env = Logged.from_log(log, "disjoint")
    assert env.dim == K * D
    wanted = np.zeros((K, K, D))
    wanted[np.arange(K), np.arange(K)] = standard(log.features)[11]
    np.testing.assert_allclose(env.contexts[[11]][0], wanted.reshape(K, K * D), rtol=1e-12)


def test_without_any_features_only_biases_tell_the_arms_apart():
    env = Logged.from_log(a_log(features=np.empty((N, 0))))
    assert env.contexts[[0, 1]].tolist() == [[[1.0]] * K] * 2


@pytest.mark.parametrize(
    ("action_features", "features", "dim"),
    [(of_actions(), None, Q * (D + 1)), (of_actions(), np.empty((N, 0)), Q), (None, None, K * D)],
    ids=["both", "actions only", "rounds only"],
)
def test_all_features_that_a_log_has_are_used_by_default(action_features, features, dim):
    assert Logged.from_log(a_log(features=features, action_features=action_features)).dim == dim


@pytest.mark.parametrize("arms", ["products", "actions", "disjoint", "biases"])
def test_the_context_of_an_action_is_its_row_among_all(arms):
    env = Logged.from_log(a_log(action_features=of_actions()), arms)
    rows, chosen = np.array([5, 0, 39, 5]), np.array([2, 0, 1, 1])
    np.testing.assert_array_equal(env.contexts[rows, chosen], env.contexts[rows][np.arange(4), chosen])
    assert env.contexts[rows].flags.c_contiguous


def test_rewards_have_no_part_in_the_contexts():
    log = a_log(action_features=of_actions())
    other = log._replace(rewards=log.rewards[::-1] * 100)
    one, two = (Logged.from_log(each).contexts[[4]] for each in (log, other))
    np.testing.assert_array_equal(one, two)


def test_features_that_never_vary_are_dropped_and_counted():
    features = np.column_stack([np.full(N, 3.0), np.arange(N), np.zeros(N)])
    with pytest.warns(UserWarning, match="2 of 3 features of the rounds are constant and were dropped"):
        env = Logged.from_log(a_log(features=features))
    assert env.dim == K


def test_contexts_may_be_given_outright():
    env = Logged(**arrays())
    assert repr(env) == "Logged(3 rounds, n_arms=2, dim=1)"
    assert env.actions.dtype == np.int64
    assert env.contexts[[1], [0]].tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"contexts": np.ones((3, 2))}, r"contexts must have shape \(any, any, any\), got \(3, 2\)"),
        ({"contexts": np.ones((3, 2, 0))}, "at least one round, arm and feature"),
        ({"contexts": np.full((3, 2, 1), np.nan)}, "contexts must be finite"),
        ({"actions": [0, 1]}, r"actions must be 3 whole numbers, got shape \(2,\)"),
        ({"actions": [0.0, 1.0, 1.0]}, "actions must be 3 whole numbers"),
        ({"actions": [0, 2, 1]}, "action 2 of round 1 is unknown: there are arms 0 to 1"),
        ({"actions": [0, 1, -1]}, "action -1 of round 2"),
        ({"rewards": [0, np.inf, 1]}, "rewards must be finite"),
        ({"rewards": [0, 1]}, r"rewards must have shape \(3,\), got \(2,\)"),
        ({"propensities": [0.5, 0.0, 1.0]}, "above 0 and at most 1, but round 1 has 0"),
        ({"propensities": [0.5, 0.5, 1.1]}, "above 0 and at most 1, but round 2 has 1.1"),
        ({"propensities": [0.5, np.nan, 1.0]}, "propensities must be finite"),
        ({"eligible": [[True, True]] * 2}, r"a mask of booleans of shape \(3, 2\), got \(2, 2\) of bool"),
        ({"eligible": [[1, 1]] * 3}, r"a mask of booleans of shape \(3, 2\), got \(3, 2\) of int"),
        (
            {"eligible": [[True, True], [True, False], [True, True]]},
            r"action 1 of round 1 is not eligible: the eligible arms are \[0\]",
        ),
        (
            {"eligible": [[True, False], [True, True], [True, True]], "propensities": [0.5, 0.5, 0.5]},
            "round 0 has one eligible arm, so its propensity is 1, not 0.5",
        ),
        ({"users": ["ann", "bob"]}, "users must be 3 texts or whole numbers, one for each round, got 2"),
        ({"users": "ann"}, "users must be 3 texts or whole numbers, not 'ann'"),
        ({"users": ["ann", None, "bob"]}, "the user of round 1 must be a text or a whole number, not None"),
        ({"names": ["red"]}, "names must be 2 different names, one for each arm"),
        ({"names": ["red", "red"]}, "names must be 2 different names, one for each arm"),
        ({"names": "rb"}, "names must be 2 texts or whole numbers, not 'rb'"),
    ],
)
def test_arrays_that_are_no_log_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Logged(**arrays(**given))


def test_by_default_every_arm_is_eligible_numbered_and_for_nobody_in_particular():
    env = Logged(**arrays())
    assert env.eligible.shape == (3, 2)
    assert env.eligible.all()
    assert (env.users, env.n_users, env.names) == (None, 1, ("0", "1"))


def test_users_are_numbered_in_the_order_in_which_they_come():
    env = Logged(**arrays(users=["bob", 7, "bob"], names=["red", 3]))
    assert (env.users.tolist(), env.n_users, env.names) == ([0, 1, 0], 2, ("red", "3"))
    assert repr(env) == "Logged(3 rounds, n_arms=2, dim=1, n_users=2)"
    assert Logged(**arrays(users=np.array([5, 5, 2]))).users.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("log", "arms", "message"),
    [
        (a_log(), "products", "arms='products' needs features of the actions that vary, this log has none"),
        (a_log(), "actions", "arms='actions' needs features of the actions"),
        (a_log(features=np.empty((N, 0))), "disjoint", "arms='disjoint' needs features of the rounds"),
        (a_log(), "linear", "arms must be one of 'products', 'actions', 'disjoint', 'biases', not 'linear'"),
    ],
    ids=["products", "actions", "disjoint", "unknown"],
)
def test_contexts_that_the_log_cannot_make_are_refused(log, arms, message):
    with pytest.raises(ValueError, match=message):
        Logged.from_log(log, arms)


def test_a_log_is_not_simulated():
    with pytest.raises(TypeError, match="cannot be simulated: use"):
        simulate(policies.Greedy(), Logged(**arrays()), horizon=2)
