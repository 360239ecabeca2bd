"""One epoch of OFUL+ with the constants of Appendix A, fast enough for the epoch lengths that Theorem 1 asks for.

`policies.OFULPlus` takes about a microsecond per round at 2 arms of 1 feature; Theorem 1 needs millions of rounds. Here
the same formulas (`confidence.py`) run on plain sums, ten times as fast. `tests/experiments/test_theorems.py` checks
that both play the same arms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.confidence import bias_width_appendix, radius_appendix
from albatross.environments.mixture import MixtureInstance
from albatross.protocol import Rounds, draw

CENTRED, PAPER = 0, 1  # estimators of theta*, as in `policies.OFULPlus`
_CHUNK = 4096  # rounds that are drawn at once


class Sums(NamedTuple):
    """Everything that an epoch keeps of its rounds. Contexts of all plays, least squares as the estimator has it."""

    counts: np.ndarray  # (K,) plays, the forced one included
    rewards: np.ndarray  # (K,)
    contexts: np.ndarray  # (K, d)
    inverse: np.ndarray  # (d, d) of the matrix G of least squares
    theta: np.ndarray  # (d,) estimate
    log_det: np.ndarray  # (1,) ln det V_t - ln det V_K: of the joint matrix of biases and theta if centred
    regret: np.ndarray  # (1,)
    scratch: np.ndarray  # (2, d) a row and its gain, so that no round allocates


class Setting(NamedTuple):
    """What OFUL+ is given."""

    norm_bound: float
    rounds: float  # T~, forced plays not counted
    delta: float
    sigma: float
    rho_min: float
    estimator: int


@compiled
def _absorb(sums, x, y, weight):
    """Add the row x with weight to least squares, by Sherman and Morrison."""
    d, gain = x.size, sums.scratch[1]
    leverage, error = 0.0, y
    for i in range(d):
        error -= x[i] * sums.theta[i]
        gain[i] = 0.0
        for j in range(d):
            gain[i] += sums.inverse[i, j] * x[j]
        leverage += weight * x[i] * gain[i]
    for i in range(d):
        sums.theta[i] += weight * error * gain[i] / (1.0 + leverage)
        for j in range(d):
            sums.inverse[i, j] -= weight * gain[i] * gain[j] / (1.0 + leverage)
    sums.log_det[0] += np.log1p(leverage)


@compiled
def _learn(setting, sums, arm, x, reward):
    """One play: centred within its arm, or less the optimistic mean as it is right after the play."""
    n, d = sums.counts[arm], x.size
    if n > 0.0 and setting.estimator == CENTRED:
        centred = sums.scratch[0]
        for j in range(d):
            centred[j] = x[j] - sums.contexts[arm, j] / n
        _absorb(sums, centred, reward - sums.rewards[arm] / n, n / (n + 1.0))
        sums.log_det[0] += np.log1p(1.0 / n)
    sums.counts[arm] += 1.0
    sums.rewards[arm] += reward
    for j in range(d):
        sums.contexts[arm, j] += x[j]
    if n > 0.0 and setting.estimator == PAPER:
        n_arms, count = sums.counts.size, n + 1.0
        width = bias_width_appendix(count, setting.norm_bound, setting.delta, setting.sigma, n_arms, d)
        _absorb(sums, x, reward - sums.rewards[arm] / count - width, 1.0)


@compiled
def play_chunk(setting, sums, contexts, means, noise, played, n):
    """Play n rounds; the first K rounds of an epoch play every arm once."""
    n_arms, d = contexts.shape[1:]
    b, delta, sigma = setting.norm_bound, setting.delta, setting.sigma
    for t in range(n):
        arm, plays = played + t, played + t - n_arms
        if plays >= 0:
            reach = radius_appendix(b, float(plays), setting.rounds, delta, sigma, n_arms, d, setting.rho_min)
            highest = -np.inf
            for i in range(n_arms):
                size, index = 0.0, sums.rewards[i] / sums.counts[i]
                for j in range(d):
                    x = contexts[t, i, j]
                    size += x * x
                    index += x * sums.theta[j]
                    if setting.estimator == CENTRED:
                        index -= sums.contexts[i, j] / sums.counts[i] * sums.theta[j]
                index += reach * np.sqrt(size)
                index += bias_width_appendix(sums.counts[i], b, delta, sigma, n_arms, d)
                if index > highest:
                    highest, arm = index, i
        best = means[t, 0]
        for i in range(1, n_arms):
            best = max(best, means[t, i])
        sums.regret[0] += best - means[t, arm]
        _learn(setting, sums, arm, contexts[t, arm], means[t, arm] + noise[t, arm])


def play_epoch(setting: Setting, instance: MixtureInstance, rng: np.random.Generator) -> Sums:
    """K forced plays and `setting.rounds` rounds of OFUL+ on fresh contexts."""
    n_arms, d = len(instance.biases), len(instance.theta)
    sums = Sums(
        counts=np.zeros(n_arms),
        rewards=np.zeros(n_arms),
        contexts=np.zeros((n_arms, d)),
        inverse=np.eye(d),
        theta=np.zeros(d),
        log_det=np.zeros(1),
        regret=np.zeros(1),
        scratch=np.zeros((2, d)),
    )
    table = (_CHUNK, n_arms)
    chunk = Rounds(np.empty((*table, d)), np.ones(table, bool), np.empty(table), np.empty(table))
    total = n_arms + int(setting.rounds)
    for start in range(0, total, _CHUNK):
        draw(instance, chunk, rng)
        play_chunk(setting, sums, chunk.contexts, chunk.means, chunk.noise, start, min(_CHUNK, total - start))
    return sums
