"""ALB-Dim: OFUL on the coordinates that seem to matter, which random exploration finds phase by phase.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 2. Phase i plays a fresh OFUL, at confidence delta / 2^i and only
on the active coordinates D_i, for 25^i T_0 rounds, then explores at random for 5^i ceil(sqrt T_0) rounds. Least squares
on all exploration so far, thresholded, gives D_{i+1}; D_0 is all coordinates.

The paper leaves open what to do with fewer samples than coordinates, with a Gram matrix that does not factorise and
with an empty D_i: all coordinates are kept, and the diagnostics say why. The pseudocode thresholds D_i at 2^-(i+1), the
text at 2^-i (`threshold`). The exploration law `gaussian` lies outside the unit ball: only with it do the paper's
panels come out at their horizons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.confidence import ellipsoid_radius
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import OWN, SIZE, SWITCHES, nothing_tracked, start_over, start_tracking
from albatross.picking import uniform_from_normal
from albatross.policies.ball.ball_lints import BallLinTSParameters
from albatross.policies.ball.ball_oful import BallOFULParameters, BallState
from albatross.policies.exploration import (
    EXPLORED,
    FEW,
    FOUND,
    PHASE,
    PLAYED,
    SAMPLES,
    SINGULAR,
    THRESHOLDS,
    WHY_ALL,
    add_sample,
    begin_phase,
    check_phase,
    check_phases,
    explored,
    exploring,
    next_active,
    phase_lengths,
)
from albatross.protocol import (
    Choice,
    check_state,
    diagnostics,
    hold,
    init,
    mean_reward,
    noise_size,
    on_ball,
    resolve,
    select,
    tag_size,
    track,
    update,
    update_tracking,
)

_LAWS = ("sphere", "ball", "gaussian")
_INNER = ("oful", "lints")
_EMPTY_ALL, _EMPTY_ZERO = 3, 4  # further reasons for an active set
_REASONS = {
    FOUND: "thresholded",
    **{reason: f"all coordinates kept: {why}" for reason, why in WHY_ALL.items()},
    _EMPTY_ALL: "all coordinates kept: none was above the threshold",
    _EMPTY_ZERO: "no coordinate was above the threshold: plays 0",
}


@dataclass(frozen=True, kw_only=True)
class ALBDim:
    """ALB-Dim on the unit ball (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 2)."""

    first_phase: int | None = None  #: T_0, rounds of the first phase; None: 20 d
    delta: float = 0.1  #: phase 0 may fail with this probability, the next with half of it, ...
    sigma: float = 1.0  #: standard deviation of the noise
    switch: float = 0.0  #: C: a new action when det V has grown by the factor 1 + C; 0: every round
    threshold: str = "pseudocode"  #: "pseudocode": D_i is cut at 2^-(i+1); "text": at 2^-i
    exploration: str = "sphere"  #: actions on the "sphere", in the "ball", or "gaussian" N(0, I)
    on_few_samples: str = "all"  #: while samples do not determine theta: "all" coordinates, or cut the "min-norm" fit
    on_empty: str = "all"  #: where no coordinate is left: "all" of them, or play "zero"
    growth: tuple[int, int] = (25, 5)  #: factors from phase to phase, of the rounds played and of those explored
    inner: str = "oful"  #: "oful" or "lints", what is played on the active coordinates

    def __post_init__(self) -> None:
        check_phases(self)
        checks.at_least_zero("switch", self.switch)
        checks.one_of("exploration", self.exploration, _LAWS)
        checks.one_of("on_few_samples", self.on_few_samples, ("all", "min-norm"))
        checks.one_of("on_empty", self.on_empty, ("all", "zero"))
        checks.one_of("inner", self.inner, _INNER)


class ALBDimParameters(NamedTuple):
    first: Any  # the inner policy of phase 0
    lengths: np.ndarray  # (phases, 2) int64: rounds of play and of exploration in each phase
    text: int  # which threshold
    law: int
    min_norm: int
    zero: int


class ALBDimState(NamedTuple):
    inner: BallState
    pulls: np.ndarray  # (1,) rewards received
    clock: np.ndarray  # (4,) int64: the phase; its rounds of play and of exploration so far; all samples
    gram: np.ndarray  # (d, d) of all exploration
    cross: np.ndarray  # (d,)
    supports: np.ndarray  # (phases, d) bool: D_0, D_1, ...
    found: np.ndarray  # (phases, 5) at the start of each: samples, conditioning, reason; at its end: switches, radius


@on_ball.register
def on_ball_alb_dim(policy: ALBDim) -> bool:
    return True


@resolve.register
def resolve_alb_dim(policy: ALBDim, n_arms, dim, horizon):
    everything = np.ones(dim, bool)
    sigma, switch = float(policy.sigma), float(policy.switch)
    inner: Any = BallLinTSParameters(sigma, 1.0, switch, everything)
    if policy.inner == "oful":
        inner = BallOFULParameters(sigma, float(policy.delta), 1.0, 1.0, switch, everything)
    first_phase = 20 * dim if policy.first_phase is None else int(policy.first_phase)
    return ALBDimParameters(
        first=inner,
        lengths=phase_lengths(first_phase, policy.growth, horizon),
        text=THRESHOLDS.index(policy.threshold),
        law=_LAWS.index(policy.exploration),
        min_norm=int(policy.on_few_samples == "min-norm"),
        zero=int(policy.on_empty == "zero"),
    )


@init.register
def init_alb_dim(policy: ALBDimParameters, n_arms, dim, rng):
    phases = len(policy.lengths)
    supports = np.zeros((phases, dim), bool)
    supports[0] = True
    return ALBDimState(
        inner=init(policy.first, n_arms, dim, rng),
        pulls=np.zeros(1),
        clock=np.zeros(4, np.int64),
        gram=np.zeros((dim, dim)),
        cross=np.zeros(dim),
        supports=supports,
        found=np.zeros((phases, 5)),
    )


@track.register
def track_alb_dim(policy: ALBDimParameters, state, theta):
    inner, tracked = track(policy.first, state.inner, theta)
    return state._replace(inner=inner), tracked


@mean_reward.register
def mean_reward_alb_dim(policy: ALBDimParameters, state, choice, tracked):
    if choice.action.size:  # 0 or explored, not the inner policy's
        return (tracked.theta @ choice.action)[0]
    return mean_reward(policy.first, state.inner, inner_choice(choice), tracked)


@noise_size.register
def noise_size_alb_dim(policy: ALBDimParameters, n_arms, dim):
    return dim + 1


@tag_size.register
def tag_size_alb_dim(policy: ALBDimParameters):
    return 2 + tag_size(policy.first)


in_phase = generic("in_phase")  # in_phase(inner, phase) -> the inner policy as that phase plays it


@in_phase.register
def oful_in_phase(inner: BallOFULParameters, phase):
    return BallOFULParameters(
        inner.sigma, inner.delta / 2.0**phase, inner.norm_bound, inner.strength, inner.switch, inner.support
    )


@in_phase.register
def lints_in_phase(inner: BallLinTSParameters, phase):
    return inner


set_radius = generic("set_radius")  # set_radius(inner, log_det) -> the confidence ellipsoid's radius, NaN without one


@set_radius.register
def oful_set_radius(inner: BallOFULParameters, log_det):
    return ellipsoid_radius(log_det, inner.norm_bound, inner.delta, inner.sigma, inner.strength)


@set_radius.register
def lints_set_radius(inner: BallLinTSParameters, log_det):
    return np.nan


@compiled
def random_action(law, noise):
    """A draw from the unit sphere (0), the unit ball (1) or N(0, I) (2)."""
    dim = noise.size - 1
    action = noise[:dim].copy()
    if law < 2:
        action /= norm(action)
    if law == 1:
        action *= uniform_from_normal(noise[dim]) ** (1.0 / dim)
    return action


@select.register
def select_alb_dim(policy: ALBDimParameters, state, offer, noise):
    fit = state.inner.fit
    dim = fit.values.size
    tag = np.zeros(2 + OWN + dim)
    tag[0] = state.clock[PHASE]
    if exploring(policy, state):
        tag[1] = 1.0
        return Choice(0, random_action(policy.law, noise), 0.0, 0.0, np.nan, tag)
    if fit.clock[SIZE] == 0:
        return Choice(0, np.zeros(dim), 0.0, 0.0, 1.0, tag)
    choice = select(in_phase(policy.first, state.clock[PHASE]), state.inner, offer, noise)
    for j in range(choice.tag.size):
        tag[2 + j] = choice.tag[j]
    return Choice(0, choice.action, choice.score, choice.width, choice.propensity, tag)


@compiled
def inner_choice(choice):
    """The inner policy's choice inside ours."""
    return Choice(choice.arm, choice.action, choice.score, choice.width, choice.propensity, choice.tag[2:])


