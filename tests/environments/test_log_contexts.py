"""Contexts of a log that are made for the requested rounds only equal those that are made all at once."""

from __future__ import annotations

import numpy as np
import pytest

from albatross.environments import Logged
from albatross.environments.log_contexts import Encoded, Offers
from albatross.features import Category, Features, Number

N, K, D = 7, 5, 3
RNG = np.random.default_rng(0)


def some_offers():
    """Offers, and the same as a table with zeros for what is not offered."""
    mask = RNG.random((N, K)) < 0.5
    mask[:, 2] = True
    table = np.where(mask[:, :, None], RNG.standard_normal((N, K, D)), 0.0)
    return Offers(contexts=table[mask], places=np.flatnonzero(mask), length=N, n_arms=K), table, mask


@pytest.mark.parametrize("rows", [np.arange(N), np.array([6, 0, 3, 3]), np.array([2]), np.empty(0, int)])
def test_offers_are_a_table_with_zeros_where_nothing_is_offered(rows):
    offers, table, mask = some_offers()
    assert offers.shape == table.shape
    np.testing.assert_array_equal(offers.eligible, mask)
    np.testing.assert_array_equal(offers[rows], table[rows])
    arms = np.full(len(rows), 2)
    np.testing.assert_array_equal(offers[rows, arms], table[rows, arms])
    assert offers[rows].flags.c_contiguous


def test_some_rounds_of_offers_are_offers():
    offers, table, mask = some_offers()
    rows = np.array([5, 1, 2])
    part = offers.rows(rows)
    np.testing.assert_array_equal(part[np.arange(3)], table[rows])
    np.testing.assert_array_equal(part.eligible, mask[rows])


def test_what_is_not_offered_is_not_eligible():
    offers, _, mask = some_offers()
    log = Logged(contexts=offers, actions=[2] * N, rewards=[0.0] * N, propensities=1.0 / mask.sum(axis=1))
    np.testing.assert_array_equal(log.eligible, mask)


def test_encoded_rounds_equal_what_the_schema_encodes():
    features = Features(
        {
            "topic": Category(values=["a", "b"]),
            "hour": Number(mean=12.0, sd=6.0, of="situation"),
            "age": Number(sd=2.0),
        },
        products=[("topic", "hour"), ("age", "age"), ("hour", "hour")],
    )
    arms = [{"topic": "a", "age": 1.0}, {"topic": "b", "age": -3.0}, {"topic": None, "age": 0.5}]
    situations = [{"hour": hour} for hour in (3.0, 12.0, 24.0)]
    single = Features(features.schema)
    encoded = Encoded(
        of_actions=single.encode({}, arms),
        of_rounds=single.encode_rows(situations, [{}] * 3),
        left=np.array([0, 1, 3, 2]),
        right=np.array([2, 2, 3, 2]),
    )
    wanted = np.array([features.encode(situation, arms) for situation in situations])
    np.testing.assert_array_equal(encoded[[2, 0]], wanted[[2, 0]])
    np.testing.assert_array_equal(encoded[[2, 0], [1, 2]], wanted[[2, 0], [1, 2]])
    np.testing.assert_array_equal(encoded.rows(np.array([1, 2]))[[1]], wanted[[2]])
