"""Regret bounds of the theorems, and the conditions under which they hold.

The paper leaves some constants unnamed. Here they are 1 (C) or the smallest value allowed (C_1 = 9), so a curve with
such a constant is meaningful only up to a factor: draw it as "shape only".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.confidence import burn_in

C = 1.0
C_1 = 9.0


def norm_contraction(n_arms: int, epoch_length: int, delta: float, rho_min: float) -> float:
    """p of Lemma 1: the share of b_i that remains in the error of b_{i+1}, times sqrt(T_i).

    >>> round(norm_contraction(75, 100, 0.1, 1.0), 4)
    166.8575
    """
    return 14.0 * math.log(2.0 * n_arms * epoch_length / delta) / math.sqrt(rho_min)


def norm_noise(n_arms: int, epoch_length: int, delta: float, rho_min: float, sigma: float) -> float:
    """q of Lemma 1: the contribution of the noise to the error of b_{i+1}, times sqrt(T_i / d); with C = 1.

    >>> round(norm_noise(75, 100, 0.1, 1.0, 0.5**0.5), 4)
    16.8551
    """
    return 2.0 * C * sigma * math.log(2.0 * n_arms * epoch_length / delta) / math.sqrt(rho_min)


def least_epoch_length(p: float, q: float, norm_bound: float, dim: int) -> float:
    """Lemma 1's condition on T_1: C_1 (max(p, q) b_1)^2 d, with C_1 = 9.

    >>> least_epoch_length(2.0, 1.0, 10.0, 50)
    180000.0
    """
    return C_1 * (max(p, q) * norm_bound) ** 2 * dim


def _positive_horizon(horizon: Any) -> np.ndarray:
    T = np.asarray(horizon, dtype=float)
    if not (T > 0).all():
        raise ValueError(f"horizon must be positive, not {horizon!r}")
    return T


def theorem_1(
    horizon: Any,
    *,
    theta_norm: float,
    n_arms: int,
    dim: int,
    epoch_length: int,
    delta: float,
    explore: int = 0,
) -> np.ndarray:
    """Theorem 1's bound on ALB-Norm's regret after `horizon` rounds (a number or an array); shape only.

    C_1 (2 tau + K) ||theta*|| + C (||theta*|| + 1)(sqrt K + sqrt d) sqrt T ln(K T_1 / delta_1) ln(T / T_1)

    >>> theorem_1(12_700, theta_norm=1.0, n_arms=75, dim=50, epoch_length=100, delta=0.1).round(1).item()
    193478.0
    """
    checks.probability("delta", delta)
    T = _positive_horizon(horizon)
    start = C_1 * (2 * explore + n_arms) * theta_norm
    growth = np.sqrt(T) * np.log(np.maximum(T / epoch_length, 1.0)) * math.log(n_arms * epoch_length / delta)
    return start + C * (theta_norm + 1.0) * (math.sqrt(n_arms) + math.sqrt(dim)) * growth


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
    T = _positive_horizon(horizon)
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
    T = _positive_horizon(horizon)
    start = 2.0 * first_phase * max(25.0**4, 2.0 / smallest**4.65)
    logs = 1.0 + np.log(np.maximum(2.0 * n_arms * T * np.log(np.maximum(T, 2.0)), 1.0))
    return start + 308.0 * logs**1.5 * np.sqrt(T * true_dim) + 100.0 * np.sqrt(T)


class Condition(NamedTuple):
    """A condition of a theorem and whether it holds: the given value and the needed one."""

    statement: str
    holds: bool
    given: float
    needed: float


def check(
    *,
    n_arms: int,
    dim: int,
    epoch_length: int,
    norm_bound: float,
    horizon: int,
    delta: float = 0.1,
    sigma: float = 1.0,
    rho_min: float = 1.0,
    explore: int | None = None,
) -> list[Condition]:
    """Check the conditions of Lemma 1 and Theorem 1 for these parameters.

    >>> for c in check(n_arms=75, dim=50, epoch_length=100, norm_bound=10.0, horizon=12_775, sigma=0.5**0.5):
    ...     print(c.holds, c.statement, f"needs {c.needed:.4g}")
    False T_1 > T_min(delta_1, T) needs 305.4
    False T_1 >= C_1 (max(p, q) b_1)^2 d, C_1 = 9 needs 1.253e+09
    True b_1 >= 1 needs 1
    """
    for name, value in (("n_arms", n_arms), ("dim", dim), ("epoch_length", epoch_length), ("horizon", horizon)):
        checks.whole(name, value, least=1)
    checks.at_least_zero("norm_bound", norm_bound)
    checks.probability("delta", delta)
    checks.positive("sigma", sigma)
    checks.positive("rho_min", rho_min)
    t_min = burn_in(float(delta), float(horizon), float(dim), float(rho_min))
    p = norm_contraction(n_arms, epoch_length, delta, rho_min)
    q = norm_noise(n_arms, epoch_length, delta, rho_min, sigma)
    least = least_epoch_length(p, q, norm_bound, dim)
    found = [
        Condition("T_1 > T_min(delta_1, T)", epoch_length > t_min, epoch_length, t_min),
        Condition("T_1 >= C_1 (max(p, q) b_1)^2 d, C_1 = 9", epoch_length >= least, epoch_length, least),
        Condition("b_1 >= 1", norm_bound >= 1.0, norm_bound, 1.0),
    ]
    if explore is not None:
        checks.whole("explore", explore, least=1)
        found.append(Condition("tau > d", explore > dim, explore, dim + 1))
    return found
