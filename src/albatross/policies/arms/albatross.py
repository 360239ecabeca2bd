"""Albatross: nothing to tune; optimism where a play teaches more than an average one, under variances learnt online.

Developed for this library. The model is m + mu_i + <x, theta> + noise, with normal priors on the biases mu_i and on
theta. The variances of both priors and of the noise are learnt (`variance_components`), so the policy adapts to the
norm and to whether there are biases. With h_i the posterior variance of arm i's mean over sigma^2 (its leverage) and
D_eff the effective number of parameters, it plays the arm with the largest

    mean_i + sqrt(2 sigma^2 h_i ln(1 + t h_i / D_eff)).

The leverages of t plays sum to D_eff, so t h_i / D_eff compares arm i with an average play: information that an average
play provides anyway adds almost no bonus. With one bias per arm and no theta, this is an anytime form of MOSS (Audibert
and Bubeck 2009).

There is no proved regret bound for this index. Proved are a confidence set and a norm bound (`certificate`). The
`safeguard` falls back on optimism over that set; its rate is only sketched.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.vectors import norm
from albatross.models.certificate import Certificate, NoCertificate, new_certificate, no_certificate, observe
from albatross.models.ridge import Joint, Ridge, learn, leverages, predict
from albatross.models.units import unit_of, usable, with_constant
from albatross.models.variance_components import (
    BIAS_RIDGE,
    IN_USE,
    NEXT,
    NOISE,
    Totals,
    add_plays,
    first_components,
    first_fit,
    fold_totals,
    no_totals,
    plays_until_next_look,
    reestimate,
)
from albatross.options import Flag, Positive, Probability, Ties, parameters, policy
from albatross.picking import by_row, pick_best, tie_priority
from albatross.policies.arms.albatross_findings import describe_albatross
from albatross.policies.arms.safeguard import Safeguard, Trust, guarded, note_size
from albatross.protocol import (
    Choice,
    check_tags,
    diagnostics,
    fold_arm,
    init,
    open_arm,
    resolve,
    score,
    select,
    tag_size,
    update,
)

_UNIT, _FIRST_REWARD = 0, 1  # places in the origin


@policy
class Albatross:
    """Albatross, this library's own policy; learns variances after MacKay (1992), index after MOSS (2009).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(Albatross(), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.8
    """

    sigma: Positive | None = None  #: standard deviation of the noise, if known; None: learnt
    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    delta: Probability = 0.05  #: certificate and safeguard may fail with this probability
    certificate: Flag = False  #: report a norm bound, proved if sigma is given
    safeguard: Flag = False  #: fall back on optimism over the proved confidence set when losses exceed what it allows
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm


class AlbatrossState(NamedTuple):
    fit: Joint | Ridge  # of rewards less the first one on rows [1, x / unit]
    totals: Totals
    components: np.ndarray  # (5,) r, lam, sigma^2, D_eff, and the play at which they are estimated again
    origin: np.ndarray  # (2,) unit of the contexts, 0 before the first reward; the first reward
    certificate: Certificate | NoCertificate
    account: np.ndarray  # (5,) sums of the safeguard's notes, (0,) without it
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_albatross(policy: Albatross, n_arms, dim, horizon):
    delta = float(policy.delta)
    return parameters(
        policy,
        sigma=0.0 if policy.sigma is None else policy.sigma,
        certificate=policy.certificate or policy.safeguard,
        safeguard=Safeguard(delta) if policy.safeguard else Trust(delta),
    )


@init.register
def init_albatross(policy: Albatross, n_arms, dim, rng):
    return AlbatrossState(
        fit=first_fit(n_arms, dim, biases=policy.biases),
        totals=no_totals(dim),
        components=first_components(policy.sigma or 0.0),
        origin=np.zeros(2),
        certificate=new_certificate(n_arms, dim) if policy.certificate else no_certificate(),
        account=np.zeros(note_size(policy.safeguard)),
        pulls=np.zeros(n_arms),
        priority=tie_priority(n_arms, policy.ties, rng),
    )


@tag_size.register
def tag_size_albatross(policy: Albatross):
    return 1 + note_size(policy.safeguard)


@compiled
def bonuses(state, h):
    """Return sqrt(2 sigma^2 h ln(1 + t h / D_eff)) for the coming round t."""
    t = state.totals.gram[0, 0] + 1.0
    return np.sqrt(2.0 * state.components[NOISE] * h * np.log1p(t * h / state.components[IN_USE]))


@compiled
def noise_sd(policy, state):
    """Return the given sigma, or else its estimate."""
    return policy.sigma if policy.sigma > 0.0 else math.sqrt(state.components[NOISE])


@compiled
def unit_for(state, offer):
    """The unit of the contexts: that of the first reward's offer, or of this one before there is a reward."""
    return state.origin[_UNIT] if state.origin[_UNIT] > 0.0 else unit_of(offer)


