"""What does hold in place of Lemmas 1 and 2, with all constants. docs/theorems.md has the proofs."""

from __future__ import annotations

import math

from albatross import checks


def centred_radius(
    *, log_det: float, least_eigenvalue: float, norm_bound: float, delta: float, sigma: float, n_arms: int
) -> float:
    """Radius of a confidence ball around the centred estimate of theta* (Theorem A of docs/theorems.md).

    The estimate is least squares with a bias per arm and a ridge of 1 on theta, after every arm was played once. Then

        beta = sigma (sqrt(2 ln(2 / delta) + log_det) + sqrt K + sqrt(2 ln(2 / delta))) + b,

    and ||theta_hat - theta*|| <= beta / sqrt(least_eigenvalue) in all rounds, with probability 1 - delta, if
    ||theta*|| <= b. `log_det` is ln(n_1 ... n_K det G) with n_i plays of arm i, and `least_eigenvalue` that of G, the
    identity plus the scatter of the contexts played around the mean of their arm. How arms are chosen does not matter.

    >>> round(centred_radius(log_det=30.0, least_eigenvalue=1e4, norm_bound=1.0, delta=0.1, sigma=0.1, n_arms=2), 5)
    0.01986
    """
    checks.at_least_zero("log_det", log_det)
    checks.positive("least_eigenvalue", least_eigenvalue)
    checks.at_least_zero("norm_bound", norm_bound)
    checks.probability("delta", delta)
    checks.at_least_zero("sigma", sigma)
    checks.whole("n_arms", n_arms, least=1)
    level = 2.0 * math.log(2.0 / delta)
    noise = math.sqrt(level + log_det) + math.sqrt(n_arms) + math.sqrt(level)
    return (sigma * noise + norm_bound) / math.sqrt(least_eigenvalue)


def least_spread(n_arms: int, density: float) -> float:
    """kappa of Theorem B: the scatter within arms grows at least as kappa t in every direction; 1 / (512 K^2 L^2).

    `density` is L, an upper bound on the density of <v, context> for unit vectors v: 1 / sqrt(2 pi rho_min) for normal
    contexts. This holds for every rule that chooses arms.

    >>> round(least_spread(2, 1.0 / math.sqrt(2.0 * math.pi)), 6)
    0.003068
    """
    checks.whole("n_arms", n_arms, least=1)
    checks.positive("density", density)
    return 1.0 / (512.0 * (n_arms * density) ** 2)


def rounds_to_spread(n_arms: int, dim: int, *, density: float, largest: float, delta: float) -> int:
    """Number of rounds after which Theorem B holds with probability 1 - delta, if no context is longer than `largest`.

    8 ((d + K) ln(1 + 64 K L R) + ln(1 / delta))

    >>> rounds_to_spread(2, 1, density=0.4, largest=6.0, delta=0.05)
    162
    """
    checks.whole("n_arms", n_arms, least=1)
    checks.whole("dim", dim, least=1)
    checks.positive("density", density)
    checks.positive("largest", largest)
    checks.probability("delta", delta)
    nets = (dim + n_arms) * math.log1p(64.0 * n_arms * density * largest)
    return math.ceil(8.0 * (nets + math.log(1.0 / delta)))


def samples_needed(error: float, *, dim: int, sigma: float, delta: float) -> int:
    """Number of uniform samples on the unit sphere that make least squares accurate (Theorem C of docs/theorems.md).

    max(7 d ln(2 d / delta), 4 d (sigma / eps)^2 ln(4 d / delta)): then the largest error of a coordinate is less than
    eps with probability 1 - delta. Lemma 2 claims (1 / eps^2 + d) ln(1 / delta).

    >>> samples_needed(0.125, dim=20, sigma=0.5, delta=0.1)
    8557
    """
    checks.positive("error", error)
    checks.whole("dim", dim, least=1)
    checks.at_least_zero("sigma", sigma)
    checks.probability("delta", delta)
    design = 7.0 * dim * math.log(2.0 * dim / delta)
    noise = 4.0 * dim * (sigma / error) ** 2 * math.log(4.0 * dim / delta)
    return math.ceil(max(design, noise))


def start_width(*, least_eigenvalue: float, dim: int, sigma: float, delta: float) -> float:
    """Error of least squares on differences of pairs of rewards, with probability 1 - delta (Theorem D).

    sqrt(2) sigma (sqrt(d) + sqrt(2 ln(1 / delta))) / sqrt(least_eigenvalue), the smallest eigenvalue of X'X for the
    matrix X of differences of contexts. Section 3.3 has sqrt(2) sigma sqrt(d ln(1 / delta) / tau), which knows neither
    the size of the contexts nor how many pairs there are beyond d.

    >>> round(start_width(least_eigenvalue=40.0, dim=5, sigma=0.5, delta=0.1), 4)
    0.4899
    """
    checks.positive("least_eigenvalue", least_eigenvalue)
    checks.whole("dim", dim, least=1)
    checks.at_least_zero("sigma", sigma)
    checks.probability("delta", delta)
    noise = math.sqrt(dim) + math.sqrt(2.0 * math.log(1.0 / delta))
    return math.sqrt(2.0) * sigma * noise / math.sqrt(least_eigenvalue)
