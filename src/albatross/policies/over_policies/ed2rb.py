"""ED2RB: balance the bases' realised regret, with coefficients estimated from lower bounds on their regret.

Pacchiano, Dann and Gentile (2024), Algorithm 1 with the estimating rule. As D3RB, but

    d_i = max(d_min, sqrt(n_i) (max_j (u_j / n_j - c_j) - u_i / n_i - c_i)),

and phi_i = d_i sqrt(n_i), kept between its last value and twice that. The recommended meta-policy.
"""

from __future__ import annotations

import math

from albatross.options import policy
from albatross.policies.over_policies.bases import learn_bases
from albatross.policies.over_policies.d3rb import D3RB, shortfall
from albatross.protocol import update


@policy
class ED2RB(D3RB):
    """ED2RB over base policies (Pacchiano, Dann and Gentile 2024, Algorithm 1); all but `update` is D3RB's.

    >>> from albatross import environments, policies, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(ED2RB(bases=(policies.LinUCB(), policies.UCB())), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    60.1
    """


@update.register
def update_ed2rb(policy: ED2RB, state, choice, reward, n):
    for _ in range(n):
        i = learn_bases(policy.bases, state.record, choice, reward / n, 1.0, policy.share)
        if i >= 0:
            root, before = math.sqrt(state.record.plays[i]), state.potentials[i]
            state.coefficients[i] = max(policy.least, root * shortfall(policy, state, i))
            state.potentials[i] = min(max(state.coefficients[i] * root, before), 2.0 * before)
