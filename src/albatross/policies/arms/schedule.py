"""Refits that are too expensive for every play: they happen at rounds that grow geometrically."""

from __future__ import annotations

from albatross.compiling import compiled, generic
from albatross.models.moments import record
from albatross.models.ridge import learn
from albatross.protocol import update

observe = generic("observe")  # observe(policy, state, choice, reward, n): what every play changes
refit = generic("refit")  # refit(policy, state): what is brought up to date now and then


class OnSchedule:
    """A policy with `refit`, and with `observe` if it keeps more than the `sums` of all plays and a `fit`."""


@update.register
def update_on_schedule(policy: OnSchedule, state, choice, reward, n):
    learn_on_schedule(policy, state, state.sums.pulls, choice, reward, n)


@observe.register
def observe_on_schedule(policy: OnSchedule, state, choice, reward, n):
    record(state.sums, choice.arm, choice.action, reward, n)
    learn(state.fit, choice.arm, choice.action, reward, n)


@compiled
def next_refit(plays):
    """Return the first of 1, 2, ..., 16, 18, ..., 32, 36, ... (eight per doubling) above this number of plays.

    >>> [next_refit(float(plays)) for plays in (0, 15, 16, 31, 32)]
    [1.0, 16.0, 18.0, 32.0, 36.0]
    """
    step = 1.0
    while 16.0 * step <= plays:
        step *= 2.0
    return (plays // step + 1.0) * step


@compiled
def learn_on_schedule(policy, state, pulls, choice, reward, n):
    """Add n plays of the choice with total reward `reward`; a block is split where a refit falls inside it."""
    left, played = float(n), pulls.sum()
    while left > 0.0:
        due = next_refit(played)
        part = min(left, due - played)
        observe(policy, state, choice, reward * (part / n), part)
        played += part
        left -= part
        if played == due:
            refit(policy, state)
