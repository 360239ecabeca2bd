"""ALB-Dim for finitely many arms: the smallest of several nested feature maps that random exploration finds sufficient.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 3. Phase i plays a fresh inner policy on map M_i, given the
phase's length 25^i T_0 and confidence delta / 2^i, then explores random arms for 5^i ceil(sqrt T_0) rounds. Least
squares on all exploration so far, thresholded at 2^-(i+1), gives the active features D_i; M_i is the smallest map that
contains them. M_0 is the last map, which is also kept if least squares has no solution; if no feature is active, it is
the smallest map.

The paper takes SupLinRel inside, for its proof, and says that one could use LinUCB. `scaling="features"` is Algorithm 3
to the letter: features are divided by b(delta), rewards are not, and the inner policy's widths are those of its own
paper, for rewards in [0, 1] whatever the noise. By default rewards are divided too, and widths have the size of the
scaled noise. Left out, b(delta) is that of standard normal features and of all rounds until the end of the phase, so
that the horizon T need not be known; the paper's is `feature_bound=bounds.feature_bound(d, K, T, delta)`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from albatross import bounds
from albatross.compiling import generic
from albatross.models.least_squares import FOUND
from albatross.options import Positive, Probability, Rounds, Ties, derived, one_of, parameters, policy
from albatross.policies import exploration as phases
from albatross.policies.arms.linucb import LinUCB
from albatross.policies.exploration import Growth, Shrinkage, Threshold
from albatross.policies.nested.maps import Dims, check_maps, in_map
from albatross.policies.nested.sup_lin import Staged, n_stages
from albatross.policies.nested.sup_lin_rel import SupLinRel, linrel_scale
from albatross.policies.nested.sup_lin_ucb import SupLinUCB, linucb_alpha, staged_alpha
from albatross.policies.phased_arms import EMPTY_SMALLEST, PhasedArms, in_use, playing, use
from albatross.protocol import resolve, tag_size

_SCALES = {"suplinrel": linrel_scale, "suplinucb": staged_alpha, "linucb": linucb_alpha}
# With sigma = b times this, an inner policy has the widths of its own paper, for rewards in [0, 1].
_UNIT_NOISE = {"suplinrel": math.sqrt(0.5), "suplinucb": 0.5, "linucb": 0.5}


@policy
class ALBDimFinite(PhasedArms):
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
    feature_bound: Positive | None = None  #: b; None: b(delta), for N(0, I) features
    #: contexts and rewards are divided by b, "both", or as Algorithm 3 has it "features" alone
    scaling: Annotated[str, one_of("both", "features")] = "both"
    #: "pseudocode": D_i is cut at eps_i / 2; "text": at eps_i; "intervals": by confidence intervals
    threshold: Threshold = "pseudocode"
    shrinkage: Shrinkage = 2.0  #: C: eps_i = C^-i
    #: factors from phase to phase, of the rounds played and of those explored; None: (C^2 + 1)^2 and C^2 + 1
    growth: Growth | None = None
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm
    lengths: np.ndarray = derived()  # (phases, 2) int64: rounds of play and of exploration in each phase
    settings: np.ndarray = derived()  # (phases, 5) of the inner policy: rounds, stages, scale of widths, b, reward unit
    tag: int = derived()  # numbers in the inner policy's tag


@resolve.register
def resolve_alb_dim_finite(policy: ALBDimFinite, n_arms, dim, horizon):
    check_maps(policy.dims, n_arms, dim)
    first_phase = math.ceil((3.5 * dim) ** 2) if policy.first_phase is None else int(policy.first_phase)
    growth = phases.growth_for(policy.shrinkage) if policy.growth is None else policy.growth
    lengths = phases.phase_lengths(first_phase, growth, horizon)
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
        growth=growth,
        inner=inner,
        feature_bound=settings[0, 3],
        lengths=lengths,
        settings=settings,
        tag=tag_size(inner),
    )


def _settings(policy: ALBDimFinite, n_arms: int, dim: int, lengths: np.ndarray, phase: int) -> tuple[float, ...]:
    """Return rounds, stages, scale of the widths, b and the unit of rewards of the inner policy in a phase."""
    rounds, delta = int(lengths[phase, 0]), policy.delta / 2.0**phase
    to_the_letter = policy.scaling == "features"
    bound = policy.feature_bound
    if bound is None:
        bound = bounds.feature_bound(dim, n_arms, int(lengths[: phase + 1].sum()), policy.delta)
    sigma = _UNIT_NOISE[policy.inner] * bound if to_the_letter else policy.sigma
    scale = _SCALES[policy.inner](rounds, n_arms, delta, sigma, bound)
    return float(rounds), n_stages(rounds), scale, float(bound), 1.0 if to_the_letter else float(bound)


in_phase = generic("in_phase")  # in_phase(inner, settings) -> the inner policy as a phase plays it


@in_phase.register
def staged_in_phase(inner: Staged, settings):
    return inner._replace(  # type: ignore[attr-defined]
        horizon=settings[0],
        stages=int(settings[1]),
        scale=settings[2],
        feature_bound=settings[3],
        reward_unit=settings[4],
    )


@in_phase.register
def linucb_in_phase(inner: LinUCB, settings):
    # LinUCB with ridge 1 on features divided by b is LinUCB with ridge b^2 on them as they are.
    scale, bound, unit = settings[2], settings[3], settings[4]
    return inner._replace(alpha=scale * unit, ridge=bound * bound)  # type: ignore[attr-defined]


@playing.register
def inner_of_phase(policy: ALBDimFinite, state):
    return in_phase(policy.inner, policy.settings[state.clock[phases.PHASE]])


@in_use.register
def map_of_phase(policy: ALBDimFinite, state, rows):
    return in_map(rows, int(state.found[state.clock[phases.PHASE], 0]))


@use.register
def smallest_map(policy: ALBDimFinite, support):
    needed = 0
    for j in range(support.size):
        needed = j + 1 if support[j] else needed
    model = 0
    while policy.dims[model] < needed:
        model += 1
    return policy.dims[model], FOUND if needed else EMPTY_SMALLEST
