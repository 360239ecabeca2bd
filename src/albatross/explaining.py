"""Why this arm? What the policy expects of every row, and which features speak for the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from albatross.picking import pick_best
from albatross.protocol import Offer, diagnostics, score


class Explanation(NamedTuple):
    """What a policy expects of every row, and what makes the difference between the best row and the next one."""

    arms: list[Any]  # (R,) the arm of every row
    means: np.ndarray  # (R,) estimated mean reward; NaN for an arm that was never played
    widths: np.ndarray  # (R,) exploration bonus; inf for an arm that was never played
    scores: np.ndarray  # (R,) what the policy maximises, without its randomness
    best: int  # the row of the highest score among the eligible ones
    runner_up: int | None  # the row of the next highest score; None if there is no other eligible row
    # what each feature, and the bias, adds to the mean of the best row over that of the runner-up, largest first
    contributions: list[tuple[str, float]]

    def __str__(self) -> str:
        lines = [f"{'arm':<20} {'mean':>10} {'width':>10} {'score':>10}"]
        for row in np.argsort(-self.scores, kind="stable"):
            mark = " <" if row == self.best else ""
            numbers = f"{self.means[row]:10.4g} {self.widths[row]:10.4g} {self.scores[row]:10.4g}"
            lines.append(f"{self.arms[row]!s:<20} {numbers}{mark}")
        versus = "" if self.runner_up is None else f" over {self.arms[self.runner_up]}"
        lines.append(f"for {self.arms[self.best]}{versus}:")
        lines += [f"  {name:<30} {value:+.4g}" for name, value in self.contributions[:10]]
        return "\n".join(lines)


def explain(
    parameters: Any, state: Any, offer: Offer, noise_size: int, *, arms: Sequence[Any], names: Sequence[str]
) -> Explanation:
    """Explain the choice among the rows of an offer, with no noise drawn."""
    if not score.has(type(parameters)):
        name = type(parameters).__name__.removesuffix("Parameters")
        raise ValueError(f"{name} has no score for every arm, so its choices cannot be explained")
    scores, widths = score(parameters, state, offer, np.zeros(noise_size))
    found = diagnostics(parameters, state)
    if "means" in found:  # contexts are ignored, and the score need not be a mean and a width
        means = np.where(found["pulls"] > 0, found["means"], np.nan)[offer.arms]
    else:
        with np.errstate(invalid="ignore"):
            means = scores - widths  # inf - inf is NaN
    priority = getattr(state, "priority", np.arange(offer.pending.size))
    return compared(found, offer, means, scores, widths, priority=priority, arms=arms, names=names)


def compared(
    found: dict[str, Any],
    offer: Offer,
    means: np.ndarray,
    scores: np.ndarray,
    widths: np.ndarray,
    *,
    priority: np.ndarray,
    arms: Sequence[Any],
    names: Sequence[str],
) -> Explanation:
    """Compare the best row with the next one; `found` has the estimates `theta_hat` and `biases`, if there are any.

    `priority` is the order by which the policy breaks ties between arms.
    """
    best = int(pick_best(scores, offer, priority))
    others = offer.eligible.copy()
    others[best] = False
    runner_up = int(pick_best(scores, offer._replace(eligible=others), priority)) if others.any() else None
    contributions = _contributions(found, offer, best, runner_up, names)
    return Explanation(list(arms), means, widths, scores, best, runner_up, contributions)


def _contributions(
    found: dict[str, Any], offer: Offer, best: int, runner_up: int | None, names: Sequence[str]
) -> list[tuple[str, float]]:
    difference, bias = offer.contexts[best].copy(), 0.0
    biases = found.get("biases", found.get("means"))
    if biases is not None:
        bias = float(biases[offer.arms[best]])
    if runner_up is not None:
        difference -= offer.contexts[runner_up]
        bias -= 0.0 if biases is None else float(biases[offer.arms[runner_up]])
    parts = list(zip(names, (found["theta_hat"] * difference).tolist(), strict=True)) if "theta_hat" in found else []
    if biases is not None:
        parts.append(("bias", bias))
    return sorted((part for part in parts if part[1] != 0.0), key=lambda part: -abs(part[1]))
