"""ALB-Dim for finitely many arms: the smallest of several nested feature maps that random exploration finds sufficient.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 3. Phase i plays a fresh inner policy on map M_i, given the
phase's length 25^i T_0 and confidence delta / 2^i, then explores random arms for 5^i ceil(sqrt T_0) rounds. Least
squares on all exploration so far, thresholded at 2^-(i+1), gives the active features D_i; M_i is the smallest map that
contains them. M_0 is the last map, which is also kept if least squares has no solution; if no feature is active, it is
the smallest map.

The paper's inner policy is SupLinRel, for its proof; it mentions LinUCB as an alternative. Features and rewards are
divided by b(delta). By default, this is the bound for standard normal features over all rounds until the end of the
phase.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import bounds, checks
from albatross.compiling import compiled, generic
from albatross.models.least_squares import FOUND, WHY_NOT, add_sample
from albatross.options import Positive, Probability, Rounds, Ties, derived, one_of, parameters, policy
from albatross.picking import pick_uniformly
from albatross.policies import exploration as phases
from albatross.policies.arms.linucb import LinUCB
from albatross.policies.exploration import Growth, Threshold
from albatross.policies.nested.maps import Dims, check_maps, in_map
from albatross.policies.nested.sup_lin import Staged, n_stages
from albatross.policies.nested.sup_lin_rel import SupLinRel, linrel_scale
from albatross.policies.nested.sup_lin_ucb import SupLinUCB, linucb_alpha, staged_alpha
from albatross.protocol import (
    Choice,
    check_state,
    check_tags,
    diagnostics,
    init,
    noise_size,
    reset,
    resolve,
    select,
    tag_size,
    update,
)

_SCALES = {"suplinrel": linrel_scale, "suplinucb": staged_alpha, "linucb": linucb_alpha}
_EMPTY = 3  # a further reason for a model
_REASONS = {
    -1: "the last map: the first phase",
    FOUND: "the smallest map that holds the active features",
    **{reason: f"the last map kept: {why}" for reason, why in WHY_NOT.items()},
    _EMPTY: "the smallest map: no feature was above the threshold",
}


@policy
class ALBDimFinite:
    """ALB-Dim for finitely many arms (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 3).

    >>> from albatross import environments, simulate
    >>> env = environments.Nested(n_arms=5, dims=(2, 6), true_dim=2, noise_sd=0.1)
    >>> run = simulate(ALBDimFinite(dims=(2, 6), sigma=0.1, inner="linucb"), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    39.9
    """

    dims: Dims  #: number of features of each nested map; the last has all
    first_phase: Rounds | None = None  #: T_0; None: (3.5 d)^2, which gives 3.5 random samples per feature
    delta: Probability = 0.1  #: phase 0 may fail with this probability, the next with half of it, ...
    sigma: Positive = 1.0  #: standard deviation of the noise
    #: "suplinrel", "suplinucb" or "linucb", what is played on the map; compiled code gets that policy
    inner: Annotated[str, one_of("suplinrel", "suplinucb", "linucb")] = "suplinrel"
    #: b: contexts and rewards are divided by it; None: b(delta), for N(0, I) features
    feature_bound: Positive | None = None
    threshold: Threshold = "pseudocode"  #: "pseudocode": D_i is cut at 2^-(i+1); "text": at 2^-i
    growth: Growth = (25, 5)  #: factors from phase to phase, of the rounds played and of those explored
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm
    lengths: np.ndarray = derived()  # (phases, 2) int64: rounds of play and of exploration in each phase
    settings: np.ndarray = derived()  # (phases, 4) of the inner policy: rounds, stages, scale of its widths, b
    tag: int = derived()  # numbers in the inner policy's tag


class ALBDimFiniteState(NamedTuple):
    inner: Any
    pulls: np.ndarray  # (K,)
    clock: np.ndarray  # (4,) int64: the phase; its rounds of play and of exploration so far; all samples
    gram: np.ndarray  # (d, d) of all exploration
    cross: np.ndarray  # (d,)
    supports: np.ndarray  # (phases, d) bool: D_0, D_1, ...
    found: np.ndarray  # (phases, 4) at the start of each: dimension of its map, samples, conditioning, reason


@resolve.register
def resolve_alb_dim_finite(policy: ALBDimFinite, n_arms, dim, horizon):
    check_maps(policy.dims, n_arms, dim)
    first_phase = math.ceil((3.5 * dim) ** 2) if policy.first_phase is None else int(policy.first_phase)
    lengths = phases.phase_lengths(first_phase, policy.growth, horizon)
    settings = np.array([_settings(policy, n_arms, dim, lengths, phase) for phase in range(len(lengths))])
    inner: Any
    if policy.inner == "linucb":
        inner = resolve(LinUCB(biases=False, ties=policy.ties), n_arms, dim, horizon)
    else:
        kind = SupLinRel if policy.inner == "suplinrel" else SupLinUCB
        inner = resolve(kind(horizon=1, ties=policy.ties), n_arms, dim, horizon)
        inner = inner._replace(stages=int(settings[:, 1].max()))
    return parameters(
        policy,
        first_phase=first_phase,
        inner=inner,
        feature_bound=settings[0, 3],
        lengths=lengths,
        settings=settings,
        tag=tag_size(inner),
    )


def _settings(policy: ALBDimFinite, n_arms: int, dim: int, lengths: np.ndarray, phase: int) -> tuple[float, ...]:
    """Return rounds, stages, scale of the widths and b of the inner policy in a phase."""
    rounds, delta = int(lengths[phase, 0]), policy.delta / 2.0**phase
    bound = policy.feature_bound
    if bound is None:
        bound = bounds.feature_bound(dim, n_arms, int(lengths[: phase + 1].sum()), policy.delta)
    scale = _SCALES[policy.inner](rounds, n_arms, delta, policy.sigma, bound)
    return float(rounds), n_stages(rounds), scale, float(bound)


in_phase = generic("in_phase")  # in_phase(inner, settings) -> the inner policy as a phase plays it


@in_phase.register
def staged_in_phase(inner: Staged, settings):
    return inner._replace(  # type: ignore[attr-defined]
        horizon=settings[0], stages=int(settings[1]), scale=settings[2], feature_bound=settings[3]
    )


@in_phase.register
def linucb_in_phase(inner: LinUCB, settings):
    # LinUCB with ridge 1 on features and rewards divided by b is LinUCB with ridge b^2 on them as they are.
    scale, bound = settings[2], settings[3]
    return inner._replace(alpha=scale * bound, ridge=bound * bound)  # type: ignore[attr-defined]


@compiled
def playing(policy, state):
    """Return the inner policy as this phase plays it."""
    return in_phase(policy.inner, policy.settings[state.clock[phases.PHASE]])


@init.register
def init_alb_dim_finite(policy: ALBDimFinite, n_arms, dim, rng):
    n_phases = len(policy.lengths)
    state = ALBDimFiniteState(
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
def noise_size_alb_dim_finite(policy: ALBDimFinite, n_arms, dim):
    return 1


@tag_size.register
def tag_size_alb_dim_finite(policy: ALBDimFinite):
    return 2 + policy.tag


@select.register
def select_alb_dim_finite(policy: ALBDimFinite, state, offer, noise):
    phase = state.clock[phases.PHASE]
    tag = np.zeros(2 + policy.tag)
    tag[0] = phase
    if phases.exploring(policy, state):
        tag[1] = 1.0
        arm, propensity = pick_uniformly(offer.eligible, noise[0])
        return Choice(arm, offer.contexts[arm], 0.0, 0.0, propensity, tag)
    seen = offer._replace(contexts=in_map(offer.contexts, int(state.found[phase, 0])))
    choice = select(playing(policy, state), state.inner, seen, noise[:0])
    for j in range(policy.tag):
        tag[2 + j] = choice.tag[j]
    return choice._replace(action=offer.contexts[choice.arm], tag=tag)


@update.register
def update_alb_dim_finite(policy: ALBDimFinite, state, choice, reward, n):
    for _ in range(n):
        learn_once(policy, state, choice, reward / n)


@compiled
def learn_once(policy, state, choice, reward):
    """Add one play."""
    phase = state.clock[phases.PHASE]
    state.pulls[choice.arm] += 1.0
    current = choice.tag[0] == phase
    if np.isnan(choice.tag[0]) or choice.tag[1] == 1.0:  # somebody else's play is a sample like any other
        state.clock[phases.SAMPLES] += 1
        state.clock[phases.EXPLORED] += current
        add_sample(state.gram, state.cross, choice.action, reward, 1)
    elif current:  # a reward of an earlier phase's policy comes too late: that policy is gone
        state.clock[phases.PLAYED] += 1
        action = in_map(choice.action.reshape((1, -1)), int(state.found[phase, 0]))[0]
        play = choice._replace(action=action, tag=choice.tag[2:])
        update(playing(policy, state), state.inner, play, reward, 1)
    if phases.explored(policy, state) and phase + 1 < policy.lengths.shape[0]:
        end_phase(policy, state)


@compiled
def end_phase(policy, state):
    """Compute D_{i+1} and M_{i+1} from all exploration so far; start the next phase with a fresh inner policy."""
    support, conditioning, reason = phases.next_active(policy, state, 0)
    needed = 0
    for j in range(support.size):
        needed = j + 1 if support[j] else needed
    if reason != FOUND:
        support[:] = True
        needed = support.size
    elif needed == 0:
        reason = _EMPTY
    model = 0
    while policy.dims[model] < needed:
        model += 1
    phases.begin_phase(state, support, conditioning, reason, 1)
    state.found[state.clock[phases.PHASE], 0] = policy.dims[model]
    reset(playing(policy, state), state.inner)


@check_state.register
def check_state_alb_dim_finite(policy: ALBDimFinite, state):
    phases.check_phase(policy, state)
    checks.indices("found", state.found[..., 0], policy.dims[-1])
    checks.indices("found", state.found[..., 3], max(_REASONS))
    check_state(policy.inner, state.inner)


@check_tags.register
def check_tags_alb_dim_finite(policy: ALBDimFinite, state, tags):
    check_tags(policy.inner, state.inner, tags[:, 2:])


@diagnostics.register
def diagnostics_alb_dim_finite(policy: ALBDimFinite, state):
    found = phases.describe_phases(policy, state, _REASONS, 1)
    for i, noted in enumerate(found["phases"]):
        noted["model"] = int(state.found[i, 0])
    inner = diagnostics(playing(policy, state), state.inner)
    return {"pulls": state.pulls.copy(), **found, "model": found["phases"][-1]["model"], "inner": inner}
