"""Shared by the forms of ALB-Dim for finitely many arms: an inner policy on the features in use, then random arms.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 3, and Algorithm 2 on a finite set. A policy here has an `inner`
policy, the size of its `tag`, the parameters that `exploration.py` names, and the three verbs below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.models.least_squares import FOUND, WHY_NOT, add_sample
from albatross.picking import pick_uniformly
from albatross.policies import exploration as phases
from albatross.protocol import (
    Choice,
    check_state,
    check_tags,
    diagnostics,
    init,
    noise_size,
    reset,
    select,
    tag_size,
    update,
)

EMPTY_SMALLEST, EMPTY_ALL = 3, 4  # further reasons for the features in use
_REASONS = {
    -1: "all features: the first phase",
    FOUND: "the active features, or the smallest map that holds them",
    **{reason: f"all features kept: {why}" for reason, why in WHY_NOT.items()},
    EMPTY_SMALLEST: "the smallest map: no feature was above the threshold",
    EMPTY_ALL: "all features kept: none was above the threshold",
}


class PhasedArms:
    """A policy for finitely many arms in phases: with these parameters, it has the verbs below."""

    inner: Any
    lengths: np.ndarray
    tag: int  # numbers in the inner policy's tag


class PhasedArmsState(NamedTuple):
    inner: Any
    pulls: np.ndarray  # (K,)
    clock: np.ndarray  # (4,) int64: the phase; its rounds of play and of exploration so far; all samples
    gram: np.ndarray  # (d, d) of all exploration
    cross: np.ndarray  # (d,)
    supports: np.ndarray  # (phases, d) bool: D_0, D_1, ...
    found: np.ndarray  # (phases, 4) at the start of each: features in use, samples, conditioning, reason


playing = generic("playing")  # playing(policy, state) -> the inner policy as this phase plays it
in_use = generic("in_use")  # in_use(policy, state, rows) -> rows of features, 0 where this phase does not use them
# use(policy, support) -> how many features phase i + 1 uses, and FOUND or why; may change D_{i+1}
use = generic("use")


@init.register
def init_phased_arms(policy: PhasedArms, n_arms, dim, rng):
    n_phases = len(policy.lengths)
    state = PhasedArmsState(
        inner=init(policy.inner, n_arms, dim, rng),
        pulls=np.zeros(n_arms),
        clock=np.zeros(4, np.int64),
        gram=np.zeros((dim, dim)),
        cross=np.zeros(dim),
        supports=np.zeros((n_phases, dim), bool),
        found=np.zeros((n_phases, 4)),
    )
    state.supports[0] = True
    state.found[0, 0] = dim
    reset(playing(policy, state), state.inner)
    return state


@noise_size.register
def noise_size_phased_arms(policy: PhasedArms, n_arms, dim):
    return 1


@tag_size.register
def tag_size_phased_arms(policy: PhasedArms):
    return 2 + policy.tag


@select.register
def select_phased_arms(policy: PhasedArms, state, offer, noise):
    tag = np.zeros(2 + policy.tag)
    tag[0] = state.clock[phases.PHASE]
    if phases.exploring(policy, state):
        tag[1] = 1.0
        arm, propensity = pick_uniformly(offer.eligible, noise[0])
        return Choice(arm, offer.contexts[arm], 0.0, 0.0, propensity, tag)
    seen = offer._replace(contexts=in_use(policy, state, offer.contexts))
    choice = select(playing(policy, state), state.inner, seen, noise[:0])
    for j in range(policy.tag):
        tag[2 + j] = choice.tag[j]
    return choice._replace(action=offer.contexts[choice.arm], tag=tag)


@update.register
def update_phased_arms(policy: PhasedArms, state, choice, reward, n):
    for _ in range(n):
        learn_once(policy, state, choice, reward / n)


@compiled
def learn_once(policy, state, choice, reward):
    """One play."""
    phase = state.clock[phases.PHASE]
    state.pulls[choice.arm] += 1.0
    current = choice.tag[0] == phase
    if np.isnan(choice.tag[0]) or choice.tag[1] == 1.0:  # somebody else's play is a sample like any other
        state.clock[phases.SAMPLES] += 1
        state.clock[phases.EXPLORED] += current
        add_sample(state.gram, state.cross, choice.action, reward, 1)
    elif current:  # a reward of an earlier phase's policy comes too late: that policy is gone
        state.clock[phases.PLAYED] += 1
        action = in_use(policy, state, choice.action.reshape((1, -1)))[0]
        play = choice._replace(action=action, tag=choice.tag[2:])
        update(playing(policy, state), state.inner, play, reward, 1)
    if phases.explored(policy, state) and phase + 1 < policy.lengths.shape[0]:
        end_phase(policy, state)


@compiled
def end_phase(policy, state):
    """D_{i+1} from all exploration so far; the next phase begins with a fresh inner policy on the features to use."""
    support, conditioning, reason = phases.next_active(policy, state, 0)
    if reason == FOUND:
        size, reason = use(policy, support)
    else:
        support[:] = True
        size = support.size
    phases.begin_phase(state, support, conditioning, reason, 1)
    state.found[state.clock[phases.PHASE], 0] = size
    reset(playing(policy, state), state.inner)


@check_state.register
def check_state_phased_arms(policy: PhasedArms, state):
    phases.check_phase(policy, state)
    checks.indices("found", state.found[..., 0], state.cross.shape[-1])
    checks.indices("found", state.found[..., 3], max(_REASONS))
    check_state(policy.inner, state.inner)


@check_tags.register
def check_tags_phased_arms(policy: PhasedArms, state, tags):
    check_tags(policy.inner, state.inner, tags[:, 2:])


@diagnostics.register
def diagnostics_phased_arms(policy: PhasedArms, state):
    found = phases.describe_phases(policy, state, _REASONS, 1)
    for i, noted in enumerate(found["phases"]):
        noted["model"] = int(state.found[i, 0])
    inner = diagnostics(playing(policy, state), state.inner)
    return {"pulls": state.pulls.copy(), **found, "model": found["phases"][-1]["model"], "inner": inner}
