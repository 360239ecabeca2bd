"""Claims about ALB-Norm: arms with biases, and one bandit for every user."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from albatross.report.claims.engine import Measured, Reading, experiment, question, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, mean, ratio, regret_ratios, share
from albatross.report.wording import short
from albatross.store.results import Stored

CHANGE = (
    "contexts and rewards are centred within each arm, and radii are the main text's displays times 0.5, not those of "
    "Appendix A"
)
_NORMS = ("a", "b")
_WITHOUT_THETA = ("75 x 50, norm 0", "10 x 10, norm 0")  # problems of the race
_MAIN, _APPENDIX = "the main text, with the paper's estimator", "Appendix A to the letter"


def default(measured: Sequence[Measured]) -> Reading:
    """Return the reading in which all panels play ALB-Norm, OFUL+ and the oracle."""
    return Reading("default", measured, CHANGE)


def _regrets(stored: Stored, above: str, below: str, wanted: tuple[float, float], note: str = "") -> list[Measured]:
    return regret_ratios(stored, _NORMS, above, below, wanted, note)


# ---------------------------------------------------------------------------------------------- panels a and b: regret


@experiment(
    "Adapting to the norm lowers regret 1.5 to 3 times.",
    panels=_NORMS,
    quote="we show 1.5-3x drop in cumulative regret over non-adaptive algorithms",
    place="abstract",
    quantity="regret of OFUL+ given 10 / of ALB-Norm",
)
def drop(stored: Stored) -> list[Reading]:
    wanted = (1.5, 3.0)
    return [
        default(_regrets(stored, "oful-plus", "alb-norm", wanted)),
        Reading(_APPENDIX, _regrets(stored, "oful-plus-literal", "alb-norm-literal", wanted)),
    ]


@experiment(
    "OFUL+ does poorly when its bound is far from the norm.",
    panels=_NORMS,
    quote="in setting (i), OFUL+ performs poorly owing to the gap between ‖θ*‖ and b_1. [...] Similar things happen in "
    "setting (ii).",
    place="Section 6.1, panels a and b",
    quantity="regret of OFUL+ given 10 / of OFUL+ given the norm",
    criterion="poorly: at least 1.5 times the oracle's regret, the least drop that the abstract speaks of",
)
def poorly(stored: Stored) -> list[Reading]:
    return [default(_regrets(stored, "oful-plus", "oracle", (1.5, math.inf)))]


@experiment(
    "ALB-Norm lies between OFUL+ and the oracle.",
    panels=_NORMS,
    quote="ALB-Norm is sandwiched between the OFUL+ and the oracle. Similar things happen in setting (ii).",
    place="Section 6.1, panels a and b",
    quantity="ratios of mean regret",
)
def sandwich(stored: Stored) -> list[Reading]:
    note = ", OFUL+ / ALB-Norm"
    return [
        default(
            _regrets(stored, "oful-plus", "alb-norm", ABOVE_1, note)
            + _regrets(stored, "alb-norm", "oracle", ABOVE_1, ", ALB-Norm / oracle")
        ),
        Reading(
            f"{_APPENDIX}, upper half",
            _regrets(stored, "oful-plus-literal", "alb-norm-literal", ABOVE_1, note),
            "an oracle with the constants of Appendix A was not run",
        ),
    ]


@experiment(
    "ALB-Norm's regret is close to that of the oracle.",
    panels=_NORMS,
    quote="the performance of ALB is close to that of the oracle algorithms that know the true complexity",
    place="Section 1.1",
    quantity="regret of ALB-Norm / of OFUL+ given the norm",
    criterion="close: within a factor of 2",
)
def near_oracle_norm(stored: Stored) -> list[Reading]:
    return [default(_regrets(stored, "alb-norm", "oracle", at_most(2.0)))]


# ------------------------------------------------------------------------------------------- panel c: norm estimates


def _estimates(stored: Stored) -> dict[str, dict[float, np.ndarray]]:
    """Return the estimates of panel (c), (trials, epochs), by policy and norm."""
    found: dict[str, dict[float, np.ndarray]] = {"alb-norm": {}, "alb-norm-paper": {}, "alb-norm-literal": {}}
    if "c" in stored:
        rows = stored.table("c", "SELECT * FROM curves ORDER BY policy, theta_norm, trial, epoch")
        for policy, by_norm in found.items():
            for norm in np.unique(rows["theta_norm"]):
                chosen = (rows["policy"] == policy) & (rows["theta_norm"] == norm)
                if chosen.any():
                    by_norm[float(norm)] = rows["norm_bound"][chosen].reshape(-1, int(rows["epoch"][chosen].max()))
    return found


def _three_readings(stored: Stored, measure: Callable[[float, np.ndarray], Measured]) -> list[Reading]:
    """Apply a measure to the estimates at each norm."""
    ours, main, appendix = (
        [measure(norm, bounds) for norm, bounds in by_norm.items()] for by_norm in _estimates(stored).values()
    )
    return [default(ours), Reading(_MAIN, main), Reading(_APPENDIX, appendix)]


@experiment(
    "The estimates of the norm get better from epoch to epoch.",
    panels=("c",),
    quote="we show that the norm estimates of ALB-Norm improves over epochs",
    place="Section 6.1, panel c",
    quantity="steps that come nearer to the norm, in %",
    criterion="from every epoch to the next, but for one in twenty",
)
def improves(stored: Stored) -> list[Reading]:
    def nearer(norm: float, bounds: np.ndarray) -> Measured:
        errors = np.abs(bounds - norm)
        return share(f"norm {norm:g}", 100.0 * (errors[:, 1:] < errors[:, :-1]).mean(axis=1), (95.0, 100.0))

    return _three_readings(stored, nearer)


@experiment(
    "The estimates of the norm converge to it, quickly.",
    panels=("c",),
    quote="and converges to the true norm very quickly",
    place="Section 6.1, panel c; Section 1.1",
    quantity="error of the last estimate, in % of the error of the first",
    criterion="quickly: as i / 2^i, the rate of Lemma 1, which after eight estimates leaves 6.25 % of the error of the "
    "first",
)
def converges(stored: Stored) -> list[Reading]:
    def left(norm: float, bounds: np.ndarray) -> Measured:
        last = bounds.shape[1]
        errors = np.abs(bounds - norm)
        what = f"norm {norm:g}, b_{last} = {short(float(bounds[:, -1].mean()))}"
        return mean(what, 100.0 * errors[:, -1] / errors[:, 0], at_most(100.0 * (last / 2**last) / 0.5))

    return _three_readings(stored, left)


@statement(
    "The estimates of the norm are upper bounds.",
    panels=("c",),
    quote="ALB-Norm, at the beginning of each phase, estimates an upper bound on the norm of ‖θ*‖",
    place="Section 1.1",
    quantity="estimates at or above the norm, in % of trials and epochs",
    criterion="theta* is in the confidence set with probability 1 - 4 delta (Section 3.2)",
)
def upper_bound(stored: Stored) -> list[Reading]:
    def above(norm: float, bounds: np.ndarray) -> Measured:
        least = 100.0 * (1.0 - 4.0 * stored.summaries["c"]["settings"]["delta"])
        return share(f"norm {norm:g}", 100.0 * (bounds >= norm).mean(axis=1), (least, 100.0))

    return _three_readings(stored, above)


# ------------------------------------------------------------------------------------ one bandit for every user, OSOM


def _users(stored: Stored, above: str, below: str, norms: str = "true") -> tuple[np.ndarray, np.ndarray]:
    """Return the regret of all users with such norms, one number per population, for two policies."""
    rows = stored.table(
        "users",
        f"SELECT sum(regret) FILTER (policy = '{above}') AS above, sum(regret) FILTER (policy = '{below}') AS below "
        f"FROM curves WHERE {norms} GROUP BY population ORDER BY population",
    )
    return np.asarray(rows["above"], dtype=float), np.asarray(rows["below"], dtype=float)


def _all_users(stored: Stored, above: str, below: str) -> list[Measured]:
    if "users" not in stored or not {above, below} <= set(stored.summaries["users"]["policies"]):
        return []
    return [ratio("all users", *_users(stored, above, below), ABOVE_1)]


@experiment(
    "For many users, a bound for each of them beats one bound for all.",
    panels=("users",),
    quote="our algorithm ALB-Norm that tailors the model class for each user separately is more effective (lesser "
    "regret), than to, employ a (non-adaptive) linear bandit algorithm for each user",
    place="Section 1, motivating example",
    quantity="regret of OFUL+ with one bound / of ALB-Norm",
)
def users(stored: Stored) -> list[Reading]:
    return [default(_all_users(stored, "oful-plus", "alb-norm"))]


@experiment(
    "ALB-Norm beats OSOM, which decides between norm 0 and a large norm.",
    panels=(*_NORMS, "users"),
    quote="We further show that our algorithms are also more effective than state of art model selection algorithms "
    "such as OSOM",
    place="Section 1, motivating example; Section 2",
    quantity="regret of OSOM / of ALB-Norm",
)
def osom(stored: Stored) -> list[Reading]:
    found = _regrets(stored, "osom", "alb-norm", ABOVE_1) + _all_users(stored, "osom", "alb-norm")
    return [Reading("default", found, f"{CHANGE}; OSOM is a reconstruction")]


@statement(
    "Where theta* = 0, ALB-Norm recovers the simple bandit.",
    panels=("users", "race"),
    quote="when θ*=0, ALB recovers the minimax regret for the simple bandit algorithm without such knowledge of θ*",
    place="abstract; Remark 3",
    quantity="regret of ALB-Norm / of UCB, which ignores contexts",
    criterion="recovers: at most 1.1 times UCB's regret; with the change, a constant factor of 5",
    proviso="K > d",
)
def simple_bandit(stored: Stored) -> list[Reading]:
    pairs = {}
    if "users" in stored:
        pairs["users of norm 0"] = _users(stored, "alb-norm", "ucb", "norm = 0")
    for problem in _WITHOUT_THETA:
        regret = stored.races.get(problem, {}).get("regret", {})
        if {"alb-norm", "ucb"} <= set(regret):
            pairs[f"race, {problem}"] = np.array(regret["alb-norm"]), np.array(regret["ucb"])
    pairs = {what: pair for what, pair in pairs.items() if pair[0].size}
    return [
        Reading(
            "up to a factor of 5",
            [ratio(what, *pair, at_most(5.0)) for what, pair in pairs.items()],
            f"up to a constant factor, because ALB-Norm does not do as well as UCB; {CHANGE}",
        ),
        Reading("as good as UCB", [ratio(what, *pair, at_most(1.1)) for what, pair in pairs.items()]),
    ]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "ALB-Norm beats Thompson sampling, which has no bound on the norm to lose by.",
    panels=_NORMS,
    quantity="regret of LinTS / of ALB-Norm",
)
def sampling_norm(stored: Stored) -> list[Reading]:
    return [Reading("default", _regrets(stored, "lints", "alb-norm", ABOVE_1))]


@question(
    "Albatross, which is given no bound, beats ALB-Norm.",
    panels=(*_NORMS, "users"),
    quantity="regret of ALB-Norm / of Albatross",
)
def albatross(stored: Stored) -> list[Reading]:
    found = _regrets(stored, "alb-norm", "albatross", ABOVE_1) + _all_users(stored, "alb-norm", "albatross")
    return [Reading("default", found)]


@question(
    "ALB-Norm's estimates rank the users by their norms.",
    panels=("users",),
    quantity="Spearman's correlation of last estimate and norm",
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
    return [Reading("default", [mean("one number per population", np.array(ranks), (0.8, 1.0))])]


CLAIMS = (
    drop,
    poorly,
    sandwich,
    improves,
    converges,
    upper_bound,
    near_oracle_norm,
    users,
    osom,
    simple_bandit,
    sampling_norm,
    albatross,
    ranks_users,
)
