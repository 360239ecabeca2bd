"""OFUL: optimism in the face of uncertainty over an ellipsoid that contains theta* at all times.

Abbasi-Yadkori, Pal and Szepesvari (2011), Figure 1 and Theorem 2. With `biases` the parameter is [mu; theta], and
`norm_bound` bounds the length of both together.
"""

from __future__ import annotations

from albatross.compiling import compiled
from albatross.confidence import ellipsoid_radius
from albatross.options import AtLeastZero, Flag, Positive, Probability, Ties, policy
from albatross.policies.arms.linear import OnRidge, describe_fit, optimistic
from albatross.protocol import diagnostics, score


@policy
class OFUL(OnRidge):
    """OFUL on finitely many arms (Abbasi-Yadkori, Pal and Szepesvari 2011, Figure 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(OFUL(norm_bound=3.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    14.4
    """

    norm_bound: AtLeastZero = 1.0  #: bound on the norm of [mu; theta], or of theta without biases
    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: the confidence set may fail with this probability
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@compiled
def oful_radius(policy, state):
    """Return the largest distance of theta* from theta_hat, in the norm of V."""
    return ellipsoid_radius(state.fit.log_det[0], policy.norm_bound, policy.delta, policy.sigma, policy.ridge)


@score.register
def score_oful(policy: OFUL, state, offer, noise):
    return optimistic(state.fit, offer, oful_radius(policy, state))


@diagnostics.register
def diagnostics_oful(policy: OFUL, state):
    fitted = describe_fit(state.fit, state.pulls)
    return {**fitted, "radius": oful_radius(policy, state), "log_det": float(state.fit.log_det[0])}
