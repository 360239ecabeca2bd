"""Questions of ours about users who learn from each other."""

from __future__ import annotations

import numpy as np

from albatross.report.claims.engine import Measured, Reading, question
from albatross.report.claims.measuring import ABOVE_1, Range, at_most, exact, mean, ratio
from albatross.store.results import Stored

_PANEL = ("flock",)
_ALIKE = ("equal", "rare visits", "newcomers", "your data, newcomers")  # here, one bandit for all is not far off


def _regrets(stored: Stored) -> dict[str, dict[str, np.ndarray]]:
    """Return the regret of a user in each population, by family and policy."""
    if "flock" not in stored:
        return {}
    rows = stored.table(
        "flock",
        "SELECT family, policy, max_by(regret, visit) AS regret FROM curves WHERE visit >= 0 "
        "GROUP BY family, policy, population ORDER BY population",
    )
    found: dict[str, dict[str, np.ndarray]] = {}
    for family in stored.summaries["flock"]["settings"]["families"]:
        here = rows["family"] == family
        found[family] = {
            policy: np.asarray(rows["regret"][here & (rows["policy"] == policy)], dtype=float)
            for policy in np.unique(rows["policy"][here]).tolist()
        }
    return found


def _ratios(found: dict[str, dict[str, np.ndarray]], above: str, below: str, wanted: Range) -> list[Measured]:
    return [ratio(family, each[above], each[below], wanted) for family, each in found.items()]


@question(
    "A flock costs no user group more than learning alone.",
    panels=_PANEL,
    quantity="regret of a flock / of one Albatross per user",
    take_away="What users have in common is learnt, and so is that they have nothing in common.",
)
def flock_alone(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratios(_regrets(stored), "flock", "albatross", at_most(1.0)))]


@question(
    "Newcomers cost a third of what they cost alone.",
    panels=_PANEL,
    quantity="regret of the first visits in a flock / of one Albatross per user",
    criterion="a third, rounded up",
    take_away="Most users of a real site are newcomers, and what the others taught serves them at once.",
)
def flock_newcomers(stored: Stored) -> list[Reading]:
    found = {family: each for family, each in _regrets(stored).items() if family.endswith("newcomers")}
    return [Reading("default", _ratios(found, "flock", "albatross", at_most(0.35)))]


@question(
    "Where users differ, one bandit for all costs more than one for each.",
    panels=_PANEL,
    quantity="regret of one Albatross for all / of one per user",
    take_away="The average user does not exist: half of them may want the opposite of the others.",
)
def shared_bandit(stored: Stored) -> list[Reading]:
    found = {family: each for family, each in _regrets(stored).items() if family not in _ALIKE}
    return [Reading("default", _ratios(found, "shared", "albatross", ABOVE_1))]


@question(
    "A flock, which is given nothing, does no worse than HierTS, which is given all variances.",
    panels=_PANEL,
    quantity="regret of a flock / of HierTS",
    take_away="Variances can be learnt on the way; a sampling policy explores more than it needs to.",
)
def flock_hier_ts(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratios(_regrets(stored), "flock", "hier-ts", at_most(1.0)))]


@question(
    "Variances collapse neither too late, for equal users, nor too early, for opposed tastes.",
    panels=_PANEL,
    quantity="regret of a flock / of one Albatross per user, in the worst population",
    criterion="at most 0.03 for equal users, 0.45 for opposed tastes, in every population",
    take_away="The first rewards are explained too well by the means alone; a flock counts what it does not know of "
    "them.",
)
def flock_collapse(stored: Stored) -> list[Reading]:
    found, measured = _regrets(stored), []
    for family, most in (("equal", 0.03), ("opposed", 0.45)):
        if family in found:
            shares = found[family]["flock"] / found[family]["albatross"]
            measured.append(exact(family, float(shares.max()), at_most(most)))
    return [Reading("default", measured)]


@question(
    "A flock tells outlet readers from topic readers.",
    panels=_PANEL,
    quantity="% of the users whose more probable kind is the true one",
    criterion="at least nine in ten",
    take_away="Nobody says which users choose by outlet: the kinds follow from what they liked.",
)
def flock_kinds(stored: Stored) -> list[Reading]:
    measured = []
    for family in ("users", "two groups"):
        if family in _regrets(stored):
            rows = stored.table(
                "flock",
                "SELECT 100.0 * avg(CASE WHEN (topic_reader > 0.5) = (norm > 0) THEN 1.0 ELSE 0.0 END) AS percent "
                f"FROM curves WHERE visit < 0 AND family = '{family}' GROUP BY population ORDER BY population",
            )
            measured.append(mean(family, np.asarray(rows["percent"], dtype=float), (90.0, 100.0)))
    return [Reading("default", measured)]


CLAIMS = (flock_alone, flock_newcomers, shared_bandit, flock_hier_ts, flock_collapse, flock_kinds)
