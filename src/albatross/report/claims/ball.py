"""Claims about ALB-Dim on the unit ball."""

from __future__ import annotations

import math

import numpy as np

from albatross.report.claims.engine import Measured, Reading, experiment, question, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, exact, mean, proportion, ratio, regret_ratios
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
    place="Section 6.1, panels d and e; Section 4.2, discussion",
    quantity="regret of OFUL on all coordinates / of ALB-Dim",
    criterion="huge: more than 3 times, the largest drop that the abstract speaks of",
    take_away="The gap depends on how early the support is found, and that on where exploration may go: compare the "
    "readings.",
)
def gap(stored: Stored) -> list[Reading]:
    return _two_readings(stored, "oful", "alb-dim", (3.0, math.inf))


@experiment(
    "Adapting to the sparsity lowers regret at least 1.5 times.",
    panels=(*_BALLS, _LITERAL),
    quote="we show 1.5-3x drop in cumulative regret over non-adaptive algorithms",
    place="abstract",
    quantity="regret of OFUL on all coordinates / of ALB-Dim",
    criterion="at least 1.5; the abstract does not say of which experiment it speaks, and a larger drop is no "
    "objection",
    take_away="This is the ratio of the huge gap, held against the least drop that the abstract speaks of.",
)
def drop_dim(stored: Stored) -> list[Reading]:
    return _two_readings(stored, "oful", "alb-dim", (1.5, math.inf))


@experiment(
    "ALB-Dim's regret is close to that of the oracle.",
    panels=(*_BALLS, _LITERAL),
    quote="the performance of ALB is close to that of the oracle algorithms that know the true complexity",
    place="Section 1.1",
    quantity="regret of ALB-Dim / of OFUL given the support",
    criterion="close: within a factor of 2",
    take_away="Once ALB-Dim has the support it pays what the oracle pays. What it paid before is the difference.",
)
def near_oracle_dim(stored: Stored) -> list[Reading]:
    return _two_readings(stored, "alb-dim", "oracle", at_most(2.0))


@experiment(
    "ALB-Dim finds the support within 4 to 5 epochs, and keeps it.",
    panels=("f", _LITERAL),
    quote="We observe that within 4-5 epochs, ALB-Dim finds the sparsity of θ*.",
    place="Section 6.1, panel f; Section 1.1",
    quantity="the epoch from which on the support is right",
    take_away="Epochs are 25 times as long as those before, so the number of epochs says little about the number of "
    "rounds.",
)
def support(stored: Stored) -> list[Reading]:
    wanted = (1.0, 5.0)
    default: list[Measured] = []
    letter: list[Measured] = []
    for dim, (missed, false) in _refinement(stored).items():
        default.append(mean(f"d = {dim}", _epochs_until_right(missed + false), wanted))
    if _LITERAL in stored:
        summary = stored.summaries[_LITERAL]
        entry = summary["policies"]["alb-dim"]  # means over trials: 0 if right in all
        slowest = _epochs_until_right(np.add(entry["missed"], entry["false"])[None, :])
        letter.append(exact(f"d = {summary['settings']['dim']}, slowest trial", float(slowest[0]), wanted))
    return [Reading("default", default, CHANGE), Reading("exploration on the unit sphere", letter)]


def _refinement(stored: Stored) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Panel (f), by d: (trials, phases) coordinates missed, and coordinates active by mistake."""
    if "f" not in stored:
        return {}
    rows = stored.table("f", "SELECT * FROM curves ORDER BY dim DESC, trial, phase")
    found = {}
    for dim in dict.fromkeys(rows["dim"].tolist()):
        here = rows["dim"] == dim
        shape = (-1, int(rows["phase"].max()) + 1)
        found[dim] = rows["missed"][here].reshape(shape), rows["false"][here].reshape(shape)
    return found


def _epochs_until_right(wrong: np.ndarray) -> np.ndarray:
    """Return the first epoch after which nothing is wrong; one more than the number of epochs if there is none."""
    last_wrong = np.where(wrong > 0, np.arange(1, wrong.shape[1] + 1), 0).max(axis=1)
    return last_wrong + 1.0


# ------------------------------------------------------------------------------------------- what was known before


@statement(
    "ALB-Dim's regret matches that of earlier algorithms for sparse linear bandits.",
    panels=(*_BALLS, _LITERAL),
    quote="This matches the regret obtained by oracle algorithms that know of the true sparsity d* "
    "[sparse_bandit1,sparse_bandit2].",
    place="Section 1.1",
    proviso="up to logarithms and to a constant that depends on gamma (Corollary 1)",
    quantity="regret of ALB-Dim / of SL-UCB (Carpentier and Munos 2012), which is not given the sparsity here",
    criterion="matches: within a factor of 2",
    take_away="SL-UCB explores along random signs and stops when the data allow it. ALB-Dim's phases have fixed "
    "lengths.",
)
def matches_sparse(stored: Stored) -> list[Reading]:
    outside, sphere = _two_readings(stored, "alb-dim", "sl-ucb", at_most(2.0))
    return [outside._replace(change=f"{CHANGE}; SL-UCB stays inside"), sphere]


@statement(
    "ALB-Dim takes back coordinates that it had dropped.",
    panels=("f",),
    quote="our algorithm is successive refinement and is not necessarily monotone — a hypothesis class discarded "
    "earlier can be considered at a later point of time",
    place="Section 1.1",
    quantity="trials in which a coordinate of the support was dropped and is active at the end, in %",
    criterion="not necessarily: in some trial, but in one in a hundred at least",
    take_away="A monotone refinement would have lost such a coordinate for good, and would pay for it in every round.",
)
def non_monotone(stored: Stored) -> list[Reading]:
    found = []
    for dim, (missed, _) in _refinement(stored).items():
        regained = (missed.max(axis=1) > 0) & (missed[:, -1] == 0)
        found.append(proportion(f"d = {dim}", regained, (1.0, 100.0)))
    return [Reading("default", found, CHANGE)]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "Inside the ball, ALB-Dim beats SL-UCB, an earlier algorithm that does not know the sparsity.",
    panels=(_LITERAL,),
    quantity="regret of SL-UCB (Carpentier and Munos 2012) / of ALB-Dim, exploration on the unit sphere",
    take_away="The paper calls ALB-Dim the first algorithm with such guarantees. Regret can be measured, precedence of "
    "proofs cannot; SL-UCB's is for another noise.",
)
def earlier_algorithm(stored: Stored) -> list[Reading]:
    return [Reading("default", regret_ratios(stored, [_LITERAL], "sl-ucb", "alb-dim", ABOVE_1))]


@question(
    "ALB-Dim beats Thompson sampling on all coordinates.",
    panels=_BALLS,
    quantity="regret of LinTS / of ALB-Dim",
    take_away="LinTS knows nothing of sparsity, and is what many would take.",
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


CLAIMS = (
    gap,
    drop_dim,
    support,
    near_oracle_dim,
    matches_sparse,
    non_monotone,
    earlier_algorithm,
    sampling_dim,
    early_gap,
)
