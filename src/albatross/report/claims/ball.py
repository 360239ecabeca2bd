"""Claims about ALB-Dim on the unit ball."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from albatross.policies.exploration import phase_lengths
from albatross.report.claims.engine import Measured, Reading, experiment, question, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, exact, mean, ratio, regret_ratios
from albatross.report.wording import trials
from albatross.store.results import Stored

CHANGE = "ALB-Dim explores with N(0, I) actions, which lie outside the unit ball"
_BALLS, _LITERAL = ("d", "e"), "e-literal"
_ALB, _INSIDE = "alb-dim", "alb-dim-inside"
_SPHERE = "exploration on the unit sphere"
_IN_BALL = "inside the ball, learning from all plays"
_IN_BALL_CHANGE = (
    "least squares is on all plays, not on exploration alone, and confidence intervals, which are not proved for "
    "OFUL's plays, take the place of the threshold"
)


def _inside(stored: Stored, above: str, below: str, wanted: tuple[float, float]) -> Reading:
    """The ratio with ALB-Dim in its form that stays inside the ball, on the trials that it plays."""
    above, below = (_INSIDE if each == _ALB else each for each in (above, below))
    return Reading(_IN_BALL, regret_ratios(stored, _BALLS, above, below, wanted), _IN_BALL_CHANGE)


def _readings(stored: Stored, above: str, below: str, wanted: tuple[float, float]) -> list[Reading]:
    """Return three readings: exploration outside of the ball; inside, learning from all plays; and on the sphere."""
    return [
        Reading("default", regret_ratios(stored, _BALLS, above, below, wanted), CHANGE),
        _inside(stored, above, below, wanted),
        Reading(_SPHERE, regret_ratios(stored, [_LITERAL], above, below, wanted)),
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
    return _readings(stored, "oful", _ALB, (3.0, math.inf))


@experiment(
    "Adapting to the sparsity lowers regret at least 1.5 times.",
    panels=(*_BALLS, _LITERAL),
    quote="we show 1.5-3x drop in cumulative regret over non-adaptive algorithms",
    place="abstract",
    quantity="regret of OFUL on all coordinates / of ALB-Dim",
    criterion="the abstract does not say of which experiment it speaks, and a larger drop is no objection",
    take_away="This is the ratio of the huge gap, held against the least drop that the abstract speaks of.",
)
def drop_dim(stored: Stored) -> list[Reading]:
    return _readings(stored, "oful", _ALB, (1.5, math.inf))


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
    return _readings(stored, _ALB, "oracle", at_most(2.0))


@experiment(
    "ALB-Dim finds the support within 4 to 5 epochs, and keeps it.",
    panels=("f", *_BALLS, _LITERAL),
    quote="We observe that within 4-5 epochs, ALB-Dim finds the sparsity of θ*.",
    place="Section 6.1, panel f; Section 1.1",
    quantity="the epoch from which on the support is right",
    take_away="Epochs are 25 times as long as those before, so the number of epochs says little about the number of "
    "rounds.",
)
def support(stored: Stored) -> list[Reading]:
    wanted = (1.0, 5.0)
    default = [
        mean(f"d = {dim}", _epochs_until_right(missed + false), wanted)
        for dim, (missed, false) in _refinement(stored).items()
    ]

    def slowest(panels: Sequence[str], policy: str) -> list[Measured]:
        return [
            exact(f"{where}, slowest of {of}", float(_epochs_until_right((missed + false)[None, :])[0]), wanted)
            for where, of, missed, false in _mean_refinement(stored, panels, policy)
        ]

    return [
        Reading("default", default, CHANGE),
        Reading(_IN_BALL, slowest(_BALLS, _INSIDE), _IN_BALL_CHANGE),
        Reading(_SPHERE, slowest([_LITERAL], _ALB)),
    ]


def _mean_refinement(
    stored: Stored, panels: Sequence[str], policy: str
) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """Panels (d), (e) and e-literal: problem, trials, and (phases,) coordinates missed and active by mistake.

    The summaries hold means over trials, which are 0 if all trials are right.
    """
    found = []
    for panel in panels:
        if panel in stored and policy in stored.summaries[panel]["policies"]:
            entry = stored.summaries[panel]["policies"][policy]
            where, played = f"d = {stored.summaries[panel]['settings']['dim']}", len(stored.final(panel, policy))
            found.append((where, trials(played), np.array(entry["missed"]), np.array(entry["false"])))
    return found


def _refinement(stored: Stored) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Panel (f), by d: (trials, phases) coordinates missed, and coordinates active by mistake."""
    if "f" not in stored:
        return {}
    rows = stored.table("f", "SELECT * FROM curves WHERE policy = 'alb-dim' ORDER BY dim DESC, trial, phase")
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
    outside, *others = _readings(stored, _ALB, "sl-ucb", at_most(2.0))
    return [outside._replace(change=f"{CHANGE}; SL-UCB stays inside"), *others]


