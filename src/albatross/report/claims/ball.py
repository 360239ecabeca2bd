"""Claims about ALB-Dim on the unit ball."""

from __future__ import annotations

import math

import numpy as np

from albatross.report.claims.engine import Measured, Reading, experiment, question
from albatross.report.claims.measuring import ABOVE_1, at_most, exact, mean, ratio, regret_ratios
from albatross.store.results import Stored

CHANGE = "ALB-Dim explores with N(0, I) actions, which lie outside the unit ball"
_BALLS, _LITERAL = ("d", "e"), "e-literal"


def _two_readings(stored: Stored, above: str, below: str, wanted: tuple[float, float]) -> list[Reading]:
    """Return two readings: exploration outside of the ball, and on the sphere."""
    return [
        Reading("default", regret_ratios(stored, _BALLS, above, below, wanted), CHANGE),
        Reading("exploration on the unit sphere", regret_ratios(stored, [_LITERAL], above, below, wanted)),
    ]


@experiment(
    "Between OFUL and ALB-Dim there is a huge gap.",
    panels=(*_BALLS, _LITERAL),
    quote="we observe a huge gap in cumulative regret between ALB-Dim and OFUL",
    place="Section 6.1, panels d and e",
    quantity="regret of OFUL on all coordinates / of ALB-Dim",
    criterion="huge: more than 3 times, the largest drop that the abstract speaks of",
)
def gap(stored: Stored) -> list[Reading]:
    return _two_readings(stored, "oful", "alb-dim", (3.0, math.inf))


@experiment(
    "ALB-Dim's regret is close to that of the oracle.",
    panels=(*_BALLS, _LITERAL),
    quote="the performance of ALB is close to that of the oracle algorithms that know the true complexity",
    place="Section 1.1",
    quantity="regret of ALB-Dim / of OFUL given the support",
    criterion="close: within a factor of 2",
)
def near_oracle_dim(stored: Stored) -> list[Reading]:
    return _two_readings(stored, "alb-dim", "oracle", at_most(2.0))


@experiment(
    "ALB-Dim finds the support within 4 to 5 epochs, and keeps it.",
    panels=("f", _LITERAL),
    quote="We observe that within 4-5 epochs, ALB-Dim finds the sparsity of θ*.",
    place="Section 6.1, panel f; Section 1.1",
    quantity="the epoch from which on the support is right",
)
def support(stored: Stored) -> list[Reading]:
    wanted = (1.0, 5.0)
    default: list[Measured] = []
    letter: list[Measured] = []
    if "f" in stored:
        rows = stored.table("f", "SELECT * FROM curves ORDER BY dim, trial, phase")
        for dim in np.unique(rows["dim"])[::-1]:
            phases = int(rows["phase"].max()) + 1
            wrong = (rows["missed"] + rows["false"])[rows["dim"] == dim].reshape(-1, phases)
            default.append(mean(f"d = {dim}", _epochs_until_right(wrong), wanted))
    if _LITERAL in stored:
        summary = stored.summaries[_LITERAL]
        entry = summary["policies"]["alb-dim"]  # means over trials: 0 if right in all
        slowest = _epochs_until_right(np.add(entry["missed"], entry["false"])[None, :])
        letter.append(exact(f"d = {summary['settings']['dim']}, slowest trial", float(slowest[0]), wanted))
    return [Reading("default", default, CHANGE), Reading("exploration on the unit sphere", letter)]


def _epochs_until_right(wrong: np.ndarray) -> np.ndarray:
    """Return the first epoch after which nothing is wrong; one more than the number of epochs if there is none."""
    last_wrong = np.where(wrong > 0, np.arange(1, wrong.shape[1] + 1), 0).max(axis=1)
    return last_wrong + 1.0


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "ALB-Dim beats Thompson sampling on all coordinates.",
    panels=_BALLS,
    quantity="regret of LinTS / of ALB-Dim",
)
def sampling_dim(stored: Stored) -> list[Reading]:
    return [Reading("default", regret_ratios(stored, _BALLS, "lints", "alb-dim", ABOVE_1))]


@question(
    "ALB-Dim is ahead of OFUL before the last phase.",
    panels=(*_BALLS, _LITERAL),
    quantity="regret of OFUL / of ALB-Dim at the end of the last phase but one",
    take_away="Look at where the curves cross, not only at where they end.",
)
def early_gap(stored: Stored) -> list[Reading]:
    found = []
    for panel in (*_BALLS, _LITERAL):
        if panel in stored:
            settings = stored.summaries[panel]["settings"]
            before = sum(_phase_length(settings["first_phase"], phase) for phase in range(settings["phases"] - 1))
            where = f"d = {settings['dim']}{', exploration on the unit sphere' if panel == _LITERAL else ''}"
            oful, alb = (_regret_at(stored, panel, policy, before) for policy in ("oful", "alb-dim"))
            found.append(ratio(where, oful, alb, ABOVE_1))
    return [Reading("default", found)]


def _phase_length(first: int, phase: int) -> int:
    """Return the rounds of a phase of Algorithm 2."""
    return int(25**phase * first + 5**phase * math.ceil(math.sqrt(first)))


def _regret_at(stored: Stored, panel: str, policy: str, rounds: int) -> np.ndarray:
    sql = (
        f"SELECT max_by(regret, round) AS regret FROM curves WHERE policy = '{policy}' AND round <= {rounds} "
        "GROUP BY trial ORDER BY trial"
    )
    return np.asarray(stored.table(panel, sql)["regret"], dtype=float)


CLAIMS = (gap, support, near_oracle_dim, sampling_dim, early_gap)
