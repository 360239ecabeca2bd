"""Shared by the policies on the unit ball: ridge regression in V's own eigenbasis, and rare switching.

An action is stored by its coordinates in that basis. An agent also needs it as an ordinary vector, so its fit carries
all d coordinate axes along, and an update costs O(d^3). A simulation needs only the mean reward of an action: its fit
carries no axes, theta* is `Tracked` beside it in the same basis, and an update costs O(d^2).

Rare switching (Abbasi-Yadkori, Pal and Szepesvari 2011, Section 5.1): an action is kept until det V has grown by more
than a factor 1 + C since it was chosen. Since n more plays multiply det V by 1 + n ||x||^2_{V^-1}, this number of plays
is known in advance, and they can be played as one block. C = 0 chooses a new action every round.
"""

from __future__ import annotations

import math
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
MOMENT, ACTION, AXES = 0, 1, 2  # rows of what is carried; from AXES on the world's axes


class BallFit(NamedTuple):
    values: np.ndarray  # (d,) eigenvalues of V, the first k in use
    carried: np.ndarray  # (2 + m, d) in V's eigenbasis: sum of x y, the action that is kept, the world's axes
    lookout: np.ndarray  # (m, d) the axes; m is d for an agent and 0 in a simulation
    kept: np.ndarray  # (m,) the action that is kept, in the world: the same to the last bit while it is
    clock: np.ndarray  # (4,) int64: k; how often the basis has turned; 1 while an action is kept; switches
    log_det: np.ndarray  # (2,) ln det V - ln det V_0; det V over what it was when the kept action was chosen


class Tracked(NamedTuple):
    """theta* in a simulation, or empty (m = 0); kept beside a fit, never in it."""

    theta: np.ndarray  # (m, d) in the world
    turned: np.ndarray  # (m, d) in V's eigenbasis
    kept: np.ndarray  # (m,) mean reward of the action that is kept: the same to the last bit while it is


def ball_fit(dim: int, support: np.ndarray, strength: float) -> BallFit:
    """Return a fit without data on the coordinates of `support`, with all axes."""
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


def track_theta(fit: BallFit, theta: np.ndarray) -> tuple[BallFit, Tracked]:
    """Return the same fit, before its first round, without axes; and theta* in its basis."""
    dim = fit.values.size
    lean = fit._replace(carried=np.zeros((AXES, dim)), lookout=np.empty((0, dim)), kept=np.empty(0))
    return lean, Tracked(theta[None, :], theta[None, :] @ fit.carried[AXES:], np.zeros(1))


@compiled
def nothing_tracked(fit):
    """Return what an update outside of a simulation tracks: nothing."""
    nothing = np.empty((0, fit.values.size))
    return Tracked(nothing, nothing, np.empty(0))


@compiled
def start_over(fit, support, strength):
    """Forget everything and continue on the coordinates of `support` (a mask)."""
    k = 0
    for j in range(support.size):
        if support[j]:
            fit.values[k] = strength
            fit.carried[MOMENT, k] = 0.0
            fit.carried[ACTION, k] = 0.0
            for row in range(fit.lookout.shape[0]):
                fit.carried[AXES + row, k] = fit.lookout[row, j]
            k += 1
    fit.clock[SIZE] = k
    fit.clock[VERSION] += 1
    fit.clock[CHOSEN] = 0
    fit.log_det.fill(0.0)


@compiled
def start_tracking(tracked, support):
    """Turn theta* to the basis of a fit that starts over on the coordinates of `support`."""
    k = 0
    for j in range(support.size):
        if support[j]:
            for row in range(tracked.theta.shape[0]):
                tracked.turned[row, k] = tracked.theta[row, j]
            k += 1


@compiled
def offer_action(fit, coordinates, score, width, propensity):
    """Return the choice of an action by its coordinates in the eigenbasis, with its vector if the fit has axes."""
    k = fit.clock[SIZE]
    tag = np.zeros(OWN + fit.values.size)
    tag[0] = fit.clock[VERSION]
    tag[1] = fit.clock[SWITCHES]
    for j in range(k):
        tag[OWN + j] = coordinates[j]
    action = fit.kept.copy() if fit.clock[CHOSEN] else in_world(fit.carried[AXES:], coordinates)
    return Choice(0, action, score, width, propensity, tag)


@compiled
def in_world(axes, coordinates):
    """Return the products of an action with the vectors whose coordinates are the rows of `axes`."""
    seen = np.empty(axes.shape[0])
    for row in range(seen.size):
        seen[row] = np.dot(axes[row, : coordinates.size], coordinates)
    return seen


