"""Claims about random exploration and ALB-Dim with the first phase that Theorem 2 asks for."""

from __future__ import annotations

import math

import numpy as np

from albatross.report.claims import ball
from albatross.report.claims.engine import Measured, Reading, statement
from albatross.report.claims.laboratory import FLAT, PANEL, shares, values_of
from albatross.report.claims.measuring import Range, at_most, exact, proportion, slope
from albatross.report.claims.scaling import exponent
from albatross.report.wording import short
from albatross.store.results import Stored

# ------------------------------------------------------------------------------------ Lemmas 2 and 3, Remark 4, T_0


def _errors(stored: Stored, part: str, reading: str, delta: float) -> list[Measured]:
    """At each d the share of the draws with an error as large as allowed or larger."""
    values = values_of(stored, part, reading)
    return [
        proportion(f"{reading}, d = {x:g}", each >= 1.0, (0.0, 100.0 * delta))
        for x, each in zip(values.x, values.at, strict=True)
    ]


def _delta(stored: Stored) -> float:
    return float(stored.summaries["theorems"]["settings"]["samples"]["delta"])


@statement(
    "Lemma 2's number of random samples makes least squares accurate.",
    panels=PANEL,
    quote="If M ≥ d and satisfies M = O((1/ε² + d) ln(1/δ)) [...] P[‖θ̂^(M) − θ*‖_∞ ≥ ε] ≤ δ",
    place="Lemma 2, Appendix B",
    quantity="% of draws with an error of eps or more",
    criterion="at most delta, in every dimension, for one constant in O(.)",
    proviso="each feature is chosen uniformly and independently on the unit sphere in d dimensions",
    take_away="On the sphere a coordinate has variance 1/d: the lemma lacks a factor d, and every constant fails for a "
    "dimension large enough.",
)
def lemma_2(stored: Stored) -> list[Reading]:
    if "theorems" not in stored:
        return []
    delta = _delta(stored)
    constants = stored.summaries["theorems"]["settings"]["samples"]["constants"]
    return [
        Reading("Theorem C", _errors(stored, "lemma-2", "proved", delta), "the sample size of Theorem C"),
        *(Reading(f"constant {c}", _errors(stored, "lemma-2", f"letter, C = {c}", delta)) for c in constants),
    ]


_FIRST_PHASES = {  # readings of T_0 and what they change; none: the definition
    "literal": "",
    "isotropic": "eigenvalues of 1, with which T_0 has the stated order d² ln²",
    "unnormalised": "eigenvalues of the sum, without the factor 1/N",
}


def _first_phase_errors(stored: Stored, part: str, delta: float) -> list[Reading]:
    if "theorems" not in stored:
        return []
    return [
        Reading(reading, _errors(stored, part, reading, delta), change) for reading, change in _FIRST_PHASES.items()
    ]


@statement(
    "T_0 makes the error after the first phase less than 1/2.",
    panels=PANEL,
    quote="T_0 in Equation (1) is chosen such that, at the end of phase 0, P[‖θ̂_0 − θ*‖_∞ ≥ 1/2] ≤ δ",
    place="Remark 4; Remark 6",
    quantity="% of draws with an error of 1/2 or more",
    criterion="at most delta",
    take_away="T_0 as defined is of order d^4, not d^2, so the first phase explores far longer than the remark "
    "suggests.",
)
def remark_4(stored: Stored) -> list[Reading]:
    return _first_phase_errors(stored, "remark-4", _delta(stored) if "theorems" in stored else 0.0)


@statement(
    "At the beginning of phase 4 the error is less than 1/16.",
    panels=PANEL,
    quote="for all phases i ≥ 4, P[‖θ̂_i − θ*‖_∞ ≥ 2^(−i)] ≤ δ/2^i",
    place="Lemma 3, Appendix B",
    quantity="% of draws with an error of 1/16 or more",
    criterion="at most delta / 16",
    proviso="T_0 = O(d² ln²(1/δ)) is set according to Equation (1)",
    take_away="Its proof rests on Lemma 2 and on an inequality that first holds at i = 20. A statement can be true all "
    "the same.",
)
def lemma_3(stored: Stored) -> list[Reading]:
    return _first_phase_errors(stored, "lemma-3", _delta(stored) / 16.0 if "theorems" in stored else 0.0)


