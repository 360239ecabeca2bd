from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from albatross import policies, simulate
from albatross.environments import Nested
from albatross.protocol import Rounds, begin, describe, draw

DIMS = (2, 3, 6)
N = 40_000


def generator(seed):
    return np.random.Generator(np.random.SFC64(seed))


def empty_chunk(n, env):
    table = (n, env.n_arms)
    return Rounds(
        np.full((*table, env.dim), np.nan), np.ones(table, bool), np.full(table, np.nan), np.full(table, np.nan)
    )


def rounds(env, n, seed=0):
    """The truth and n rounds of one trial."""
    rng = generator(seed)
    instance, chunk = begin(env, rng), empty_chunk(n, env)
    draw(instance, chunk, rng)
    return describe(instance), chunk


def truths(env, trials, seed=0):
    rng = generator(seed)
    return [describe(begin(env, rng)) for _ in range(trials)]


# -------------------------------------------------------------------------------------------- drawn once a trial


@pytest.mark.parametrize("true_dim", DIMS)
def test_theta_is_not_zero_on_the_first_features_and_zero_on_the_others(true_dim):
    for truth in truths(Nested(n_arms=3, dims=DIMS, true_dim=true_dim, magnitude=0.4), 20):
        assert truth["dim"] == true_dim
        assert truth["theta"].shape == (6,)
        assert np.abs(truth["theta"]).tolist() == [0.4] * true_dim + [0.0] * (6 - true_dim)


def test_left_out_the_magnitude_gives_norm_one():
    for true_dim in DIMS:
        for truth in truths(Nested(n_arms=3, dims=DIMS, true_dim=true_dim), 3):
            assert np.linalg.norm(truth["theta"]) == pytest.approx(1.0, rel=1e-12)
            assert np.ptp(np.abs(truth["theta"][:true_dim])) == 0.0


def test_signs_are_drawn_anew_each_trial_and_independently():
    signs = np.sign([truth["theta"][:3] for truth in truths(Nested(n_arms=2, dims=DIMS, true_dim=3), 4_000)])
    assert np.abs(signs.mean(axis=0)).max() < 4 / np.sqrt(4_000)
    assert np.abs(np.corrcoef(signs.T) - np.eye(3)).max() < 4 / np.sqrt(4_000)


def test_a_given_theta_is_taken_and_tells_its_dimension():
    for theta, dim in (([0.5, 0, 0, 0, 0, 0], 2), ([0, 0, 1, 0, 0, 0], 3), ([0, 0, 0, 0.1, 0, 0], 6), ([0] * 6, 2)):
        truth, chunk = rounds(Nested(n_arms=2, dims=DIMS, theta=theta), 50)
        assert truth["theta"].tolist() == theta
        assert truth["dim"] == dim
        np.testing.assert_allclose(chunk.means, chunk.contexts @ np.array(theta, float), atol=1e-13)


def test_an_oracle_can_be_made_from_the_truth():
    env = Nested(n_arms=3, dims=DIMS, true_dim=2, noise_sd=0.5)
    named = {
        "oracle": lambda truth: policies.FirstFeatures(policy=policies.LinUCB(biases=False), dim=truth["dim"]),
        "told": policies.FirstFeatures(policy=policies.LinUCB(biases=False), dim=2),
        "full": policies.LinUCB(biases=False),
    }
    runs = simulate(named, env, horizon=500, trials=10)
    assert np.array_equal(runs["oracle"].regret, runs["told"].regret)
    assert runs["oracle"].regret[:, -1].mean() < 0.7 * runs["full"].regret[:, -1].mean()


# --------------------------------------------------------------------------------------------- drawn every round


def test_features_are_standard_normal():
    _, chunk = rounds(Nested(n_arms=2, dims=DIMS, true_dim=2), N)
    flat = chunk.contexts.reshape(N, 12)
    assert stats.kstest(flat.reshape(-1)[:100_000], stats.norm().cdf).pvalue > 0.01
    assert np.abs(flat.T @ flat / N - np.eye(12)).max() < 5 / np.sqrt(N)


def test_features_have_the_covariance_asked_for_independently_over_arms_and_rounds():
    rng = np.random.default_rng(3)
    root = rng.standard_normal((6, 6))
    wanted = root @ root.T
    _, chunk = rounds(Nested(n_arms=2, dims=DIMS, true_dim=2, covariance=wanted), N)
    sd = np.sqrt(np.diag(wanted))
    for arm in range(2):
        error = chunk.contexts[:, arm].T @ chunk.contexts[:, arm] / N - wanted
        assert np.abs(error / np.outer(sd, sd)).max() < 6 / np.sqrt(N)
        assert np.abs(chunk.contexts[:, arm].mean(axis=0) / sd).max() < 5 / np.sqrt(N)
    across = chunk.contexts[:, 0].T @ chunk.contexts[:, 1] / N
    later = chunk.contexts[1:, 0].T @ chunk.contexts[:-1, 0] / N
    assert max(np.abs(across / np.outer(sd, sd)).max(), np.abs(later / np.outer(sd, sd)).max()) < 5 / np.sqrt(N)


