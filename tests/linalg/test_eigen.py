"""The optimistic action against its dual and brute force, and the eigenbasis against eigh."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from albatross.linalg.eigen import optimistic_action, optimistic_coordinates, rank_one_update

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "dim" / "optimistic_action.npz")


def promise(V, theta_hat, beta, x):
    """<x, theta_hat> + beta ||x||_{V^-1}, of one action or of many rows."""
    return x @ theta_hat + beta * np.sqrt(np.sum(x * np.linalg.solve(V, x.T).T, axis=-1))


def dual_bound(values, centre, beta):
    """No vector of the ellipsoid is longer: weak duality, minimised over the multiplier (1 + s) / l_min."""
    low = values.min()

    def bound(log_s):
        s = np.exp(log_s)
        over = (values - low) / low + s * values / low  # nu l - 1
        return (1.0 + s) / low * beta**2 + np.sum(centre**2 * (1.0 + over) / over)

    grid = np.linspace(-80.0, 40.0, 481)
    best = grid[np.argmin([bound(g) for g in grid])]
    found = minimize_scalar(bound, bounds=(best - 0.3, best + 0.3), method="bounded", options={"xatol": 1e-10})
    return np.sqrt(min(found.fun, bound(best)))


def check_coordinates(values, centre, beta):
    """The point lies on the ellipsoid's boundary and is as long as any."""
    found = optimistic_coordinates(values, centre, beta)
    assert np.isfinite(found).all()
    reach = np.sqrt(np.sum(values * (found - centre) ** 2))
    assert reach == pytest.approx(beta, rel=1e-9)
    assert np.linalg.norm(found) == pytest.approx(dual_bound(values, centre, beta), rel=1e-9)


def check_action(V, theta_hat, beta, seed=0):
    """The value is what the action promises, and no other action promises more."""
    rng = np.random.default_rng(seed)
    x, value = optimistic_action(V, theta_hat, beta)
    d = len(theta_hat)
    assert np.linalg.norm(x) == pytest.approx(1.0, abs=1e-12)
    assert value == pytest.approx(promise(V, theta_hat, beta, x), rel=1e-9)
    anywhere = rng.standard_normal((2_000, d))
    nearby = x + rng.standard_normal((2_000, d)) * 10.0 ** rng.uniform(-8, 0, (2_000, 1))
    rivals = np.vstack([anywhere, nearby, np.eye(d), -np.eye(d), -x])
    rivals /= np.linalg.norm(rivals, axis=1, keepdims=True)
    assert np.all(promise(V, theta_hat, beta, rivals) <= value * (1.0 + 1e-9))


def rotation(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


# ------------------------------------------------------------------------------------- the optimistic action


@pytest.mark.parametrize("name", GOLDEN["names"])
def test_golden_optimistic_actions(name):
    V, theta_hat, beta = (GOLDEN[f"{name}__{part}"] for part in ("V", "theta_hat", "beta"))
    x, value = optimistic_action(V, theta_hat, float(beta))
    assert value == pytest.approx(float(GOLDEN[f"{name}__value"]), rel=1e-9)
    assert np.linalg.norm(x) == pytest.approx(1.0, abs=1e-12)
    if GOLDEN[f"{name}__unique"]:
        assert x == pytest.approx(GOLDEN[f"{name}__x"], abs=1e-6)
        assert x * value == pytest.approx(GOLDEN[f"{name}__theta_tilde"], abs=1e-6)


def test_the_stated_tie_break_gives_the_golden_actions_of_the_hard_cases_too():
    for name in ("first_round5", "hard_diag4"):
        V, theta_hat, beta = (GOLDEN[f"{name}__{part}"] for part in ("V", "theta_hat", "beta"))
        assert optimistic_action(V, theta_hat, float(beta))[0] == pytest.approx(GOLDEN[f"{name}__x"], abs=1e-6)


def test_the_tie_break_is_the_lowest_axis_projected_on_the_smallest_eigenspace_with_a_plus_sign():
    rng = np.random.default_rng(5)
    Q = rotation(rng, 6)
    V = (Q * [1.0, 1.0, 1.0, 3.0, 5.0, 8.0]) @ Q.T
    x, value = optimistic_action((V + V.T) / 2, np.zeros(6), 2.0)
    projected = Q[:, :3] @ Q[0, :3]
    assert value == pytest.approx(2.0, rel=1e-9)
    assert x == pytest.approx(projected / np.linalg.norm(projected), abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_no_action_of_a_random_problem_promises_more(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    Q = rotation(rng, d)
    V = (Q * 10.0 ** rng.uniform(0, rng.uniform(0, 5), d)) @ Q.T
    check_action((V + V.T) / 2, rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 1), 10.0 ** rng.uniform(-2, 1), seed)


@pytest.mark.parametrize("beta", [1e-6, 0.05, 1.0, 40.0, 1e6])
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0, 12.0])
def test_coordinates_are_optimal_at_any_condition_number_and_radius(spread, beta):
    rng = np.random.default_rng([int(spread), int(1e6 * beta)])
    for d in (1, 2, 5, 40):
        check_coordinates(10.0 ** rng.uniform(0, spread, d), rng.standard_normal(d), beta)


