"""Shared by policies over other policies: bases of any kind, which one chooses, and which ones learn from its reward.

A choice stores its base, the probability of that base, and the base's own tag, so that a late reward reaches the right
base. Numba cannot index a tuple of different types with a variable: `_select` and `_update` recurse over the tuple
until the wanted base is first.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import code_of, compiled
from albatross.options import Option, check_base, parameters
from albatross.protocol import (
    Choice,
    check_change_of_arms,
    check_state,
    check_tags,
    diagnostics,
    fold_arm,
    init,
    noise_size,
    open_arm,
    resolve,
    select,
    tag_size,
    update,
)

_MOST_BASES, _MOST_LAYERS = 16, 2  # counted through all layers: compiling takes seconds for each
_OWN = 2  # places in a tag: the base, and the probability that it had; its own tag follows


class Bases(NamedTuple):
    policies: Any  # a tuple of parameters
    noise: np.ndarray  # (M + 1,) int64: where the random numbers of each base begin
    tags: np.ndarray  # (M,) int64: how long each one's tag is


class BaseRecord(NamedTuple):
    states: Any  # of the bases, a tuple
    pulls: np.ndarray  # (K,)
    plays: np.ndarray  # (M,) rewards that each base has brought
    sums: np.ndarray  # (M,) and their sum


def check_bases(name: str, value: Any) -> tuple[Any, ...]:
    """Require at least two policies, for the same kind of problem."""
    try:
        bases = tuple(value)
    except TypeError:
        raise ValueError(f"{name} must be a tuple of policies, not {value!r}") from None
    if len(bases) < 2:
        raise ValueError(f"{name} must be at least two policies, not {bases!r}")
    for i, base in enumerate(bases):
        check_base(f"{name}[{i}]", base)
    _check_extent(bases)
    return bases


def _check_extent(bases: tuple[Any, ...]) -> None:
    """Refuse more bases than can be compiled in a reasonable time."""
    if sum(map(_n_bases, bases)) > _MOST_BASES:
        raise ValueError(f"bases must be at most {_MOST_BASES} policies in all, not {sum(map(_n_bases, bases))}")
    if 1 + max(map(_n_layers, bases)) > _MOST_LAYERS:
        raise ValueError("bases may have bases of their own, but those may not have any")


def _bases_of(policy: Any) -> tuple[Any, ...]:
    return getattr(getattr(policy, "policy", policy), "bases", ())  # FirstFeatures shows features to its policy


def _n_bases(policy: Any) -> int:
    """Count the bases that have no bases of their own."""
    return sum(map(_n_bases, _bases_of(policy))) or 1


def _n_layers(policy: Any) -> int:
    """Count the layers of bases in a policy."""
    return 1 + max(map(_n_layers, _bases_of(policy))) if _bases_of(policy) else 0


Policies = Annotated[tuple[Any, ...], Option(check_bases)]


class OverPolicies:
    """A policy over `bases`: a class whose state starts with their `record` inherits the verbs below."""

    bases: Any


@resolve.register
def resolve_over_policies(policy: OverPolicies, n_arms, dim, horizon):
    return parameters(policy, bases=resolve_bases(policy, n_arms, dim, horizon))


@noise_size.register
def noise_size_over_policies(policy: OverPolicies, n_arms, dim):
    return int(policy.bases.noise[-1])


@tag_size.register
def tag_size_over_policies(policy: OverPolicies):
    return _OWN + int(policy.bases.tags.max())


@check_change_of_arms.register
def check_change_of_arms_over_policies(policy: OverPolicies):
    for base in policy.bases.policies:
        check_change_of_arms(base)


@fold_arm.register
def fold_arm_over_policies(policy: OverPolicies, state, arm):
    for base, own in zip(policy.bases.policies, state.record.states, strict=True):
        fold_arm(base, own, arm)


@open_arm.register
def open_arm_over_policies(policy: OverPolicies, state, arm):
    for base, own in zip(policy.bases.policies, state.record.states, strict=True):
        open_arm(base, own, arm)


@check_state.register
def check_state_over_policies(policy: OverPolicies, state):
    for base, own in zip(policy.bases.policies, state.record.states, strict=True):
        check_state(base, own)


@check_tags.register
def check_tags_over_policies(policy: OverPolicies, state, tags):
    chosen = tags[~np.isnan(tags[:, 0])]
    checks.indices("tag", chosen[:, 0], len(policy.bases.policies) - 1)
    if not ((chosen[:, 1] > 0.0) & (chosen[:, 1] <= 1.0)).all():
        raise ValueError("tag holds a probability that is not above 0 and at most 1")
    for i, (base, own) in enumerate(zip(policy.bases.policies, state.record.states, strict=True)):
        check_tags(base, own, chosen[chosen[:, 0] == i, _OWN : _OWN + policy.bases.tags[i]])


@diagnostics.register
def diagnostics_over_policies(policy: OverPolicies, state):
    record = state.record
    played = record.plays > 0
    return {
        "pulls": record.pulls.copy(),
        "base_plays": record.plays.copy(),
        "base_means": np.where(played, record.sums / np.where(played, record.plays, 1.0), np.nan),  # NaN before a play
        "bases": [diagnostics(base, own) for base, own in zip(policy.bases.policies, record.states, strict=True)],
        **{name: array.copy() for name, array in zip(state._fields[1:], state[1:], strict=True)},
    }


def resolve_bases(policy: Any, n_arms: int, dim: int, horizon: int | None) -> Bases:
    """Return the bases' parameters; an error names the base that does not fit the problem."""
    found = []
    for i, base in enumerate(policy.bases):
        try:
            found.append(resolve(base, n_arms, dim, horizon))
        except (TypeError, ValueError) as error:
            raise type(error)(f"bases[{i}]: {error}") from None
    noise = np.cumsum([0, *(noise_size(base, n_arms, dim) for base in found)]).astype(np.int64)
    return Bases(tuple(found), noise, np.array([tag_size(base) for base in found], np.int64))


