"""The fits are compared with dense least squares in exact rational arithmetic, so that only their own error shows.

What is allowed of it is stated in `allowance`: the square-root form loses digits with sqrt(largest eigenvalue of V /
strength), not with its square, as an update of the inverse itself would.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albatross.linalg import vectors
from albatross.models import ridge

thorough = settings(deadline=None, derandomize=True, max_examples=60)

magnitudes = st.one_of(
    st.just(0.0),
    st.builds(
        lambda sign, exponent: sign * 10.0**exponent,
        st.sampled_from([-1.0, 1.0]),
        st.floats(-3.0, 3.0),
    ),
)
strengths = st.floats(-2.0, 2.0).map(lambda exponent: 10.0**exponent)


class Play(NamedTuple):
    arm: int
    x: np.ndarray  # (d,)
    reward: float  # in sum
    n: int


class History(NamedTuple):
    """Plays of a few rows over and over again, the zero row among them."""

    n_arms: int
    dim: int
    strength: float
    bias_strength: float
    plays: list[Play]
    contexts: np.ndarray  # (K, d) to ask the fit about


@st.composite
def histories(draw: st.DrawFn) -> History:
    n_arms, dim = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    row = st.lists(magnitudes, min_size=dim, max_size=dim).map(np.array)
    pool = [*draw(st.lists(row, min_size=1, max_size=4)), np.zeros(dim)]
    play = st.builds(Play, st.integers(0, n_arms - 1), st.sampled_from(pool), magnitudes, st.integers(1, 5))
    plays = draw(st.lists(play, max_size=15))
    contexts = np.stack([draw(row) for _ in range(n_arms)])
    return History(n_arms, dim, draw(strengths), draw(strengths), plays, contexts)


# ------------------------------------------------------------------------------------------ the exact reference


def exact(values: object) -> np.ndarray:
    """Floats as the rational numbers that they are."""
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, float))


def invert(matrix: np.ndarray) -> tuple[np.ndarray, Fraction]:
    """Inverse and determinant of a positive definite matrix of rationals."""
    size = len(matrix)
    work, determinant = np.hstack([matrix, exact(np.eye(size))]), Fraction(1)
    for i in range(size):
        determinant *= work[i, i]
        work[i] = work[i] / work[i, i]
        for j in range(size):
            if j != i:
                work[j] = work[j] - work[j, i] * work[i]
    return work[:, size:], determinant


def feature(history: History, play: Play, *, biases: bool) -> np.ndarray:
    return np.concatenate([np.eye(history.n_arms)[play.arm], play.x]) if biases else play.x


def dense(history: History, *, biases: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V_0's diagonal, V and sum of reward times feature, without or with the features [e_arm; x]."""
    prior = [history.bias_strength] * (history.n_arms if biases else 0) + [history.strength] * history.dim
    V, target = exact(np.diag(prior)), exact(np.zeros(len(prior)))
    for play in history.plays:
        row = exact(feature(history, play, biases=biases))
        V = V + play.n * np.outer(row, row)
        target = target + Fraction(play.reward) * row
    return np.array(prior), V, target


def allowance(history: History, prior: np.ndarray, V: np.ndarray) -> float:
    """The relative error that rounding may cause: a few units in the last place a step, times the growth of R^-1."""
    growth = math.sqrt(np.linalg.eigvalsh(V.astype(float))[-1] / prior.min())
    return 50.0 * np.finfo(float).eps * growth * (len(history.plays) + 1) * len(prior)


def reward_scale(history: History, prior: np.ndarray) -> float:
    """How large a ridge estimate from such rewards can be."""
    return max([abs(play.reward) for play in history.plays], default=0.0) / math.sqrt(prior.min())


def learnt_ridge(history: History) -> ridge.Ridge:
    fit = ridge.ridge(history.dim, strength=history.strength)
    for play in history.plays:
        ridge.learn(fit, *play)
    return fit


def learnt_joint(history: History, *, bias_strength: float) -> ridge.Joint:
    fit = ridge.joint(history.n_arms, history.dim, strength=history.strength, bias_strength=bias_strength)
    for play in history.plays:
        ridge.learn(fit, *play)
    return fit


def distance_from_identity(root: np.ndarray, V: np.ndarray) -> float:
    """|R'VR - I|, which is 0 exactly where R R' is the inverse of V, measured in units of V itself."""
    R = exact(root)
    return float(np.abs((R.T @ V @ R).astype(float) - np.eye(len(root))).max())


# ------------------------------------------------------------------------------------------------------ Ridge


@thorough
@given(histories())
def test_ridge_root_stays_a_root_of_the_inverse_under_any_updates(history):
    prior, V, _ = dense(history, biases=False)
    assert distance_from_identity(learnt_ridge(history).root, V) <= allowance(history, prior, V)