@pytest.mark.parametrize("small", [10.0**-e for e in range(3, 15)] + [1e-30, 1e-160, 5e-324, 0.0])
def test_nearly_hard_cases_are_solved_as_exactly_as_any(small):
    rng = np.random.default_rng(3)
    for d in (2, 3, 10):
        for scale in (1e-3, 0.3, 3.0):
            values = np.sort(1.0 + 10.0 ** rng.uniform(-3, 3, d))
            centre = scale * rng.standard_normal(d)
            centre[0] = small * np.linalg.norm(centre[1:])
            check_coordinates(values, centre, 1.5)
            check_coordinates(values, -centre, 1.5)


@pytest.mark.parametrize("small", [10.0**-e for e in range(3, 15)] + [0.0])
def test_no_action_promises_more_in_nearly_hard_cases_in_any_basis(small):
    rng = np.random.default_rng(4)
    for case in range(4):
        Q = rotation(rng, 5)
        V = (Q * [1.0, 2.0, 2.5, 10.0, 300.0]) @ Q.T
        centre = 0.2 * rng.standard_normal(5)
        centre[0] = small * np.linalg.norm(centre[1:])
        check_action((V + V.T) / 2, Q @ centre, 2.0, case)


@pytest.mark.parametrize("gap", [0.0] + [10.0**-e for e in range(2, 16)])
def test_equal_and_nearly_equal_smallest_eigenvalues_lose_nothing(gap):
    rng = np.random.default_rng(6)
    for small in (1.0, 1e-6, 1e-12, 0.0):
        values = np.array([1.0, 1.0 + gap, 1.0 + 2 * gap, 4.0, 4.0, 90.0])
        centre = 0.3 * rng.standard_normal(6)
        centre[:3] *= small
        check_coordinates(values, centre, 1.2)
        check_action(np.diag(values), centre, 1.2)
        centre[0] = 0.0
        check_coordinates(values, centre, 1.2)
        check_action(np.diag(values), centre, 1.2)


@pytest.mark.parametrize(("largest", "gap"), [(1e6, 1e-8), (1e8, 1e-6), (1e8, 1e-3), (1e10, 1e-5), (1e12, 1e-3)])
def test_eigenvalues_near_the_smallest_stay_apart_beside_a_huge_one(largest, gap):
    """A well explored direction must not blur the ones that matter."""
    check_action(np.diag([1.0, 1.0 + gap, 1.1, largest]), np.array([0.0, 0.5, 0.0, 0.1]), 1.0)


def test_a_zero_component_on_the_smallest_eigenvector_alone_is_not_the_hard_case():
    x, value = optimistic_action(np.diag([1.0, 1.2, 5.0]), np.array([0.0, 2.0, 0.3]), 0.5)
    assert x[0] == 0.0
    assert value == pytest.approx(dual_bound(np.array([1.0, 1.2, 5.0]), np.array([0.0, 2.0, 0.3]), 0.5), rel=1e-9)


