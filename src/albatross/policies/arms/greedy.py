"""Ridge greedy: play the arm with the highest estimated mean, without any exploration bonus.

If contexts are diverse, they explore by themselves and greedy is hard to beat (Bastani, Bayati and Khosravi 2021,
Algorithm 1; Kannan et al. 2018). On fixed arms, it locks in on whatever looked good first.
"""

from __future__ import annotations

import numpy as np

from albatross.models.ridge import predict
from albatross.options import Flag, Positive, Ties, policy
from albatross.policies.arms.linear import OnRidge
from albatross.protocol import score


@policy
class Greedy(OnRidge):
    """Greedy on ridge regression (Bastani, Bayati and Khosravi 2021, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(Greedy(), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    8.6
    """

    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@score.register
def score_greedy(policy: Greedy, state, offer, noise):
    return predict(state.fit, offer.contexts, offer.arms), np.zeros(offer.eligible.size)
