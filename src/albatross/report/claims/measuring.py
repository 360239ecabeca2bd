"""Numbers with their intervals, from trials and from the tables of panels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from albatross.intervals import deviation_interval, exponents, margin, proportion_interval
from albatross.report.claims.engine import Measured
from albatross.report.wording import trials
from albatross.store.results import Stored

Range = tuple[float, float]
ABOVE_1: Range = (1.0, math.inf)


def at_most(limit: float) -> Range:
    """
    >>> at_most(2.0)
    (-inf, 2.0)
    """
    return -math.inf, limit


def mean(what: str, values: np.ndarray, wanted: Range) -> Measured:
    """Return the mean over trials, with Student's interval.

    >>> mean("epochs", np.array([3.0, 4.0, 5.0]), (0.0, 5.0))
    Measured(what='epochs', value=4.0, low=1.51586..., high=6.48413..., wanted=(0.0, 5.0))
    """
    return _around(what, float(values.mean()), values - values.mean(), wanted)


def share(what: str, percent: np.ndarray, wanted: Range) -> Measured:
    """Return a mean of percentages; its interval is cut at 0 and at 100."""
    found = mean(what, percent, wanted)
    return found._replace(low=float(np.maximum(found.low, 0.0)), high=float(np.minimum(found.high, 100.0)))


def proportion(what: str, met: np.ndarray, wanted: Range) -> Measured:
    """Return in how many trials something is so, in %; its interval is exact, because few trials may all agree.

    >>> proportion("covered", np.array([True, True, True]), (95.0, 100.0))
    Measured(what='covered', value=100.0, low=29.2401..., high=100.0, wanted=(95.0, 100.0))
    """
    low, high = proportion_interval(met)
    return Measured(what, 100.0 * float(met.mean()), 100.0 * low, 100.0 * high, wanted)


def deviation(what: str, values: np.ndarray, wanted: Range) -> Measured:
    """Return the standard deviation over trials, in % of the mean; its interval treats the mean as known.

    >>> deviation("spread", np.array([9.0, 10.0, 11.0]), (0.0, 20.0))
    Measured(what='spread', value=10.0, low=5.2065..., high=62.847..., wanted=(0.0, 20.0))
    """
    percent = 100.0 * values / values.mean()
    return Measured(what, float(percent.std(ddof=1)), *deviation_interval(percent), wanted)


def ratio(what: str, above: np.ndarray, below: np.ndarray, wanted: Range) -> Measured:
    """Return the ratio of two means over the same trials; its interval is Student's, by linearisation.

    >>> ratio("twice", np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]), (1.5, 3.0))
    Measured(what='twice', value=2.0, low=2.0, high=2.0, wanted=(1.5, 3.0))
    """
    value = float(above.mean() / below.mean())
    return _around(what, value, (above - value * below) / below.mean(), wanted)


def slope(what: str, x: np.ndarray, regret: np.ndarray, wanted: Range) -> Measured:
    """Return the exponent of x in the regret (trials, len(x)): the slope on log axes, trial by trial.

    >>> round(slope("", np.array([1.0, 4.0, 16.0]), np.array([[3.0, 6.0, 12.0]]), (0.4, 0.6)).value, 9)
    0.5
    """
    return mean(what, exponents(x, regret), wanted)


def exact(what: str, value: float, wanted: Range) -> Measured:
    """Return a deterministic number."""
    return Measured(what, value, value, value, wanted)


def _around(what: str, value: float, deviations: np.ndarray, wanted: Range) -> Measured:
    half = margin(deviations)
    return Measured(what, value, value - half, value + half, wanted)


def regret_ratios(
    stored: Stored, panels: Sequence[str], above: str, below: str, wanted: Range, note: str = ""
) -> list[Measured]:
    """Return one ratio of final regrets per panel that is stored and has both policies."""
    found = []
    for panel in panels:
        if panel in stored and {above, below} <= set(stored.summaries[panel]["policies"]):
            high, low = stored.finals(panel, above, below)
            few = f", {trials(len(high))}" * (len(high) < stored.summaries[panel]["trials"])
            found.append(ratio(f"{_problem(stored, panel)}{note}{few}", high, low, wanted))
    return found


def _problem(stored: Stored, panel: str) -> str:
    settings = stored.summaries[panel]["settings"]
    if "theta_norm" in settings:
        return f"norm {settings['theta_norm']:g}"
    return f"d = {settings['dim']}" if "dim" in settings else "nested maps"
