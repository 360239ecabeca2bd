"""Off-policy estimates of the mean reward of a policy that does not learn, and whether a log supports them."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.environments.logged import checked_actions, checked_propensities

_ROUNDING = 1e-6  # tolerance for probabilities to sum to 1
_ALIKE = 1e-12  # a spread this small relative to the mean is rounding
# On simulated logs with support, SNIPS +- two standard errors contains the truth in 20 % of cases with fewer than 3
# effective rounds, in 70 % with 3 to 10, in 85 % with 10 to 30 and in 90 % and more beyond. For a log of fewer than 100
# rounds, a tenth is enough: its size is obvious.
_FEWEST, _SMALLEST_SHARE = 10.0, 0.1
MISSING = 0.01  # share of a policy's choices that may be missing from the log
EXCESS = 0.05  # share by which weights may exceed 1: propensities may be rounded to two digits
DEVIATIONS = 4.0  # standard deviations by which these must be exceeded
_CERTAIN = 1.0 - 1e-6  # a propensity that leaves no probability for other actions


class Estimate(NamedTuple):
    """Mean reward per round, its standard error and the number of rounds that it effectively rests on.

    If the log does not support an estimate, value and error are NaN and `reason` says why: more than 1 % of the
    policy's choices are actions that the logging policy could not take, or did not take according to the mean weight;
    the mean weight is more than 1.05, so that the propensities must be wrong; or fewer than 10 effective rounds remain
    (for a log of fewer than 100 rounds: fewer than a tenth).
    """

    value: float
    standard_error: float  # NaN if all averaged values are equal, as without any reward
    effective_sample_size: float
    reason: str | None = None


class Target(NamedTuple):
    """A policy that does not learn, evaluated on the rounds of a log."""

    probabilities: np.ndarray  # (n, K)
    actions: np.ndarray  # (n,) logged
    rewards: np.ndarray  # (n,)
    weights: np.ndarray  # (n,) probability of the logged action divided by its propensity
    effective_sample_size: float
    reason: str | None  # why the log does not support an estimate


def ips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """Inverse propensity score: an unbiased estimate for a policy with choice probabilities `target` (n, K).

    >>> ips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    4.0
    """
    return ips_of(_checked_target("the target", target, actions, rewards, propensities))


def snips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """IPS divided by the mean weight: slightly biased, often with a much smaller variance.

    >>> snips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    2.0
    """
    return snips_of(_checked_target("the target", target, actions, rewards, propensities))


def doubly_robust(target: Any, *, actions: Any, rewards: Any, propensities: Any, predictions: Any) -> Estimate:
    """Mean of the predicted rewards (n, K) plus IPS of their errors: unbiased for any predictions.

    A prediction must not use the reward of its own round: see `predicted_rewards`.

    >>> logged = {"actions": [1, 0], "rewards": [1, 3], "propensities": [0.5, 0.25]}
    >>> doubly_robust([[0, 1], [0.5, 0.5]], **logged, predictions=[[2, 1], [2, 1]]).value
    2.25
    """
    checked = _checked_target("the target", target, actions, rewards, propensities)
    predictions = checks.finite_array("predictions", predictions, checked.probabilities.shape)
    return doubly_robust_of(checked, predictions)


def ips_of(target: Target) -> Estimate:
    return _mean(target.weights * target.rewards, target)


def snips_of(target: Target) -> Estimate:
    if target.reason is not None:
        return _refused(target)
    total = float(target.weights.sum())
    value = float(target.weights @ target.rewards) / total
    spread = math.sqrt(float((target.weights**2) @ (target.rewards - value) ** 2)) / total  # the delta method
    return Estimate(value, _known(spread, value), target.effective_sample_size)


def doubly_robust_of(target: Target, predictions: np.ndarray) -> Estimate:
    played = predictions[np.arange(len(predictions)), target.actions]
    expected = (target.probabilities * predictions).sum(axis=1)
    return _mean(expected + target.weights * (target.rewards - played), target)


def _mean(values: np.ndarray, target: Target) -> Estimate:
    if target.reason is not None:
        return _refused(target)
    return Estimate(float(values.mean()), standard_error(values), target.effective_sample_size)


def _refused(target: Target) -> Estimate:
    return Estimate(math.nan, math.nan, target.effective_sample_size, target.reason)


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean; NaN if it is unknown."""
    if values.size < 2:
        return math.nan
    return _known(float(values.std(ddof=1)) / math.sqrt(values.size), float(values.mean()))


