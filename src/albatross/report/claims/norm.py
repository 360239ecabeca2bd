"""Claims about ALB-Norm beside its OFUL+ and its oracle, and about its estimates of the norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from albatross.report.claims.engine import Measured, Reading, experiment, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, mean, regret_ratios, share
from albatross.report.wording import short
from albatross.store.results import Stored

CHANGE = (
    "contexts and rewards are centred within each arm, and radii are the main text's displays times 0.5, not those of "
    "Appendix A"
)
NORMS = ("a", "b")
# By the end of the policies' names: each reading has its own OFUL+ and its own oracle. The main text's constant c has
# no value, so 0.5 departs from no word of it.
READINGS = {
    "": ("default", CHANGE),
    "-paper": ("the main text, with the paper's estimator", ""),
    "-literal": ("Appendix A to the letter", ""),
}


def default(measured: Sequence[Measured]) -> Reading:
    """As all panels play ALB-Norm, OFUL+ and the oracle."""
    return Reading(READINGS[""][0], measured, CHANGE)


def each_reading(measure: Callable[[str], Sequence[Measured]]) -> list[Reading]:
    """The same measurement in all readings; it gets the end of the policies' names."""
    return [Reading(name, measure(suffix), change) for suffix, (name, change) in READINGS.items()]


def regrets(stored: Stored, above: str, below: str, wanted: tuple[float, float], note: str = "") -> list[Measured]:
    return regret_ratios(stored, NORMS, above, below, wanted, note)


def _ratios(stored: Stored, above: str, below: str, wanted: tuple[float, float]) -> list[Reading]:
    """Ratios of final regret on panels (a) and (b) in all readings."""
    return each_reading(lambda suffix: regrets(stored, f"{above}{suffix}", f"{below}{suffix}", wanted))


# ---------------------------------------------------------------------------------------------- panels a and b: regret


@experiment(
    "Adapting to the norm lowers regret 1.5 to 3 times.",
    panels=NORMS,
    quote="we show 1.5-3x drop in cumulative regret over non-adaptive algorithms",
    place="abstract",
    quantity="regret of OFUL+ given 10 / of ALB-Norm",
    take_away="The constants decide: with those of Appendix A intervals are wide whatever the bound, and less is left "
    "to gain.",
)
def drop(stored: Stored) -> list[Reading]:
    return _ratios(stored, "oful-plus", "alb-norm", (1.5, 3.0))


@experiment(
    "OFUL+ does poorly when its bound is far from the norm.",
    panels=NORMS,
    quote="in setting (i), OFUL+ performs poorly owing to the gap between ‖θ*‖ and b_1. [...] Similar things happen "
    "in setting (ii).",
    place="Section 6.1, panels a and b",
    quantity="regret of OFUL+ given 10 / of OFUL+ given the norm",
    criterion="poorly: at least 1.5 times the oracle's regret, the least drop that the abstract speaks of",
    take_away="A bound that is too large widens every interval. With the constants of Appendix A intervals are wide "
    "with any bound.",
)
def poorly(stored: Stored) -> list[Reading]:
    return _ratios(stored, "oful-plus", "oracle", (1.5, math.inf))


@experiment(
    "ALB-Norm lies between OFUL+ and the oracle.",
    panels=NORMS,
    quote="ALB-Norm is sandwiched between the OFUL+ and the oracle. Similar things happen in setting (ii).",
    place="Section 6.1, panels a and b",
    quantity="ratios of mean regret",
    take_away="To be below the oracle is no merit: where its estimates fall below the norm, ALB-Norm explores less "
    "than the oracle.",
)
def sandwich(stored: Stored) -> list[Reading]:
    return each_reading(
        lambda suffix: [
            *regrets(stored, f"oful-plus{suffix}", f"alb-norm{suffix}", ABOVE_1, ", OFUL+ / ALB-Norm"),
            *regrets(stored, f"alb-norm{suffix}", f"oracle{suffix}", ABOVE_1, ", ALB-Norm / oracle"),
        ]
    )