@compiled
def tracked_mean(fit, choice, tracked):
    """Return <theta*, action> for a choice that has its vector, or its coordinates at the end of its tag."""
    if choice.action.size:
        return (tracked.theta @ choice.action)[0]
    if fit.clock[CHOSEN]:
        return tracked.kept[0]
    start = choice.tag.size - fit.values.size
    return in_world(tracked.turned, choice.tag[start : start + fit.clock[SIZE]])[0]


@compiled
def estimated_mean(fit, coordinates):
    """Return <x, theta_hat>."""
    k = fit.clock[SIZE]
    return np.dot(fit.carried[MOMENT, :k] / fit.values[:k], coordinates)


@compiled
def keep_action(fit, tracked, coordinates, action):
    """Keep this action, in coordinates and as a vector, until det V has grown enough."""
    for j in range(coordinates.size):
        fit.carried[ACTION, j] = coordinates[j]
    for row in range(action.size):
        fit.kept[row] = action[row]
    means = in_world(tracked.turned, coordinates)
    for row in range(means.size):
        tracked.kept[row] = means[row]
    fit.clock[CHOSEN] = 1
    fit.log_det[1] = 1.0


@compiled
def width_squared(fit, coordinates):
    """Return ||x||^2 in V^-1."""
    total = 0.0
    for j in range(coordinates.size):
        total += coordinates[j] * coordinates[j] / fit.values[j]
    return total


@compiled
def plays_until_switch(fit, choice, switch):
    """Return the number of plays until det V has grown by more than 1 + switch since the choice."""
    if switch == 0.0 or fit.clock[SIZE] == 0:
        return 1
    grown = fit.log_det[1] if fit.clock[CHOSEN] else 1.0
    room = max((1.0 + switch) / grown - 1.0, 0.0)
    plays = room / width_squared(fit, choice.tag[OWN : OWN + fit.clock[SIZE]])
    return int(min(plays + _SLACK * (1.0 + plays), _ROUNDS_COUNTED)) + 1


@compiled
def learn_action(fit, tracked, choice, reward, n, switch):
    """Add n plays of a choice with total reward `reward`."""
    k = fit.clock[SIZE]
    coordinates = choice.tag[OWN : OWN + k].copy()
    current = choice.tag[0] == fit.clock[VERSION]
    if not current:  # of an earlier basis, or somebody else's: only an agent has such, and it has the axes
        coordinates = choice.action @ np.ascontiguousarray(fit.carried[AXES:, :k])
    if not fit.clock[CHOSEN] and choice.tag[1] == fit.clock[SWITCHES]:  # made since the last switch
        keep_action(fit, tracked, coordinates, choice.action)
    # By count, not by comparing determinants: past 1e14 rounds a play changes them by less than rounding.
    over = current and n >= plays_until_switch(fit, choice, switch)
    growth = 1.0 + n * width_squared(fit, coordinates)
    fit.log_det[0] += math.log(growth)
    fit.log_det[1] *= growth
    for j in range(k):
        fit.carried[MOMENT, j] += reward * coordinates[j]
    turn_basis(fit, tracked, math.sqrt(n) * coordinates)
    fit.clock[VERSION] += 1
    if fit.clock[CHOSEN] and (over or fit.log_det[1] > (1.0 + switch) * (1.0 + _SLACK)):
        fit.clock[CHOSEN] = 0
        fit.clock[SWITCHES] += 1


@compiled
def turn_basis(fit, tracked, z):
    """Add z z' to V, and turn everything carried and tracked to the new eigenbasis."""
    own, k = fit.carried.shape[0], z.size
    together = np.empty((own + tracked.turned.shape[0], k))  # one product turns all of them
    for row in range(together.shape[0]):
        for j in range(k):
            together[row, j] = fit.carried[row, j] if row < own else tracked.turned[row - own, j]
    rank_one_update(fit.values[:k], together, z)
    for row in range(together.shape[0]):
        for j in range(k):
            if row < own:
                fit.carried[row, j] = together[row, j]
            else:
                tracked.turned[row - own, j] = together[row, j]


def check_fit(fit: BallFit, most: int) -> None:
    """Refuse a fit on more coordinates than there are, or on none."""
    checks.indices("clock", fit.clock[..., SIZE], most)


def describe_ball(fit: BallFit) -> dict[str, Any]:
    """Return V's eigenvalues and log-determinant, the number of switches and, if the fit has axes, theta_hat."""
    k = int(fit.clock[SIZE])
    found: dict[str, Any] = {
        "dimension": k,
        "eigenvalues": np.sort(fit.values[:k]),
        "log_det": float(fit.log_det[0]),
        "switches": int(fit.clock[SWITCHES]),
    }
    if len(fit.lookout) == fit.values.size:
        found["theta_hat"] = fit.carried[AXES:, :k] @ (fit.carried[MOMENT, :k] / fit.values[:k])
    return found
