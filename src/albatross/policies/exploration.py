"""What both forms of ALB-Dim share: phases of play and of random exploration, and least squares on the latter.

Ghosh, Sankararaman and Ramchandran (2021), Algorithms 2 and 3. A policy here has `lengths`, `text` and `min_norm`; its
state has a `clock`, and `gram` and `cross` of all exploration.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from albatross import checks
from albatross.compiling import compiled

THRESHOLDS = ("pseudocode", "text")
PHASE, PLAYED, EXPLORED, SAMPLES = 0, 1, 2, 3  # places in the clock; the middle two count within the phase
FOUND, FEW, SINGULAR = 0, 1, 2  # what became of least squares
WHY_ALL = {FEW: "fewer samples than coordinates", SINGULAR: "the Gram matrix does not factorise"}
_MOST_GROWTH = 10_000


def check_phases(policy: Any) -> None:
    """The keywords that both forms have."""
    if policy.first_phase is not None:
        checks.rounds("first_phase", policy.first_phase)
    checks.probability("delta", policy.delta)
    checks.positive("sigma", policy.sigma)
    checks.one_of("threshold", policy.threshold, THRESHOLDS)
    growth = checks.numbers("growth", policy.growth)
    if growth.shape != (2,) or growth.dtype.kind not in "iu" or growth.min() < 2 or growth.max() > _MOST_GROWTH:
        raise ValueError(f"growth must be two whole numbers from 2 to {_MOST_GROWTH}, not {policy.growth!r}")
    object.__setattr__(policy, "growth", tuple(int(factor) for factor in growth))


def phase_lengths(first_phase: int, growth: tuple[int, int], rounds: int | None) -> np.ndarray:
    """(phases, 2) rounds of play and of exploration, exact, for as many phases as begin within so many rounds.

    >>> phase_lengths(10, (25, 5), 7_000).tolist()
    [[10, 4], [250, 20], [6250, 100], [156250, 500]]
    """
    root = math.isqrt(first_phase - 1) + 1  # ceil of the square root
    lengths: list[list[int]] = []
    total = 0
    while total <= (rounds or checks.MOST_ROUNDS) and total < checks.MOST_ROUNDS:
        phase = len(lengths)
        lengths.append([min(growth[0] ** phase * first_phase, 2**62), min(growth[1] ** phase * root, 2**62)])
        total += sum(lengths[-1])
    return np.array(lengths, np.int64)


def check_phase(policy: Any, state: Any) -> None:
    """Refuse a phase that there is not."""
    checks.indices("clock", state.clock[..., PHASE], len(policy.lengths) - 1)


@compiled
def exploring(policy, state):
    """Whether this phase's rounds of play are over."""
    return state.clock[PLAYED] >= policy.lengths[state.clock[PHASE], 0]


@compiled
def explored(policy, state):
    """Whether this phase's rounds of exploration are over too."""
    return exploring(policy, state) and state.clock[EXPLORED] >= policy.lengths[state.clock[PHASE], 1]


@compiled
def add_sample(gram, cross, x, reward, n):
    """n plays of x that brought `reward` in sum, for least squares."""
    for i in range(x.size):
        cross[i] += reward * x[i]
        weight = n * x[i]
        for j in range(x.size):
            gram[i, j] += weight * x[j]


@compiled
def least_squares(gram, cross, samples, min_norm):
    """theta_hat, the Gram matrix's smallest eigenvalue over its largest, and FOUND or why there is no theta_hat."""
    dim = cross.size
    spectrum = np.linalg.eigvalsh(gram)
    conditioning = max(spectrum[0], 0.0) / max(spectrum[dim - 1], 1e-300)
    reason = FOUND
    if samples < dim:
        reason = FEW
    elif conditioning <= dim * 2.0**-52:
        reason = SINGULAR
    jitter = 0.0
    if reason != FOUND and min_norm:
        jitter, reason = 1e-10 * max(spectrum[dim - 1], 1e-300), FOUND
    if reason != FOUND:
        return np.zeros(dim), conditioning, reason
    return np.linalg.solve(gram + jitter * np.eye(dim), cross), conditioning, reason


@compiled
def next_active(policy, state):
    """D_{i+1} from all exploration so far, with the conditioning and FOUND or why there is no answer."""
    theta, conditioning, reason = least_squares(state.gram, state.cross, state.clock[SAMPLES], policy.min_norm)
    # D_i holds the coordinates of at least eps_i / 2 = 2^-(i+1), or by the text 2^-i
    phase = state.clock[PHASE]
    least = 0.5 ** (phase + 1) if policy.text else 0.5 ** (phase + 2)
    return np.abs(theta) >= least, conditioning, reason


@compiled
def begin_phase(state):
    """The clock of the next phase."""
    state.clock[PHASE] += 1
    state.clock[PLAYED] = 0
    state.clock[EXPLORED] = 0


@compiled
def in_map(rows, size):
    """The features of a map: those beyond its dimension are 0, which nothing can be learnt from."""
    seen = rows.copy()
    for i in range(rows.shape[0]):
        for j in range(size, rows.shape[1]):
            seen[i, j] = 0.0
    return seen