@compiled
def estimates(state, offer, rows):
    """(R,) means of the rows [1, x / unit], and their bonuses."""
    h = leverages(state.fit, rows, offer.arms)
    # What pending plays of an arm will teach is known without their rewards; else all decisions until these come would
    # be for one arm.
    return predict(state.fit, rows, offer.arms), bonuses(state, h / (1.0 + by_row(offer.pending, offer.arms) * h))


@score.register
def score_albatross(policy: Albatross, state, offer, noise):
    means, widths = estimates(state, offer, with_constant(offer.contexts, unit_for(state, offer)))
    return means + state.origin[_FIRST_REWARD] + widths, widths


@select.register
def select_albatross(policy: Albatross, state, offer, noise):
    unit = unit_for(state, offer)
    rows = with_constant(offer.contexts, unit)
    means, widths = estimates(state, offer, rows)
    row = pick_best(means + widths, offer, state.priority)
    row, note = guarded(policy.safeguard, state, offer, rows, means, row, noise_sd(policy, state))
    tag = np.empty(1 + note.size)
    tag[0] = unit
    for k in range(note.size):
        tag[1 + k] = note[k]
    return Choice(row, offer.contexts[row], means[row] + widths[row], widths[row], 1.0, tag)


@update.register
def update_albatross(policy: Albatross, state, choice, reward, n):
    own = not np.isnan(choice.tag[0])
    if state.origin[_UNIT] == 0.0:
        state.origin[_UNIT] = choice.tag[0] if own else usable(norm(choice.action))
        state.origin[_FIRST_REWARD] = reward / n
    if own:
        for k in range(state.account.size):
            state.account[k] += n * choice.tag[1 + k]
    row = with_constant(choice.action.reshape((1, -1)), state.origin[_UNIT])[0]
    each = reward / n - state.origin[_FIRST_REWARD]
    state.pulls[choice.arm] += n
    while n > 0:
        plays = min(n, plays_until_next_look(state.components, state.totals))
        learn(state.fit, choice.arm, row, plays * each, plays)
        add_plays(state.totals, row, each, plays)
        observe(state.certificate, choice.arm, row, each, plays)
        if state.totals.gram[0, 0] >= state.components[NEXT]:
            reestimate(state.fit, state.totals, state.components, policy.sigma)
        n -= plays


@open_arm.register
def open_arm_albatross(policy: Albatross, state, arm):
    if policy.biases:
        state.fit.weight[arm] = state.components[BIAS_RIDGE]


@fold_arm.register
def fold_arm_albatross(policy: Albatross, state, arm):
    fold_totals(state.fit, state.totals, arm)


@check_tags.register
def check_tags_albatross(policy: Albatross, state, tags):
    units = tags[~np.isnan(tags[:, 0]), 0]
    if not ((units > 0.0) & (units <= checks.LARGEST**2)).all():
        raise ValueError("tag must begin with a length")


@diagnostics.register
def diagnostics_albatross(policy: Albatross, state) -> dict[str, Any]:
    return describe_albatross(policy, state, sigma=float(noise_sd(policy, state)))
