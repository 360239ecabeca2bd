"""A fallback on optimism over the certificate's set, used when an unproved choice could cost too much.

A choice costs at most its certified gap: the most by which the set allows another arm to be better. While the sum of
these gaps stays within twice the certified cost of optimism over the set, which with lam = 1 is

    E = 2 sigma sqrt(2 kappa ln det(I + Lam^-1 G) t),

the choice is played; otherwise the optimistic arm is. An arm that the set does not bound yet is played from time to
time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled, generic
from albatross.models.certificate import estimates, half_width_of_difference, kappas
from albatross.picking import pick_best
from albatross.protocol import Offer

# Places in a note and in the account: rounds with an unidentified arm, forced plays, gaps paid for, fallbacks, regret.
_UNIDENTIFIED, _FORCED, _SPENT, _FALLBACKS, _CERTIFIED = 0, 1, 2, 3, 4
_PLACES = 5


class Trust(NamedTuple):
    """No safeguard: every choice is played."""

    delta: float


class Safeguard(NamedTuple):
    """A safeguard: a choice is played while the certificate allows it."""

    delta: float


def note_size(guard: Any) -> int:
    """Return the number of values that a choice carries for the account."""
    return _PLACES if isinstance(guard, Safeguard) else 0


# guarded(guard, state, offer, rows, means, row, sigma) -> the row to play instead of `row`, what to add to the account
guarded = generic("guarded")


@guarded.register
def guarded_trust(guard: Trust, state, offer, rows, means, row, sigma):
    return row, np.empty(0)


@guarded.register
def guarded_safeguard(guard: Safeguard, state, offer, rows, means, row, sigma):
    certificate, played = state.certificate, state.totals.gram[0, 0]
    note = np.zeros(_PLACES)
    found = estimates(certificate, rows, offer.arms, guard.delta, sigma)
    unidentified = Offer(offer.contexts, offer.eligible & (found.widths == np.inf), offer.pending, -1, offer.arms)
    unknown = pick_best(means, unidentified, state.priority)
    if unknown >= 0:
        note[_UNIDENTIFIED] = 1.0
        if found.widths[row] < np.inf and state.account[_FORCED] < 0.5 * math.sqrt(played):
            note[_FORCED] = 1.0
            return unknown, note
        return row, note
    optimistic = pick_best(found.centres + found.widths, offer, state.priority)
    if row != optimistic:
        gap = certified_gap(certificate, found, offer.eligible, row, kappas(certificate, guard.delta), sigma)
        if state.account[_SPENT] + gap <= 2.0 * cost_of_optimism(certificate, guard.delta, sigma, played + 1.0):
            note[_SPENT] = note[_CERTIFIED] = gap
            return row, note
        note[_FALLBACKS] = 1.0
    note[_CERTIFIED] = 2.0 * found.widths[optimistic]
    return optimistic, note


@compiled
def certified_gap(certificate, found, eligible, row, kappa, sigma):
    """Return the most by which another row may be better."""
    gap = 0.0
    for other in range(eligible.size):
        if eligible[other] and other != row:
            width = half_width_of_difference(certificate, found, other, row, kappa, sigma)
            width = min(width, found.widths[other] + found.widths[row])
            gap = max(gap, found.centres[other] - found.centres[row] + width)
    return gap


@compiled
def cost_of_optimism(certificate, delta, sigma, t):
    """Return E, the most that optimism over the set with lam = 1 loses in t rounds."""
    return 2.0 * sigma * math.sqrt(2.0 * kappas(certificate, delta)[0] * certificate.log_dets[0] * t)


def describe_safeguard(guard: Any, state: Any, sigma: float) -> dict[str, Any]:
    """Return the budget by name."""
    if not isinstance(guard, Safeguard):
        return {}
    unidentified, forced, spent, fallbacks, certified = (float(part) for part in state.account)
    cost = float(cost_of_optimism(state.certificate, guard.delta, sigma, state.totals.gram[0, 0] + 1.0))
    return {
        "unidentified_rounds": int(unidentified),
        "forced": int(forced),
        "spent": spent,
        "allowance": 2.0 * cost,
        "fallbacks": int(fallbacks),
        "certified_regret": certified,
    }
