"""Shared by SupLinRel and SupLinUCB: arms are eliminated in stages, each of which learns from its own plays only.

Auer (2002), SupLinRel; Chu, Li, Reyzin and Schapire (2011), SupLinUCB. A round starts at stage 1 with all arms. If
every arm's width is at most 1/sqrt(T), the arm with the best upper bound is played and no stage learns. If all widths
are at most 2^-s, arms whose upper bound is 2 * 2^-s below the best are dropped and stage s + 1 continues with the rest.
Otherwise the widest arm is played, and stage s learns from it. A stage's choices thus never depend on its own rewards,
which the proofs need; the price is that most data are never used.

Features are first divided by `feature_bound`, b, so that no feature vector is longer than 1, and rewards by
`reward_unit`, which is also b except in ALB-Dim to the letter. By default b is the paper's b(delta) for standard normal
features (`bounds.feature_bound`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross import bounds, checks
from albatross.compiling import compiled, generic
from albatross.options import Positive, Probability, Rounds, Ties, derived, parameters, policy
from albatross.picking import pick_best
from albatross.protocol import Choice, check_tags, diagnostics, select, tag_size, update


@policy
class Staged:
    """The keywords of a policy in stages, which registers the two verbs below and inherits the others."""

    horizon: Rounds | None = None  #: number of rounds; None: as given to `simulate` or `Fleet`
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    sigma: Positive = 1.0  #: standard deviation of the noise
    #: b: contexts and rewards are divided by it; None: b(delta), for N(0, I) features
    feature_bound: Positive | None = None
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm
    reward_unit: float = derived()  # rewards are divided by it
    stages: int = derived()
    scale: float = derived()  # SupLinUCB: alpha; SupLinRel: the factor on the part of the width that data reduce


# estimate_stage(policy, state, stage, contexts) -> means (K,), widths (K,); learn_stage(policy, state, stage, x, y, n)
# In both, contexts are divided by b, rewards and widths by the unit of rewards.
estimate_stage = generic("estimate_stage")
learn_stage = generic("learn_stage")


def staged_parameters(policy: Any, n_arms: int, dim: int, horizon: int | None, scale: Any) -> Any:
    """Return the parameters: T, the number of stages, b as given or b(delta), and the scale of the widths."""
    rounds = checks.given_horizon(policy, horizon)
    bound = policy.feature_bound
    if bound is None:
        bound = bounds.feature_bound(dim, n_arms, rounds, policy.delta)
    widths = scale(rounds, n_arms, policy.delta, policy.sigma, bound)
    return parameters(
        policy, horizon=rounds, feature_bound=bound, reward_unit=bound, stages=n_stages(rounds), scale=widths
    )


def n_stages(horizon: float) -> int:
    """Return S = ceil(ln T). The last stage passes no arm on: 2^-S <= 1/sqrt(T)."""
    return max(1, math.ceil(math.log(horizon)))


@compiled
def negligible_width(policy):
    """Return 1/sqrt(T): if no arm is wider, there is nothing left to learn."""
    return 1.0 / math.sqrt(policy.horizon)


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
        if widths[arm] <= negligible_width(policy):
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
