"""ALB-Dim: OFUL on the coordinates that seem to matter, which random exploration finds phase by phase.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 2. Phase i plays a fresh OFUL, at confidence delta / 2^i and only
on the active coordinates D_i, for 25^i T_0 rounds, then explores at random for 5^i ceil(sqrt T_0) rounds. Least squares
on all exploration so far, thresholded, gives D_{i+1}; D_0 is all coordinates.

The paper leaves open what to do with fewer samples than coordinates, with a Gram matrix that does not factorise and
with an empty D_i: all coordinates are kept, and the diagnostics say why. The pseudocode thresholds D_i at eps_i / 2,
where eps_i = 2^-i, the text at eps_i (`threshold`); Remark 5 allows eps_i = C^-i (`shrinkage`, with `growth`).

Inside the ball, a random direction tells a coordinate only to sigma sqrt(d / n). With the paper's lengths that is too
little at its horizons: the panels come out only with the exploration law `gaussian`, whose actions lie outside the
ball. `samples="all"` with `threshold="intervals"` stays inside. It departs from the paper twice:

- Least squares is on all plays. OFUL's own plays tell more than exploration, and cost nothing extra.
- A coordinate is dropped when it is surely smaller than every coordinate that is surely not 0, by confidence intervals
  theta_hat_j +- sigma sqrt(2 ln(2d / delta_i)) ||e_j||_{G^-1}, where G is the Gram matrix of all samples.

The intervals are valid for exploration alone. On OFUL's plays, which depend on earlier rewards, they are not proved;
the proved ones are about sqrt(d) times longer. A simulation then needs every play as a vector, at O(d^3) for each new
action in place of O(d^2).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.linalg.vectors import norm
from albatross.models.ball_fit import OWN, SIZE, SWITCHES, start_tracking, track_theta
from albatross.models.least_squares import FEW, FOUND, SINGULAR, WHY_NOT, add_sample
from albatross.options import AtLeastZero, Positive, Probability, Rounds, derived, one_of, parameters, policy
from albatross.picking import uniform_from_normal
from albatross.policies import exploration as phases
from albatross.policies.ball.ball_lints import BallLinTS
from albatross.policies.ball.ball_oful import BallOFUL
from albatross.policies.ball.on_ball import AroundBallFit, BallState, confidence_radius
from albatross.policies.exploration import Growth, Shrinkage, Threshold
from albatross.protocol import (
    Choice,
    check_state,
    diagnostics,
    hold,
    init,
    noise_size,
    reset,
    resolve,
    select,
    tag_size,
    track,
    update_tracking,
)

_SPHERE, _BALL, _GAUSSIAN = 0, 1, 2  # laws of exploration
_EMPTY_ALL, _EMPTY_ZERO = 3, 4  # further reasons for an active set
_REASONS = {
    -1: "all coordinates: the first phase",
    FOUND: "thresholded",
    **{reason: f"all coordinates kept: {why}" for reason, why in WHY_NOT.items()},
    _EMPTY_ALL: "all coordinates kept: none was above the threshold",
    _EMPTY_ZERO: "no coordinate was above the threshold: plays 0",
}


@policy
class ALBDim(AroundBallFit):
    """ALB-Dim on the unit ball (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 2).

    >>> from albatross import environments, simulate
    >>> env = environments.Ball(dim=4, theta=[0.8, 0.0, 0.0, 0.6], noise_sd=0.1)
    >>> run = simulate(ALBDim(sigma=0.1, first_phase=25), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    16.2
    """

    first_phase: Rounds | None = None  #: T_0, rounds of the first phase; None: 20 d
    delta: Probability = 0.1  #: phase 0 may fail with this probability, the next with half of it, ...
    sigma: Positive = 1.0  #: standard deviation of the noise
    switch: AtLeastZero = 0.0  #: C: a new action when det V has grown by the factor 1 + C; 0: every round
    #: "pseudocode": D_i is cut at eps_i / 2; "text": at eps_i; "intervals": by confidence intervals
    threshold: Threshold = "pseudocode"
    #: least squares on what was explored, "exploration", or on "all" that was played
    samples: Annotated[str, one_of("exploration", "all")] = "exploration"
    shrinkage: Shrinkage = 2.0  #: C: eps_i = C^-i
    #: actions on the "sphere", in the "ball", or "gaussian" N(0, I)
    exploration: Annotated[str, one_of("sphere", "ball", "gaussian")] = "sphere"
    #: while samples do not determine theta: "all" coordinates, or cut the "min-norm" fit
    on_few_samples: Annotated[str, one_of("all", "min-norm")] = "all"
    #: if no coordinate is active: "all" of them, or play "zero"
    on_empty: Annotated[str, one_of("all", "zero")] = "all"
    #: factors from phase to phase, of the rounds played and of those explored; None: (C^2 + 1)^2 and C^2 + 1
    growth: Growth | None = None
    #: "oful" or "lints", what is played on the active coordinates; compiled code gets that policy
    inner: Annotated[str, one_of("oful", "lints")] = "oful"
    lengths: np.ndarray = derived()  # (phases, 2) int64: rounds of play and of exploration in each phase


class ALBDimState(NamedTuple):
    inner: BallState
    pulls: np.ndarray  # (1,) rewards received
    clock: np.ndarray  # (4,) int64: the phase; its rounds of play and of exploration so far; all samples
    gram: np.ndarray  # (d, d) of all samples
    cross: np.ndarray  # (d,)
    supports: np.ndarray  # (phases, d) bool: D_0, D_1, ...
    found: np.ndarray  # (phases, 5) at the start of each: samples, conditioning, reason; at its end: switches, radius


@resolve.register
def resolve_alb_dim(policy: ALBDim, n_arms, dim, horizon):
    inner: Any = BallLinTS(sigma=policy.sigma, switch=policy.switch)
    if policy.inner == "oful":
        inner = BallOFUL(sigma=policy.sigma, delta=policy.delta, switch=policy.switch)
    first_phase = 20 * dim if policy.first_phase is None else int(policy.first_phase)
    growth = phases.growth_for(policy.shrinkage) if policy.growth is None else policy.growth
    return parameters(
        policy,
        first_phase=first_phase,
        inner=resolve(inner, n_arms, dim, horizon),
        growth=growth,
        lengths=phases.phase_lengths(first_phase, growth, horizon),
    )


@init.register
def init_alb_dim(policy: ALBDim, n_arms, dim, rng):
    n_phases = len(policy.lengths)
    supports = np.zeros((n_phases, dim), bool)
    supports[0] = True
    return ALBDimState(
        inner=init(policy.inner, n_arms, dim, rng),
        pulls=np.zeros(1),
        clock=np.zeros(4, np.int64),
        gram=np.zeros((dim, dim)),
        cross=np.zeros(dim),
        supports=supports,
        found=np.zeros((n_phases, 5)),
    )


@noise_size.register
def noise_size_alb_dim(policy: ALBDim, n_arms, dim):
    return dim + 1


@tag_size.register
def tag_size_alb_dim(policy: ALBDim):
    return 2 + tag_size(policy.inner)


@track.register
def track_alb_dim(policy: ALBDim, state, theta):
    inner, tracked = track(policy.inner, state.inner, theta)
    if policy.samples:  # a play must be known as a vector: the fit keeps its axes
        inner, tracked = state.inner, track_theta(state.inner.fit, theta)[1]
    return state._replace(inner=inner), tracked


def _as_it_is(inner, phase):
    return inner


in_phase = generic("in_phase", _as_it_is)  # in_phase(inner, phase) -> the inner policy as that phase plays it


@in_phase.register
def oful_in_phase(inner: BallOFUL, phase):
    return inner._replace(delta=inner.delta / 2.0**phase)  # type: ignore[attr-defined]


@compiled
def random_action(law, noise):
    """Return a draw from the unit sphere, the unit ball or N(0, I)."""
    dim = noise.size - 1
    action = noise[:dim].copy()
    if law != _GAUSSIAN:
        action /= norm(action)
    if law == _BALL:
        action *= uniform_from_normal(noise[dim]) ** (1.0 / dim)
    return action


@select.register
def select_alb_dim(policy: ALBDim, state, offer, noise):
    fit = state.inner.fit
    dim = fit.values.size
    tag = np.zeros(2 + OWN + dim)
    tag[0] = state.clock[phases.PHASE]
    if phases.exploring(policy, state):
        tag[1] = 1.0
        return Choice(0, random_action(policy.exploration, noise), 0.0, 0.0, np.nan, tag)
    if fit.clock[SIZE] == 0:
        return Choice(0, np.zeros(dim), 0.0, 0.0, 1.0, tag)
    choice = select(in_phase(policy.inner, state.clock[phases.PHASE]), state.inner, offer, noise)
    for j in range(choice.tag.size):
        tag[2 + j] = choice.tag[j]
    return choice._replace(tag=tag)


@hold.register
def hold_alb_dim(policy: ALBDim, state, choice):
    if phases.exploring(policy, state):
        return 1
    left = policy.lengths[state.clock[phases.PHASE], 0] - state.clock[phases.PLAYED]
    if state.inner.fit.clock[SIZE] == 0:
        return left
    return min(
        left, hold(in_phase(policy.inner, state.clock[phases.PHASE]), state.inner, choice._replace(tag=choice.tag[2:]))
    )


@update_tracking.register
def update_tracking_alb_dim(policy: ALBDim, state, choice, reward, n, tracked):
    state.pulls[0] += n
    current = choice.tag[0] == state.clock[phases.PHASE]
    explored = np.isnan(choice.tag[0]) or choice.tag[1] == 1.0  # somebody else's play is a sample like any other
    if explored or policy.samples:
        state.clock[phases.SAMPLES] += n
        add_sample(state.gram, state.cross, choice.action, reward, n)
    if explored and current:
        state.clock[phases.EXPLORED] += n
    elif current:  # a reward of an earlier phase's policy comes too late: that policy is gone
        state.clock[phases.PLAYED] += n
        if state.inner.fit.clock[SIZE] > 0:
            inner = in_phase(policy.inner, state.clock[phases.PHASE])
            update_tracking(inner, state.inner, choice._replace(tag=choice.tag[2:]), reward, n, tracked)
    if phases.explored(policy, state):
        end_phase(policy, state, tracked)


@compiled
def end_phase(policy, state, tracked):
    """Compute D_{i+1} from all exploration so far, and start the next phase with a fresh inner policy on it."""
    phase = state.clock[phases.PHASE]
    fit = state.inner.fit
    state.found[phase, 3] = fit.clock[SWITCHES]
    state.found[phase, 4] = confidence_radius(in_phase(policy.inner, phase), fit)
    if phase + 1 == policy.lengths.shape[0]:
        return
    support, conditioning, reason = phases.next_active(policy, state, policy.on_few_samples)
    if reason == FOUND and not np.any(support):
        reason = _EMPTY_ZERO if policy.on_empty else _EMPTY_ALL
    if reason in (FEW, SINGULAR, _EMPTY_ALL):
        support[:] = True
    phases.begin_phase(state, support, conditioning, reason, 0)
    reset(policy.inner._replace(support=support), state.inner)
    start_tracking(tracked, support)


@check_state.register
def check_state_alb_dim(policy: ALBDim, state):
    phases.check_phase(policy, state)
    checks.indices("found", state.found[..., 2], max(_REASONS))
    check_state(policy.inner, state.inner)


@diagnostics.register
def diagnostics_alb_dim(policy: ALBDim, state):
    found = phases.describe_phases(policy, state, _REASONS, 0)
    last = found["phase"]
    inner = diagnostics(in_phase(policy.inner, float(last)), state.inner)
    for i, noted in enumerate(found["phases"]):
        noted["switches"] = int(state.found[i, 3]) if i < last else inner["switches"]
        noted["radius"] = float(state.found[i, 4]) if i < last else inner.get("radius", math.nan)
    return {**inner, "pulls": state.pulls.copy(), **found}
