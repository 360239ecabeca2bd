"""The tridiagonal form is the same matrix in another basis, and its shifts say what dense solves say."""

from __future__ import annotations

import numpy as np
import pytest

from albatross.linalg.tridiagonal import shifted, tridiagonal


def scatter(dim, rank, seed):
    """A matrix of this rank without negative eigenvalues, and a vector."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((rank, dim)) * 10.0 ** rng.uniform(-2, 2, (rank, 1))
    return rows.T @ rows, rng.standard_normal(dim)


PROBLEMS = pytest.mark.parametrize(
    ("dim", "rank"), [(1, 1), (2, 2), (2, 0), (3, 1), (5, 5), (8, 3), (20, 20), (30, 4), (50, 80)]
)


@PROBLEMS
def test_eigenvalues_and_lengths_stay_what_they_are(dim, rank):
    matrix, vector = scatter(dim, rank, seed=dim)
    diagonal, off, turned = tridiagonal(matrix, vector)
    T = np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
    size = max(np.linalg.norm(matrix, 2), 1e-300)
    np.testing.assert_allclose(np.linalg.eigvalsh(T), np.linalg.eigvalsh(matrix), atol=1e-13 * size)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(vector), rel=1e-13)
    assert turned @ T @ turned == pytest.approx(vector @ matrix @ vector, rel=1e-10, abs=1e-300)
    assert off[-1] == 0.0


@PROBLEMS
@pytest.mark.parametrize("shift", [1e-3, 1.0, 1e3])
def test_every_shift_is_a_dense_solve(dim, rank, shift):
    matrix, vector = scatter(dim, rank, seed=dim + 100)
    quad, log_det = shifted(*tridiagonal(matrix, vector), shift)
    dense = matrix + shift * np.eye(dim)
    rounding = 1e-10 + 2.0**-48 * np.trace(matrix) / shift  # of the trace, as the shift sees it
    assert quad == pytest.approx(vector @ np.linalg.solve(dense, vector), rel=rounding)
    assert log_det == pytest.approx(np.linalg.slogdet(dense / shift)[1], abs=dim * rounding)


def test_the_matrix_and_the_vector_are_left_alone():
    matrix, vector = scatter(6, 6, seed=0)
    before = matrix.copy(), vector.copy()
    tridiagonal(matrix, vector)
    assert np.array_equal(matrix, before[0])
    assert np.array_equal(vector, before[1])


def test_rounding_cannot_make_a_shifted_matrix_indefinite():
    matrix, vector = scatter(10, 2, seed=1)
    quad, log_det = shifted(*tridiagonal(matrix * 1e12, vector), 1e-9)
    assert 0.0 < quad <= vector @ vector / 1e-9 * (1 + 1e-9)
    assert np.isfinite(log_det)
    assert log_det > 0.0


@pytest.mark.parametrize("tiny", [1e-130, 1e-156, 1e-200, 1e-310])
def test_entries_whose_squares_underflow_spoil_nothing(tiny):
    matrix = np.diag([1.0, 2.0, 3.0]) + tiny * (np.ones((3, 3)) - np.eye(3))
    quad, log_det = shifted(*tridiagonal(matrix, np.ones(3)), 1.0)
    assert quad == pytest.approx(1 / 2 + 1 / 3 + 1 / 4)
    assert log_det == pytest.approx(np.log(24.0))
