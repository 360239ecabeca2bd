"""Lemmas 2 and 3 and Theorems 2 and 3, about ALB-Dim: how long to explore, and what regret to expect."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from albatross import checks
from albatross.bounds.constants import C, positive_horizon

READINGS = ("literal", "unnormalised", "isotropic")


def first_phase(dim: int, sigma: float, delta: float, reading: str = "literal") -> int:
    """T_0 of Equation (1): the shortest first phase for which Theorem 2 is proved.

    It depends on the eigenvalues of the exploration's covariance, for which the paper has three conflicting values:
    1/d as defined (`literal`), N/d without the factor 1/N, as in Appendix C (`unnormalised`, too short for Remark 4),
    and 1 (`isotropic`, the only one that gives the stated d^2 ln^2). The experiments use none of them: their first
    phases are shorter, except that of `e-literal`, which is longer than `unnormalised`.

    >>> [first_phase(20, 0.5**0.5, 0.1, reading) for reading in READINGS]
    [1470367639, 32401, 1379045]
    """
    checks.whole("dim", dim, least=1)
    checks.positive("sigma", sigma)
    checks.probability("delta", delta)
    checks.one_of("reading", reading, READINGS)

    def needed(root: int) -> float:
        eigenvalue = {"literal": 1.0 / dim, "unnormalised": root / dim, "isotropic": 1.0}[reading]
        return _samples_needed(dim, sigma, delta, eigenvalue, eigenvalue)

    return _least_first_phase(needed)


def _samples_needed(dim: int, sigma: float, delta: float, smallest: float, largest: float) -> float:
    """Number of random samples for accurate least squares, given the extreme eigenvalues of their covariance."""
    noise = 32.0 * sigma**2 / smallest**2
    design = 4.0 / 3.0 * (6.0 * largest + smallest) * (dim + largest) / smallest**2
    return max(noise, design) * math.log(2.0 * dim / delta)


def _least_first_phase(needed: Callable[[int], float]) -> int:
    """Smallest T_0 with sqrt(T_0) >= needed(ceil(sqrt T_0)), for a `needed` that never increases."""
    low, high = 0, 1  # of the root
    while high < needed(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle >= needed(middle) else (middle, high)
    return max((high - 1) ** 2 + 1, math.ceil(needed(high) ** 2))


def lemma_2(error: float, *, dim: int, delta: float) -> float:
    """Lemma 2's number of random samples on the sphere, (1 / eps^2 + d) ln(1 / delta); shape only.

    Claimed to make the largest error of least squares less than eps with probability 1 - delta. It lacks sigma and a
    factor of order d: `samples_needed` is the number that does.

    >>> round(lemma_2(0.125, dim=20, delta=0.1))
    193
    """
    checks.positive("error", error)
    checks.whole("dim", dim, least=1)
    checks.probability("delta", delta)
    return C * (1.0 / error**2 + dim) * math.log(1.0 / delta)


def lemma_3(phase: int, *, dim: int, delta: float) -> float:
    """M_i in the proof of Lemma 3: Lemma 2's number for an error of 2^-i with probability 1 - delta / 2^i; shape only.

    >>> round(lemma_3(4, dim=20, delta=0.1))
    1401
    """
    checks.whole("phase", phase, least=0)
    checks.probability("delta", delta)
    return lemma_2(0.5**phase, dim=dim, delta=delta * 0.5**phase)


def explored(phase: int, first_phase: int) -> int:
    """Number of random samples that ALB-Dim has at the beginning of a phase, ceil(sqrt(T_0)) (5^i - 1) / 4.

    >>> [explored(phase, 10_000) for phase in range(4)]
    [0, 100, 600, 3100]
    """
    checks.whole("phase", phase, least=0)
    checks.whole("first_phase", first_phase, least=1)
    return (math.isqrt(first_phase - 1) + 1) * (5**phase - 1) // 4


def theorem_2(
    horizon: Any, *, sparsity: int, smallest: float, sigma: float, delta: float, first_phase: int
) -> np.ndarray:
    """Theorem 2's bound on ALB-Dim's regret: a constant 50 T_0 / gamma^4.65, plus a term that grows with d* sqrt(T).

    gamma is the smallest nonzero magnitude: a small gamma costs a constant, but with a large exponent. The proof has
    a maximum with 25^4, as Theorem 3 does; this is the statement, which lacks it.

    >>> round(theorem_2(10**9, sparsity=20, smallest=0.12, sigma=1.0, delta=0.1, first_phase=3600).item())
    4880530414
    """
    checks.whole("sparsity", sparsity, least=1)
    checks.positive("smallest", smallest)
    checks.at_least_zero("sigma", sigma)
    checks.probability("delta", delta)
    checks.whole("first_phase", first_phase, least=1)
    T = positive_horizon(horizon)
    start = 50.0 / smallest**4.65 * first_phase
    spread = sparsity * np.log1p(25.0 * T / sparsity)
    luck = np.sqrt(2.0 * np.log(np.maximum(T / (first_phase * delta), 1.0)) + spread)
    return start + 25.0 * np.sqrt(T) * (1.0 + 4.0 * np.sqrt(spread) * (1.0 + sigma * luck))


def feature_bound(dim: int, n_arms: int, horizon: int, delta: float) -> float:
    """b(delta) of Appendix C for features N(0, I), whose tau is 1: sqrt(d) + sqrt(2 ln(4TK / delta)).

    With probability at least 1 - delta / 4, no feature vector of K arms in T rounds is longer.

    >>> round(feature_bound(20, 5, 60_000, 0.1), 3)
    10.182
    """
    checks.whole("dim", dim, least=1)
    checks.whole("n_arms", n_arms, least=1)
    checks.whole("horizon", horizon, least=1)
    checks.probability("delta", delta)
    return math.sqrt(dim) + math.sqrt(2.0 * math.log(4.0 * horizon * n_arms / delta))


FINITE_READINGS = ("literal", "normalised")


def first_phase_finite(
    dim: int,
    *,
    n_arms: int,
    horizon: int,
    sigma: float,
    delta: float,
    eigenvalues: tuple[float, float] = (1.0, 1.0),
    reading: str = "literal",
) -> int:
    """T_0 of Appendix C: the shortest first phase for which Theorem 3 is proved.

    `eigenvalues` are the smallest and the largest eigenvalue of Sigma_M, the mean covariance of the features over arms.
    The paper defines the eigenvalues in T_0 for a sum over N rounds (`literal`: N times Sigma_M), but describes those
    of a mean (`normalised`). Only with the latter, T_0 has the stated order d^2 b(delta)^2.

    >>> here = {"n_arms": 5, "horizon": 60_000, "sigma": 0.5**0.5, "delta": 0.1}
    >>> [first_phase_finite(20, **here, reading=reading) for reading in FINITE_READINGS]
    [346575, 142965590]
    """
    checks.whole("dim", dim, least=1)
    checks.whole("n_arms", n_arms, least=2)
    checks.whole("horizon", horizon, least=1)
    checks.positive("sigma", sigma)
    checks.probability("delta", delta)
    checks.one_of("reading", reading, FINITE_READINGS)
    smallest, largest = checks.finite_array("eigenvalues", eigenvalues, (2,)).tolist()
    if not 0.0 < smallest <= largest:
        raise ValueError(f"eigenvalues must be two numbers 0 < smallest <= largest, not {eigenvalues!r}")
    bound = feature_bound(dim, n_arms, horizon, delta)

    def needed(root: int) -> float:
        summed = root if reading == "literal" else 1
        return bound * _samples_needed(dim, sigma, delta, summed * smallest, summed * largest)

    return _least_first_phase(needed)


def theorem_3(horizon: Any, *, true_dim: int, n_arms: int, smallest: float, first_phase: int) -> np.ndarray:
    """Theorem 3's bound on the regret of ALB-Dim with finitely many arms.

    2 T_0 max(25^4, 2 / gamma^4.65) + 308 (1 + ln(2KT ln T))^(3/2) sqrt(T d_m*) + 100 sqrt(T)

    Shape only: the proof multiplies the part that grows with T by b(delta), the statement does not.

    >>> round(theorem_3(60_000, true_dim=5, n_arms=5, smallest=0.4, first_phase=4_900).item())
    3839665296
    """
    checks.whole("true_dim", true_dim, least=1)
    checks.whole("n_arms", n_arms, least=2)
    checks.positive("smallest", smallest)
    checks.whole("first_phase", first_phase, least=1)
    T = positive_horizon(horizon)
    start = 2.0 * first_phase * max(25.0**4, 2.0 / smallest**4.65)
    logs = 1.0 + np.log(np.maximum(2.0 * n_arms * T * np.log(np.maximum(T, 2.0)), 1.0))
    return start + 308.0 * logs**1.5 * np.sqrt(T * true_dim) + 100.0 * np.sqrt(T)
