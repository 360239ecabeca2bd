"""The phases that both forms of ALB-Dim share: rounds of play, then of random exploration, longer in each phase.

Ghosh, Sankararaman and Ramchandran (2021), Algorithms 2 and 3. A policy here has the parameters `lengths`, `threshold`,
`shrinkage`, `delta` and `sigma`; its state has a `clock`, `gram` and `cross` of all samples, the `supports` D_0, D_1,
... and what was `found` with each.

Remark 5 sets eps_i = C^-i, which needs exploration that grows by more than C^2 and play that grows by the square of
that: by C^2 + 1 and (C^2 + 1)^2, as the paper has it for C = 2. The exponent of 1 / gamma in the regret is then
log_C((C^2 + 1)^2): 4.64, 4.19 and 4.09 for C = 2, 3 and 4.

The threshold `intervals` is not the paper's. It takes the width of theta_hat's confidence intervals from the samples,
where the paper presumes that they are shorter than eps_i: see `not_surely_smaller`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.models.least_squares import FOUND, least_squares, standard_errors
from albatross.options import Option, one_of

PHASE, PLAYED, EXPLORED, SAMPLES = 0, 1, 2, 3  # places in the clock; the middle two count within the phase
_MOST_GROWTH = 10_000
_MOST_SHRINKAGE = 9.0  # (C^2 + 1)^2 is then below the most growth
_TEXT, _INTERVALS = 1, 2  # thresholds other than the pseudocode's


def _growth(name: str, value: Any) -> tuple[int, ...]:
    factors = checks.numbers(name, value)
    if factors.shape != (2,) or factors.dtype.kind not in "iu" or factors.min() < 2 or factors.max() > _MOST_GROWTH:
        raise ValueError(f"{name} must be two whole numbers from 2 to {_MOST_GROWTH}, not {value!r}")
    return tuple(int(factor) for factor in factors)


def _shrinkage(name: str, value: Any) -> None:
    checks.positive(name, value)
    if not 1.0 < value <= _MOST_SHRINKAGE:
        raise ValueError(f"{name} must be above 1 and at most {_MOST_SHRINKAGE:g}, not {value!r}")


Growth = Annotated[tuple[int, int], Option(_growth, tuple)]
Shrinkage = Annotated[float, Option(_shrinkage, float)]
Threshold = Annotated[str, one_of("pseudocode", "text", "intervals")]


def growth_for(shrinkage: float) -> tuple[int, int]:
    """Factors of play and of exploration from phase to phase that let eps_i = C^-i (Remark 5).

    >>> growth_for(2.0), growth_for(3.0)
    ((25, 5), (100, 10))
    """
    explored = math.ceil(shrinkage**2) + 1
    return explored**2, explored


def phase_lengths(first_phase: int, growth: tuple[int, int], rounds: int | None) -> np.ndarray:
    """(phases, 2) exact numbers of rounds of play and of exploration, for all phases that start within this many
    rounds.

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
    """Refuse a phase that does not exist."""
    checks.indices("clock", state.clock[..., PHASE], len(policy.lengths) - 1)


@compiled
def exploring(policy, state):
    """Return whether the rounds of play of this phase are over."""
    return state.clock[PLAYED] >= policy.lengths[state.clock[PHASE], 0]


@compiled
def explored(policy, state):
    """Return whether the rounds of exploration of this phase are over too."""
    return exploring(policy, state) and state.clock[EXPLORED] >= policy.lengths[state.clock[PHASE], 1]


@compiled
def next_active(policy, state, min_norm):
    """Return D_{i+1} from all samples so far, the conditioning, and FOUND or why there is no answer."""
    phase = state.clock[PHASE] + 1
    by_intervals = policy.threshold == _INTERVALS
    theta, conditioning, reason = least_squares(
        state.gram, state.cross, state.clock[SAMPLES], min_norm and not by_intervals
    )
    if by_intervals and reason == FOUND:
        # a union bound over coordinates and signs at confidence delta_i = delta / 2^i
        quantile = math.sqrt(2.0 * math.log(2.0 * theta.size * 2.0**phase / policy.delta))
        halfwidths = quantile * policy.sigma * standard_errors(state.gram)
        return not_surely_smaller(np.abs(theta), halfwidths), conditioning, reason
    # D_i holds the coordinates of at least eps_i / 2, or by the text eps_i
    eps = policy.shrinkage**-phase
    return np.abs(theta) >= (eps if policy.threshold == _TEXT else eps / 2.0), conditioning, reason


@compiled
def not_surely_smaller(magnitudes, halfwidths):
    """All but the coordinates that are surely smaller than every coordinate that is surely not 0.

    The smallest lower end above 0 is a lower bound on the smallest coordinate found so far: a coordinate whose upper
    end is below it can only be smaller than all of those. While no lower end is above 0, nothing is dropped.

    >>> not_surely_smaller(np.array([0.5, 0.3, 0.02]), np.array([0.1, 0.1, 0.1]))
    array([ True,  True, False])
    >>> not_surely_smaller(np.array([0.5, 0.15, 0.02]), np.array([0.1, 0.1, 0.1]))
    array([ True,  True,  True])
    """
    least = np.inf
    for j in range(magnitudes.size):
        lower = magnitudes[j] - halfwidths[j]
        if 0.0 < lower < least:
            least = lower
    if least == np.inf:
        least = 0.0
    return magnitudes + halfwidths >= least


@compiled
def begin_phase(state, support, conditioning, reason, column):
    """Start the next phase on D_{i+1}; record samples, conditioning and reason in columns of `found`."""
    phase = state.clock[PHASE] + 1
    for j in range(support.size):
        state.supports[phase, j] = support[j]
    state.found[phase, column] = state.clock[SAMPLES]
    state.found[phase, column + 1] = conditioning
    state.found[phase, column + 2] = reason
    state.clock[PHASE] = phase
    state.clock[PLAYED] = 0
    state.clock[EXPLORED] = 0


def describe_phases(policy: Any, state: Any, reasons: dict[int, str], column: int) -> dict[str, Any]:
    """Return the phase, the number of samples, and the record of every phase; `reasons[-1]` is that of the first."""
    phase = int(state.clock[PHASE])
    phases = [
        {
            "support": np.flatnonzero(state.supports[i]),
            "samples": int(state.found[i, column]),
            "conditioning": float(state.found[i, column + 1]),
            "reason": reasons[int(state.found[i, column + 2]) if i else -1],
        }
        for i in range(phase + 1)
    ]
    samples, explores = int(state.clock[SAMPLES]), bool(exploring(policy, state))
    return {"phase": phase, "phases": phases, "exploring": explores, "samples": samples}
