"""Successive Rejects: play all surviving arms equally often, drop the worst, and end with one arm.

Audibert, Bubeck and Munos (2010), Section 3. For a budget of n plays of K arms, phase k = 1, ..., K - 1 plays every
surviving arm until each has n_k plays, and drops the one of the lowest mean:

    n_k = ceil((n - K) / (logbar(K) (K + 1 - k))),   logbar(K) = 1/2 + sum_{i=2}^K 1/i.

It identifies the best arm and makes no attempt at a small regret on the way. The last arm is played for ever.

It is for a fixed set of arms that are all eligible: phases are planned for K arms, and end when every surviving arm has
its plays. Agents and fleets therefore neither add nor retire arms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.models.arm_means import count_play, describe_means, means, no_plays
from albatross.options import Rounds, Ties, derived, parameters, policy
from albatross.picking import by_row
from albatross.protocol import check_change_of_arms, check_state, diagnostics, init, resolve, score, update


@policy
class SuccessiveRejects:
    """Successive Rejects (Audibert, Bubeck and Munos 2010, Section 3).

    >>> from albatross import environments, simulate
    >>> env = environments.FixedArms(n_arms=4, dim=4, arms="axes", noise_sd=0.1)
    >>> run = simulate(SuccessiveRejects(horizon=100), env, horizon=300, seed=0)
    >>> run.diagnostics[0]["survivors"].tolist() == [run.diagnostics[0]["pulls"].argmax()]
    True
    """

    horizon: Rounds | None = None  #: n, plays until one arm is left; None: what `simulate` or a `Fleet` is given
    ties: Ties = "random"  #: "random": equal arms go by an order drawn once; "first": the highest is dropped
    phases: np.ndarray = derived()  # (K - 1,) n_1, ..., n_{K-1}


class SuccessiveRejectsState(NamedTuple):
    counts: np.ndarray  # (K,)
    reward_sum: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)
    dropped: np.ndarray  # (K,) the phase in which each arm was dropped, 0 if it survives


def phase_plays(budget: int, n_arms: int) -> list[int]:
    """n_1, ..., n_{K-1}: plays of every surviving arm at the end of each phase, and at least 1.

    >>> phase_plays(100, 4)
    [16, 21, 31]
    """
    logbar = 0.5 + sum(1.0 / i for i in range(2, n_arms + 1))
    return [max(1, math.ceil((budget - n_arms) / (logbar * (n_arms + 1 - k)))) for k in range(1, n_arms)]


@resolve.register
def resolve_successive_rejects(policy: SuccessiveRejects, n_arms, dim, horizon):
    budget = checks.given_horizon(policy, horizon)
    return parameters(policy, horizon=budget, phases=np.array(phase_plays(budget, n_arms), float))


@init.register
def init_successive_rejects(policy: SuccessiveRejects, n_arms, dim, rng):
    return SuccessiveRejectsState(*no_plays(n_arms, policy.ties, rng), np.zeros(n_arms))


@score.register
def score_successive_rejects(policy: SuccessiveRejects, state, offer, noise):
    # The surviving arm that was played least. Dropped arms come last, those first that were dropped latest.
    scores = np.empty(state.counts.size)
    for arm in range(scores.size):
        if state.dropped[arm] == 0.0:
            scores[arm] = 1.0 / (1.0 + state.counts[arm] + offer.pending[arm])
        else:
            scores[arm] = state.dropped[arm] - scores.size
    return by_row(scores, offer.arms), np.zeros(offer.arms.size)


@compiled
def phase_of(state):
    """k - 1: how many arms were dropped."""
    return np.count_nonzero(state.dropped)


@update.register
def update_successive_rejects(policy: SuccessiveRejects, state, choice, reward, n):
    count_play(state, choice, reward, n)
    phase = phase_of(state)
    while phase < state.counts.size - 1 and fewest_plays(state) >= policy.phases[phase]:
        phase += 1
        state.dropped[worst_arm(state)] = phase


@compiled
def fewest_plays(state):
    """Plays of the surviving arm that has fewest."""
    fewest = np.inf
    for arm in range(state.counts.size):
        if state.dropped[arm] == 0.0:
            fewest = min(fewest, state.counts[arm])
    return fewest


@compiled
def worst_arm(state):
    """The surviving arm of the lowest mean."""
    found, worst = means(state), -1
    for arm in range(found.size):
        if state.dropped[arm] == 0.0 and (
            worst < 0
            or found[arm] < found[worst]
            or (found[arm] == found[worst] and state.priority[arm] > state.priority[worst])
        ):
            worst = arm
    return worst


@check_change_of_arms.register
def check_change_of_arms_successive_rejects(policy: SuccessiveRejects):
    raise ValueError("SuccessiveRejects is for a fixed set of arms: make a new agent or fleet for other arms")


@check_state.register
def check_state_successive_rejects(policy: SuccessiveRejects, state):
    checks.indices("dropped", state.dropped, policy.phases.size)
    if not (state.dropped == 0.0).any(axis=-1).all():
        raise ValueError("dropped holds all arms: one must survive")


@diagnostics.register
def diagnostics_successive_rejects(policy: SuccessiveRejects, state):
    return {
        **describe_means(state),
        "survivors": np.flatnonzero(state.dropped == 0.0),
        "dropped": state.dropped.copy(),
    }
