"""When a population is learnt anew, and by which steps: one rule for a flock and for processes that share one.

A look is two steps of EM. With few rewards, the means alone explain them too well, and a spread that collapsed recovers
slowly. So where a first look at 16 rewards would have fewer than two per parameter, looks begin at 8. With fewer than
two per parameter they take four steps, whose ridge knows how little is known of theta (`renewed`). The first look with
four per parameter starts from nothing and takes eight.

Steps change the noise by small factors only, so what starts does so with a guess in the unit of the rewards. The look
that starts from nothing tries a high guess, too: clicks are mostly noise. docs/flock.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable

from albatross.models.population import S0, Population

_FIRST, _EARLY_FIRST, _GROWTH = 16.0, 8.0, 2.0**0.5  # rewards before the first look, and their growth between looks
_STEPS, _FEW_STEPS, _NEW_STEPS = 2, 4, 8  # usually, with few rewards, and from nothing
_FEW, _ENOUGH = 2, 4  # rewards per parameter
_CLEARLY = 1.5  # higher log evidence


class Looks:
    """How many rewards there are, and at how many the population is learnt anew."""

    def __init__(self, p: int) -> None:
        self.rewards = 0
        self.last = 0  # rewards at the last look
        self.next = first_look(p)

    @property
    def are_due(self) -> bool:
        """Whether there are rewards enough for the next look."""
        return self.rewards >= self.next

    def pass_due(self) -> None:
        """Wait for the next look after those that are due."""
        while self.are_due:
            self.next = max(_GROWTH * self.next, self.next + 1.0)


def first_look(p: int) -> float:
    """Return the number of rewards before the first look, for so many parameters."""
    return _EARLY_FIRST if begins_early(p) else _FIRST


def looked(
    population: Population,
    step: Callable[[Population, bool], Population],
    *,
    guesses: Callable[[Population], tuple[Population, Population]],
    evidence: Callable[[Population], float],
    first: Population,
    rewards: int,
    last: int,
) -> Population:
    """Return the population that a look finds, if `step(population, few)` makes the next one.

    `first` is that before any reward, and `guesses` puts a low and a high guess of the noise into it. `last` is the
    number of rewards at the last look, 0 before there was one.
    """
    p = len(population.mean)
    few = rewards < _FEW * p

    def after(steps: int, each: Population) -> Population:
        for _ in range(steps):
            each = step(each, few)
        return each

    if begins_early(p) and last < _ENOUGH * p <= rewards:
        low, high = (after(_NEW_STEPS, each) for each in guesses(first))
        return high if evidence(high) > evidence(low) + _CLEARLY else low
    if population.noise[S0] == first.noise[S0]:  # nothing was learnt of it yet
        population, _ = guesses(population)
    return after(_FEW_STEPS if few else _STEPS, population)


def begins_early(p: int) -> bool:
    """Return whether 16 rewards are few."""
    return _FEW * p > _FIRST
