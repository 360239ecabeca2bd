"""LinUCB: estimated mean plus alpha times the length of the features in V^-1.

Li, Chu, Langford and Schapire (2010), Algorithm 1 (here with one parameter for all arms); Chu, Li, Reyzin and Schapire
(2011), Algorithm 1, take alpha = sqrt(ln(2TK/delta)/2).
"""

from __future__ import annotations

from albatross.options import AtLeastZero, Flag, Positive, Ties, policy
from albatross.policies.arms.linear import OnRidge, optimistic
from albatross.protocol import score


@policy
class LinUCB(OnRidge):
    """LinUCB (Chu, Li, Reyzin and Schapire 2011, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(LinUCB(alpha=0.5), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.6
    """

    alpha: AtLeastZero = 1.0  #: widths, in posterior standard deviations at noise 1
    ridge: Positive = 1.0  #: weight of the penalty on the parameter's norm
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@score.register
def score_linucb(policy: LinUCB, state, offer, noise):
    return optimistic(state.fit, offer, policy.alpha)