def test_a_covariance_may_be_singular():
    x = np.array([1.0, -1.0, 0.5, 0.0, 2.0, 0.0])
    _, chunk = rounds(Nested(n_arms=2, dims=DIMS, true_dim=2, covariance=np.outer(x, x)), 100)
    assert np.linalg.matrix_rank(chunk.contexts.reshape(200, 6), tol=1e-6) == 1
    assert np.isfinite(chunk.means).all()


def test_from_rows_of_features_every_arm_gets_one_of_its_own():
    table = np.arange(60.0).reshape(10, 6)
    _, chunk = rounds(Nested(n_arms=3, dims=DIMS, true_dim=2, features=table), 5_000)
    drawn = chunk.contexts[..., 0] / 6  # the number of its row
    assert np.array_equal(chunk.contexts, table[drawn.astype(int)])
    for arm in range(3):
        counts = np.bincount(drawn[:, arm].astype(int), minlength=10)
        assert stats.chisquare(counts).pvalue > 0.001
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 4 / np.sqrt(5_000)


def test_from_sets_of_features_every_round_gets_one_with_its_arms_in_order():
    table = np.random.default_rng(0).standard_normal((7, 3, 6))
    _, chunk = rounds(Nested(n_arms=3, dims=DIMS, true_dim=2, features=table), 3_000)
    which = [int(np.flatnonzero((table == X).all(axis=(1, 2)))[0]) for X in chunk.contexts]
    assert stats.chisquare(np.bincount(which, minlength=7)).pvalue > 0.001


def test_means_are_features_times_theta_and_noise_has_its_sd():
    truth, chunk = rounds(Nested(n_arms=3, dims=DIMS, true_dim=3, noise_sd=0.7), N)
    np.testing.assert_allclose(chunk.means, chunk.contexts @ truth["theta"], atol=1e-12)
    assert chunk.noise.std() == pytest.approx(0.7, rel=0.01)
    assert np.abs(np.corrcoef(chunk.noise.T) - np.eye(3)).max() < 4 / np.sqrt(N)
    assert chunk.eligible.all()
    _, silent = rounds(Nested(n_arms=3, dims=DIMS, true_dim=3, noise_sd=0.0), 10)
    assert not silent.noise.any()


def test_rounds_go_on_from_chunk_to_chunk():
    env, rng = Nested(n_arms=2, dims=DIMS, true_dim=2), generator(0)
    instance, first, second = begin(env, rng), empty_chunk(50, env), empty_chunk(50, env)
    draw(instance, first, rng)
    draw(instance, second, rng)
    assert not np.intersect1d(first.contexts, second.contexts).size


def test_what_was_given_may_change_afterwards():
    table, theta = np.ones((4, 6)), np.ones(6)
    env = Nested(n_arms=2, dims=DIMS, theta=theta, features=table)
    table[:], theta[:] = 5.0, 5.0
    assert (rounds(env, 3)[1].means == 6.0).all()


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_arms", 1),
        ("n_arms", 0),
        ("n_arms", 2.0),
        ("dims", ()),
        ("dims", (3, 2)),
        ("dims", (2, 2, 6)),
        ("dims", (0, 6)),
        ("dims", (2, 3.5)),
        ("dims", "ab"),
        ("true_dim", 4),
        ("true_dim", 0),
        ("true_dim", None),
        ("true_dim", 7),
        ("magnitude", -0.1),
        ("magnitude", np.nan),
        ("theta", [1.0, 2.0]),
        ("theta", [np.nan] * 6),
        ("noise_sd", -1.0),
        ("noise_sd", None),
        ("covariance", np.eye(5)),
        ("covariance", -np.eye(6)),
        ("covariance", np.triu(np.ones((6, 6)))),
        ("covariance", np.full((6, 6), np.inf)),
        ("features", np.zeros((4, 5))),
        ("features", np.zeros((4, 3, 6))),
        ("features", np.zeros((0, 6))),
        ("features", np.zeros(6)),
        ("features", np.full((4, 6), np.nan)),
    ],
)
def test_bad_arguments_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        Nested(**{"n_arms": 2, "dims": DIMS, "true_dim": 2, name: value})


def test_features_and_a_covariance_exclude_each_other():
    with pytest.raises(ValueError, match="covariance"):
        Nested(n_arms=2, dims=DIMS, true_dim=2, covariance=np.eye(6), features=np.ones((4, 6)))


@pytest.mark.parametrize("extra", [{"true_dim": 2}, {"magnitude": 0.5}])
def test_a_given_theta_excludes_what_a_drawn_one_would_be_like(extra):
    with pytest.raises(ValueError, match="theta is given"):
        Nested(n_arms=3, dims=(2, 6), theta=np.ones(6), **extra)