@statement(
    "T_0 is of order d².",
    panels=PANEL,
    quote="T_0 = Õ(d² ln²(1/δ)) given in Equation (1)",
    place="Corollary 1; Lemma 3; Remark 6",
    quantity="exponent of d in T_0",
    criterion="at most that of d² ln²(2d/δ) over the same dimensions",
    take_away="With the eigenvalues 1/d that the definition gives, T_0 is of order d^4: at d = 200, 2.8e13 rounds.",
)
def first_phase_order(stored: Stored) -> list[Reading]:
    if "theorems" not in stored:
        return []

    def exponent(reading: str) -> list[Measured]:
        lengths = values_of(stored, "first-phase", reading)
        stated = (lengths.x * np.log(2.0 * lengths.x / _delta(stored))) ** 2
        limit = slope("", lengths.x, stated[None], at_most(math.inf)).value
        name = f"{reading}, d from {short(lengths.x[0])} to {short(lengths.x[-1])}"
        found = slope(name, lengths.x, lengths.matrix(), at_most(limit))
        return [exact(found.what, found.value, found.wanted)]

    return [Reading(each, exponent(each), _FIRST_PHASES[each]) for each in ("isotropic", "literal", "unnormalised")]


# ------------------------------------------------------------------------------------------------------- Theorem 2


@statement(
    "ALB-Dim's regret is below the bound of Theorem 2.",
    panels=PANEL,
    quote="with probability at-least 1 − δ, the regret after a total of T arm-pulls satisfies R_T ≤ 50/γ^4.65 T_0 + "
    "25 √T [...]",
    place="Theorem 2",
    quantity="% of trials below the bound at the end of every phase",
    criterion="at least 1 - delta",
    proviso="T_0 as given in Equation (1), here in the literal reading; exploration on the sphere",
    take_away="Regret is at most 2 per round, so before round 25 T_0 / gamma^4.65 the bound promises nothing.",
)
def below_theorem_2(stored: Stored) -> list[Reading]:
    if "theorems" not in stored:
        return []
    values = values_of(stored, "gamma-bound", "letter")
    promised = [1.0 - stored.summaries["theorems"]["settings"]["ball"]["delta"]] * len(values.x)
    return [Reading("to the letter", shares(values, "gamma =", "at most", promised))]


def _gamma(stored: Stored, part: str, wanted: Range) -> list[Measured]:
    values = values_of(stored, part, "letter")
    return [slope(f"gamma from {values.x[0]:g} to {values.x[-1]:g}", values.x, values.matrix(), wanted)]


@statement(
    "A smaller gamma costs more regret.",
    panels=PANEL,
    quote="Corollary 1 also indicates that ALB-Dim has higher regret if γ is lower.",
    place="Section 4.2, discussion",
    quantity="exponent of gamma in the regret",
    criterion="higher: below 0, but at least -4.65, the exponent of Theorem 2 and Corollary 1",
    take_away="Where theta* has norm 1, a missed coordinate costs at most gamma^2 per round: over 25^i rounds with "
    "2^-i = gamma that is gamma^-2.65.",
)
def gamma_exponent(stored: Stored) -> list[Reading]:
    if "theorems" not in stored:
        return []
    return [Reading("to the letter", _gamma(stored, "gamma-all", (-4.65, 0.0)))]


@statement(
    "The smallest magnitude, gamma, adds only a constant to the regret.",
    panels=("scaling", *PANEL),
    quote="Nevertheless, this only affects the second order term as a constant",
    place="Section 4.2, discussion",
    quantity="exponent of gamma in the regret of the last phase, when the support has been found",
    criterion=f"a constant: what is paid later does not depend on gamma, so an exponent of -{FLAT:g} to {FLAT:g}",
    take_away="A small gamma delays the phase in which the support is found. From then on it costs nothing more.",
)
def gamma_constant(stored: Stored) -> list[Reading]:
    flat = (-FLAT, FLAT)
    found = exponent(stored, "gamma", "alb-dim", "ALB-Dim, gamma", flat)
    letter = _gamma(stored, "gamma-last", flat) if "theorems" in stored else []
    return [Reading("default", found, ball.CHANGE), Reading("to the letter", letter)]


CLAIMS = (
    lemma_2,
    remark_4,
    lemma_3,
    first_phase_order,
    below_theorem_2,
    gamma_exponent,
    gamma_constant,
)
