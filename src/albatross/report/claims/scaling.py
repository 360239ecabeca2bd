"""Claims about how regret grows, and about the theorems that promise it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.report.claims import ball, finite, norm
from albatross.report.claims.engine import Measured, Reading, question, statement
from albatross.report.claims.measuring import ABOVE_1, at_most, exact, ratio, slope
from albatross.report.claims.rivals import switching
from albatross.report.conditions import THEOREMS, conditions
from albatross.report.wording import short
from albatross.store.results import Stored

_FLAT = 0.1  # an exponent up to this is called flat: regret grows by a quarter while x grows tenfold
# Where the theorems promise what these claims say; `theorem_conditions` measures whether it is so here.
_THEOREM_1 = "T_1 as Theorem 1 requires: see theorem-conditions among our questions"
_THEOREM_2 = "T_0 of Equation (1), as Theorem 2 requires: see theorem-conditions among our questions"
_AT_MOST_LINEARLY = at_most(1.0)
_LINEARLY = "linearly, said of an upper bound: an exponent of at most 1"
_LIKE_THE_THEOREM = f"an upper bound: at most the exponent of the theorem's own curve, or {_FLAT:g} where that is flat"


class _Sweep(NamedTuple):
    """Regret of one policy, or a theorem's curve, at several values of one quantity."""

    x: np.ndarray  # (n,)
    regret: np.ndarray  # (trials, n)


def _sweep(stored: Stored, part: str, policy: str) -> _Sweep | None:
    """Return the curve; None if it was not run at two values or more."""
    if "scaling" not in stored:
        return None
    rows = stored.table(
        "scaling",
        "SELECT x, list(regret ORDER BY trial) AS regret FROM curves "
        f"WHERE part = '{part}' AND policy = '{policy}' GROUP BY x ORDER BY x",
    )
    x, regret = np.asarray(rows["x"], dtype=float), np.array([list(each) for each in rows["regret"]]).T
    return _Sweep(x, regret) if len(x) > 1 else None


def exponent(stored: Stored, part: str, policy: str, name: str, wanted: tuple[float, float]) -> list[Measured]:
    """Return the exponent of the part's quantity in the policy's regret, if it was run."""
    found = _sweep(stored, part, policy)
    if found is None:
        return []
    return [slope(f"{name}, from {short(found.x[0])} to {short(found.x[-1])}", *found, wanted)]


def _below_theorem(stored: Stored, part: str, policy: str, name: str, number: int) -> list[Measured]:
    """Return the exponent, required to be at most that of the theorem's own curve."""
    curve = _sweep(stored, part, f"Theorem {number}")
    if curve is None:
        return []
    limit = max(slope("", *curve, ABOVE_1).value, _FLAT)
    return exponent(stored, part, policy, f"{name}, Theorem {number}", at_most(limit))


@statement(
    "Regret grows at most in proportion to the norm of theta*.",
    panels=("scaling",),
    quote="achieves a regret scaling linearly in the true norm ‖θ*‖",
    place="Section 1; abstract; Theorem 1",
    proviso=_THEOREM_1,
    quantity="exponent of the norm in the regret",
    criterion=_LINEARLY,
    take_away="The bound grows with 1 + norm. Biases cost regret at every norm, so regret need not be in proportion to "
    "the norm.",
)
def with_norm(stored: Stored) -> list[Reading]:
    return [norm.default(exponent(stored, "norm", "alb-norm", "ALB-Norm", _AT_MOST_LINEARLY))]


@statement(
    "The regret of OFUL+, given the norm, grows at most in proportion to it.",
    panels=("scaling",),
    quote="the cumulative regret R(T) of linear bandit algorithms (like OFUL [oful] and OSOM [osom]) scales linearly "
    "with ‖θ*‖ ([osom])",
    place="Section 3.1; Remark 2",
    quantity="exponent of the norm in the regret",
    criterion=_LINEARLY,
    take_away="If a policy that knows the norm pays no more for a long theta*, the norm says little about how hard a "
    "problem is.",
)
def oful_plus_with_norm(stored: Stored) -> list[Reading]:
    return [norm.default(exponent(stored, "norm", "oracle", "OFUL+ given the norm", _AT_MOST_LINEARLY))]


