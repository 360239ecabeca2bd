"""Claims about the motivating example on real headlines."""

from __future__ import annotations

import numpy as np

from albatross.report.claims.engine import Measured, Reading, question, statement
from albatross.report.claims.measuring import ABOVE_1, Range, at_most, ratio, share
from albatross.report.claims.rivals import BESIDE_OSOM, OSOM_CHANGE, SCALED_CHANGE, SCALED_NAME, switching
from albatross.store.results import Stored

_PLACE = "Section 1.1, motivating example"
_CENTRED = "contexts and rewards are centred within arms before the norm is estimated"
# The main text leaves the constant c of all widths open, so it is part of the letter.
_LETTER = "main text, the paper's estimator"


def _regret(stored: Stored, policy: str, readers: str = "true", late: bool = False) -> np.ndarray:
    """Return the mean regret of such readers, one number per population; `late`: in the second half of the rounds."""
    early = "max_by(regret, round) FILTER (2 * round <= last)" if late else "0"
    each = (
        f"SELECT population, max_by(regret, round) - {early} AS regret "
        "FROM (SELECT *, max(round) OVER () AS last FROM curves) "
        f"WHERE policy = '{policy}' AND {readers} GROUP BY population, reader"
    )
    sql = f"SELECT avg(regret) AS regret FROM ({each}) GROUP BY population ORDER BY population"
    return np.asarray(stored.table("news", sql)["regret"], dtype=float)


def _ratio(
    stored: Stored,
    above: str,
    below: str,
    wanted: Range = ABOVE_1,
    *,
    what: str = "all readers",
    readers: str = "true",
    late: bool = False,
) -> list[Measured]:
    """Return the ratio of the regrets of such readers under two policies."""
    if "news" not in stored:
        return []
    regrets = _regret(stored, above, readers, late), _regret(stored, below, readers, late)
    return [ratio(what, *regrets, wanted)]


@statement(
    "On real headlines, a bound for each reader beats one bound for all.",
    panels=("news",),
    quote="our algorithm ALB-Norm that tailors the model class for each user separately is more effective (lesser "
    "regret), than to, employ a (non-adaptive) linear bandit algorithm for each user",
    place=_PLACE,
    quantity="regret of OFUL+ with one bound / of ALB-Norm, which estimates its first bound",
    take_away="What there is to gain is due to readers whose norm is far below the common bound.",
)
def news_one_bound(stored: Stored) -> list[Reading]:
    return [
        Reading("default", _ratio(stored, "oful-plus", "alb-norm"), _CENTRED),
        Reading(_LETTER, _ratio(stored, "oful-plus-paper", "alb-norm-paper")),
    ]


@statement(
    "On real headlines, ALB-Norm beats OSOM.",
    panels=("news",),
    quote="We further show that our algorithms are also more effective than state of art model selection algorithms "
    "such as OSOM [osom], which posits a `binary' model - users either assign a 0 weight to topic or assign a "
    "potentially large weight to topic.",
    place=_PLACE,
    quantity="regret of OSOM with one bound / of ALB-Norm; for how many readers OSOM switched to its complex model, "
    "and when (median)",
    criterion=BESIDE_OSOM,
    take_away="A binary model has to take a small norm either for 0 or for a large one. What that costs depends on how "
    "early its test fires.",
)
def news_osom(stored: Stored) -> list[Reading]:
    if "news" not in stored:
        return []

    def beside(osom: str, alb: str) -> list[Measured]:
        return _ratio(stored, osom, alb, what=f"all readers{switching(stored, 'news', osom)}")

    return [
        Reading("default", beside("osom", "alb-norm"), f"{_CENTRED}; {OSOM_CHANGE}"),
        Reading(f"default, {SCALED_NAME}", beside("osom-scaled", "alb-norm"), f"{_CENTRED}; {SCALED_CHANGE}"),
        Reading(_LETTER, beside("osom", "alb-norm-paper"), OSOM_CHANGE),
        Reading(f"{_LETTER}, {SCALED_NAME}", beside("osom-scaled", "alb-norm-paper"), SCALED_CHANGE),
    ]


@statement(
    "On real headlines, ALB-Dim for each reader beats policies that do not adapt.",
    panels=("news",),
    quote="In this context, our adaptive algorithm ALB-Dim that tailors to the interest of the individual user "
    "achieves better performance compared to non-adaptive linear bandit algorithms.",
    place=_PLACE,
    proviso="none in the sentence; Theorem 3, which stands behind it, asks for a far longer first phase than here",
    quantity="regret of a policy that does not adapt / of ALB-Dim",
    take_away="Each phase starts anew, with widths for 25 times as many rounds, and its fixed threshold can lose small "
    "coefficients.",
)
def news_dim(stored: Stored) -> list[Reading]:
    def found(readers: str) -> list[Measured]:
        rivals = {"linucb-full": "LinUCB on all topics", "oful-plus": "OFUL+ with one bound"}
        return [
            number
            for rival, what in rivals.items()
            for number in _ratio(stored, rival, "alb-dim", what=what, readers=readers)
        ]

    change = (
        "the platform chooses among the stories of the day, so ALB-Dim is that for finitely many arms, with LinUCB "
        "inside; it needs nested maps, so supports are the first few topics"
    )
    large = "norm >= 0.25 * sqrt(support)"  # coefficients at least the threshold of the first phase
    return [
        Reading("default", found("true"), change),
        Reading("readers of large coefficients", found(large), f"{change}; readers of small coefficients are left out"),
    ]