@hold.register
def hold_alb_dim(policy: ALBDimParameters, state, choice):
    if exploring(policy, state):
        return 1
    left = policy.lengths[state.clock[PHASE], 0] - state.clock[PLAYED]
    if state.inner.fit.clock[SIZE] == 0:
        return left
    return min(left, hold(in_phase(policy.first, state.clock[PHASE]), state.inner, inner_choice(choice)))


@update.register
def update_alb_dim(policy: ALBDimParameters, state, choice, reward, n):
    update_tracking(policy, state, choice, reward, n, nothing_tracked(state.inner.fit))


@update_tracking.register
def update_tracking_alb_dim(policy: ALBDimParameters, state, choice, reward, n, tracked):
    state.pulls[0] += n
    current = choice.tag[0] == state.clock[PHASE]
    if np.isnan(choice.tag[0]) or choice.tag[1] == 1.0:  # somebody else's play is a sample like any other
        state.clock[SAMPLES] += n
        add_sample(state.gram, state.cross, choice.action, reward, n)
        if current:
            state.clock[EXPLORED] += n
    elif current:  # a reward of an earlier phase's policy comes too late: that policy is gone
        state.clock[PLAYED] += n
        if state.inner.fit.clock[SIZE] > 0:
            inner = in_phase(policy.first, state.clock[PHASE])
            update_tracking(inner, state.inner, inner_choice(choice), reward, n, tracked)
    if explored(policy, state):
        end_phase(policy, state, tracked)


