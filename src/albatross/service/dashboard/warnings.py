"""What somebody should look at, in sentences that say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator

from albatross.service.dashboard.charts import shown
from albatross.service.dashboard.facts import DAYS, Facts

_ENOUGH = 20  # rewards or decisions before a share is called large
_FAR, _WIDE = 1.0, 3.0  # standard deviations of a shift, and their ratio
_NAMED = 3


def warnings(facts: Facts) -> list[str]:
    """Return all warnings of a model, the flock's own first."""
    if not facts.n_decisions and not facts.all_rewards.n:
        return []
    found = [*facts.own_warnings, *_of_rewards(facts), *_of_arms(facts), *_of_features(facts)]
    return list(dict.fromkeys(found))


def _of_rewards(facts: Facts) -> Iterator[str]:
    rewards, settings = facts.all_rewards, facts.model.settings
    late, expired = facts.outcomes.get("late", 0), facts.outcomes.get("expired", 0)
    ended = sum(n for name, n in facts.outcomes.items() if name != "late")
    if settings.mode == "frozen":
        yield "The model is frozen: it decides, and learns nothing."
    if facts.n_decisions >= _ENOUGH and not rewards.n:
        yield f"No reward of {facts.n_decisions:,} decisions has been learnt yet: there is nothing to decide by."
    if rewards.n >= _ENOUGH and not rewards.variance:
        value = shown(rewards.mean or 0.0)
        advice = (
            ""
            if settings.rewards.default is not None
            else (" If a reward is sent only for success, set rewards.default for the others.")
        )
        yield f"All {rewards.n:,} rewards were {value}: nothing can be learnt from rewards that never vary.{advice}"
    if late >= _ENOUGH / 2 and late > 0.1 * (late + rewards.n):
        yield (
            f"{_percent(late / (late + rewards.n))} of the rewards came after the wait of {settings.rewards.wait} and "
            "were not learnt: make rewards.wait longer."
        )
    if ended >= _ENOUGH and expired > 0.5 * ended:
        yield (
            f"{_percent(expired / ended)} of the decisions expired without a reward and taught nothing. If no reward "
            "means 0, set rewards.default to 0."
        )
    policy, floor = facts.rewards.get("policy"), facts.rewards.get("floor")
    if policy and floor and min(policy.n, floor.n) >= _ENOUGH and policy.mean is not None and floor.mean is not None:
        margin = math.hypot(policy.half, floor.half)
        if floor.mean - policy.mean > margin > 0.0:
            yield (
                f"Random arms earn more than the policy, {shown(floor.mean)} against {shown(policy.mean)}: check that "
                "rewards belong to the decisions that earned them."
            )


def _of_arms(facts: Facts) -> Iterator[str]:
    never, active = facts.never_played, len(facts.model.arms)  # none if arms pass
    if never and facts.n_decisions >= _ENOUGH:
        names = ", ".join(never[:_NAMED]) + (f" and {len(never) - _NAMED:,} more" if len(never) > _NAMED else "")
        yield f"{len(never)} of {active} active arms were not played in {DAYS} days: {names}."
    if active == 1:
        yield "There is one active arm: there is nothing to decide. Add another."
    if facts.model.settings.floor == 0.0:
        yield "The floor is 0: without random plays, no other policy can be evaluated from the log."


def _of_features(facts: Facts) -> Iterator[str]:
    if facts.model.seen.requests < _ENOUGH:
        return
    for row in facts.features:
        if row.missing_share > 0.5:
            yield f"{row.name} is missing in {_percent(row.missing_share)} of the offers, where it counts as 0."
        elif row.shift is not None and abs(row.shift) > _FAR:
            where = "above" if row.shift > 0.0 else "below"
            yield f"{row.name} is {shown(abs(row.shift))} declared standard deviations {where} its declared mean."
        elif row.spread is not None and row.spread > _WIDE:
            yield f"{row.name} spreads {shown(row.spread)} times as wide as declared."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