@experiment(
    "ALB-Norm's regret is close to that of the oracle.",
    panels=NORMS,
    quote="the performance of ALB is close to that of the oracle algorithms that know the true complexity",
    place="Section 1.1",
    quantity="regret of ALB-Norm / of OFUL+ given the norm",
    criterion="close: within a factor of 2",
    take_away="Every reading has an oracle of its own. Against that of another reading the ratio would compare "
    "constants.",
)
def near_oracle_norm(stored: Stored) -> list[Reading]:
    return _ratios(stored, "alb-norm", "oracle", at_most(2.0))


# ------------------------------------------------------------------------------------------- panel c: norm estimates


def _estimates(stored: Stored, suffix: str) -> dict[float, np.ndarray]:
    """Panel (c): (trials, epochs) by norm, in one reading."""
    if "c" not in stored:
        return {}
    found: dict[float, np.ndarray] = {}
    rows = stored.table(
        "c", f"SELECT * FROM curves WHERE policy = 'alb-norm{suffix}' ORDER BY theta_norm, trial, epoch"
    )
    for norm in np.unique(rows["theta_norm"]):
        chosen = rows["theta_norm"] == norm
        found[float(norm)] = rows["norm_bound"][chosen].reshape(-1, int(rows["epoch"].max()))
    return found


def _of_estimates(stored: Stored, measure: Callable[[float, np.ndarray], Measured]) -> list[Reading]:
    """One number at each norm, in all readings."""
    return each_reading(lambda suffix: [measure(norm, bounds) for norm, bounds in _estimates(stored, suffix).items()])


@experiment(
    "The estimates of the norm get better from epoch to epoch.",
    panels=("c",),
    quote="we show that the norm estimates of ALB-Norm improves over epochs",
    place="Section 6.1, panel c",
    quantity="steps that come nearer to the norm, in %",
    criterion="from every epoch to the next, but for one in twenty",
    take_away="Better means nearer to the norm, from either side: an estimate that falls below the norm and goes on "
    "falling gets worse.",
)
def improves(stored: Stored) -> list[Reading]:
    def nearer(norm: float, bounds: np.ndarray) -> Measured:
        errors = np.abs(bounds - norm)
        return share(f"norm {norm:g}", 100.0 * (errors[:, 1:] < errors[:, :-1]).mean(axis=1), (95.0, 100.0))

    return _of_estimates(stored, nearer)


@experiment(
    "The estimates of the norm converge to it, quickly.",
    panels=("c",),
    quote="and converges to the true norm very quickly",
    place="Section 6.1, panel c; Section 1.1",
    quantity="error of the last estimate, in % of the error of the first",
    criterion="quickly: as i / 2^i, the rate of Lemma 1, which after eight estimates leaves 6.25 % of the error of "
    "the first",
    take_away="An estimate can come to rest in the wrong place. What counts is its distance from the norm.",
)
def converges(stored: Stored) -> list[Reading]:
    def left(norm: float, bounds: np.ndarray) -> Measured:
        last = bounds.shape[1]
        errors = np.abs(bounds - norm)
        what = f"norm {norm:g}, b_{last} = {short(float(bounds[:, -1].mean()))}"
        return mean(what, 100.0 * errors[:, -1] / errors[:, 0], at_most(100.0 * (last / 2**last) / 0.5))

    return _of_estimates(stored, left)


@statement(
    "The estimates of the norm are upper bounds.",
    panels=("c",),
    quote="ALB-Norm, at the beginning of each phase, estimates an upper bound on the norm of ‖θ*‖",
    place="Section 1.1",
    quantity="estimates at or above the norm, in % of trials and epochs",
    criterion="the first is given; after epoch i theta* is in the confidence set with probability 1 - 4 delta_i "
    "(Section 3.2)",
    take_away="An estimate below the norm means that theta* is outside the confidence set. Bounds that explode are "
    "upper bounds, too.",
)
def upper_bound(stored: Stored) -> list[Reading]:
    def above(norm: float, bounds: np.ndarray) -> Measured:
        epochs, delta = bounds.shape[1], stored.summaries["c"]["settings"]["delta"]
        deltas = delta / 2.0 ** np.arange(epochs - 1)
        least = 100.0 * (1.0 - 4.0 * float(deltas.sum()) / epochs)
        return share(f"norm {norm:g}", 100.0 * (bounds >= norm).mean(axis=1), (least, 100.0))

    return _of_estimates(stored, above)


CLAIMS = (drop, poorly, sandwich, improves, converges, upper_bound, near_oracle_norm)