@statement(
    "Regret does not grow with the bound that is given.",
    panels=("scaling",),
    quote="our regret bound scales linearly in ‖θ*‖ [...] as opposed to an upper bound on ‖θ*‖",
    place="Section 1; abstract; Theorem 1",
    proviso=_THEOREM_1,
    quantity="exponent of the bound in the regret",
    criterion=_LIKE_THE_THEOREM,
    take_away="ALB-Norm uses the bound that it is given in its first epoch only, which is short.",
)
def not_with_bound(stored: Stored) -> list[Reading]:
    return [norm.default(_below_theorem(stored, "bound", "alb-norm", "ALB-Norm", 1))]


@statement(
    "The regret of OFUL+ grows with the bound that it is given.",
    panels=("scaling",),
    quote="Crucially however, the regret guarantees scale linearly in the upper bound L.",
    place="Section 1",
    proviso="said of the guarantees of LinUCB, OFUL and OSOM; OFUL+ is the form of OFUL with biases",
    quantity="exponent of the bound in the regret",
    criterion=f"a guarantee is an upper bound: more than flat, {_FLAT:g}, is enough",
    take_away="OFUL+ keeps the bound that it is given: what a large bound costs, it costs in every round.",
)
def oful_plus_with_bound(stored: Stored) -> list[Reading]:
    return [norm.default(exponent(stored, "bound", "oful-plus", "OFUL+", (_FLAT, math.inf)))]


@statement(
    "Regret grows at most in proportion to d*, the number of coordinates in use.",
    panels=("scaling",),
    quote="the regret scales linearly in the unknown cardinality of the support of θ*",
    place="Section 1; abstract; Theorem 2",
    proviso=_THEOREM_2,
    quantity="exponent of d* in the regret",
    criterion=_LINEARLY,
    take_away="Once the support is found, ALB-Dim is OFUL on d* coordinates.",
)
def with_sparsity(stored: Stored) -> list[Reading]:
    return [Reading("default", exponent(stored, "sparsity", "alb-dim", "ALB-Dim", _AT_MOST_LINEARLY), ball.CHANGE)]


@statement(
    "Regret does not grow with d.",
    panels=("scaling",),
    quote="the dominant scaling term only depends on the true complexity d*, and not on the underlying dimension d",
    place="Section 4.2, discussion",
    proviso=_THEOREM_2,
    quantity="exponent of d in the regret",
    criterion=_LIKE_THE_THEOREM,
    take_away="In the first phases, on all coordinates, regret depends on d. The claim is about what remains of that "
    "after the last.",
)
def not_with_dim(stored: Stored) -> list[Reading]:
    return [Reading("default", _below_theorem(stored, "dim", "alb-dim", "ALB-Dim", 2), ball.CHANGE)]


@statement(
    "The regret of OFUL grows in proportion to d.",
    panels=("scaling",),
    quote="standard linear bandit algorithms such as [oful], where the regret scales linearly in d",
    place="Section 1; Section 4.2, discussion",
    quantity="exponent of d in the regret",
    criterion="linearly: an exponent of 1, give or take a quarter",
    take_away="OFUL has to explore useless coordinates as much as useful ones.",
)
def oful_with_dim(stored: Stored) -> list[Reading]:
    return [Reading("default", exponent(stored, "dim", "oful", "OFUL on all coordinates", (0.75, 1.25)))]