@thorough
@given(histories())
def test_ridge_theta_solves_the_normal_equations(history):
    prior, V, target = dense(history, biases=False)
    inverse, _ = invert(V)
    error = (exact(learnt_ridge(history).theta) - inverse @ target).astype(float)
    assert np.linalg.norm(error) <= allowance(history, prior, V) * reward_scale(history, prior)


@thorough
@given(histories())
def test_ridge_log_det_is_the_growth_of_the_determinant(history):
    prior, V, _ = dense(history, biases=False)
    growth = math.log(invert(V)[1]) - np.log(prior).sum()
    assert learnt_ridge(history).log_det[0] == pytest.approx(growth, abs=allowance(history, prior, V) * (1 + growth))


@thorough
@given(histories())
def test_ridge_predicts_and_measures_contexts_as_the_dense_matrix_does(history):
    prior, V, target = dense(history, biases=False)
    inverse, _ = invert(V)
    fit, X, allowed = learnt_ridge(history), history.contexts, allowance(history, prior, V)
    means = (exact(X) @ inverse @ target).astype(float)
    squares = np.diag(exact(X) @ inverse @ exact(X).T).astype(float)
    lengths = np.linalg.norm(X, axis=1)
    assert (
        np.abs(ridge.predict(fit, X, np.arange(len(X))) - means) <= allowed * reward_scale(history, prior) * lengths
    ).all()
    assert (np.abs(ridge.leverages(fit, X, np.arange(len(X))) - squares) <= allowed * squares).all()


def test_n_plays_of_a_row_at_once_are_n_updates():
    x = np.array([0.5, -2.0, 1.0])
    at_once, one_by_one = ridge.ridge(3), ridge.ridge(3)
    ridge.learn(at_once, 0, x, 6.0, 3)
    for reward in (1.0, 2.0, 3.0):
        ridge.learn(one_by_one, 0, x, reward, 1)
    np.testing.assert_allclose(at_once.root @ at_once.root.T, one_by_one.root @ one_by_one.root.T, rtol=1e-13)
    np.testing.assert_allclose(at_once.theta, one_by_one.theta, rtol=1e-13)
    np.testing.assert_allclose(at_once.log_det, one_by_one.log_det, rtol=1e-13)


def test_a_zero_row_teaches_nothing():
    fit = ridge.ridge(2)
    ridge.learn(fit, 0, np.array([3.0, 4.0]), 2.0, 1)
    before = [part.copy() for part in fit]
    ridge.learn(fit, 0, np.zeros(2), 100.0, 1)
    for part, was in zip(fit, before, strict=True):
        np.testing.assert_array_equal(part, was)


@pytest.mark.parametrize("length", [1e6, 1e9])
def test_one_huge_row_does_not_destroy_positive_definiteness(length):
    rng = np.random.default_rng(0)
    fit, V = ridge.ridge(4), exact(np.eye(4))
    rows = rng.standard_normal((40, 4))
    rows[7] *= length / np.linalg.norm(rows[7])
    for row in rows:
        ridge.learn(fit, 0, row, 1.0, 1)
        V = V + np.outer(exact(row), exact(row))
    assert np.linalg.svd(fit.root, compute_uv=False).min() == pytest.approx(1.0 / length, rel=1e-4)
    assert (ridge.leverages(fit, rows, np.arange(len(rows))) > 0).all()
    assert distance_from_identity(fit.root, V) <= 1e-14 * length  # as many digits as the row is long, no more


def test_forget_goes_back_to_nothing_learnt():
    fit = ridge.ridge(3, strength=2.0)
    for row in np.random.default_rng(1).standard_normal((5, 3)):
        ridge.learn(fit, 0, row, 1.0, 1)
    ridge.forget(fit, 4.0)
    for part, fresh in zip(fit, ridge.ridge(3, strength=4.0), strict=True):
        np.testing.assert_array_equal(part, fresh)


def test_refit_takes_the_matrix_and_solves_for_theta():
    rng = np.random.default_rng(2)
    rows, b = rng.standard_normal((9, 5)), rng.standard_normal(5)
    V = rows.T @ rows + 0.1 * np.eye(5)
    fit = ridge.ridge(5)
    ridge.learn(fit, 0, rows[0], 3.0, 1)
    ridge.refit(fit, V, b)
    np.testing.assert_allclose(fit.root @ fit.root.T, np.linalg.inv(V), rtol=1e-10)
    np.testing.assert_allclose(fit.theta, np.linalg.solve(V, b), rtol=1e-10)
    ridge.learn(fit, 0, rows[1], 1.0, 1)  # and goes on from there
    np.testing.assert_allclose(fit.root @ fit.root.T, np.linalg.inv(V + np.outer(rows[1], rows[1])), rtol=1e-10)


