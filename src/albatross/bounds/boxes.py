"""Regret bounds of the policies that the paper uses as black boxes, as its proofs quote them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross import checks
from albatross.bounds.constants import C, positive_horizon


def oful(horizon: Any, *, dim: int, sigma: float, delta: float) -> np.ndarray:
    """OFUL on the unit ball, ||theta*|| <= 1, with probability 1 - delta (proof of Theorem 2).

    4 sqrt(T d ln(1 + T / d)) (1 + sigma sqrt(2 ln(1 / delta) + d ln(1 + T / d)))

    >>> oful(10_000, dim=5, sigma=0.5, delta=0.1).round(1).item()
    10514.7
    """
    checks.whole("dim", dim, least=1)
    checks.at_least_zero("sigma", sigma)
    checks.probability("delta", delta)
    T = positive_horizon(horizon)
    spread = dim * np.log1p(T / dim)
    return 4.0 * np.sqrt(T * spread) * (1.0 + sigma * np.sqrt(2.0 * math.log(1.0 / delta) + spread))


def sup_lin_rel(horizon: Any, *, dim: int, n_arms: int) -> np.ndarray:
    """SupLinRel with features of norm at most 1 (proof of Theorem 3; Auer 2002, Theorem 6).

    44 (1 + ln(2 K T ln T))^(3/2) sqrt(T d) + 2 sqrt(T)

    >>> sup_lin_rel(10_000, dim=5, n_arms=5).round(1).item()
    556598.1
    """
    checks.whole("dim", dim, least=1)
    checks.whole("n_arms", n_arms, least=2)
    T = positive_horizon(horizon)
    logs = 1.0 + np.log(np.maximum(2.0 * n_arms * T * np.log(np.maximum(T, 2.0)), 1.0))
    return 44.0 * logs**1.5 * np.sqrt(T * dim) + 2.0 * np.sqrt(T)


def oful_plus(horizon: Any, *, n_arms: int, dim: int, delta: float, norm_bound: float = 1.0) -> np.ndarray:
    """OFUL+ given `norm_bound`, with probability 1 - 5 delta (proof of Theorem 1); shape only.

    b C (sqrt K + sqrt d) sqrt(T) ln(K T / delta)

    >>> oful_plus(10_000, n_arms=5, dim=5, delta=0.1).round(1).item()
    5868.5
    """
    checks.whole("n_arms", n_arms, least=1)
    checks.whole("dim", dim, least=1)
    checks.probability("delta", delta)
    checks.at_least_zero("norm_bound", norm_bound)
    T = positive_horizon(horizon)
    roots = math.sqrt(n_arms) + math.sqrt(dim)
    return norm_bound * C * roots * np.sqrt(T) * np.log(np.maximum(n_arms * T / delta, 1.0))