@statement(
    "ALB-Dim takes back coordinates that it had dropped.",
    panels=("f", _LITERAL),
    quote="our algorithm is successive refinement and is not necessarily monotone — a hypothesis class discarded "
    "earlier can be considered at a later point of time",
    place="Section 1.1",
    quantity="coordinates of the support that were dropped and are active at the end, mean over trials",
    criterion="not necessarily: some, but one in a hundred trials at least",
    take_away="Early thresholds are coarse and drop true coordinates; what it is worth to take them back is a question "
    "of ours.",
)
def non_monotone(stored: Stored) -> list[Reading]:
    some = (0.01, math.inf)
    default = [
        mean(f"d = {dim}", (missed.max(axis=1) - missed[:, -1]).astype(float), some)
        for dim, (missed, _) in _refinement(stored).items()
    ]
    on_sphere = [
        exact(f"{where}, {of}, at least", float(missed.max() - missed[-1]), some)  # a maximum of means
        for where, of, missed, _ in _mean_refinement(stored, [_LITERAL], _ALB)
    ]
    return [Reading("default", default, CHANGE), Reading(_SPHERE, on_sphere)]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "Taking back coordinates that were dropped pays.",
    panels=("f",),
    quantity="regret of ALB-Dim whose active sets only shrink / of ALB-Dim, both with the same thresholds and N(0, I) "
    "exploration",
    take_away="A coordinate that is lost for good costs the same in every round, and the last phase has nearly all "
    "rounds.",
)
def refinement_pays(stored: Stored) -> list[Reading]:
    if "f" not in stored:
        return []
    last = ", ".join(
        f"max_by(regret, phase) FILTER (policy = '{policy}') AS {name}"
        for name, policy in (("monotone", "monotone"), ("alb", _ALB))
    )
    rows = stored.table("f", f"SELECT dim, {last} FROM curves GROUP BY dim, trial ORDER BY dim DESC, trial")
    found = []
    for dim in dict.fromkeys(rows["dim"].tolist()):
        here = rows["dim"] == dim
        found.append(ratio(f"d = {dim}", rows["monotone"][here], rows["alb"][here], ABOVE_1))
    return [Reading("default", found)]


@question(
    "Inside the ball, ALB-Dim beats SL-UCB, an earlier algorithm that does not know the sparsity.",
    panels=(_LITERAL, *_BALLS),
    quantity="regret of SL-UCB (Carpentier and Munos 2012) / of ALB-Dim",
    take_away="The paper calls ALB-Dim the first algorithm with such guarantees. Regret can be measured, precedence of "
    "proofs cannot; SL-UCB's is for another noise.",
)
def earlier_algorithm(stored: Stored) -> list[Reading]:
    on_sphere = regret_ratios(stored, [_LITERAL], "sl-ucb", _ALB, ABOVE_1)
    return [Reading(_SPHERE, on_sphere), _inside(stored, "sl-ucb", _ALB, ABOVE_1)]


@question(
    "ALB-Dim beats Thompson sampling on all coordinates.",
    panels=_BALLS,
    quantity="regret of LinTS / of ALB-Dim",
    take_away="LinTS knows nothing of sparsity, and is what many would take.",
)
def sampling_dim(stored: Stored) -> list[Reading]:
    return [Reading("default", regret_ratios(stored, _BALLS, "lints", _ALB, ABOVE_1))]


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
            lengths = phase_lengths(settings["first_phase"], (25, 5), 2**53)
            before = int(lengths[: settings["phases"] - 1].sum())
            where = f"d = {settings['dim']}{f', {_SPHERE}' if panel == _LITERAL else ''}"
            oful, alb = (_regret_at(stored, panel, policy, before) for policy in ("oful", _ALB))
            found.append(ratio(where, oful, alb, ABOVE_1))
    return [Reading("default", found)]


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
    refinement_pays,
    earlier_algorithm,
    sampling_dim,
    early_gap,
)
