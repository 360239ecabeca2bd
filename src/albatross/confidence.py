"""Radii and widths: one function per formula of the papers, with natural logarithms.

Ghosh, Sankararaman and Ramchandran give OFUL+'s widths twice: in Appendix A with all constants, and in the main text
with one unnamed constant c. Both are here, as the types `Appendix(scale)` and `Main(scale)`. `scale` multiplies the
whole width and the whole radius: it is the c of the main text, and 1 gives exactly the formulas of the appendix.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from albatross.compiling import compiled, generic
from albatross.options import one_of


class Main(NamedTuple):
    """The formulas of Section 3.2, with c = scale."""

    scale: float


class Appendix(NamedTuple):
    """Equations (2) to (6) of Appendix A, times `scale`."""

    scale: float


FORMS = {"main": Main, "appendix": Appendix}
Form = Annotated[str, one_of(*FORMS)]  # a policy's keyword

# ---------------------------------------------------------------------------------------------- Appendix A


@compiled
def burn_in(delta, horizon, dim, rho_min):
    """T_min, Appendix A: rounds until the smallest eigenvalue of the contexts' covariance is reached empirically.

    >>> round(burn_in(0.1, 100.0, 50.0, 1.0), 9)
    214.907942013
    """
    return (16.0 / rho_min**2 + 8.0 / (3.0 * rho_min)) * math.log(2.0 * dim * horizon / delta)


@compiled
def self_normalised(norm_bound, t, delta, sigma, dim):
    """M_delta(b, t), Appendix A: error of least squares after t rounds due to noise and ridge.

    >>> round(self_normalised(0.1, 1.0, 0.1, 0.5**0.5, 50.0), 12)
    1.772617940654
    """
    spread = dim / 2.0 * math.log(1.0 + t / dim) + math.log(1.0 / delta)
    return norm_bound + math.sqrt(2.0 * sigma**2 * spread)


@compiled
def bias_leakage(norm_bound, t, horizon, delta, sigma, n_arms):
    """Upsilon_delta(b, t, T), Appendix A: error of least squares due to errors of the bias estimates.

    >>> round(bias_leakage(0.1, 0.0, 100.0, 0.1, 0.5**0.5, 75.0), 9)
    446.858100127
    """
    level = math.log(2.0 * n_arms * horizon / delta)
    size = norm_bound + 2.0 + sigma * math.sqrt(1.0 + 2.0 * level)
    return 10.0 / 3.0 * size * (level + math.sqrt(t * level + level**2))


@compiled
def radius_appendix(norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min):
    """K_delta(b, t, T), Appendix A: Euclidean radius of OFUL+'s confidence ball after t of T rounds.

    The paper leaves t <= 1 and t = T_min open: here the first branch applies below T_min, the second from T_min on.

    >>> round(radius_appendix(0.1, 0.0, 100.0, 0.1, 0.5**0.5, 75.0, 50.0, 1.0), 9)
    448.475527256
    """
    noise = self_normalised(norm_bound, t, delta, sigma, dim)
    leakage = bias_leakage(norm_bound, t, horizon, delta, sigma, n_arms)
    if t < burn_in(delta, horizon, dim, rho_min):
        return noise + leakage
    growth = 1.0 + rho_min * t / 2.0
    return noise / math.sqrt(growth) + leakage / growth


@compiled
def mean_width(count, delta, sigma, n_arms):
    """Half-width of an arm's mean after `count` plays, valid uniformly over time and arms.

    >>> round(mean_width(1.0, 0.1, 0.5**0.5, 75.0), 9)
    3.86436199
    """
    level = 1.0 + 2.0 * math.log(n_arms * math.sqrt(1.0 + count) / delta)
    return sigma * math.sqrt((1.0 + count) / count**2 * level)


@compiled
def bias_width_appendix(count, norm_bound, delta, sigma, n_arms, dim):
    """Bonus on an arm's mean reward in Appendix A: the width of the mean, plus that of its context part.

    >>> round(bias_width_appendix(1.0, 0.1, 0.1, 0.5**0.5, 75.0, 50.0), 9)
    5.38178912
    """
    context_part = norm_bound * math.sqrt(2.0 * dim / count * math.log(1.0 / delta))
    return mean_width(count, delta, sigma, n_arms) + context_part


# -------------------------------------------------------------------------------- the main text, with c = 1


@compiled
def radius_main(norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min):
    """K_delta(b, t, T) as in Section 3.2; t = 0 is read as 1.

    >>> round(radius_main(0.1, 0.0, 100.0, 0.1, 0.5**0.5, 75.0, 50.0, 1.0), 9)
    17.087088126
    """
    level = math.sqrt(math.log(n_arms * horizon / delta))
    return (sigma * math.sqrt(dim) + norm_bound) / (rho_min * math.sqrt(max(t, 1.0))) * level


@compiled
def bias_width_main(count, norm_bound, delta, sigma, dim):
    """Bonus on an arm's mean reward in Section 3.2.

    >>> round(bias_width_main(1.0, 0.1, 0.1, 0.5**0.5, 50.0), 9)
    8.66011866
    """
    return (sigma + norm_bound) * math.sqrt(dim / count * math.log(1.0 / delta))


# ------------------------------------------------------------------------------------- either form, scaled

radius = generic("radius")  # radius(form, norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)
bias_width = generic("bias_width")  # bias_width(form, count, norm_bound, delta, sigma, n_arms, dim)


@radius.register
def scaled_radius_main(form: Main, norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min):
    return form.scale * radius_main(norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)


@radius.register
def scaled_radius_appendix(form: Appendix, norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min):
    return form.scale * radius_appendix(norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)


@bias_width.register
def scaled_width_main(form: Main, count, norm_bound, delta, sigma, n_arms, dim):
    return form.scale * bias_width_main(count, norm_bound, delta, sigma, dim)


@bias_width.register
def scaled_width_appendix(form: Appendix, count, norm_bound, delta, sigma, n_arms, dim):
    return form.scale * bias_width_appendix(count, norm_bound, delta, sigma, n_arms, dim)


@compiled
def arms_in_play(counts):
    """K of the widths: arms that have been played. One that was added, but never played, then changes no width.

    >>> arms_in_play(np.array([3.0, 0.0, 1.0]))
    2
    """
    played = 0
    for arm in range(counts.size):
        played += counts[arm] > 0.0
    return max(played, 1)


@compiled
def bias_widths(form, counts, norm_bound, delta, sigma, dim):
    """`bias_width` of every arm; +inf, which requests a first play, for an arm without plays."""
    n_arms, widths = arms_in_play(counts), np.empty(counts.size)
    for arm in range(counts.size):
        if counts[arm] > 0.0:
            widths[arm] = bias_width(form, counts[arm], norm_bound, delta, sigma, n_arms, dim)
        else:
            widths[arm] = np.inf
    return widths


# -------------------------------------------------------------------------------------------- other papers


@compiled
def ellipsoid_radius(log_det, norm_bound, delta, sigma, strength):
    """OFUL's radius in the norm of V (Abbasi-Yadkori, Pal and Szepesvari 2011, Theorem 2), log_det = ln det V/det V_0.

    >>> ellipsoid_radius(0.0, 3.0, 1.0, 0.5, 4.0)
    6.0
    """
    return sigma * math.sqrt(log_det + 2.0 * math.log(1.0 / delta)) + math.sqrt(strength) * norm_bound


@compiled
def initial_norm_bound(estimate_norm, pairs, dim, sigma, delta):
    """b_1 of Section 3.3, from least squares on `pairs` differences of rewards of one arm.

    >>> initial_norm_bound(0.25, 50.0, 4.0, 0.0, 0.1)
    1.0
    """
    return max(estimate_norm + math.sqrt(2.0) * sigma * math.sqrt(dim / pairs * math.log(1.0 / delta)), 1.0)
