"""Rated rows as arms: what the three modes draw, and what they report."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from albatross import Agent, datasets, policies, simulate
from albatross.environments import Clusters
from albatross.protocol import Rounds, begin, describe, draw

RANKING = datasets.generate_ranking(2_000, 12, seed=1)


def clusters(**changed):
    given = {"n_arms": 20, "columns": 8, "seed": 3, **changed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small clusters are merged
        return Clusters.from_rows(RANKING.features, RANKING.ratings, **given)


def rounds(env, n, seed=0):
    table = (n, env.n_arms)
    chunk = Rounds(np.empty((*table, env.dim)), np.ones(table, bool), np.empty(table), np.empty(table))
    rng = np.random.default_rng(seed)
    draw(begin(env, rng), chunk, rng)
    return chunk


def test_contexts_are_centred_within_their_arm_and_white_over_arms_of_equal_weight():
    env = clusters()
    parts = np.split(env.contexts, env.starts[1:-1])
    for part in parts:
        assert np.abs(part.mean(axis=0)).max() < 1e-10
    pooled = np.mean([part.T @ part / len(part) for part in parts], axis=0)
    assert pooled == pytest.approx(np.eye(env.dim), abs=1e-9)


def test_what_is_true_is_the_joint_least_squares_fit_on_all_rows():
    env = clusters()
    arms = np.repeat(np.arange(env.n_arms), env.sizes)
    design = np.column_stack([np.eye(env.n_arms)[arms], env.contexts])
    ratings = env.means + env.residuals
    fit = np.linalg.lstsq(design, ratings, rcond=None)[0]
    assert fit[: env.n_arms] == pytest.approx(env.biases, abs=1e-9)
    assert fit[env.n_arms :] == pytest.approx(env.theta, abs=1e-9)
    assert sorted(ratings) == pytest.approx(sorted(RANKING.ratings))
    assert env.sigma == pytest.approx(np.std(ratings - design @ fit))


def test_rounds_show_rows_of_the_arm_with_their_mean_and_a_residual_of_the_arm():
    env = clusters()
    chunk = rounds(env, 3_000)
    linear = env.biases + chunk.contexts @ env.theta
    assert chunk.means == pytest.approx(linear, abs=1e-9)
    for arm in (0, env.n_arms - 1):
        own = env.residuals[env.starts[arm] : env.starts[arm + 1]]
        assert np.isin(chunk.noise[:, arm], own).all()
        assert chunk.noise[:, arm].std() == pytest.approx(own.std(), rel=0.1)
    assert abs(np.corrcoef(chunk.noise[:, 0], chunk.means[:, 0])[0, 1]) < 0.1  # fresh noise, whatever the row


def test_with_ratings_as_rewards_a_row_always_brings_the_same():
    env = clusters(rewards="rating")
    chunk = rounds(env, 500)
    assert not chunk.noise.any()
    assert np.isin(chunk.means, RANKING.ratings).all()
    assert not env.report()["well_posed"]


def test_a_centroid_never_changes():
    env = clusters(contexts="centroid")
    chunk = rounds(env, 200)
    assert np.ptp(chunk.contexts, axis=0).max() < 1e-12
    assert np.ptp(chunk.means, axis=0).max() < 1e-12
    assert np.isin(np.round(chunk.means + chunk.noise, 6), RANKING.ratings).all()
    assert env.mode == "centroid"


def test_the_same_seed_draws_the_same_columns_and_clusters():
    one, same, other = clusters(), clusters(), clusters(seed=4)
    assert np.array_equal(one.contexts, same.contexts)
    assert one.contexts.shape != other.contexts.shape or not np.array_equal(one.contexts, other.contexts)


def test_arms_are_in_order_of_their_size_and_small_ones_are_merged_with_a_warning():
    with pytest.warns(UserWarning, match="were merged"):
        env = Clusters.from_rows(RANKING.features, RANKING.ratings, n_arms=300, seed=0)
    assert env.sizes.min() >= 5
    assert (np.diff(env.sizes) <= 0).all()
    assert env.sizes.sum() == 2_000
    assert env.n_arms < 300


def test_constant_columns_are_left_out_with_a_word():
    features = np.column_stack([RANKING.features, np.full(2_000, 3.0), np.zeros(2_000)])
    with pytest.warns(UserWarning, match="2 of 14 columns are constant"):
        env = Clusters.from_rows(features, RANKING.ratings, n_arms=10, min_rows=1)
    assert env.dim <= 12


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"n_arms": 1}, "n_arms"),
        ({"n_arms": 3_000}, "n_arms=3000"),
        ({"n_arms": 19, "rows": 20}, "n_arms=19"),
        ({"columns": 13}, "columns=13"),
        ({"rows": 3_000}, "rows=3000"),
        ({"rows": 10}, "10 rows are too few for n_arms="),
        ({"contexts": "mean"}, "contexts"),
        ({"rewards": "clicks"}, "rewards"),
        ({"min_rows": 0}, "min_rows"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_made_into_clusters_is_refused_by_name(changed, named):
    with pytest.raises(ValueError, match=named):
        clusters(**changed)


def test_ratings_that_are_not_finite_and_features_that_never_vary_are_refused():
    with pytest.raises(ValueError, match="ratings"):
        Clusters.from_rows(RANKING.features, np.full(2_000, np.nan), n_arms=5)
    with pytest.raises(ValueError, match="constant"):
        Clusters.from_rows(np.ones((50, 3)), np.arange(50.0), n_arms=5)


def test_it_is_played_like_any_environment_and_its_truth_is_known():
    env = clusters()
    runs = simulate(
        {"lints": policies.LinTS(sigma=env.sigma), "uniform": policies.Uniform()}, env, horizon=2_000, trials=2
    )
    assert runs["lints"].reward[:, -1].mean() > 1.2 * runs["uniform"].reward[:, -1].mean()
    assert np.array_equal(runs["lints"].diagnostics[0]["truth"]["theta"], env.theta)
    assert describe(begin(env, np.random.default_rng(0)))["biases"] is env.biases
    assert Agent(policies.LinTS(), n_arms=env.n_arms, dim=env.dim).select(env.contexts[: env.n_arms]).arm >= 0
    assert "20 arms" in repr(clusters(min_rows=1))
