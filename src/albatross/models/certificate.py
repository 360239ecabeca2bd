"""A confidence set for biases and theta that holds for any prior and sub-Gaussian noise, and a norm bound.

Least squares on z = [e_arm; x], without prior or intercept, has the error G^-1 S, G = sum z z', S = sum z noise. With
probability 1 - delta, simultaneously for all rounds and all lam in a grid J (Abbasi-Yadkori, Pal and Szepesvari 2011,
Theorem 1),

    S'(G + Lam)^-1 S <= sigma^2 kappa,   kappa = ln det(I + Lam^-1 G) + 2 ln(2 |J| / delta),

where Lam = lam diag(1, ..., 1, c, ..., c) and c = 1/d in the unit of the contexts. The mean of arm i is known up to
sigma sqrt(kappa (q1 + lam q2)), with q1 = z_i'v, q2 = v' diag(1, c) v, G v = z_i. theta lies in an ellipsoid of shape
A = P^-1 + lam P^-1 (c I + M) P^-1, where P is the scatter of contexts within arms and M the sum of xbar_i xbar_i' over
arms. The other half of delta covers arms that have had only one context, whose mean has a width of its own.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from albatross.compiling import compiled, generic
from albatross.confidence import arms_in_play
from albatross.linalg.eigen import optimistic_coordinates
from albatross.linalg.vectors import row_squares
from albatross.models.ridge import Joint, Ridge, absorb, joint, learn

_GRID = 4.0 ** np.arange(6)  # J
_HARDLY_ANY = 1e-8  # initial scatter, relative to c
_LEAST_SQUARE = 1e-250  # of the axes of an ellipsoid: contexts of 1e99 after some of 1e-150 leave nothing of it
_IDENTIFIED = 2.0  # the largest q1 of an arm whose mean is identified


class Certificate(NamedTuple):
    within: Joint  # least squares centred within arms
    roots: np.ndarray  # (|J|, d, d) as in a Joint with ridge Lam
    log_dets: np.ndarray  # (|J|,) ln det(I + Lam^-1 G)
    between: np.ndarray  # (d, d) M
    first: np.ndarray  # (K, d) first context of every arm
    fixed: np.ndarray  # (K,) 1 as long as the arm has had no other context


class NoCertificate(NamedTuple):
    nothing: np.ndarray  # (0,)


def new_certificate(n_arms: int, dim: int) -> Certificate:
    """Return a certificate without observations."""
    return Certificate(
        within=joint(n_arms, dim, strength=_HARDLY_ANY / dim),
        roots=np.stack([np.eye(dim) / math.sqrt(lam / dim) for lam in _GRID]),
        log_dets=np.zeros(_GRID.size),
        between=np.zeros((dim, dim)),
        first=np.zeros((n_arms, dim)),
        fixed=np.ones(n_arms),
    )


def no_certificate() -> NoCertificate:
    """Return the placeholder for a policy without a certificate."""
    return NoCertificate(np.zeros(0))


observe = generic("observe")  # observe(certificate, arm, row, reward, n): add n plays of [1, x] with this reward each


@observe.register
def observe_nothing(certificate: NoCertificate, arm, row, reward, n):
    pass


@observe.register
def observe_plays(certificate: Certificate, arm, row, reward, n):
    fit, x = certificate.within, row[1:].copy()
    plays = fit.weight[arm]
    for j in range(x.size):
        if plays == 0.0:
            certificate.first[arm, j] = x[j]
        elif x[j] != certificate.first[arm, j]:
            certificate.fixed[arm] = 0.0
    nowhere = np.zeros(x.size)
    for k in range(_GRID.size):
        weight = plays + _GRID[k]
        pull = math.sqrt(n * weight / (weight + n))
        grown = Ridge(certificate.roots[k], nowhere, certificate.log_dets[k : k + 1])
        absorb(grown, pull * (x - fit.context_sum[arm] / weight), 0.0)
        certificate.log_dets[k] += math.log1p(n / weight)
    add_mean(certificate, arm, -1.0)
    learn(fit, arm, x, n * reward, n)
    add_mean(certificate, arm, 1.0)


@compiled
def add_mean(certificate, arm, sign):
    """Add sign xbar xbar' of one arm to M."""
    fit = certificate.within
    scale = sign / max(fit.weight[arm], 1.0) ** 2
    for i in range(fit.theta.size):
        for j in range(fit.theta.size):
            certificate.between[i, j] += scale * fit.context_sum[arm, i] * fit.context_sum[arm, j]


@compiled
def kappas(certificate, delta):
    """(|J|,) kappa for every lam in J."""
    return certificate.log_dets + 2.0 * math.log(2.0 * _GRID.size / delta)


@compiled
def half_width(kappa, q1, q2, sigma):
    """Return sigma sqrt(kappa (q1 + lam q2)) for the best lam."""
    least = np.inf
    for k in range(_GRID.size):
        least = min(least, kappa[k] * (max(q1, 0.0) + _GRID[k] * max(q2, 0.0)))
    return sigma * math.sqrt(least)