@pytest.mark.parametrize("centre", [-2.0, -1e-14, 0.0, 1e-14, 0.7])
def test_in_one_dimension_the_action_is_the_sign_of_the_estimate(centre):
    x, value = optimistic_action(np.array([[2.5]]), np.array([centre]), 0.8)
    assert value == pytest.approx(abs(centre) + 0.8 / np.sqrt(2.5), rel=1e-12)
    if abs(centre) > 1e-12:
        assert x[0] == np.sign(centre)
    assert abs(x[0]) == 1.0


# ------------------------------------------------------------------------------------------- rank-one updates


def update_identity(values, z):
    """diag(values) + z z' as (new values, new basis in the old coordinates)."""
    values, basis = values.copy(), np.eye(len(values))
    rank_one_update(values, basis, z)
    return values, basis


def check_update(values, z, tolerance=1e-13):
    new, basis = update_identity(values, z)
    V = np.diag(values) + np.outer(z, z)
    d = len(values)
    scale = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    assert np.abs(basis @ basis.T - np.eye(d)).max() < tolerance * d
    assert np.abs(basis.T @ basis - np.eye(d)).max() < tolerance * d
    assert np.abs((basis * new) @ basis.T - V).max() <= tolerance * d * np.linalg.norm(V, 2)
    assert np.sort(new) == pytest.approx(np.linalg.eigvalsh(V), rel=tolerance * d, abs=tolerance * new.max())
    grown = np.log1p(np.sum(z**2 / values))
    assert np.sum(np.log(new)) - np.sum(np.log(values)) == pytest.approx(grown, rel=1e-11, abs=1e-12 * d)
    return np.abs((basis * new) @ basis.T - V) / scale


@pytest.mark.parametrize("d", [1, 2, 3, 8, 60])
def test_an_update_is_the_eigendecomposition_of_the_sum(d):
    rng = np.random.default_rng(d)
    for _ in range(20):
        check_update(10.0 ** rng.uniform(0, 3, d), rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3))


@pytest.mark.parametrize(
    "values",
    [np.ones(6), np.array([1.0, 1.0, 2.0, 2.0, 2.0, 7.0]), 1.0 + 1e-15 * np.arange(6), 1.0 + 1e-9 * np.arange(6)],
)
def test_equal_and_nearly_equal_eigenvalues_keep_the_basis_orthogonal(values):
    rng = np.random.default_rng(1)
    for _ in range(10):
        check_update(values, rng.standard_normal(6))
        check_update(values, np.where(rng.random(6) < 0.5, 0.0, rng.standard_normal(6)))
        check_update(values, rng.standard_normal(6) * 10.0 ** rng.uniform(-20, 0, 6))


def test_eigenvalues_in_any_order_stay_with_their_coordinates():
    rng = np.random.default_rng(2)
    for _ in range(20):
        values = rng.permutation(np.repeat(10.0 ** rng.uniform(0, 4, 5), 2))
        check_update(values, rng.standard_normal(10) * (rng.random(10) < 0.7))


def test_the_zero_vector_changes_nothing():
    values = np.array([3.0, 1.0, 1.0, 2.0])
    carried = np.random.default_rng(0).standard_normal((3, 4))
    kept, same = values.copy(), carried.copy()
    rank_one_update(values, carried, np.zeros(4))
    assert np.array_equal(values, kept)
    assert np.array_equal(carried, same)


def test_the_update_does_not_write_to_its_vector():
    z = np.array([1.0, 0.0, 2.0])
    rank_one_update(np.ones(3), np.eye(3), z)
    assert z.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_the_optimistic_action_knows_no_units(scale):
    V, theta_hat = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2])
    action, value = optimistic_action(V, theta_hat, 0.7)
    other, scaled = optimistic_action(V, scale * theta_hat, scale * 0.7)
    assert other == pytest.approx(action, rel=1e-9)
    assert scaled == pytest.approx(scale * value, rel=1e-12)
    other, same = optimistic_action(scale * V, theta_hat, np.sqrt(scale) * 0.7)
    assert other == pytest.approx(action, rel=1e-9)
    assert same == pytest.approx(value, rel=1e-12)


