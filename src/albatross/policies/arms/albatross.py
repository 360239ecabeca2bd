"""Albatross: nothing to tune; optimism where a play teaches more than an average one, under variances learnt online.

Made for this library. Rewards are taken to be m + mu_i + <x, theta> + noise, with normal priors on the biases mu_i and
on theta whose variances are learnt with the noise's (`variance_components`): that is adaptation to the norm, and to
whether there are biases at all. With h_i the posterior variance of arm i's mean over sigma^2 (its leverage) and D_eff
the number of parameters in use, the arm of highest

    mean_i + sqrt(2 sigma^2 h_i ln(1 + t h_i / D_eff))

is played. The leverages of t plays sum to D_eff, so t h_i / D_eff compares arm i with an average play; what an average
play teaches anyhow is hardly paid for. For one bias an arm and no theta this is an anytime form of MOSS (Audibert and
Bubeck 2009). No regret bound is proved of it. What is proved stands apart: a confidence set and a norm bound
(`certificate`). The `safeguard` falls back on optimism over that set, with a rate that is only sketched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.vectors import norm
from albatross.models.certificate import (
    Certificate,
    NoCertificate,
    describe_certificate,
    new_certificate,
    no_certificate,
    observe,
)
from albatross.models.ridge import Joint, Ridge, bias_estimates, learn, leverages, predict
from albatross.models.variance_components import (
    FIRST_LOOK,
    IN_USE,
    NEXT,
    NOISE,
    Totals,
    add_plays,
    first_components,
    first_fit,
    no_totals,
    per_arm,
    plays_until_next_look,
    reestimate,
)
from albatross.picking import pick_best, tie_priority
from albatross.policies.arms.safeguard import Safeguard, Trust, describe_safeguard, guarded, new_account, note_size
from albatross.policies.arms.units import unit_of, usable, with_constant
from albatross.protocol import Choice, check_tags, diagnostics, init, resolve, select, tag_size, update

_UNIT, _FIRST_REWARD = 0, 1  # places in the origin
_HARDLY = 1e-12  # of a sum of squares
_SIGMA_TOO_SMALL = 1.1  # times sigma, or three standard errors where they are more


@dataclass(frozen=True, kw_only=True)
class Albatross:
    """Albatross, this library's own policy; learns variances after MacKay (1992), index after MOSS (2009)."""

    sigma: float | None = None  #: standard deviation of the noise where it is known; None: learnt
    biases: bool = True  #: False: an arm's context explains all of its mean reward
    delta: float = 0.05  #: certificate and safeguard may fail with this probability
    certificate: bool = False  #: report a norm bound that is proved where sigma is given
    safeguard: bool = False  #: fall back on optimism over the proved confidence set when losses exceed what it allows
    ties: str = "random"  #: "random": equal scores go by an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        if self.sigma is not None:
            checks.positive("sigma", self.sigma)
        checks.flag("biases", self.biases)
        checks.probability("delta", self.delta)
        checks.flag("certificate", self.certificate)
        checks.flag("safeguard", self.safeguard)
        checks.one_of("ties", self.ties, ("random", "first"))


class AlbatrossParameters(NamedTuple):
    guard: Trust | Safeguard
    sigma: float  # 0 where it is not given
    biases: int
    certificate: int
    random_ties: int


class AlbatrossState(NamedTuple):
    fit: Joint | Ridge  # of rewards less the first one on rows [1, x / unit]
    totals: Totals
    components: np.ndarray  # (5,) r, lam, sigma^2, D_eff, and the play at which they are estimated again
    origin: np.ndarray  # (2,) unit of the contexts, 0 before the first reward; the first reward
    certificate: Certificate | NoCertificate
    account: np.ndarray  # (5,) the safeguard's, (0,) without it
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_albatross(policy: Albatross, n_arms, dim, horizon):
    delta = float(policy.delta)
    return AlbatrossParameters(
        guard=Safeguard(delta) if policy.safeguard else Trust(delta),
        sigma=0.0 if policy.sigma is None else float(policy.sigma),
        biases=int(policy.biases),
        certificate=int(policy.certificate or policy.safeguard),
        random_ties=int(policy.ties == "random"),
    )


@init.register
def init_albatross(policy: AlbatrossParameters, n_arms, dim, rng):
    return AlbatrossState(
        fit=first_fit(n_arms, dim, biases=policy.biases),
        totals=no_totals(dim),
        components=first_components(policy.sigma),
        origin=np.zeros(2),
        certificate=new_certificate(n_arms, dim) if policy.certificate else no_certificate(),
        account=new_account(policy.guard),
        pulls=np.zeros(n_arms),
        priority=tie_priority(n_arms, policy.random_ties, rng),
    )


@tag_size.register
def tag_size_albatross(policy: AlbatrossParameters):
    return 1 + note_size(policy.guard)


@compiled
def bonuses(state, h):
    """sqrt(2 sigma^2 h ln(1 + t h / D_eff)), t the round to come."""
    t = state.totals.gram[0, 0] + 1.0
    return np.sqrt(2.0 * state.components[NOISE] * h * np.log1p(t * h / state.components[IN_USE]))