def _known(error: float, value: float) -> float:
    """Return the error, or NaN if it is 0 up to rounding: equal values say nothing about their error."""
    return error if error > _ALIKE * abs(value) else math.nan


def _checked_target(name: str, target: Any, actions: Any, rewards: Any, propensities: Any) -> Target:
    rewards = checks.finite_array("rewards", rewards, (None,))
    if not rewards.size:
        raise ValueError("rewards must hold at least one round")
    target = checked_probabilities(target, rewards.size)
    actions = checked_actions(actions, *target.shape)
    propensities = checked_propensities(propensities, rewards.size)
    return weighted(name, target, actions, rewards, propensities, stacklevel=4)


def weighted(
    name: str,
    target: np.ndarray,
    actions: np.ndarray,
    rewards: np.ndarray,
    propensities: np.ndarray,
    *,
    stacklevel: int = 3,
) -> Target:
    """Compute the weights; warn if the log lacks actions of the target."""
    weights = target[np.arange(len(target)), actions] / propensities
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    unknown = target[:, np.bincount(actions, minlength=target.shape[1]) == 0]
    reason = _why_refused(weights, effective, propensities, unknown)
    if reason is not None:
        warnings.warn(f"{name}: no IPS, SNIPS or DR, because {reason}", stacklevel=stacklevel)
    elif unknown.any():
        warnings.warn(
            f"{name} {_spent(unknown)}: IPS and SNIPS omit their rewards, DR extrapolates them, and replay never "
            "accepts them",
            stacklevel=stacklevel,
        )
    return Target(target, actions, rewards, weights, effective, reason)


def _spent(unknown: np.ndarray) -> str:
    """Describe how often a policy takes actions that were never logged, from their probabilities (n, number)."""
    number = int(unknown.any(axis=0).sum())
    kind = "action that was" if number == 1 else "actions that were"
    return f"spends {unknown.sum():.4g} of {len(unknown)} rounds on {number} {kind} never logged"


def _why_refused(weights: np.ndarray, effective: float, propensities: np.ndarray, unknown: np.ndarray) -> str | None:
    """Return why the log does not support off-policy estimates, or None."""
    n = weights.size
    impossible = float((1.0 - weights)[propensities >= _CERTAIN].sum())
    if impossible > MISSING * n:
        return (
            f"it spends {impossible:,.4g} of {n:,} rounds on actions that the logging policy could not take: the "
            "logged action had propensity 1"
        )
    fewest = min(_FEWEST, _SMALLEST_SHARE * n)
    if effective < fewest:
        return f"it rests on {effective:.2g} effective rounds of {n:,}, but needs at least {fewest:.3g}"
    average = float(weights.mean())
    # The mean of weights is at most 1, so their variance is at most the largest one less 1.
    if average - 1.0 > max(EXCESS, DEVIATIONS * math.sqrt(max(0.0, weights.max() - 1.0) / n)):
        return f"its weights average {average:.2f}, but at most 1 is possible: the propensities are too small"
    error = float(weights.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    missing = 1.0 - average
    if missing <= max(MISSING, DEVIATIONS * error):
        return None
    if unknown.sum() > 0.5 * missing * n:
        return f"it {_spent(unknown)}"
    return (
        f"its weights average {average:.2f} ± {error:.2f}, not 1: the log hardly contains the actions of "
        f"{100.0 * missing:.0f} % of its choices, or the propensities are wrong"
    )


def check_eligible(name: str, target: np.ndarray, eligible: np.ndarray) -> None:
    """Refuse probabilities (n, K) of arms that are not eligible (n, K)."""
    wrong = (target > _ROUNDING) & ~eligible
    if wrong.any():
        row, arm = (int(place[0]) for place in np.nonzero(wrong))
        what = f"probabilities {name}" if name else "the probabilities"
        raise ValueError(f"{what} give {target[row, arm]:g} to arm {arm} in round {row}, where it is not eligible")


def checked_probabilities(target: Any, length: int) -> np.ndarray:
    """Check choice probabilities (n, K) for the rounds of the log."""
    if isinstance(target, str) or np.ndim(target) != 2:
        raise TypeError(
            f"{target!r} is neither a policy, an agent, a fleet nor an array of probabilities "
            f"({length}, number of arms)"
        )
    target = checks.finite_array("probabilities", target, (length, None))
    sums = target.sum(axis=1)
    if target.size and target.min() < 0.0:
        raise ValueError(f"probabilities must not be negative, but hold {target.min():g}")
    if (np.abs(sums - 1.0) > _ROUNDING).any():
        row = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(f"probabilities must sum to 1 in each round, but to {sums[row]:g} in round {row}")
    return target