def test_without_a_radius_the_estimate_itself_is_followed():
    action, value = optimistic_action(np.eye(2), np.array([3.0, 4.0]), 0.0)
    assert action == pytest.approx([0.6, 0.8])
    assert value == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("V", "theta_hat", "beta", "named"),
    [
        (np.eye(2), [np.nan, 0.0], 1.0, "theta_hat"),
        (np.eye(2), [1.0, 0.0, 0.0], 1.0, "theta_hat"),
        (np.eye(2), [[1.0], [0.0]], 1.0, "theta_hat"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), [1.0, 0.0], 1.0, "V"),
        (np.zeros((0, 0)), [], 1.0, "V"),
        (np.zeros((2, 2)), [1.0, 0.0], 1.0, "V"),
        (np.eye(2), [1.0, 0.0], -1.0, "beta"),
    ],
)
def test_an_optimistic_action_of_nonsense_is_refused_by_name(V, theta_hat, beta, named):
    with pytest.raises(ValueError, match=named):
        optimistic_action(V, theta_hat, beta)


def test_in_one_dimension_values_add_up_and_carried_vectors_keep_their_length():
    values, carried = np.array([2.0]), np.array([[1.0], [-3.0]])
    rank_one_update(values, carried, np.array([4.0]))
    assert values[0] == pytest.approx(18.0, rel=1e-15)
    assert np.abs(carried).ravel() == pytest.approx([1.0, 3.0], rel=1e-15)
    assert carried[0, 0] * carried[1, 0] < 0


@pytest.mark.parametrize(("d", "steps"), [(1, 50), (2, 200), (7, 300), (40, 400)])
def test_a_sequence_of_updates_follows_v_and_its_determinant(d, steps):
    rng = np.random.default_rng(d)
    V, log_det = np.eye(d), 0.0
    values, carried = np.ones(d), np.eye(d)
    for _ in range(steps):
        x = rng.standard_normal(d) / np.sqrt(d)
        z = carried.T @ x  # row i holds axis i's coordinates in the eigenbasis
        log_det += np.log1p(np.sum(z**2 / values))
        rank_one_update(values, carried, z)
        V += np.outer(x, x)
    scale = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    assert np.abs(carried @ carried.T - np.eye(d)).max() < 1e-12
    assert np.abs(((carried * values) @ carried.T - V) / scale).max() < 1e-12
    assert np.sort(values) == pytest.approx(np.linalg.eigvalsh(V), rel=1e-11)
    assert np.sum(np.log(values)) == pytest.approx(np.linalg.slogdet(V)[1], rel=1e-11)
    assert np.sum(np.log(values)) == pytest.approx(log_det, rel=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_weights_over_twelve_orders_of_magnitude_keep_basis_and_determinant(seed):
    rng = np.random.default_rng(seed)
    d = 12
    V, log_det = np.eye(d), 0.0
    values, carried = np.ones(d), np.eye(d)
    for step in range(150):
        x = rng.standard_normal(d)
        if step % 3 == 0:
            x = np.eye(d)[rng.integers(d)]
        x *= np.sqrt(10.0 ** rng.uniform(0, 12)) / np.linalg.norm(x)
        z = carried.T @ x
        log_det += np.log1p(np.sum(z**2 / values))
        rank_one_update(values, carried, z)
        V += np.outer(x, x)
    scale = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    assert np.abs(carried @ carried.T - np.eye(d)).max() < 1e-12
    assert np.abs(((carried * values) @ carried.T - V) / scale).max() < 1e-11
    assert np.sum(np.log(values)) == pytest.approx(log_det, rel=1e-10)