@compiled
def noise_sd(policy, state):
    """sigma as given, or else as estimated."""
    return policy.sigma if policy.sigma > 0.0 else math.sqrt(state.components[NOISE])


@select.register
def select_albatross(policy: AlbatrossParameters, state, offer, noise):
    unit = state.origin[_UNIT] if state.origin[_UNIT] > 0.0 else unit_of(offer)
    rows = with_constant(offer.contexts, unit)
    means = predict(state.fit, rows)
    h = leverages(state.fit, rows)
    # What pending plays of an arm will teach is known without their rewards; else all decisions until these come would
    # be for one arm.
    widths = bonuses(state, h / (1.0 + offer.pending * h))
    arm = pick_best(means + widths, offer, state.priority)
    arm, note = guarded(policy.guard, state, offer, rows, means, arm, noise_sd(policy, state))
    tag = np.empty(1 + note.size)
    tag[0] = unit
    for k in range(note.size):
        tag[1 + k] = note[k]
    return Choice(arm, offer.contexts[arm], means[arm] + widths[arm], widths[arm], 1.0, tag)


@update.register
def update_albatross(policy: AlbatrossParameters, state, choice, reward, n):
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


@check_tags.register
def check_tags_albatross(policy: AlbatrossParameters, state, tags):
    units = tags[~np.isnan(tags[:, 0]), 0]
    if not ((units > 0.0) & (units <= checks.LARGEST**2)).all():
        raise ValueError("tag must begin with a length")


@diagnostics.register
def diagnostics_albatross(policy: AlbatrossParameters, state) -> dict[str, Any]:
    r, lam, variance, in_use = (float(part) for part in state.components[:NEXT])
    unit = float(state.origin[_UNIT]) or 1.0
    dim = state.fit.theta.size - 1
    found: dict[str, Any] = {
        "pulls": state.pulls.copy(),
        "intercept": float(state.fit.theta[0] + state.origin[_FIRST_REWARD]),
        "theta_hat": state.fit.theta[1:] / unit,
        "noise_sd": math.sqrt(variance),
        "prior_norm": math.sqrt(dim * variance / lam) / unit if np.any(state.totals.gram[1:, 1:]) else None,
        "effective_parameters": in_use,
    }
    if policy.biases:
        found.update(biases=bias_estimates(state.fit), bias_ridge=r, bias_sd=math.sqrt(variance / r))
    warnings = plain_warnings(policy, state)
    if policy.certificate:
        sigma = float(noise_sd(policy, state))
        described, sentences = describe_certificate(state.certificate, delta=policy.guard.delta, sigma=sigma, unit=unit)
        found.update(described)
        warnings += sentences
        found.update(describe_safeguard(policy.guard, state, sigma))
    return {**found, "warnings": warnings}


def plain_warnings(policy: AlbatrossParameters, state: AlbatrossState) -> list[str]:
    """What the estimates do not say, in sentences."""
    found = []
    t, dim = state.totals.gram[0, 0], state.fit.theta.size - 1
    never = int(np.sum(state.pulls == 0))
    if never:
        found.append(f"{never} of {state.pulls.size} arms were never played.")
    if t > 0.0:
        found += unidentified(state, t, dim)
    sd = math.sqrt(state.components[NOISE])
    if t < FIRST_LOOK:
        found.append(f"Fewer than {FIRST_LOOK:.0f} rewards: the variances are still first guesses.")
    elif policy.sigma and sd > policy.sigma * max(_SIGMA_TOO_SMALL, 1.0 + 3.0 / math.sqrt(2.0 * t)):
        found.append(
            f"The noise looks like {sd:.3g}, sigma={policy.sigma:.3g} was given: the certificate does not hold, the "
            "play is hardly affected."
        )
    if policy.certificate and not policy.sigma:
        found.append("sigma was not given: the certificate rests on an estimate of it and is not proved.")
    return found


def unidentified(state: AlbatrossState, t: float, dim: int) -> list[str]:
    """What t plays cannot tell of theta, biases and noise."""
    found = []
    sums, _, _ = per_arm(state.fit)
    contexts = state.totals.gram[1:, 1:]
    plays = np.maximum(sums[:, :1], 1.0)
    within = contexts - (sums[:, 1:] / plays).T @ sums[:, 1:]
    if not contexts.any():
        found.append("All contexts played were zero: nothing is known of theta.")
    elif len(sums) and np.trace(within) <= _HARDLY * np.trace(contexts):
        found.append("Contexts never changed within an arm: biases and theta cannot be told apart.")
    if t < dim:
        found.append(f"{t:.0f} reward{'s' * int(t != 1)} for {dim} features: most of theta is still the prior's.")
    if state.totals.square[0] * t - state.totals.moment[0] ** 2 <= _HARDLY * state.totals.square[0] * t:
        found.append("All rewards were equal: there is nothing to learn from.")
    return found
