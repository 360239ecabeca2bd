"""Random numbers that are a function of a user and a decision."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from albatross.crowd.users import user_keys
from albatross.noise import fill_by_user, fill_orders

SECRET = np.array([3, 5], np.uint64)
KEYS = user_keys(range(2_000), b"key")


def drawn(users, decisions, size):
    out, counts = np.empty((len(users), size)), np.full(len(KEYS), decisions, np.int32)
    fill_by_user(out, KEYS, SECRET, np.array(users), counts)
    assert (counts == decisions).all()
    return out


def test_numbers_are_standard_normal_and_independent():
    first, second = drawn(range(2_000), 0, 20), drawn(range(2_000), 1, 20)
    assert stats.kstest(first.ravel(), "norm").pvalue > 0.01
    assert stats.kstest(first[:, 0], "norm").pvalue > 0.01
    correlation = np.corrcoef(np.column_stack([first, second]), rowvar=False) - np.eye(40)
    assert np.abs(correlation).max() < 5.0 / np.sqrt(2_000)
    assert abs(np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1]) < 4.0 / np.sqrt(2_000)


def test_numbers_of_a_decision_depend_on_nothing_else():
    batch = drawn([4, 9, 4, 4], 7, 6)
    np.testing.assert_array_equal(drawn([4], 7, 300)[0, :6], batch[0])
    np.testing.assert_array_equal(drawn([4], 8, 6)[0], batch[2])
    np.testing.assert_array_equal(drawn([4], 9, 6)[0], batch[3])
    np.testing.assert_array_equal(drawn([9], 7, 3)[0], batch[1, :3])


@pytest.mark.parametrize("place", [0, 1])
def test_every_order_is_equally_likely(place):
    orders = np.empty((2_000, 4), np.int64)
    fill_orders(orders, KEYS, place)
    counts = [int((orders == order).all(axis=1).sum()) for order in permutations(range(4))]
    assert sum(counts) == 2_000
    assert stats.chisquare(counts).pvalue > 0.001


def test_names_that_look_alike_have_different_keys():
    keys = user_keys(["1", 1, "a", "b", "ü", 10**30, -1], b"key")
    assert len({tuple(key) for key in keys.tolist()}) == 7
    assert (user_keys(["a"], b"other") != user_keys(["a"], b"key")).any()
