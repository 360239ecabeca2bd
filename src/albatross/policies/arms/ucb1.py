"""UCB1: mean + sqrt(2 ln t / n), for rewards in [0, 1] or, times `scale`, in an interval of that length.

Auer, Cesa-Bianchi and Fischer (2002), Figure 1.
"""

from __future__ import annotations

import numpy as np

from albatross.models.arm_means import means
from albatross.options import Positive, Ties, policy
from albatross.picking import by_row
from albatross.policies.arms.means import OnMeans
from albatross.protocol import score


@policy
class UCB1(OnMeans):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002, Figure 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(UCB1(scale=2.0), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    182.2
    """

    scale: Positive = 1.0  #: length of the interval that rewards lie in
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@score.register
def score_ucb1(policy: UCB1, state, offer, noise):
    t = max(np.sum(state.counts), 1.0)
    widths = np.empty(state.counts.size)
    for arm in range(widths.size):
        plays = state.counts[arm]
        widths[arm] = policy.scale * np.sqrt(2.0 * np.log(t) / plays) if plays > 0.0 else np.inf
    return by_row(means(state) + widths, offer.arms), by_row(widths, offer.arms)
