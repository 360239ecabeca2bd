"""What becomes of a reward: one function of what is known of the decision."""

from __future__ import annotations

import math
from collections.abc import Sequence

from albatross.service.events import Outcome
from albatross.service.fold import Pending
from albatross.service.settings import RewardRules

# The value that a closed decision was settled with, by status: a second reward is compared with it.
_REWARDED = ("learnt", "frozen", "closed")


def outside(value: float, rules: RewardRules) -> str:
    """Return what is wrong with a reward outside of its bounds, nothing if it is inside.

    >>> outside(2.0, RewardRules(high=1.0))
    'the reward must be between -inf and 1'
    """
    low = -math.inf if rules.low is None else rules.low
    high = math.inf if rules.high is None else rules.high
    return "" if low <= value <= high else f"the reward must be between {low:g} and {high:g}"


def for_open(pending: Pending, value: float, rules: RewardRules, *, frozen: bool) -> str:
    """Return the status of a reward for a decision whose wait has not ended."""
    if rules.combine == "first" and pending.kept:
        return "duplicate" if pending.kept[0] == value else "conflict"
    if not pending.active:
        return "inactive"
    if frozen and rules.combine == "first":
        return "frozen"
    return "learnt" if rules.at_once else "waits"


def for_closed(outcomes: Sequence[Outcome], value: float, rules: RewardRules) -> str:
    """Return the status of a reward for a decision that is closed."""
    for came in outcomes:
        if came.status == "late" and came.value == value:
            return "duplicate"
        if came.status in _REWARDED and came.value is not None and rules.combine == "first":
            return "duplicate" if came.value == value else "conflict"
    return "late"


def at_the_end(pending: Pending, rules: RewardRules, *, frozen: bool) -> tuple[str, float | None]:
    """Return status and value with which a decision is closed when its wait ends."""
    if not pending.active:
        return "expired", None
    if pending.kept:
        return "frozen" if frozen else "closed", combined(pending.kept, rules)
    if rules.default is None:
        return "expired", None
    return "frozen_default" if frozen else "default", rules.default + 0.0  # not -0.0, as in the log


def combined(kept: Sequence[float], rules: RewardRules) -> float:
    """Return one reward of several.

    >>> combined([1.0, 2.5], RewardRules(combine="sum"))
    3.5
    """
    if rules.combine == "sum":
        return sum(kept)
    return kept[-1] if rules.combine == "last" else kept[0]
