"""Shared by SupLinRel and SupLinUCB: arms are eliminated in stages, each of which learns from its own plays only.

Auer (2002), SupLinRel; Chu, Li, Reyzin and Schapire (2011), SupLinUCB. A round starts at stage 1 with all arms. Where
every arm's width is at most 1/sqrt(T), the best upper bound is played and nobody learns; where all are at most 2^-s,
arms whose upper bound is 2 * 2^-s below the best are dropped and stage s + 1 looks at the rest; otherwise the widest
arm is played for stage s to learn from. So a stage's choices never depend on its own rewards, which is what the proofs
need; the price is that most data are never used.

Features are first divided by `feature_bound`, b, so that no feature vector is longer than 1, and rewards by
`reward_unit`, which is b too but for ALB-Dim to the letter. Left out, b is b(delta) of the paper for standard normal
features (`bounds.feature_bound`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross import bounds, checks
from albatross.compiling import generic
from albatross.options import parameters
from albatross.picking import pick_best
from albatross.protocol import Choice, check_tags, diagnostics, select, tag_size, update


class Staged:
    """A policy in stages: with these keywords, and the two verbs below, it has the others."""

    horizon: Any  # T
    delta: float
    feature_bound: Any  # b
    reward_unit: float
    stages: int
    scale: float  # of the width, or of its part that the data decide


# estimate_stage(policy, state, stage, contexts) -> means (K,), widths (K,); learn_stage(policy, state, stage, x, y, n)
# In both, contexts are divided by b, rewards and widths by the unit of rewards.
estimate_stage = generic("estimate_stage")
learn_stage = generic("learn_stage")


def staged_parameters(policy: Any, n_arms: int, dim: int, horizon: int | None, scale: Any) -> Any:
    """T, the number of stages, b as given or b(delta), and the scale of the widths by its formula."""
    rounds = checks.told_horizon(policy, horizon)
    bound = policy.feature_bound
    if bound is None:
        bound = bounds.feature_bound(dim, n_arms, rounds, policy.delta)
    widths = scale(rounds, n_arms, policy.delta, policy.sigma, bound)
    return parameters(
        policy, horizon=rounds, feature_bound=bound, reward_unit=bound, stages=n_stages(rounds), scale=widths
    )


def n_stages(horizon: float) -> int:
    """S = ceil(ln T). The last stage never passes an arm on: 2^-S <= 1/sqrt(T)."""
    return max(1, math.ceil(math.log(horizon)))


@tag_size.register
def tag_size_staged(policy: Staged):
    return 1


@select.register
def select_staged(policy: Staged, state, offer, noise):
    left = offer._replace(eligible=offer.eligible.copy())
    scaled = offer.contexts / policy.feature_bound
    level, learns = 1.0, 0
    for stage in range(policy.stages):
        level *= 0.5
        means, widths = estimate_stage(policy, state, stage, scaled)
        upper = means + widths
        arm = pick_best(widths, left, state.priority)
        if widths[arm] <= 1.0 / math.sqrt(policy.horizon):
            arm = pick_best(upper, left, state.priority)
            break
        if widths[arm] > level:
            learns = stage + 1
            break
        best = upper[pick_best(upper, left, state.priority)]
        for other in range(upper.size):
            left.eligible[other] = left.eligible[other] and upper[other] >= best - 2.0 * level
    tag = np.full(1, float(learns))  # the stage that will learn, counted from 1, or 0
    score, width = policy.reward_unit * upper[arm], policy.reward_unit * widths[arm]
    return Choice(arm, offer.contexts[arm], score, width, 1.0, tag)


@update.register
def update_staged(policy: Staged, state, choice, reward, n):
    # Somebody else's choice is for the first stage, where every round begins.
    stage = 1 if np.isnan(choice.tag[0]) else int(choice.tag[0])
    state.pulls[choice.arm] += n
    state.stage_plays[stage] += n
    if stage:
        context, scaled = choice.action / policy.feature_bound, reward / policy.reward_unit
        learn_stage(policy, state, stage - 1, context, scaled, n)


@check_tags.register
def check_tags_staged(policy: Staged, state, tags):
    checks.indices("tag", tags[~np.isnan(tags)], policy.stages)


@diagnostics.register
def diagnostics_staged(policy: Staged, state):
    return {
        "pulls": state.pulls.copy(),
        "stage_plays": state.stage_plays[1 : policy.stages + 1].copy(),
        "unstaged": int(state.stage_plays[0]),
    }