def nothing_played(policy: Any, n_arms: int, dim: int, rng: np.random.Generator) -> BaseRecord:
    """Return the record before the first round."""
    size = len(policy.bases.policies)
    states = tuple(init(base, n_arms, dim, rng) for base in policy.bases.policies)
    return BaseRecord(states, np.zeros(n_arms), np.zeros(size), np.zeros(size))


def _select(i, policies, states, offer, noise):
    return select(policies[i], states[i], offer, noise)


@code_of(_select)
def _compile_select(i, policies, states, offer, noise):
    if len(policies) == 1:
        return lambda i, policies, states, offer, noise: select(policies[0], states[0], offer, noise)

    def implementation(i, policies, states, offer, noise):
        if i == 0:
            return select(policies[0], states[0], offer, noise)
        return _select(i - 1, policies[1:], states[1:], offer, noise)

    return implementation


def _update(i, policies, states, choice, reward, n):
    update(policies[i], states[i], choice, reward, n)


@code_of(_update)
def _compile_update(i, policies, states, choice, reward, n):
    if len(policies) == 1:
        return lambda i, policies, states, choice, reward, n: update(policies[0], states[0], choice, reward, n)

    def implementation(i, policies, states, choice, reward, n):
        if i == 0:
            update(policies[0], states[0], choice, reward, n)
        else:
            _update(i - 1, policies[1:], states[1:], choice, reward, n)

    return implementation


@compiled
def play_base(bases, record, base, probability, offer, noise):
    """Return the choice of a base as the meta-policy's; its propensity is unknown if the base was drawn at random."""
    own = noise[bases.noise[base] : bases.noise[base + 1]]
    choice = _select(base, bases.policies, record.states, offer, own)
    tag = np.zeros(_OWN + np.max(bases.tags))
    tag[0] = base
    tag[1] = probability
    for j in range(choice.tag.size):
        tag[_OWN + j] = choice.tag[j]
    propensity = choice.propensity if probability == 1.0 else np.nan
    return Choice(choice.arm, choice.action, choice.score, choice.width, propensity, tag)


@compiled
def teach_base(bases, record, base, own_tag, choice, reward):
    """Update one base; a choice that is not its own has no tag."""
    tag = np.full(bases.tags[base], np.nan)
    if own_tag:
        for j in range(tag.size):
            tag[j] = choice.tag[_OWN + j]
    play = Choice(choice.arm, choice.action, choice.score, choice.width, choice.propensity, tag)
    _update(base, bases.policies, record.states, play, reward, 1)


@compiled
def learn_bases(bases, record, choice, reward, weight, share):
    """Add one play: the base that chose learns `weight` times the reward; with `share`, the other bases learn too.

    Return the base that chose, or -1 if none did.
    """
    base = -1 if np.isnan(choice.tag[0]) else int(choice.tag[0])
    record.pulls[choice.arm] += 1.0
    if base >= 0:
        record.plays[base] += 1.0
        record.sums[base] += reward
        teach_base(bases, record, base, True, choice, weight * reward)
    if share or base < 0:  # what somebody else chose teaches all
        for other in range(record.plays.size):
            if other != base:
                teach_base(bases, record, other, False, choice, reward)
    return base


@compiled
def mean_width(plays, n_bases, delta, width):
    """Return c sqrt(ln(M max(ln n, 1) / delta) / n), the width of a base's mean reward."""
    return width * math.sqrt(math.log(n_bases * max(math.log(plays), 1.0) / delta) / plays)


@compiled
def best_lower_bound(record, among, delta, width):
    """Return max_j (u_j / n_j - c_j) over the bases of a mask that have been played."""
    best = -np.inf
    for j in range(record.plays.size):
        if among[j] and record.plays[j] > 0.0:
            lower = record.sums[j] / record.plays[j] - mean_width(record.plays[j], record.plays.size, delta, width)
            best = max(best, lower)
    return best
