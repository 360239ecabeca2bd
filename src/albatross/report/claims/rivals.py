"""Claims about ALB-Norm beside rivals: OSOM, Corral and UCB, one bandit for every user, and what a user would take."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from albatross.report.claims.engine import Measured, Reading, experiment, question, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, mean, ratio, regret_ratios
from albatross.report.claims.norm import CHANGE, NORMS, READINGS, each_reading, regrets
from albatross.report.wording import short
from albatross.store.results import Stored

# OSOM as reconstructed, and with a test whose scale is ours: a reading each.
OSOM_CHANGE, SCALED_CHANGE = "OSOM is a reconstruction", "OSOM is a reconstruction, and its test is at a scale of ours"
BESIDE_OSOM = (
    "the paper shows no run of OSOM; OSOM as reconstructed decides, and beside it stands OSOM with a test of ours, at "
    "the scale of OFUL+'s radii"
)
SCALED_NAME = "OSOM with the scaled test"

# ------------------------------------------------------------------------------- one bandit for every user, and rivals


def _users(stored: Stored, above: str, below: str, norms: str = "true") -> tuple[np.ndarray, np.ndarray]:
    """Regret of all users with such norms, one number per population, for two policies."""
    rows = stored.table(
        "users",
        f"SELECT sum(regret) FILTER (policy = '{above}') AS above, sum(regret) FILTER (policy = '{below}') AS below "
        f"FROM curves WHERE {norms} GROUP BY population ORDER BY population",
    )
    return np.asarray(rows["above"], dtype=float), np.asarray(rows["below"], dtype=float)


def _all_users(stored: Stored, above: str, below: str, note: str = "") -> list[Measured]:
    if "users" not in stored or not {above, below} <= set(stored.summaries["users"]["policies"]):
        return []
    return [ratio(f"all users{note}", *_users(stored, above, below), ABOVE_1)]


@question(
    "For generated users, too, a bound for each of them beats one bound for all.",
    panels=("users",),
    quantity="regret of OFUL+ with one bound / of ALB-Norm",
    take_away="One bound has to fit the user with the largest norm, so it is too large for all others.",
)
def users(stored: Stored) -> list[Reading]:
    return [Reading("default", _all_users(stored, "oful-plus", "alb-norm"))]


def switching(stored: Stored, panel: str, policy: str) -> str:
    """In how many trials, or of how many users, OSOM went over to its complex model, and at which round (median)."""
    switched = stored.summaries[panel]["policies"].get(policy, {}).get("switched")
    if not switched:
        return ""
    at = f" at round {short(switched['round'])}" if switched["times"] else ""
    return f", switched in {switched['times']} of {switched['of']}{at}"


@experiment(
    "ALB-Norm beats OSOM, which decides between norm 0 and a large norm.",
    panels=(*NORMS, "users"),
    quote="ALB-Norm, which achieves regret Õ(‖θ*‖√T), a superior guarantee (which we also empirically verify) compared "
    "to OSOM.",
    place="Section 2",
    quantity="regret of OSOM, given the bound that ALB-Norm starts from, / of ALB-Norm; in how many trials or for how "
    "many users OSOM switched to its complex model, and when (median)",
    criterion=f"{BESIDE_OSOM}; given 1 as well as that bound",
    take_away="An OSOM that never switches is UCB, which ignores contexts: look at how often it switched, then at the "
    "regret.",
)
def osom(stored: Stored) -> list[Reading]:
    name, _ = READINGS["-paper"]
    published, scaled = ("osom", "osom-given-1"), ("osom-scaled",)
    return [
        Reading("default", _beside_osom(stored, published, "alb-norm"), f"{CHANGE}; {OSOM_CHANGE}"),
        Reading(f"default, {SCALED_NAME}", _beside_osom(stored, scaled, "alb-norm"), f"{CHANGE}; {SCALED_CHANGE}"),
        Reading(name, _beside_osom(stored, published, "alb-norm-paper"), OSOM_CHANGE),
        Reading(f"{name}, {SCALED_NAME}", _beside_osom(stored, scaled, "alb-norm-paper"), SCALED_CHANGE),
    ]


def _beside_osom(stored: Stored, forms: Sequence[str], alb: str) -> list[Measured]:
    found = []
    for policy in forms:
        note = ", given 1" * (policy == "osom-given-1")
        for panel in NORMS:
            if panel in stored:
                marked = f"{note}{switching(stored, panel, policy)}"
                found += regret_ratios(stored, [panel], policy, alb, ABOVE_1, marked)
        if "users" in stored:
            found += _all_users(stored, policy, alb, f"{note}{switching(stored, 'users', policy)}")
    return found


@question(
    "Corral over a grid of norms does worse than ALB-Norm.",
    panels=NORMS,
    quantity="regret of Corral over OFUL+ given 0.1, 0.3, 1, 3 and 10 / of ALB-Norm",
    take_away="Corral keeps playing every norm of its grid. The paper calls it unsuited to a continuum, and does not "
    "compare regrets.",
)
def corral_grid(stored: Stored) -> list[Reading]:
    return [Reading("default", regrets(stored, "corral", "alb-norm", ABOVE_1))]


# ------------------------------------------------------------------------------------------------------- theta* = 0


def _beside_ucb(stored: Stored, suffix: str, least: float = 1.0) -> list[Measured]:
    """ALB-Norm over UCB at all sizes with K > least * d."""
    if "simple" not in stored:
        return []
    found = []
    for n_arms, dim in stored.summaries["simple"]["settings"]["sizes"]:
        if n_arms > least * dim:
            alb, ucb = (
                np.asarray(
                    stored.table(
                        "simple",
                        f"SELECT max_by(regret, round) AS last FROM curves WHERE policy = '{policy}' AND "
                        f"n_arms = {n_arms} AND dim = {dim} GROUP BY trial ORDER BY trial",
                    )["last"],
                    dtype=float,
                )
                for policy in (f"alb-norm{suffix}", "ucb")
            )
            found.append(ratio(f"K = {n_arms}, d = {dim}", alb, ucb, at_most(2.0 * (1.0 + math.sqrt(dim / n_arms)))))
    return found


@statement(
    "Where theta* = 0, ALB-Norm recovers the simple bandit.",
    panels=("simple",),
    quote="When θ* = 0 (the simplest model, without any contextual information), Algorithm 1 recovers the minimax "
    "regret of UCB algorithm.",
    place="Remark 3; abstract",
    proviso="K > d; and T_1 as Theorem 1 requires, which is far longer than here",
    quantity="regret of ALB-Norm / of UCB, which ignores contexts",
    criterion="recovers: within a factor of 2, times the 1 + sqrt(d / K) that Theorem 1 leaves beside UCB's sqrt(K)",
    take_away="Theorem 1 leaves sqrt(d) beside UCB's sqrt(K): the more arms there are per feature, the less there is "
    "to lose.",
)
def simple_bandit(stored: Stored) -> list[Reading]:
    return [
        Reading("default, K > 10 d", _beside_ucb(stored, "", 10.0), f"K > 10 d, and not only K > d; {CHANGE}"),
        *each_reading(lambda suffix: _beside_ucb(stored, suffix)),
    ]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "Where theta* = 0 and K is not above d, ALB-Norm is near UCB, too.",
    panels=("users", "race"),
    quantity="regret of ALB-Norm / of UCB, which ignores contexts",
    criterion="near: within a factor of 2",
    take_away="Remark 3 says nothing about K <= d, where features may cost more than arms.",
)
def few_arms(stored: Stored) -> list[Reading]:
    pairs = {}
    if "users" in stored:
        pairs["users of norm 0"] = _users(stored, "alb-norm", "ucb", "norm = 0")
    for problem, race in stored.races.items():
        n_arms, _, dim = problem.removesuffix(", norm 0").partition(" x ")
        few = problem.endswith(", norm 0") and int(n_arms) <= int(dim)
        if few and {"alb-norm", "ucb"} <= set(race["regret"]):
            pairs[f"race, {problem}"] = np.array(race["regret"]["alb-norm"]), np.array(race["regret"]["ucb"])
    return [Reading("default", [ratio(what, *pair, at_most(2.0)) for what, pair in pairs.items() if pair[0].size])]


@question(
    "ALB-Norm beats Thompson sampling, which has no bound on the norm to lose by.",
    panels=NORMS,
    quantity="regret of LinTS / of ALB-Norm",
    take_away="Thompson sampling has no bound on the norm, so a wrong bound cannot cost it anything.",
)
def sampling_norm(stored: Stored) -> list[Reading]:
    return [Reading("default", regrets(stored, "lints", "alb-norm", ABOVE_1))]


@question(
    "Albatross, which is given no bound, beats ALB-Norm.",
    panels=(*NORMS, "users"),
    quantity="regret of ALB-Norm / of Albatross",
    take_away="A policy that learns the norm as a variance needs neither a bound nor epochs.",
)
def albatross(stored: Stored) -> list[Reading]:
    found = regrets(stored, "alb-norm", "albatross", ABOVE_1) + _all_users(stored, "alb-norm", "albatross")
    return [Reading("default", found)]


@question(
    "ALB-Norm's estimates rank the users by their norms.",
    panels=("users",),
    quantity="Spearman's correlation of last estimate and norm",
    criterion="rank: nearly in the same order; 1 is the same order",
    take_away="An estimate can be inaccurate and still tell who cares for topics.",
)
def ranks_users(stored: Stored) -> list[Reading]:
    if "users" not in stored:
        return []
    from scipy.stats import spearmanr  # slow to import

    rows = stored.table("users", "SELECT * FROM curves WHERE policy = 'alb-norm'")
    ranks = []
    for population in np.unique(rows["population"]):
        chosen = rows["population"] == population
        ranks.append(spearmanr(rows["norm"][chosen], rows["norm_bound"][chosen]).statistic)
    return [Reading("default", [mean("one number per population", np.array(ranks), (0.8, math.inf))])]


CLAIMS = (
    users,
    osom,
    corral_grid,
    simple_bandit,
    few_arms,
    sampling_norm,
    albatross,
    ranks_users,
)
