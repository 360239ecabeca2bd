"""Claims, and how stored results decide them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from albatross.store.results import Stored, usable

PAPERS, OURS = "the paper's", "ours"
# What the paper reports of its experiments, what it proves or says without an experiment, and what only we ask.
EXPERIMENT, STATEMENT, QUESTION = "experiment", "statement", "question"
VERDICTS = HOLDS, CHANGED, FAILS, MISSING = "holds", "holds with a stated change", "does not hold", "not run"


class Measured(NamedTuple):
    """A number, its 95 % interval over trials (NaN for one trial) and the range that the claim requires."""

    what: str
    value: float
    low: float
    high: float
    wanted: tuple[float, float]

    @property
    def holds(self) -> bool:
        return self.wanted[0] <= self.value <= self.wanted[1]

    @property
    def doubtful(self) -> bool:
        """Whether an end of the required range lies within the interval."""
        return any(self.low < end < self.high for end in self.wanted)

    @property
    def of_one_trial(self) -> bool:
        """Whether there is no interval: nobody knows what other trials would give."""
        return math.isnan(self.low)


class Reading(NamedTuple):
    """One way to read the source's words, compared with its own rivals and oracle."""

    name: str
    measured: Sequence[Measured]
    change: str = ""  # what it does differently from the words; empty: it takes them to the letter

    @property
    def holds(self) -> bool:
        return all(each.holds for each in self.measured)

    @property
    def doubtful(self) -> bool:
        """Whether other trials could well change the result."""
        deciding = [each for each in self.measured if each.holds == self.holds]
        return (any if self.holds else all)(each.doubtful for each in deciding)

    @property
    def of_one_trial(self) -> bool:
        return any(each.of_one_trial for each in self.measured)


_Measure = Callable[[Stored], Sequence[Reading]]


@dataclass(frozen=True)
class Claim:
    """A sentence, its source, and how it is measured on stored results.

    `measure` leaves out what was not run. It returns the default reading first, followed by literal and other readings.
    """

    id: str
    kind: str  # EXPERIMENT, STATEMENT or QUESTION
    statement: str
    panels: tuple[str, ...]  # each that is there adds numbers
    quantity: str  # what the numbers are
    measure: _Measure
    take_away: str  # what a reader should remember, in one line
    quote: str = ""  # the source's own words; a question of ours has none
    place: str = ""  # where they stand
    criterion: str = ""  # why these words want this range, where they do not name it
    proviso: str = ""  # under which the source says it

    @property
    def whose(self) -> str:
        return OURS if self.kind == QUESTION else PAPERS


def _claim(kind: str, statement: str, panels: Sequence[str], **words: str) -> Callable[[_Measure], Claim]:
    def made(measure: _Measure) -> Claim:
        return Claim(measure.__name__.replace("_", "-"), kind, statement, tuple(panels), measure=measure, **words)

    return made


# A claim is the function that measures it, decorated with its words; its id is the function's name.
experiment, statement, question = (partial(_claim, kind) for kind in (EXPERIMENT, STATEMENT, QUESTION))


class Result(NamedTuple):
    """A claim with its numbers."""

    claim: Claim
    verdict: str
    readings: Sequence[Reading]
    lacking: Sequence[str]  # panels that were not run

    @property
    def doubtful(self) -> bool:
        """Whether another set of trials might well give another verdict."""
        return (all if self.verdict == HOLDS else any)(each.doubtful for each in self._deciding)

    @property
    def of_one_trial(self) -> bool:
        """Whether the verdict rests on numbers without an interval."""
        return bool(self._deciding) and all(each.of_one_trial for each in self._deciding)

    @property
    def _deciding(self) -> Sequence[Reading]:
        """The readings that the verdict follows from."""
        letter = [each for each in self.readings if not each.change]
        if self.verdict == HOLDS:
            return [each for each in letter if each.holds]
        return self.readings[:1] if self.verdict == CHANGED else [*self.readings[:1], *letter]

    @property
    def change(self) -> str:
        """How the reading under which the claim holds departs from the quoted words."""
        return self.readings[0].change if self.verdict == CHANGED else ""


def judge(claim: Claim, stored: Stored) -> Result:
    """The verdict: a claim holds literally, or in the default reading with a stated change."""
    with usable(*(stored.folder / panel for panel in claim.panels if panel in stored)):
        readings = [reading for reading in claim.measure(stored) if reading.measured]
    if not readings:
        verdict = MISSING
    elif any(reading.holds and not reading.change for reading in readings):
        verdict = HOLDS
    else:
        verdict = CHANGED if readings[0].holds else FAILS
    return Result(claim, verdict, readings, [panel for panel in claim.panels if panel not in stored])