@compiled
def end_phase(policy, state, tracked):
    """D_{i+1} from all exploration so far; the next phase begins with a fresh inner policy on it."""
    phase = state.clock[PHASE]
    fit = state.inner.fit
    state.found[phase, 3] = fit.clock[SWITCHES]
    state.found[phase, 4] = set_radius(in_phase(policy.first, phase), fit.log_det[0])
    if phase + 1 == policy.lengths.shape[0]:
        return
    support, conditioning, reason = next_active(policy, state)
    if reason == FOUND and not np.any(support):
        reason = _EMPTY_ZERO if policy.zero else _EMPTY_ALL
    if reason in (FEW, SINGULAR, _EMPTY_ALL):
        support[:] = True
    for j in range(support.size):
        state.supports[phase + 1, j] = support[j]
    state.found[phase + 1, 0] = state.clock[SAMPLES]
    state.found[phase + 1, 1] = conditioning
    state.found[phase + 1, 2] = reason
    begin_phase(state)
    fit.clock[SWITCHES] = 0
    start_over(fit, support, policy.first.strength)
    start_tracking(tracked, support)


@check_state.register
def check_state_alb_dim(policy: ALBDimParameters, state):
    check_phase(policy, state)
    checks.indices("found", state.found[..., 2], max(_REASONS))
    check_state(policy.first, state.inner)


@diagnostics.register
def diagnostics_alb_dim(policy: ALBDimParameters, state):
    phase = int(state.clock[PHASE])
    inner = diagnostics(in_phase(policy.first, float(phase)), state.inner)
    phases = [
        {
            "support": np.flatnonzero(state.supports[i]),
            "samples": int(state.found[i, 0]),
            "conditioning": float(state.found[i, 1]),
            "reason": _REASONS[int(state.found[i, 2])] if i else "all coordinates: the first phase",
            "switches": int(state.found[i, 3]) if i < phase else inner["switches"],
            "radius": float(state.found[i, 4]) if i < phase else inner.get("radius", math.nan),
        }
        for i in range(phase + 1)
    ]
    return {
        **inner,
        "pulls": state.pulls.copy(),
        "phase": phase,
        "phases": phases,
        "exploring": bool(exploring(policy, state)),
        "samples": int(state.clock[SAMPLES]),
    }