@statement(
    "Regret grows with the number of rounds no faster than the square root, but for logarithms.",
    panels=("scaling",),
    quote="ALB achieves regret scaling of Õ(‖θ*‖√T) [...] ALB achieves Õ(d*√T) regret [...] even when the forecaster "
    "is unaware of d_{m*}, the regret scales as Õ(√(d_{m*}T))",
    place="abstract; Section 5.1; Theorems 1 to 3",
    proviso="T_1 and T_0 as the theorems require: see theorem-conditions among our questions",
    quantity="exponent of T in the regret",
    criterion="at most the exponent of the theorem's own curve",
    take_away="The theorems' own curves are steeper than one half on log axes, because of their logarithms.",
)
def root_t(stored: Stored) -> list[Reading]:
    found = [
        *_below_theorem(stored, "rounds-mixture", "alb-norm", "ALB-Norm", 1),
        *_below_theorem(stored, "rounds-ball", "alb-dim", "ALB-Dim", 2),
        *_below_theorem(stored, "rounds-nested", "alb-dim-suplinrel", "ALB-Dim, finitely many arms", 3),
    ]
    return [Reading("default", found, f"{norm.CHANGE}; {ball.CHANGE}; {finite.CHANGE}")]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "A longer theta* costs ALB-Norm more.",
    panels=("scaling",),
    quantity="exponent of the norm in the regret",
    criterion="above 0",
    take_away="Where theta* is short, the biases decide which arm is best, and OFUL+ takes long to learn them.",
)
def grows_with_norm(stored: Stored) -> list[Reading]:
    above = (0.0, math.inf)
    found = exponent(stored, "norm", "alb-norm", "with biases", above)
    return [Reading("default", found + exponent(stored, "norm", "alb-norm-no-biases", "all biases 0", above))]


@question(
    "At every norm below the bound, ALB-Norm has less regret than OFUL+.",
    panels=("scaling",),
    quantity="regret of OFUL+ / of ALB-Norm",
    take_away="The nearer the bound is to the norm, the less there is to gain from adapting.",
)
def below_bound(stored: Stored) -> list[Reading]:
    given, adaptive = (_sweep(stored, "norm", policy) for policy in ("oful-plus", "alb-norm"))
    if given is None or adaptive is None:
        return []
    bound = stored.summaries["scaling"]["settings"]["mixture"]["norm_bound"]
    return [
        Reading(
            "default",
            [
                ratio(f"norm {x:g}", given.regret[:, column], adaptive.regret[:, column], ABOVE_1)
                for column, x in enumerate(given.x)
                if x < bound
            ],
        )
    ]


@question(
    "The regret of OSOM, too, grows with the bound that it is given.",
    panels=("scaling",),
    quantity="exponent of the bound in the regret; in how many trials, at all bounds together, OSOM switched to its "
    "complex model, and when (median)",
    criterion=f"more than flat, {_FLAT:g}, in both of its forms: as reconstructed, and with a test at the scale of "
    "OFUL+'s radii",
    take_away="OSOM's guarantee grows with its bound. Its regret does not have to: with a large bound its test may "
    "never fire.",
)
def osom_with_bound(stored: Stored) -> list[Reading]:
    found = []
    for policy, form in (("osom", "OSOM"), ("osom-scaled", "OSOM, scaled test")):
        if "scaling" in stored:
            name = f"{form}{switching(stored, 'scaling', f'{policy}, bound')}"
            found += exponent(stored, "bound", policy, name, (_FLAT, math.inf))
    return [Reading("default", found)]


@question(
    "At the sizes of these experiments the conditions of the theorems hold.",
    panels=("scaling",),
    quantity="what is given / what is needed, or its inverse where that is a maximum",
    take_away="Where a condition fails, the theorem promises nothing, and regret may still be small.",
)
def theorem_conditions(stored: Stored) -> list[Reading]:
    if "scaling" not in stored:
        return []
    settings = stored.summaries["scaling"]["settings"]
    found = []
    for kind, theorem in THEOREMS.items():
        for each in conditions(kind, settings[kind]):
            least = each.holds == (each.given >= each.needed)
            value = each.given / each.needed if least else each.needed / each.given
            found.append(exact(f"{theorem}: {each.statement}", value, ABOVE_1))
    return [Reading("default", found)]


CLAIMS = (
    with_norm,
    oful_plus_with_norm,
    not_with_bound,
    oful_plus_with_bound,
    with_sparsity,
    not_with_dim,
    oful_with_dim,
    root_t,
    grows_with_norm,
    below_bound,
    osom_with_bound,
    theorem_conditions,
)