def test_refit_survives_a_matrix_that_rounding_made_singular():
    fit = ridge.ridge(3)
    ridge.refit(fit, np.ones((3, 3)), np.ones(3))
    assert np.isfinite(fit.root).all()
    assert np.isfinite(fit.theta).all()


# ------------------------------------------------------------------------------------------------------ Joint


def test_n_first_plays_of_an_arm_at_once_are_n_plays():
    at_once, one_by_one = ridge.joint(2, 3), ridge.joint(2, 3)
    for arm, x in ((0, np.array([0.5, -2.0, 1.0])), (1, np.array([1.0, 0.0, 1.0])), (0, np.array([2.0, 1.0, 0.0]))):
        ridge.learn(at_once, arm, x, 6.0, 3)
        for reward in (1.0, 2.0, 3.0):
            ridge.learn(one_by_one, arm, x, reward, 1)
    for part, other in zip(at_once[:3] + at_once[4:], one_by_one[:3] + one_by_one[4:], strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-12, atol=1e-14)


@thorough
@given(histories())
def test_joint_is_dense_ridge_on_arm_indicators_and_contexts(history):
    prior, V, target = dense(history, biases=True)
    solution, allowed = invert(V)[0] @ target, allowance(history, prior, V)
    fit = learnt_joint(history, bias_strength=history.bias_strength)
    found = exact(np.concatenate([ridge.bias_estimates(fit), fit.theta]))
    assert np.linalg.norm((found - solution).astype(float)) <= allowed * reward_scale(history, prior)


@thorough
@given(histories())
def test_joint_root_is_a_root_of_the_shared_block_of_the_inverse(history):
    prior, V, _ = dense(history, biases=True)
    shared = invert(V)[0][history.n_arms :, history.n_arms :]
    fit = learnt_joint(history, bias_strength=history.bias_strength)
    assert distance_from_identity(fit.root, invert(shared)[0]) <= allowance(history, prior, V)


@thorough
@given(histories())
def test_joint_log_det_is_that_of_the_joint_matrix(history):
    prior, V, _ = dense(history, biases=True)
    growth = math.log(invert(V)[1]) - np.log(prior).sum()
    found = learnt_joint(history, bias_strength=history.bias_strength).log_det[0]
    assert found == pytest.approx(growth, abs=allowance(history, prior, V) * (1 + growth))


@thorough
@given(histories())
def test_joint_predicts_and_measures_features_as_the_dense_matrix_does(history):
    prior, V, target = dense(history, biases=True)
    inverse, _ = invert(V)
    features = np.hstack([np.eye(history.n_arms), history.contexts])
    fit, allowed = learnt_joint(history, bias_strength=history.bias_strength), allowance(history, prior, V)
    means = (exact(features) @ inverse @ target).astype(float)
    squares = np.diag(exact(features) @ inverse @ exact(features).T).astype(float)
    lengths = np.linalg.norm(features, axis=1)
    predicted = ridge.predict(fit, history.contexts, np.arange(len(history.contexts)))
    assert (np.abs(predicted - means) <= allowed * reward_scale(history, prior) * lengths).all()
    assert (
        np.abs(ridge.leverages(fit, history.contexts, np.arange(len(history.contexts))) - squares) <= allowed * squares
    ).all()


@thorough
@given(histories())
def test_joint_without_prior_on_the_biases_is_least_squares_on_centred_rows(history):
    prior = np.full(history.dim, history.strength)
    scatter, target = exact(np.diag(prior)), exact(np.zeros(history.dim))
    arm_means = [(exact(np.zeros(history.dim)), Fraction(0))] * history.n_arms
    for arm in {play.arm for play in history.plays}:
        plays = [play for play in history.plays if play.arm == arm]
        count = sum(play.n for play in plays)
        mean_x = sum(play.n * exact(play.x) for play in plays) / count
        mean_reward = sum(Fraction(play.reward) for play in plays) / count
        arm_means[arm] = (mean_x, mean_reward)
        for play in plays:
            centred = exact(play.x) - mean_x
            scatter = scatter + play.n * np.outer(centred, centred)
            target = target + (Fraction(play.reward) - play.n * mean_reward) * centred
    theta = invert(scatter)[0] @ target
    biases = [mean_reward - mean_x @ theta for mean_x, mean_reward in arm_means]

    fit = learnt_joint(history, bias_strength=0.0)
    # Uncentred rows decide how much rounding there is: what centring takes away has been in the numbers before.
    _, uncentred, _ = dense(history._replace(bias_strength=history.strength), biases=True)
    allowed, scale = allowance(history, prior, uncentred), reward_scale(history, prior)
    longest = max([np.linalg.norm(play.x) for play in history.plays], default=0.0)
    assert distance_from_identity(fit.root, scatter) <= allowed
    assert np.linalg.norm((exact(fit.theta) - theta).astype(float)) <= allowed * scale
    errors = (exact(ridge.bias_estimates(fit)) - biases).astype(float)
    assert (np.abs(errors) <= allowed * scale * (1.0 + math.sqrt(history.strength) + longest)).all()
    means = (np.array(biases) + exact(history.contexts) @ theta).astype(float)
    reach = 1.0 + math.sqrt(history.strength) + longest + np.linalg.norm(history.contexts, axis=1)
    assert (
        np.abs(ridge.predict(fit, history.contexts, np.arange(len(history.contexts))) - means)
        <= allowed * scale * reach
    ).all()