class Estimates(NamedTuple):
    """Bounds on the mean of every row, and the part u of v = [., u], for differences of rows."""

    arms: np.ndarray  # (R,)
    centres: np.ndarray  # (R,)
    widths: np.ndarray  # (R,) inf if the mean of the row is not identified
    centred: np.ndarray  # (R, d) x_i - xbar_i
    solved: np.ndarray  # (R, d) u_i = P^-1 (x_i - xbar_i)
    spread: np.ndarray  # (R, d) M u_i


@compiled
def estimates(certificate, rows, arms, delta, sigma):
    """Return centre and width of every row's mean."""
    fit, dim = certificate.within, certificate.first.shape[1]
    centred, explained = np.zeros((arms.size, dim)), np.zeros(arms.size)
    for row in range(arms.size):
        arm = arms[row]
        if fit.weight[arm] > 0.0:
            share = 1.0 / fit.weight[arm]
            for j in range(dim):
                centred[row, j] = rows[row, j + 1] - share * fit.context_sum[arm, j]
            explained[row] = share * fit.reward_sum[arm]
    solved = (centred @ fit.root) @ fit.root.T
    spread = solved @ certificate.between
    lengths = row_squares(solved)
    kappa = kappas(certificate, delta)
    widths = np.full(arms.size, np.inf)
    for row in range(arms.size):
        arm = arms[row]
        n = fit.weight[arm]
        if n == 0.0:
            continue
        u = solved[row]
        q1 = 1.0 / n + np.dot(u, centred[row])
        if q1 > _IDENTIFIED:
            continue
        q2 = 1.0 / n**2 - 2.0 * np.dot(fit.context_sum[arm], u) / n**2 + np.dot(u, spread[row]) + lengths[row] / dim
        widths[row] = half_width(kappa, q1, q2, sigma)
        if only_ever(certificate, arm, rows[row]):
            own = (1.0 + n) / n**2 * (math.log1p(n) + 2.0 * math.log(2.0 * arms_in_play(fit.weight) / delta))
            widths[row] = min(widths[row], sigma * math.sqrt(own))
    return Estimates(arms, explained + centred @ fit.theta, widths, centred, solved, spread)


@compiled
def only_ever(certificate, arm, row):
    """Return whether the arm has been played with this context only."""
    same, j = certificate.fixed[arm] == 1.0, 0
    while same and j < row.size - 1:
        same = row[j + 1] == certificate.first[arm, j]
        j += 1
    return same


@partial(compiled, fastmath={"reassoc"})
def half_width_of_difference(certificate, found, one, two, kappa, sigma):
    """Return the half-width of the difference of two rows' means."""
    fit, dim = certificate.within, found.solved.shape[1]
    arm, versus = found.arms[one], found.arms[two]
    share, other = 1.0 / fit.weight[arm], 1.0 / fit.weight[versus]
    q1, q2 = share + other, share**2 + other**2
    for j in range(dim):
        u = found.solved[one, j] - found.solved[two, j]
        q1 += u * (found.centred[one, j] - found.centred[two, j])
        q2 -= 2.0 * u * (share**2 * fit.context_sum[arm, j] - other**2 * fit.context_sum[versus, j])
        q2 += u * (found.spread[one, j] - found.spread[two, j] + u / dim)
    return half_width(kappa, q1, q2, sigma)


def describe_certificate(
    certificate: Certificate, *, delta: float, sigma: float, unit: float
) -> tuple[dict[str, Any], list[str]]:
    """Return the norm bound and its confidence set (theta - centre)' shape^-1 (theta - centre) <= radius^2.

    >>> certificate = new_certificate(n_arms=1, dim=1)
    >>> for x in (-1.0, 1.0):
    ...     observe(certificate, 0, np.array([1.0, x]), 2.0 * x, 100)
    >>> found, warnings = describe_certificate(certificate, delta=0.1, sigma=1.0, unit=1.0)
    >>> found["confidence_set"]["centre"].round(6).tolist(), round(found["norm_bound"], 4)
    ([2.0], 2.2825)
    """
    root, theta = certificate.within.root, certificate.within.theta
    dim = theta.size
    inverse = root @ root.T
    widest = float(scipy.linalg.eigh(inverse, eigvals_only=True, driver="ev")[-1])
    if widest > 0.5 * dim / _HARDLY_ANY:
        sentence = "Contexts do not vary within arms in every direction: theta is not identified, norm_bound is inf."
        return {"norm_bound": math.inf, "confidence_set": None}, [sentence]
    best: dict[str, Any] = {"norm_bound": math.inf}
    for lam, kappa in zip(_GRID, kappas(certificate, delta), strict=True):
        shape = inverse + lam * inverse @ (np.eye(dim) / dim + certificate.between) @ inverse
        values, basis = scipy.linalg.eigh((shape + shape.T) / 2.0, driver="ev")
        values = np.maximum(values, max(1e-15 * values[-1], _LEAST_SQUARE))
        radius = sigma * math.sqrt(kappa)
        bound = float(np.linalg.norm(optimistic_coordinates(1.0 / values, basis.T @ theta, radius))) / unit
        if bound < best["norm_bound"]:
            found = {"centre": theta / unit, "shape": shape / unit**2, "radius": radius}
            best = {"norm_bound": bound, "confidence_set": found}
    return best, []
