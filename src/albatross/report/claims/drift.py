"""Questions of ours about rewards that drift."""

from __future__ import annotations

import numpy as np

from albatross.report.claims.engine import Measured, Reading, question
from albatross.report.claims.measuring import Range, at_most, ratio
from albatross.store.results import Stored

_ABRUPT, _SLOW, _STILL = ("redrawn",), ("one turn", "random walk"), ("stationary",)


def _finals(stored: Stored, family: str, problem: str) -> np.ndarray:
    """Return the final regrets of a family at its best setting."""
    entries = stored.summaries["drift"]["policies"].values()
    setting = next(each["setting"] for each in entries if (each["policy"], each["problem"]) == (family, problem))
    rows = stored.table("drift")
    chosen = (rows["policy"] == family) & (rows["problem"] == problem) & (rows["setting"] == setting)
    return np.asarray(rows["regret"][chosen], dtype=float)


def _against(stored: Stored, rival: str, kinds: tuple[str, ...], wanted: Range) -> list[Reading]:
    """Return the regret of Albatross with learnt memory over a rival's, on the problems of these kinds."""
    if "drift" not in stored:
        return []
    found: list[Measured] = []
    for problem in stored.summaries["drift"]["settings"]["problems"]:
        if problem.startswith(kinds):
            found.append(ratio(problem, _finals(stored, "learnt", problem), _finals(stored, rival, problem), wanted))
    return [Reading("default", found)] if found else []


@question(
    "Where rewards change abruptly, learnt memory is as good as D-LinUCB tuned in hindsight.",
    panels=("drift",),
    quantity="regret of Albatross with learnt memory / of D-LinUCB at its best discount and width",
    criterion="as good: at most 1.1 times the regret",
    take_away="A restart by evidence needs no half-life that somebody chose.",
)
def abrupt_drift(stored: Stored) -> list[Reading]:
    return _against(stored, "d-linucb", _ABRUPT, at_most(1.1))


@question(
    "Where rewards change slowly, learnt memory is within a factor of 2 of D-LinUCB tuned in hindsight.",
    panels=("drift",),
    quantity="regret of Albatross with learnt memory / of D-LinUCB at its best discount and width",
    take_away="Slow drift is where a memory that somebody tuned still wins.",
)
def slow_drift(stored: Stored) -> list[Reading]:
    return _against(stored, "d-linucb", _SLOW, at_most(2.0))


@question(
    "Where nothing drifts, learnt memory costs at most a tenth.",
    panels=("drift",),
    quantity="regret of Albatross with learnt memory / of Albatross that never forgets",
    take_away="The longest memory is used as long as it predicts as well as the others.",
)
def no_drift(stored: Stored) -> list[Reading]:
    return _against(stored, "never", _STILL, at_most(1.1))


CLAIMS = (abrupt_drift, slow_drift, no_drift)
