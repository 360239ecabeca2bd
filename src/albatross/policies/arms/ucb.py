"""UCB: play the arm with the largest upper confidence bound on its mean reward. Ignores contexts; best if theta* = 0.

The index is the bias index of OFUL+ with norm bound 0; in the form of Appendix A it is valid at all times. Auer,
Cesa-Bianchi and Fischer (2002); index of Abbasi-Yadkori, Pal and Szepesvari (2011), Section 4.
"""

from __future__ import annotations

from albatross.confidence import FORMS, Form, bias_widths
from albatross.models.arm_means import means
from albatross.options import Positive, Probability, Ties, parameters, policy
from albatross.picking import by_row
from albatross.policies.arms.means import OnMeans
from albatross.protocol import resolve, score


@policy
class UCB(OnMeans):
    """Upper confidence bounds on the arms' means (Auer, Cesa-Bianchi and Fischer 2002).

    >>> UCB(sigma=0.5)
    UCB(sigma=0.5, delta=0.1, form='appendix', scale=1.0, ties='random')
    """

    sigma: Positive = 1.0  #: standard deviation of the noise
    delta: Probability = 0.1  #: with form "appendix" and scale 1, bounds may fail with this probability
    form: Form = "appendix"  #: of OFUL+'s bias widths: "appendix" is valid at all times, "main" grows with d
    scale: Positive = 1.0  #: c, a factor on all widths
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


@resolve.register
def resolve_ucb(policy: UCB, n_arms, dim, horizon):
    return parameters(policy, form=FORMS[policy.form](float(policy.scale)))


@score.register
def score_ucb(policy: UCB, state, offer, noise):
    dim = offer.contexts.shape[1]
    widths = bias_widths(policy.form, state.counts, 0.0, policy.delta, policy.sigma, dim)
    return by_row(means(state) + widths, offer.arms), by_row(widths, offer.arms)
