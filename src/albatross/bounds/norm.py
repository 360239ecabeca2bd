"""Lemma 1 and Theorem 1, about ALB-Norm, with their conditions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.bounds.constants import C_1, C, positive_horizon
from albatross.confidence import burn_in


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

    C_1 (2 tau + K) ||theta*|| + C (||theta*|| + 1)(sqrt K + sqrt d) sqrt T ln(K T_1 / delta_1) N

    with N = log2(1 + T / T_1) epochs, at least one, as in the proof. The statement has ln(T / T_1) in its place, which
    is 0 at the end of the first epoch: no policy has a regret of 0 there.

    >>> theorem_1(12_700, theta_norm=1.0, n_arms=75, dim=50, epoch_length=100, delta=0.1).round(1).item()
    279281.3
    """
    checks.probability("delta", delta)
    T = positive_horizon(horizon)
    start = C_1 * (2 * explore + n_arms) * theta_norm
    epochs = np.maximum(np.log2(1.0 + T / epoch_length), 1.0)
    growth = np.sqrt(T) * epochs * math.log(n_arms * epoch_length / delta)
    return start + C * (theta_norm + 1.0) * (math.sqrt(n_arms) + math.sqrt(dim)) * growth


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