# ------------------------------------------------------------------------------------------------ perturbations


def noise_matrix(fit: object, contexts: np.ndarray, scale: float, size: int) -> np.ndarray:
    """The matrix of the affine map from noise to means, column by column."""
    at_rest = ridge.perturb(fit, contexts, np.arange(len(contexts)), scale, np.zeros(size))
    return np.column_stack(
        [ridge.perturb(fit, contexts, np.arange(len(contexts)), scale, unit) - at_rest for unit in np.eye(size)]
    )


@thorough
@given(histories(), st.floats(0.1, 10.0))
def test_ridge_perturbation_has_the_covariance_of_the_posterior(history, scale):
    silent = history._replace(plays=[play._replace(reward=0.0) for play in history.plays])
    prior, V, _ = dense(history, biases=False)
    found = noise_matrix(learnt_ridge(silent), history.contexts, scale, history.dim)
    features = exact(history.contexts)
    covariance = scale**2 * (features @ invert(V)[0] @ features.T).astype(float)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(found @ found.T - covariance) <= allowance(history, prior, V) * np.outer(sd, sd)).all()


@thorough
@given(histories(), st.floats(0.1, 10.0))
def test_joint_perturbation_has_the_covariance_of_the_joint_posterior(history, scale):
    silent = history._replace(plays=[play._replace(reward=0.0) for play in history.plays])
    prior, V, _ = dense(history, biases=True)
    fit = learnt_joint(silent, bias_strength=history.bias_strength)
    found = noise_matrix(fit, history.contexts, scale, history.n_arms + history.dim)
    features = exact(np.hstack([np.eye(history.n_arms), history.contexts]))
    covariance = scale**2 * (features @ invert(V)[0] @ features.T).astype(float)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(found @ found.T - covariance) <= allowance(history, prior, V) * np.outer(sd, sd)).all()


@thorough
@given(histories())
def test_perturbation_by_no_noise_is_the_prediction(history):
    plain, both = learnt_ridge(history), learnt_joint(history, bias_strength=history.bias_strength)
    for fit, size in ((plain, history.dim), (both, history.n_arms + history.dim)):
        prior, _, _ = dense(history, biases=fit is both)
        largest = reward_scale(history, prior) * (1.0 + np.linalg.norm(history.contexts, axis=1))
        means = ridge.perturb(fit, history.contexts, np.arange(len(history.contexts)), 3.0, np.zeros(size))
        assert (
            np.abs(means - ridge.predict(fit, history.contexts, np.arange(len(history.contexts)))) <= 1e-11 * largest
        ).all()


def test_perturbation_is_affine_in_the_noise():
    fit = ridge.joint(2, 2, bias_strength=1.0)
    rng = np.random.default_rng(3)
    for t in range(6):
        ridge.learn(fit, t % 2, rng.standard_normal(2), float(rng.standard_normal()), 1)
    contexts, noise = rng.standard_normal((2, 2)), rng.standard_normal(4)
    moved = ridge.perturb(fit, contexts, np.arange(len(contexts)), 0.7, noise) - ridge.predict(
        fit, contexts, np.arange(len(contexts))
    )
    np.testing.assert_allclose(moved, noise_matrix(fit, contexts, 0.7, 4) @ noise, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------ lengths


@thorough
@given(st.lists(st.lists(magnitudes, min_size=3, max_size=3), min_size=1, max_size=6).map(np.array))
def test_lengths_of_rows_are_euclidean(rows):
    squares = [float(sum(Fraction(value) ** 2 for value in row)) for row in rows]
    np.testing.assert_allclose(vectors.row_squares(rows), squares, rtol=1e-15)
    np.testing.assert_allclose(vectors.row_norms(rows), np.sqrt(squares), rtol=1e-15)
    np.testing.assert_allclose([vectors.norm(row) for row in rows], np.sqrt(squares), rtol=1e-15)


def test_lengths_of_long_rows_are_euclidean():
    rows = np.random.default_rng(4).standard_normal((5, 1001))
    np.testing.assert_allclose(vectors.row_norms(rows), np.linalg.norm(rows, axis=1), rtol=1e-14)
    assert vectors.norm(rows[0]) == pytest.approx(np.linalg.norm(rows[0]), rel=1e-14)
