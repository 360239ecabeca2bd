"""LinTS: play the arm that is best under a parameter drawn from the posterior.

Agrawal and Goyal (2013), Algorithm 1, with the posterior's own scale sigma instead of the inflated one of the proof.
Needs no bound on the norm of theta*.
"""

from __future__ import annotations

from albatross.models.ridge import perturb, predict
from albatross.options import Flag, Positive, Ties, policy
from albatross.policies.arms.linear import OnRidge
from albatross.protocol import noise_size, score


class Sampling:
    """A policy that draws from the posterior of its `fit`: a class with these keywords inherits the verbs below."""

    sigma: float
    biases: bool


@policy
class LinTS(OnRidge, Sampling):
    """Linear Thompson sampling (Agrawal and Goyal 2013, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(LinTS(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    6.8
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    ridge: Positive = 1.0  #: sigma^2 over the prior variance
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@noise_size.register
def noise_size_sampling(policy: Sampling, n_arms, dim):
    return dim + n_arms if policy.biases else dim


@score.register
def score_sampling(policy: Sampling, state, offer, noise):
    drawn = perturb(state.fit, offer.contexts, offer.arms, policy.sigma, noise)
    return drawn, drawn - predict(state.fit, offer.contexts, offer.arms)
