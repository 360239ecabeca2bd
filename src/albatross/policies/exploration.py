"""The phases that both forms of ALB-Dim share: rounds of play, then of random exploration, longer in each phase.

Ghosh, Sankararaman and Ramchandran (2021), Algorithms 2 and 3. A policy here has the parameters `lengths` and
`threshold`. Its state has a `clock`, `gram` and `cross` of all exploration, the `supports` D_0, D_1, ... and what was
`found` with each.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.models.least_squares import least_squares
from albatross.options import Option, one_of

PHASE, PLAYED, EXPLORED, SAMPLES = 0, 1, 2, 3  # places in the clock; the middle two count within the phase
_MOST_GROWTH = 10_000


def _growth(name: str, value: Any) -> tuple[int, ...]:
    factors = checks.numbers(name, value)
    if factors.shape != (2,) or factors.dtype.kind not in "iu" or factors.min() < 2 or factors.max() > _MOST_GROWTH:
        raise ValueError(f"{name} must be two whole numbers from 2 to {_MOST_GROWTH}, not {value!r}")
    return tuple(int(factor) for factor in factors)


Growth = Annotated[tuple[int, int], Option(_growth, tuple)]
Threshold = Annotated[str, one_of("pseudocode", "text")]


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
    """Return D_{i+1} from all exploration so far, the conditioning, and FOUND or why there is no answer."""
    theta, conditioning, reason = least_squares(state.gram, state.cross, state.clock[SAMPLES], min_norm)
    # D_i holds the coordinates of at least eps_i / 2 = 2^-(i+1), or by the text 2^-i
    phase = state.clock[PHASE]
    least = 0.5 ** (phase + 1) if policy.threshold else 0.5 ** (phase + 2)
    return np.abs(theta) >= least, conditioning, reason


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
