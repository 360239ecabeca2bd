"""The lasso against scikit-learn's, and least squares on a support against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from albatross.models.lasso import descend, least_squares_on


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("rows", "dim"), [(200, 20), (15, 40)])
def test_coordinate_descent_finds_the_lasso_of_scikit_learn(rows, dim, alpha):
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, dim)) * rng.uniform(0.5, 2.0, dim)
    y = X[:, :3] @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(rows)
    theta = rng.standard_normal(dim)  # it may start anywhere
    descend(X.T @ X, X.T @ y, rows * alpha, theta)
    wanted = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(X, y).coef_
    assert 0 < np.count_nonzero(wanted) < dim
    np.testing.assert_allclose(theta, wanted, rtol=0, atol=1e-6)


def test_a_penalty_beyond_the_largest_slope_leaves_nothing():
    X = np.random.default_rng(0).standard_normal((30, 4))
    y = X @ [1.0, 2.0, 0.0, -1.0]
    theta = np.ones(4)
    descend(X.T @ X, X.T @ y, 1.001 * np.abs(X.T @ y).max(), theta)
    assert not theta.any()
    descend(X.T @ X, X.T @ y, 0.999 * np.abs(X.T @ y).max(), theta)
    assert theta.any()


def test_a_feature_that_is_always_zero_keeps_its_coefficient():
    theta = np.zeros(2)
    descend(np.diag([4.0, 0.0]), np.array([2.0, 0.0]), 1.0, theta)
    assert theta.tolist() == [0.25, 0.0]


@pytest.mark.parametrize("support", [[0], [1, 3], [0, 2, 4], [0, 1, 2, 3, 4]])
def test_least_squares_on_a_support_is_the_shortest_solution(support):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 5))
    X[:, 2] = 2.0 * X[:, 0]  # so that some supports have many solutions
    y = rng.standard_normal(20)
    mask = np.isin(np.arange(5), support)
    wanted = np.zeros(5)
    wanted[mask] = np.linalg.lstsq(X[:, mask], y, rcond=None)[0]
    np.testing.assert_allclose(least_squares_on(X.T @ X, X.T @ y, mask), wanted, atol=1e-9)
