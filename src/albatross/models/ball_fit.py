"""What the policies on the unit ball share: ridge regression in V's own eigenbasis, and rare switching.

The world looks at an action through some vectors, the rows of `lookout`. For an agent these are all d coordinate axes,
so what it sees is the action itself. A simulation needs nothing of an action but its mean reward: there the only row is
theta*, what it sees is <theta*, action>, and carrying that one vector along makes an update of the eigenbasis O(d^2).

Rarely switching (Abbasi-Yadkori, Pal and Szepesvari 2011, Section 5.1): an action is kept until det V has grown by more
than a factor 1 + C since it was chosen; n more plays multiply det V by 1 + n ||x||^2_{V^-1}, so the number is known
beforehand and all of them may be played as one block. C = 0 chooses anew every round.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.linalg.eigen import rank_one_update
from albatross.protocol import Choice

SIZE, VERSION, CHOSEN, SWITCHES = 0, 1, 2, 3  # places in the clock
OWN = 2  # places in a tag: the version of the basis and the number of switches; the action's coordinates follow
_SLACK = 1e-9  # of a determinant: where it equals 1 + C in exact arithmetic, rounding must not decide
_ROUNDS_COUNTED = 2.0**53
MOMENT, ACTION, SEEN = 0, 1, 2  # rows of what is carried; from SEEN on the lookout


class BallFit(NamedTuple):
    values: np.ndarray  # (d,) eigenvalues of V, the first k in use
    carried: np.ndarray  # (2 + m, d) in V's eigenbasis: sum of x y, the action that is kept, the lookout
    lookout: np.ndarray  # (m, d) in the world's coordinates
    kept: np.ndarray  # (m,) what the world sees of the action that is kept: the same to the last bit while it is
    clock: np.ndarray  # (4,) int64: k; how often the basis has turned; 1 while an action is kept; switches
    log_det: np.ndarray  # (2,) ln det V - ln det V_0; det V over what it was when the kept action was chosen


def ball_fit(dim: int, support: np.ndarray, strength: float) -> BallFit:
    """Nothing learnt yet, on the coordinates of `support`, seen by an agent."""
    fit = BallFit(
        values=np.zeros(dim),
        carried=np.zeros((2 + dim, dim)),
        lookout=np.eye(dim),
        kept=np.zeros(dim),
        clock=np.zeros(4, np.int64),
        log_det=np.zeros(2),
    )
    start_over(fit, support, strength)
    return fit


def look_through(fit: BallFit, vectors: np.ndarray) -> BallFit:
    """The same fit before its first round, seen by a world that looks with `vectors` (m, d) only."""
    k = fit.clock[SIZE]
    carried = np.zeros((2 + len(vectors), fit.values.size))
    # Before the first round the eigenbasis is the first k of the support's axes, in order.
    carried[SEEN:, :k] = vectors @ fit.lookout.T @ fit.carried[SEEN:, :k]
    return fit._replace(carried=carried, lookout=np.ascontiguousarray(vectors), kept=np.zeros(len(vectors)))


@singledispatch
def narrow(policy: Any, state: Any, vectors: np.ndarray) -> Any:
    """A state before its first round as a world sees it that looks with `vectors` only."""
    raise TypeError(f"{type(policy).__name__} does not play on the ball")


@compiled
def start_over(fit, support, strength):
    """Forget everything; learn on the coordinates of `support` (a mask) from now on."""
    k = 0
    for j in range(support.size):
        if support[j]:
            fit.values[k] = strength
            fit.carried[MOMENT, k] = 0.0
            fit.carried[ACTION, k] = 0.0
            for row in range(fit.lookout.shape[0]):
                fit.carried[SEEN + row, k] = fit.lookout[row, j]
            k += 1
    fit.clock[SIZE] = k
    fit.clock[VERSION] += 1
    fit.clock[CHOSEN] = 0
    fit.log_det.fill(0.0)


@compiled
def offer_action(fit, coordinates, score, width, propensity):
    """The choice of an action by its coordinates in the eigenbasis, with what the world sees of it."""
    k = fit.clock[SIZE]
    tag = np.zeros(OWN + fit.values.size)
    tag[0] = fit.clock[VERSION]
    tag[1] = fit.clock[SWITCHES]
    for j in range(k):
        tag[OWN + j] = coordinates[j]
    seen = fit.kept.copy() if fit.clock[CHOSEN] else look_at(fit, coordinates)
    return Choice(0, seen, score, width, propensity, tag)


@compiled
def look_at(fit, coordinates):
    """What the world sees of an action."""
    seen = np.empty(fit.lookout.shape[0])
    for row in range(seen.size):
        seen[row] = np.dot(fit.carried[SEEN + row, : coordinates.size], coordinates)
    return seen


@compiled
def estimated_mean(fit, coordinates):
    """<x, theta_hat>."""
    k = fit.clock[SIZE]
    return np.dot(fit.carried[MOMENT, :k] / fit.values[:k], coordinates)


@compiled
def keep_action(fit, coordinates, seen):
    """From now on this action, of which the world sees so much, is played until det V has grown enough."""
    for j in range(coordinates.size):
        fit.carried[ACTION, j] = coordinates[j]
    for row in range(seen.size):
        fit.kept[row] = seen[row]
    fit.clock[CHOSEN] = 1
    fit.log_det[1] = 1.0


@compiled
def width_squared(fit, coordinates):
    """||x||^2 in V^-1."""
    total = 0.0
    for j in range(coordinates.size):
        total += coordinates[j] * coordinates[j] / fit.values[j]
    return total


@compiled
def plays_until_switch(fit, choice, switch):
    """How often the choice is played until det V has grown by more than 1 + switch since it was made."""
    if switch == 0.0 or fit.clock[SIZE] == 0:
        return 1
    grown = fit.log_det[1] if fit.clock[CHOSEN] else 1.0
    room = max((1.0 + switch) / grown - 1.0, 0.0)
    plays = room / width_squared(fit, choice.tag[OWN : OWN + fit.clock[SIZE]])
    return int(min(plays + _SLACK * (1.0 + plays), _ROUNDS_COUNTED)) + 1


@compiled
def learn_action(fit, choice, reward, n, switch):
    """n plays of a choice that brought `reward` in sum."""
    k = fit.clock[SIZE]
    coordinates = choice.tag[OWN : OWN + k].copy()
    current = choice.tag[0] == fit.clock[VERSION]
    if not current:  # of an earlier basis, or somebody else's: an agent sees all of it
        coordinates = choice.action @ np.ascontiguousarray(fit.carried[SEEN:, :k])
    if not fit.clock[CHOSEN] and choice.tag[1] == fit.clock[SWITCHES]:  # made since the last switch
        keep_action(fit, coordinates, choice.action)
    # By count, not by comparing determinants: past 1e14 rounds a play changes them by less than rounding.
    over = current and n >= plays_until_switch(fit, choice, switch)
    growth = 1.0 + n * width_squared(fit, coordinates)
    fit.log_det[0] += math.log(growth)
    fit.log_det[1] *= growth
    for j in range(k):
        fit.carried[MOMENT, j] += reward * coordinates[j]
    rank_one_update(fit.values[:k], fit.carried[:, :k], math.sqrt(n) * coordinates)
    fit.clock[VERSION] += 1
    if fit.clock[CHOSEN] and (over or fit.log_det[1] > (1.0 + switch) * (1.0 + _SLACK)):
        fit.clock[CHOSEN] = 0
        fit.clock[SWITCHES] += 1


def check_fit(fit: BallFit, most: int) -> None:
    """Refuse a fit on more coordinates than there are, or on none."""
    checks.indices("clock", fit.clock[..., SIZE], most)


def describe_ball(fit: BallFit) -> dict[str, Any]:
    """theta_hat where all of it is seen, V's eigenvalues and log-determinant, switches."""
    k = int(fit.clock[SIZE])
    found: dict[str, Any] = {
        "dimension": k,
        "eigenvalues": np.sort(fit.values[:k]),
        "log_det": float(fit.log_det[0]),
        "switches": int(fit.clock[SWITCHES]),
    }
    if len(fit.lookout) == fit.values.size:
        found["theta_hat"] = fit.carried[SEEN:, :k] @ (fit.carried[MOMENT, :k] / fit.values[:k])
    return found
