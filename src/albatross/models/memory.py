"""What a policy remembers: everything, plays by a half-life, or as much as predicts best.

The learnt memory keeps the sums of five half-lives side by side. Each is weighted by how well it predicted the plays
between looks, with a fixed share for all (Herbster and Warmuth 1998), and the longest of those that predict well is
used. A longer one that lost against it begins again as its copy: a restart by evidence.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.models.sums import Sums, Totals, add_plays, add_sums, evidence, fold, reduce_sums, scale_sums
from albatross.options import Option
from albatross.states import state_of

HALF_LIVES = np.array([np.inf, 4000.0, 1000.0, 250.0, 60.0])  # of the learnt memory, longest first
_RECENT = HALF_LIVES.size  # index of the sums since the last look
_SHARE = 0.02  # of the weight is divided equally
_GOOD = 0.1  # times the largest weight
_LOST = 0.01  # times the weight of the memory in use
_LONGEST_WAIT = 32.0  # plays between looks
_LEAST = 2.0**-50  # factor of what is kept: something stays, however long nothing could be estimated


def _check_memory(name: str, value: Any) -> None:
    if value is None or (isinstance(value, str) and value == "learnt"):
        return
    if isinstance(value, str):
        raise ValueError(f'{name} must be None, a half-life in plays or "learnt", not {checks.shown(value)}')
    checks.positive(name, value)
    if value < 1.0:
        raise ValueError(f"{name} must be a half-life of at least one play, not {checks.shown(value)}")


Memory = Annotated[float | str | None, Option(_check_memory)]  # a policy's keyword


class KeepAll(NamedTuple):
    """Nothing is forgotten."""

    longest_wait: float


class HalfLife(NamedTuple):
    """The weight of a play halves with every `plays` plays after it."""

    longest_wait: float
    plays: float


class Learnt(NamedTuple):
    """Five half-lives, weighted by evidence."""

    longest_wait: float


class NoMemories(NamedTuple):
    nothing: np.ndarray  # (0,)


class Memories(NamedTuple):
    sums: Sums  # arrays with an axis in front: one entry for each half-life, and one for the plays since the last look
    weights: np.ndarray  # (5,)
    in_use: np.ndarray  # (1,) index of the half-life in use


def new_memory(memory: Any) -> KeepAll | HalfLife | Learnt:
    """Return the compiled form of the keyword `memory`: None, a half-life in plays, or "learnt"."""
    if memory is None:
        return KeepAll(math.inf)
    if memory == "learnt":
        return Learnt(_LONGEST_WAIT)
    return HalfLife(max(memory / 8.0, 1.0), float(memory))


def new_memories(memory: Any, n_arms: int, dim: int) -> Memories | NoMemories:
    """Return the sums that the memory keeps beside those in use; n_arms = 0 without biases."""
    if not isinstance(memory, Learnt):
        return NoMemories(np.zeros(0))
    n, rows = _RECENT + 1, dim + 1
    totals = Totals(np.zeros((n, rows, rows)), np.zeros((n, rows)), np.zeros((n, 1)))
    sums = Sums(np.zeros((n, n_arms, rows)), np.zeros((n, n_arms)), totals)
    return Memories(sums, np.full(_RECENT, 1.0 / _RECENT), np.zeros(1))


remember = generic("remember")  # remember(memories, arm, row, reward, n): note n plays with this reward each


@remember.register
def remember_nothing(memories: NoMemories, arm, row, reward, n):
    pass


@remember.register
def remember_plays(memories: Memories, arm, row, reward, n):
    add_plays(state_of(memories.sums, _RECENT), arm, row, reward, n)


# forget(memory, memories, sums, since, r, precisions, prior_square): forget some of the sums in use, `since` plays
# after the last time; predictions are judged under the prior in use
forget = generic("forget")


@forget.register
def forget_nothing(memory: KeepAll, memories, sums, since, r, precisions, prior_square):
    pass


@forget.register
def forget_by_half_life(memory: HalfLife, memories, sums, since, r, precisions, prior_square):
    scale_sums(sums, kept_after(since, memory.plays))


@forget.register
def forget_by_evidence(memory: Learnt, memories, sums, since, r, precisions, prior_square):
    weights, recent = memories.weights, state_of(memories.sums, _RECENT)
    gains = np.empty(weights.size)
    for k in range(weights.size):
        one = state_of(memories.sums, k)
        before = predictive(one, r, precisions, prior_square)
        add_sums(one, recent)
        gains[k] = predictive(one, r, precisions, prior_square) - before
        scale_sums(one, kept_after(since, HALF_LIVES[k]))
    scale_sums(recent, 0.0)
    best = np.max(gains)
    for k in range(weights.size):
        weights[k] *= math.exp(max(gains[k] - best, -500.0))
    weights *= (1.0 - _SHARE) / np.sum(weights)
    weights += _SHARE / weights.size
    used = 0
    while used + 1 < weights.size and weights[used] < _GOOD * np.max(weights):
        used += 1
    chosen = state_of(memories.sums, used)
    for k in range(used):
        if weights[k] < _LOST * weights[used] + _SHARE / weights.size:
            copy_sums(state_of(memories.sums, k), chosen)
            weights[k] = 0.5 * weights[used]
    weights /= np.sum(weights)
    memories.in_use[0] = used
    copy_sums(sums, chosen)


@compiled
def copy_sums(sums, other):
    """Set sums to others."""
    scale_sums(sums, 0.0)
    add_sums(sums, other)


@compiled
def kept_after(since, half_life):
    """Return the weight that is left after so many plays."""
    return max(2.0 ** (-since / half_life), _LEAST)


@compiled
def predictive(sums, r, precisions, prior_square):
    """Return the log density of the rewards, up to a constant per play."""
    t = sums.totals.gram[0, 0]
    if t == 0.0:
        return 0.0
    found, _ = evidence(reduce_sums(sums, r), precisions, t, prior_square)
    return found + math.lgamma(0.5 * t) + 0.5 * t * math.log(2.0)


def fold_memories(memories: Any, arm: int) -> None:
    """Take the bias of a retired arm out of all sums."""
    if isinstance(memories, Memories):
        for index in range(_RECENT + 1):
            fold(state_of(memories.sums, index), arm)
