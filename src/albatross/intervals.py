"""Confidence intervals of means over trials, and of the exponents with which regret grows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


def margin(values: np.ndarray) -> float:
    """Half the width of Student's 95 % interval for the mean; NaN for one value.

    >>> round(margin(np.array([3.0, 4.0, 5.0])), 4)
    2.4841
    """
    from scipy.stats import t  # slow to import, so not before it is needed

    if len(values) < 2:
        return math.nan
    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))


def deviation_interval(values: np.ndarray) -> tuple[float, float]:
    """Ends of the 95 % interval for the standard deviation of normal values, by the chi-square law; NaN for one value.

    >>> low, high = deviation_interval(np.array([3.0, 4.0, 5.0]))
    >>> round(low, 4), round(high, 4)
    (0.5207, 6.2847)
    """
    from scipy.stats import chi2

    if len(values) < 2:
        return math.nan, math.nan
    freedom = len(values) - 1
    low, high = values.std(ddof=1) * np.sqrt(freedom / chi2.ppf([0.975, 0.025], freedom))
    return float(low), float(high)


def proportion_interval(met: np.ndarray) -> tuple[float, float]:
    """Ends of the exact (Clopper-Pearson) 95 % interval for a probability, from yes or no in each trial; NaN for one.

    >>> low, high = proportion_interval(np.array([True, True, True]))
    >>> round(low, 4), high
    (0.2924, 1.0)
    """
    from scipy.stats import beta

    if len(met) < 2:
        return math.nan, math.nan
    yes, no = int(met.sum()), int(len(met) - met.sum())
    low = float(beta.ppf(0.025, yes, no + 1)) if yes else 0.0
    return low, float(beta.ppf(0.975, yes + 1, no)) if no else 1.0


def exponents(x: np.ndarray, regret: np.ndarray) -> np.ndarray:
    """(trials,) slopes of lines on log axes, from regret (trials, len(x)): regret is about x to that power.

    One row per trial, because values of the same trial are dependent.

    >>> exponents(np.array([1.0, 4.0, 16.0]), np.array([[3.0, 6.0, 12.0], [1.0, 1.0, 1.0]])).round(9).tolist()
    [0.5, 0.0]
    """
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(np.log(regret) @ centred / (centred @ centred))


class Slope(NamedTuple):
    """The slope of the line fitted to log regret against log x, with its interval."""

    mean: float
    margin: float | None  # half of its 95 % interval; one trial has none

    def __str__(self) -> str:
        return f"{self.mean:z.2f}" if self.margin is None else f"{self.mean:z.2f} ± {self.margin:.2f}"


def slope(x: np.ndarray, regret: np.ndarray) -> Slope:
    """Fit a line by least squares in each trial and average the slopes: values of the same trial are dependent.

    >>> x = np.array([1.0, 10.0, 100.0])
    >>> str(slope(x, np.array([3.0 * x**0.4, 5.0 * x**0.6])))
    '0.50 ± 1.27'
    """
    each = exponents(x, regret)
    return Slope(float(each.mean()), margin(each) if len(each) > 1 else None)
