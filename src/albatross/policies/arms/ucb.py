"""UCB: the arm whose mean reward could still be the highest. Blind to contexts, best where theta* = 0.

The index is the bias index of OFUL+ with norm bound 0: in its Appendix-A form, a bound valid at all times.
Auer, Cesa-Bianchi and Fischer (2002); index of Abbasi-Yadkori, Pal and Szepesvari (2011), Section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from albatross import checks
from albatross.confidence import FORMS, bias_widths
from albatross.models.arm_means import count_play, describe_means, means, no_plays
from albatross.protocol import diagnostics, init, resolve, score, update


@dataclass(frozen=True, kw_only=True)
class UCB:
    """Upper confidence bounds on the arms' means (Auer, Cesa-Bianchi and Fischer 2002).

    >>> UCB(sigma=0.5)
    UCB(sigma=0.5, delta=0.1, form='appendix', scale=1.0, ties='random')
    """

    sigma: float = 1.0  #: standard deviation of the noise
    delta: float = 0.1  #: with form "appendix" and scale 1, bounds may fail with this probability
    form: str = "appendix"  #: of OFUL+'s bias widths: "appendix" is valid at all times, "main" grows with d
    scale: float = 1.0  #: c, a factor on all widths
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.probability("delta", self.delta)
        checks.one_of("form", self.form, tuple(FORMS))
        checks.positive("scale", self.scale)
        checks.one_of("ties", self.ties, ("random", "first"))


class UCBParameters(NamedTuple):
    form: Any
    delta: float
    sigma: float
    random_ties: int


@resolve.register
def resolve_ucb(policy: UCB, n_arms, dim, horizon):
    form = FORMS[policy.form](float(policy.scale))
    return UCBParameters(form, float(policy.delta), float(policy.sigma), int(policy.ties == "random"))


@init.register
def init_ucb(policy: UCBParameters, n_arms, dim, rng):
    return no_plays(n_arms, policy.random_ties, rng)


@score.register
def score_ucb(policy: UCBParameters, state, offer, noise):
    dim = offer.contexts.shape[1]
    widths = bias_widths(policy.form, state.counts, 0.0, policy.delta, policy.sigma, dim)
    return means(state) + widths, widths


@update.register
def update_ucb(policy: UCBParameters, state, choice, reward, n):
    count_play(state, choice, reward, n)


@diagnostics.register
def diagnostics_ucb(policy: UCBParameters, state):
    return describe_means(state)
