"""What can be said of a mean over trials, and of how regret grows."""

from __future__ import annotations

import math

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


def exponents(x: np.ndarray, regret: np.ndarray) -> np.ndarray:
    """(trials,) slopes of lines on log axes, from regret (trials, len(x)): regret is about x to that power.

    One line a trial, because values of one trial share their luck.

    >>> exponents(np.array([1.0, 4.0, 16.0]), np.array([[3.0, 6.0, 12.0], [1.0, 1.0, 1.0]])).round(9).tolist()
    [0.5, 0.0]
    """
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(np.log(regret) @ centred / (centred @ centred))