# ------------------------------------------------------------------------------------------------ questions of ours


@question(
    "On real headlines, ALB-Norm beats OFUL+ with one bound at every norm.",
    panels=("news",),
    quantity="regret of OFUL+ with one bound / of ALB-Norm",
    take_away="For a reader whose norm is the common bound there is nothing to gain, and the search has its price.",
)
def news_every_norm(stored: Stored) -> list[Reading]:
    if "news" not in stored:
        return []
    norms = stored.table("news", "SELECT DISTINCT norm FROM curves ORDER BY norm")["norm"].tolist()
    found = [
        number
        for norm in norms
        for number in _ratio(stored, "oful-plus", "alb-norm", what=f"norm {norm:g}", readers=f"norm = {norm}")
    ]
    return [Reading("default", found)]


@question(
    "On real headlines, ALB-Norm without any bound is near an oracle with each reader's norm.",
    panels=("news",),
    quantity="regret of ALB-Norm / of OFUL+ given the norm",
    criterion="near: within a factor of 2",
    take_away="The ratio is the price of not knowing the norm, with the plays for the first bound included.",
)
def news_oracle(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratio(stored, "alb-norm", "oracle", at_most(2.0)))]


def _readers(stored: Stored, policy: str, test: str, wanted: Range, readers: str = "true") -> list[Measured]:
    """Return the share of readers that pass a test, in % of each population."""
    if "news" not in stored:
        return []
    sql = (
        f"SELECT 100.0 * avg(CAST({test} AS INT)) AS passed FROM curves WHERE policy = '{policy}' AND {readers} "
        "GROUP BY population ORDER BY population"
    )
    return [share("all populations", np.asarray(stored.table("news", sql)["passed"], dtype=float), wanted)]


@question(
    "On real headlines, OSOM finds out for every reader with an interest that contexts matter.",
    panels=("news",),
    quantity="readers of a norm above 0 for whom it switches, in %, as reconstructed",
    take_away="Where OSOM does not switch, its regret is that of UCB, which ignores contexts.",
)
def news_osom_switches(stored: Stored) -> list[Reading]:
    return [Reading("default", _readers(stored, "osom", "switched = 1", (100.0, 100.0), "norm > 0"))]


@question(
    "On real headlines, too, the first bound that ALB-Norm estimates is above the norm.",
    panels=("news",),
    quantity="readers for whom it is, in %",
    criterion="but for one in ten, the probability that the estimate may fail with",
    take_away="Where it is, nobody has to hand a bound over: Section 3.3 makes one.",
)
def news_first_bound(stored: Stored) -> list[Reading]:
    return [Reading("default", _readers(stored, "alb-norm", "first_bound >= norm", (90.0, 100.0)))]


@question(
    "On real headlines, ALB-Dim mostly settles on the reader's own map.",
    panels=("news",),
    quantity="readers for whom it does, in %",
    criterion="mostly: more than half",
    take_away="The threshold of a phase is the same whatever the norm, so small coefficients are the first to be lost.",
)
def news_map(stored: Stored) -> list[Reading]:
    own = "topics = if(norm > 0, support, 0)"
    return [Reading("default", _readers(stored, "alb-dim", own, (50.0, 100.0)))]


@question(
    "On real headlines, ALB-Dim gains on LinUCB with all topics in the second half of the rounds.",
    panels=("news",),
    quantity="regret of LinUCB on all topics / of ALB-Dim, second half",
    take_away="Restarts must cost less than the topics that ALB-Dim leaves out. Early rounds hide whether they do.",
)
def news_dim_late(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratio(stored, "linucb-full", "alb-dim", late=True))]


@question(
    "On real headlines, ALB-Norm beats Thompson sampling.",
    panels=("news",),
    quantity="regret of LinTS / of ALB-Norm",
    take_away="A policy that samples from its posterior needs no bound on the norm.",
)
def news_sampling(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratio(stored, "lints", "alb-norm"))]


@question(
    "On real headlines, Albatross, which is given nothing, beats ALB-Norm.",
    panels=("news",),
    quantity="regret of ALB-Norm / of Albatross",
    take_away="Albatross learns variances as it goes, and needs neither a bound nor epochs.",
)
def news_albatross(stored: Stored) -> list[Reading]:
    return [Reading("default", _ratio(stored, "alb-norm", "albatross"))]


CLAIMS = (
    news_one_bound,
    news_osom,
    news_dim,
    news_every_norm,
    news_oracle,
    news_osom_switches,
    news_first_bound,
    news_map,
    news_dim_late,
    news_sampling,
    news_albatross,
)
