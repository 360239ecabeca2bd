"""ALB-Dim on finitely many arms: OFUL on the features that seem to matter, whichever they are.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 2, which "can be applied to any compact set", as a footnote says.
Phase i plays a fresh OFUL, at confidence delta / 2^i and only on the active features D_i, for 25^i T_0 rounds, then
explores random arms for 5^i ceil(sqrt T_0) rounds. Least squares on all exploration so far, thresholded, gives D_{i+1};
D_0 is all features. Arms may be fixed or new in every round. Algorithm 3 (`ALBDimFinite`) differs: it chooses among
nested feature maps.

All features are kept where the arms that were explored do not span them (the diagnostics say so), and where none is
above the threshold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross.models.least_squares import FOUND
from albatross.options import Positive, Probability, Rounds, Ties, derived, parameters, policy
from albatross.policies import exploration as phases
from albatross.policies.arms.oful import OFUL
from albatross.policies.exploration import Growth, Shrinkage, Threshold
from albatross.policies.phased_arms import EMPTY_ALL, PhasedArms, in_use, playing, use
from albatross.protocol import resolve, tag_size


@policy
class ALBDimArms(PhasedArms):
    """ALB-Dim on finitely many arms with any support (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 2).

    >>> from albatross import environments, simulate
    >>> env = environments.FixedArms(n_arms=20, dim=6, theta=[0.0, 0.8, 0.0, 0.0, 0.6, 0.0], noise_sd=0.1)
    >>> run = simulate(ALBDimArms(sigma=0.1, first_phase=100), env, horizon=500, seed=0)
    >>> run.diagnostics[0]["phases"][1]["support"].tolist()
    [1, 4]
    """

    first_phase: Rounds | None = None  #: T_0; None: (3.5 d)^2, which explores 3.5 samples a feature
    delta: Probability = 0.1  #: phase 0 may fail with this probability, the next with half of it, ...
    sigma: Positive = 1.0  #: standard deviation of the noise
    norm_bound: Positive = 1.0  #: what the norm of theta* is at most
    #: "pseudocode": D_i is cut at eps_i / 2; "text": at eps_i; "intervals": by confidence intervals
    threshold: Threshold = "pseudocode"
    shrinkage: Shrinkage = 2.0  #: C: eps_i = C^-i
    #: factors from phase to phase, of the rounds played and of those explored; None: (C^2 + 1)^2 and C^2 + 1
    growth: Growth | None = None
    ties: Ties = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm
    inner: Any = derived()  # OFUL, on all features
    lengths: np.ndarray = derived()  # (phases, 2) int64: rounds of play and of exploration in each phase
    tag: int = derived()  # numbers in the inner policy's tag


@resolve.register
def resolve_alb_dim_arms(policy: ALBDimArms, n_arms, dim, horizon):
    if n_arms < 2:
        raise ValueError(f"n_arms must be at least 2 for random exploration to tell arms apart, not {n_arms}")
    first_phase = math.ceil((3.5 * dim) ** 2) if policy.first_phase is None else int(policy.first_phase)
    growth = phases.growth_for(policy.shrinkage) if policy.growth is None else policy.growth
    inner = resolve(
        OFUL(norm_bound=policy.norm_bound, sigma=policy.sigma, delta=policy.delta, biases=False, ties=policy.ties),
        n_arms,
        dim,
        horizon,
    )
    return parameters(
        policy,
        first_phase=first_phase,
        growth=growth,
        inner=inner,
        lengths=phases.phase_lengths(first_phase, growth, horizon),
        tag=tag_size(inner),
    )


@playing.register
def oful_of_phase(policy: ALBDimArms, state):
    return policy.inner._replace(delta=policy.delta / 2.0 ** state.clock[phases.PHASE])


@in_use.register
def active_features(policy: ALBDimArms, state, rows):
    return np.where(state.supports[state.clock[phases.PHASE]], rows, 0.0)


@use.register
def use_active(policy: ALBDimArms, support):
    if np.any(support):
        return np.sum(support), FOUND
    support[:] = True
    return support.size, EMPTY_ALL
