"""Albatross: nothing to tune; optimism where a play teaches more than an average one, under a prior learnt online.

Developed for this library. The model is m + mu_i + <x, theta> + noise, with normal priors on the biases mu_i and on
theta. Their variances and that of the noise are learnt. The prior of theta is an average, by how well they predict, of
a dense and a sparse one, and that of the biases has mass on "none" (`two_priors`). So the policy adapts to the norm, to
sparsity and to whether there are biases, in any unit of rewards and contexts. With h_i the posterior variance of arm
i's mean over sigma^2 (its leverage) and D_eff the effective number of parameters, it plays the arm with the largest

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
from albatross.models.memory import Memories, Memory, NoMemories, fold_memories, new_memories, new_memory, remember
from albatross.models.ridge import Joint, Ridge, learn, leverages, predict
from albatross.models.sums import Sums, Totals, add_to_totals, fold, no_totals
from albatross.models.two_priors import (
    BIAS_RIDGE,
    IN_USE,
    NOISE,
    Prior,
    count_plays,
    first_fit,
    first_prior,
    note_error,
    plays_until_look,
)
from albatross.models.units import unit_of, usable, with_constant
from albatross.options import Flag, Positive, Probability, Share, Ties, parameters, policy
from albatross.picking import by_row, pick_best, tie_priority
from albatross.policies.arms.albatross_findings import describe_albatross
from albatross.policies.arms.inverse_gap import InverseGap, PlayBest, drawn
from albatross.policies.arms.safeguard import Safeguard, Trust, guarded, note_size
from albatross.protocol import (
    Choice,
    check_tags,
    diagnostics,
    fold_arm,
    init,
    noise_size,
    open_arm,
    resolve,
    score,
    select,
    tag_size,
    update,
)

_UNIT, _FIRST_REWARD = 0, 1  # places in the origin
_MOST_LOOKS = 1_000  # within plays that are learnt at once: with forgetting there is one every few plays


@policy
class Albatross:
    """Albatross, this library's own policy; learns variances after MacKay (1992), index after MOSS (2009).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(Albatross(), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    7.4
    """

    biases: Flag = True  #: one bias per arm; False: contexts explain the whole mean reward
    memory: Memory = None  #: None: nothing is forgotten; a half-life in plays; "learnt": as much as predicts best
    explore: Positive | None = None  #: draw arms with exact propensities; the share of exploration, such as 0.1
    floor: Share = 0.0  #: with `explore`, probability of an arm drawn uniformly
    sigma: Positive | None = None  #: standard deviation of the noise, for certificate and safeguard; None: learnt
    delta: Probability = 0.05  #: certificate and safeguard may fail with this probability
    certificate: Flag = False  #: report a norm bound, proved if sigma is given
    safeguard: Flag = False  #: fall back on optimism over the proved confidence set when losses exceed what it allows
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm

    def __post_init__(self) -> None:
        if self.floor and self.explore is None:
            raise ValueError(f"floor={self.floor} needs explore: for a floor under any policy, use Agent(floor=...)")
        if self.explore is not None and self.safeguard:
            raise ValueError("explore and safeguard exclude each other: a fallback has no known probability")
        if self.memory is not None and (self.certificate or self.safeguard):
            raise ValueError("memory excludes certificate and safeguard: these hold for rewards that do not drift")


class AlbatrossState(NamedTuple):
    fit: Joint | Ridge  # of rewards less the first one on rows [1, x / unit]
    totals: Totals
    prior: Prior
    memories: Memories | NoMemories
    origin: np.ndarray  # (2,) unit of the contexts, 0 before the first reward; the first reward
    certificate: Certificate | NoCertificate
    account: np.ndarray  # (5,) sums of the safeguard's notes, (0,) without it
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


@resolve.register
def resolve_albatross(policy: Albatross, n_arms, dim, horizon):
    delta = float(policy.delta)
    rho, floor = policy.explore, float(policy.floor)
    return parameters(
        policy,
        memory=new_memory(policy.memory),
        explore=PlayBest(0.0) if rho is None else InverseGap(float(rho), floor),
        floor=floor,
        sigma=0.0 if policy.sigma is None else policy.sigma,
        certificate=policy.certificate or policy.safeguard,
        safeguard=Safeguard(delta) if policy.safeguard else Trust(delta),
    )


@init.register
def init_albatross(policy: Albatross, n_arms, dim, rng):
    return AlbatrossState(
        fit=first_fit(n_arms, dim, biases=policy.biases),
        totals=no_totals(dim),
        prior=first_prior(dim),
        memories=new_memories(policy.memory, n_arms if policy.biases else 0, dim),
        origin=np.zeros(2),
        certificate=new_certificate(n_arms, dim) if policy.certificate else no_certificate(),
        account=np.zeros(note_size(policy.safeguard)),
        pulls=np.zeros(n_arms),
        priority=tie_priority(n_arms, policy.ties, rng),
    )


@noise_size.register
def noise_size_albatross(policy: Albatross, n_arms, dim):
    return int(isinstance(policy.explore, InverseGap))


@tag_size.register
def tag_size_albatross(policy: Albatross):
    return 1 + note_size(policy.safeguard)


@compiled
def pace(state):
    """Return t / D_eff for the coming round t."""
    return (state.totals.gram[0, 0] + 1.0) / state.prior.numbers[IN_USE]


@compiled
def noise_sd(policy, state):
    """Return the given sigma, or else its estimate."""
    return policy.sigma if policy.sigma > 0.0 else math.sqrt(state.prior.numbers[NOISE])


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
    h = h / (1.0 + by_row(offer.pending, offer.arms) * h)
    bonuses = np.sqrt(2.0 * state.prior.numbers[NOISE] * h * np.log1p(pace(state) * h))
    return predict(state.fit, rows, offer.arms), bonuses


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
    sharpness = pace(state) / math.sqrt(state.prior.numbers[NOISE])
    row, propensity = drawn(policy.explore, row, means + widths, offer.eligible, sharpness, noise)
    row, note = guarded(policy.safeguard, state, offer, rows, means, row, noise_sd(policy, state))
    tag = np.empty(1 + note.size)
    tag[0] = unit
    for k in range(note.size):
        tag[1 + k] = note[k]
    return Choice(row, offer.contexts[row], means[row] + widths[row], widths[row], propensity, tag)


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
    looks = 0
    while n > 0:
        plays = min(n, plays_until_look(state.prior)) if looks < _MOST_LOOKS else n
        looks += 1
        note_error(state.prior, state.fit, choice.arm, row, each, plays)
        learn(state.fit, choice.arm, row, plays * each, plays)
        add_to_totals(state.totals, row, each, plays)
        remember(state.memories, choice.arm, row, each, plays)
        observe(state.certificate, choice.arm, row, each, plays)
        count_plays(state.prior, state.fit, state.totals, policy.memory, state.memories, plays)
        n -= plays


@open_arm.register
def open_arm_albatross(policy: Albatross, state, arm):
    if policy.biases:
        state.fit.weight[arm] = state.prior.numbers[BIAS_RIDGE]


@fold_arm.register
def fold_arm_albatross(policy: Albatross, state, arm):
    if policy.biases:
        fold(Sums(state.fit.context_sum, state.fit.reward_sum, state.totals), arm)
        fold_memories(state.memories, arm)


@check_tags.register
def check_tags_albatross(policy: Albatross, state, tags):
    units = tags[~np.isnan(tags[:, 0]), 0]
    if not ((units > 0.0) & (units <= checks.LARGEST**2)).all():
        raise ValueError("tag must begin with a length")


@diagnostics.register
def diagnostics_albatross(policy: Albatross, state) -> dict[str, Any]:
    return describe_albatross(policy, state, sigma=float(noise_sd(policy, state)))
