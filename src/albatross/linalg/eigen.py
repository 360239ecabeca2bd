"""The exact optimistic action on the unit ball, and updates of V's eigenbasis under V += n x x'.

Optimism over an ellipsoid of radius beta about theta_hat,

    max over ||x|| <= 1 of <x, theta_hat> + beta ||x||_{V^-1}  =  max{||theta|| : ||theta - theta_hat||_V <= beta},

is a trust-region problem. With V = Q diag(l) Q' and a = Q' theta_hat its solution is theta = Q (a + a / D),
D_j = nu l_j - 1, where nu > 1 / l_min solves sum l_j a_j^2 / D_j^2 = beta^2. In the hard case, where a vanishes on the
smallest eigenspace and the sum stays below beta^2, the rest of the radius is filled along that eigenspace. The hard
case is common: every first round is one.

A new eigendecomposition costs O(d^3) with a large constant. An update costs O(d^2): the new eigenvalues are the roots
of a secular equation, and the new eigenvectors in the old basis are the columns of a Cauchy matrix, which the weights
of Gu and Eisenstat (1994) make orthogonal to machine precision. V itself is never stored: vectors that are needed in
its eigenbasis are carried along, and a few vectors need no d x d product.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from albatross import checks
from albatross.compiling import compiled

_EPS = 2.0**-52


# --------------------------------------------------------------------------------------- the optimistic action


@compiled
def optimistic_coordinates(values, centre, beta):
    """Return the longest vector t of the ellipsoid sum l_j (t_j - a_j)^2 <= beta^2 with centre a, eigenvalues l."""
    smallest = np.min(values)
    centre = np.where(np.abs(centre) * np.sqrt(values) < 1e-150 * beta, 0.0, centre)  # squares must not underflow
    size = 0.0  # of the part of the smallest eigenspace
    least = 0.0
    for j in range(values.size):
        if values[j] == smallest:
            size += centre[j] * centre[j]
        # nu = (1 + s) / l_min, so that D_j = (l_j - l_min) / l_min + s l_j / l_min stays accurate near s = 0.
        # No single term may exceed beta^2. This gives a lower bound on s, the start of Newton's method.
        alone = (smallest * math.sqrt(values[j]) * abs(centre[j]) / beta - (values[j] - smallest)) / values[j]
        least = max(least, alone)
    s = max(least, math.sqrt(smallest * size) / beta)
    hard = s == 0.0 and _secular(values, centre, smallest, 0.0)[0] <= beta * beta
    if not hard:
        s = max(s, 1e-300)
        for _ in range(100):
            total, slope = _secular(values, centre, smallest, s)
            # Newton on total^(-1/2), which is nearly linear in s
            step = 2.0 * total / slope * (math.sqrt(total) / beta - 1.0)
            s += step
            if step <= 1e-16 * s:
                break
    found = np.empty(values.size)
    used, first = 0.0, -1
    for j in range(values.size):
        if values[j] == smallest:
            first = j if first < 0 else first
        excess = 0.0
        if not (hard and values[j] == smallest):
            excess = centre[j] * smallest / (values[j] - smallest + s * values[j])
        found[j] = centre[j] + excess
        used += values[j] * excess * excess
    if hard:
        found[first] += math.sqrt(max(beta * beta - used, 0.0) / smallest)
    return found


@compiled
def _secular(values, centre, smallest, s):
    """Return sum l a^2 / D^2 without the terms 0/0, and minus its derivative in s."""
    total, slope = 0.0, 0.0
    for j in range(values.size):
        if centre[j] != 0.0:
            d = (values[j] - smallest + s * values[j]) / smallest
            term = values[j] * (centre[j] / d) ** 2
            total += term
            slope += 2.0 * term / d * values[j] / smallest
    return total, slope


def optimistic_action(V: np.ndarray, theta_hat: np.ndarray, beta: float) -> tuple[np.ndarray, float]:
    """Return the optimistic action of the unit ball and its value, by a new eigendecomposition.

    If several are optimal (the hard case), return the one on the positive side of the first coordinate axis that
    distinguishes them.

    >>> action, value = optimistic_action(np.diag([1.0, 4.0]), np.array([0.0, 1.0]), 0.5)
    >>> action.round(6).tolist(), round(value, 6)
    ([0.0, 1.0], 1.25)
    """
    checks.at_least_zero("beta", beta)
    given = checks.finite_array("V", V, (None, None))
    dim = given.shape[0]
    theta_hat = checks.finite_array("theta_hat", theta_hat, (dim,))
    largest = np.abs(given).max(initial=1e-300)
    if given.shape[1] != dim or not dim or not np.allclose(given, given.T, rtol=1e-9, atol=1e-12 * largest):
        raise ValueError(f"V must be a symmetric matrix of at least one row, got shape {given.shape}")
    # Scale V and theta_hat to about 1, so that no square overflows; (c V, beta sqrt(c)) is the same set.
    beta = float(beta) / math.sqrt(largest)
    values, basis = np.linalg.eigh(given / largest)
    if not values[0] > 0.0:
        raise ValueError(f"V must be positive definite, but its smallest eigenvalue is {largest * values[0]:g}")
    unit = float(np.linalg.norm(theta_hat)) + beta / math.sqrt(values[0])
    if unit == 0.0:
        return np.eye(dim)[0], 0.0
    if beta <= 1e-150 * unit:  # the ellipsoid is negligible
        return theta_hat / unit, unit
    theta_hat, beta = theta_hat / unit, beta / unit
    # eigh returns equal eigenvalues up to rounding; treat those as one eigenspace.
    same = values <= values[0] * (1.0 + 64.0 * _EPS * len(values))
    centre = basis.T @ theta_hat
    scale = np.linalg.norm(centre) + beta / math.sqrt(values[0])
    shadow = np.linalg.norm(centre[same])
    if shadow <= 16.0 * _EPS * scale:
        centre[same] = 0.0
    space = basis[:, same]
    # The first basis vector of the smallest eigenspace becomes the first nonzero projection of an axis.
    for axis in range(len(values)):
        direction = space.T @ np.eye(len(values))[axis]
        if np.linalg.norm(direction) > 1e-8:
            break
    completed = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0]
    completed[:, 0] *= np.sign(completed[:, 0] @ direction)
    basis[:, same] = space @ completed
    centre[same] = completed.T @ centre[same]
    theta = basis @ optimistic_coordinates(values, centre, beta)
    value = float(np.linalg.norm(theta))
    return theta / value, value * unit


# -------------------------------------------------------------------------------------------- rank-one updates


@partial(compiled, fastmath={"reassoc"})
def _poles(gaps, weights, shift):
    """Return sum w / (gap - shift) and its derivative in the shift."""
    total = slope = 0.0
    for j in range(gaps.size):
        pole = 1.0 / (gaps[j] - shift)
        total += weights[j] * pole
        slope += weights[j] * pole * pole
    return total, slope


@compiled
def _new_eigenvalue(values, weights, i, gaps):
    """Return the i-th root mu of 1 + sum w_j / (l_j - mu), as the nearer old eigenvalue and the shift from it.

    In this form no difference l_j - mu cancels, which is essential for accuracy.
    """
    n = values.size
    last = i == n - 1
    for j in range(n):
        gaps[j] = values[j] - values[i]
    origin, low, high = i, 0.0, np.sum(weights)
    shift = 0.5 * high if last else 0.5 * gaps[i + 1]
    below, below_slope = _poles(gaps[: i + 1], weights[: i + 1], shift)
    above, above_slope = _poles(gaps[i + 1 :], weights[i + 1 :], shift)
    if not last:
        high = shift
        if 1.0 + below + above < 0.0:
            origin, low, high, shift = i + 1, -shift, 0.0, -shift
            for j in range(n):
                gaps[j] = values[j] - values[origin]
    for _ in range(60):
        level = 1.0 + below + above
        if abs(level) <= _EPS * (1.0 - below + above):
            break
        if level < 0.0:
            low = shift
        else:
            high = shift
        # Between its two poles, the sum is nearly c + p / (near - eta) + q / (far - eta), p and q from the slopes.
        near = gaps[i] - shift
        p = below_slope * near * near
        c = 1.0 + below - below_slope * near
        if last:
            proposal = shift + near + p / c
        else:
            far = gaps[i + 1] - shift
            q = above_slope * far * far
            c += above - above_slope * far
            half = 0.5 * (c * (near + far) + p + q)
            product = c * near * far + p * far + q * near
            root = math.sqrt(max(half * half - c * product, 0.0))
            larger = half + root if half >= 0.0 else half - root
            proposal = shift + product / larger
            if not low < proposal < high:
                proposal = shift + larger / c
        trusted = low < proposal < high or (last and proposal == high)  # other ends are poles
        if not trusted:
            proposal = 0.5 * (low + high)
        step, shift = abs(proposal - shift), proposal
        if step <= (1e-8 if trusted else _EPS) * abs(shift):  # convergence is quadratic: the next is below rounding
            break
        below, below_slope = _poles(gaps[: i + 1], weights[: i + 1], shift)
        above, above_slope = _poles(gaps[i + 1 :], weights[i + 1 :], shift)
    return origin, shift


@compiled
def _deflate(values, z, carried, order):
    """Rotate the weight of equal eigenvalues into one of them. Return the indices left to solve for, by value."""
    total = 0.0
    for j in range(values.size):
        total += z[j] * z[j] / values[j]
    kept = np.empty(values.size, np.int64)
    n_kept = 0
    for j in order:
        # drop z_j if this changes no eigenvalue by more than its rounding error
        if abs(z[j]) * math.sqrt(total / values[j]) <= 0.25 * _EPS:
            z[j] = 0.0
            continue
        if n_kept:
            i = kept[n_kept - 1]
            length = math.hypot(z[i], z[j])
            c, s = z[j] / length, z[i] / length
            if (values[j] - values[i]) * abs(c * s) <= 2.0 * _EPS * values[i]:
                low, high = values[i], values[j]
                values[i] = min(max(low * c * c + high * s * s, low), high)  # rounding must not change the order
                values[j] = min(max(high * c * c + low * s * s, low), high)
                z[i], z[j] = 0.0, length
                for row in range(carried.shape[0]):
                    a, b = carried[row, i], carried[row, j]
                    carried[row, i], carried[row, j] = c * a - s * b, c * b + s * a
                n_kept -= 1
        kept[n_kept] = j
        n_kept += 1
    return kept[:n_kept]


@compiled
def rank_one_update(values, carried, z):
    """Update in place: eigenvalues of diag(values) + z z', and coordinates of carried vectors in its eigenbasis.

    >>> values, carried = np.array([1.0, 2.0]), np.eye(2)
    >>> rank_one_update(values, carried, np.array([1.0, 1.0]))
    >>> values.round(6).tolist(), (carried @ np.diag(values) @ carried.T).round(6).tolist()
    ([1.381966, 3.618034], [[2.0, 1.0], [1.0, 3.0]])
    """
    z = z.copy()
    kept = _deflate(values, z, carried, np.argsort(values))
    n = kept.size
    old, weights = values[kept], np.empty(n)
    for i in range(n):
        weights[i] = z[kept[i]] * z[kept[i]]
    differences = np.empty((n, n))  # (new j, old i): l_i - mu_j
    gaps = np.empty(n)
    for j in range(n):
        origin, shift = _new_eigenvalue(old, weights, j, gaps)
        for i in range(n):
            differences[j, i] = (old[i] - old[origin]) - shift
        values[kept[j]] = old[origin] + shift
    # The weights for which the computed eigenvalues are exact, which makes the eigenvectors orthogonal.
    exact = np.ones(n)
    for j in range(n):
        if j < n - 1:
            for i in range(j + 1):
                exact[i] *= differences[j, i] / (old[i] - old[j + 1])
        else:
            for i in range(n):
                exact[i] *= -differences[j, i]
        if j < n - 1:
            for i in range(j + 1, n):
                exact[i] *= differences[j, i] / (old[i] - old[j])
    for i in range(n):
        exact[i] = math.copysign(math.sqrt(abs(exact[i])), z[kept[i]])
    for j in range(n):
        for i in range(n):
            differences[j, i] = exact[i] / differences[j, i]
        scale = 1.0 / math.sqrt(np.dot(differences[j], differences[j]))
        for i in range(n):
            differences[j, i] *= scale
    turned = carried[:, kept] @ differences.T
    for row in range(carried.shape[0]):
        for j in range(n):
            carried[row, kept[j]] = turned[row, j]
