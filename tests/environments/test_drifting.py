"""Drifting: how theta* changes, whatever the size of the chunks."""

from __future__ import annotations

import numpy as np
import pytest

from albatross.environments import Drifting
from albatross.protocol import Rounds, begin, describe, draw

K, D = 3, 4


def played(env, sizes, seed=0):
    """Means and contexts of chunks of these sizes, and the truth after each."""
    rng = np.random.Generator(np.random.SFC64(seed))
    instance, chunks, thetas = begin(env, rng), [], [describe(begin(env, np.random.Generator(np.random.SFC64(seed))))]
    for n in sizes:
        table = (n, env.n_arms)
        chunk = Rounds(np.empty((*table, env.dim)), np.ones(table, bool), np.empty(table), np.empty(table))
        draw(instance, chunk, rng)
        chunks.append(chunk)
        thetas.append(describe(instance))
    return chunks, thetas


def thetas_of(env, n, sizes=None):
    """(n, d) theta_t, from the means, where there are no biases and at least d arms."""
    chunks, _ = played(env, sizes or [n])
    contexts, means = (np.concatenate([getattr(each, name) for each in chunks]) for name in ("contexts", "means"))
    return np.array([np.linalg.lstsq(x, y, rcond=None)[0] for x, y in zip(contexts, means, strict=True)])


def test_redrawn_stays_between_changes_and_has_its_norm():
    thetas = thetas_of(Drifting(n_arms=6, dim=D, drift="redrawn", rounds=10, theta_norm=2.0), 30)
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), 2.0)
    steps = np.linalg.norm(np.diff(thetas, axis=0), axis=1)
    assert np.flatnonzero(steps > 1e-9).tolist() == [9, 19]


def test_a_turn_comes_back_after_its_rounds():
    thetas = thetas_of(Drifting(n_arms=6, dim=D, drift="turn", rounds=40), 41)
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), 1.0)
    np.testing.assert_allclose(thetas[40], thetas[0], atol=1e-9)
    np.testing.assert_allclose(thetas[20], -thetas[0], atol=1e-9)
    np.testing.assert_allclose(np.sum(thetas[1:] * thetas[:-1], axis=1), np.cos(2 * np.pi / 40))


def test_a_walk_forgets_in_its_rounds_and_keeps_its_size():
    thetas = thetas_of(Drifting(n_arms=6, dim=D, drift="walk", rounds=20), 20_000)
    assert np.mean(np.sum(thetas**2, axis=1)) == pytest.approx(1.0, rel=0.15)
    assert np.mean(np.sum(thetas[20:] * thetas[:-20], axis=1)) == pytest.approx(np.exp(-1), abs=0.12)


@pytest.mark.parametrize("drift", ["redrawn", "turn", "walk"])
def test_the_path_does_not_depend_on_the_size_of_chunks(drift):
    env = Drifting(n_arms=6, dim=D, drift=drift, rounds=7)
    np.testing.assert_allclose(thetas_of(env, 30, [30]), thetas_of(env, 30, [4, 11, 15]), atol=1e-9)


def test_biases_are_redrawn_too():
    env = Drifting(n_arms=K, dim=D, drift="redrawn", rounds=10, biases=True)
    chunks, truths = played(env, [10, 10])
    for chunk, truth in zip(chunks, truths[1:], strict=True):
        np.testing.assert_allclose(chunk.means, chunk.contexts @ truth["theta"] + truth["biases"])
    assert (truths[1]["biases"] != truths[2]["biases"]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"drift": "fast"}, "drift must be one of"), ({"drift": "turn", "dim": 1}, "dim must be a whole number >= 2")],
)
def test_what_cannot_drift_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Drifting(**{"n_arms": K, "dim": D, "rounds": 5, **given})
