"""A keyword is declared once; its field, its check, its documentation and its compiled parameter follow."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Annotated, NamedTuple

import numba
import numpy as np
import pytest

from albatross import Agent, checks, policies
from albatross.compiling import compiled
from albatross.options import (
    AtLeastZero,
    Flag,
    Option,
    Positive,
    Probability,
    Rounds,
    Ties,
    Whole,
    derived,
    one_of,
    parameters,
    policy,
)
from albatross.protocol import hold, init, resolve, score, tag_size, update


def pair(name, value):
    return tuple(checks.finite_array(name, value, (2,)).tolist())


@policy
class Everything:
    """One keyword of every kind."""

    positive: Positive = 2
    at_least_zero: AtLeastZero = 0
    probability: Probability = 0.5
    whole: Whole = 0
    rounds: Rounds | None = None
    flag: Flag = True
    ties: Ties = "random"
    word: Annotated[str, one_of("low", "high")] = "high"
    pair: Annotated[tuple[float, float], Option(pair)] = (0.0, 1.0)
    width: float = derived()  # of the pair

    def __post_init__(self) -> None:
        if self.pair[0] > self.pair[1]:
            raise ValueError("pair must ascend")


@resolve.register
def resolve_everything(policy: Everything, n_arms, dim, horizon):
    return parameters(policy, rounds=horizon, pair=np.array(policy.pair), width=int(policy.pair[1] - policy.pair[0]))


def test_compiled_parameters_have_the_names_of_the_keywords_and_numbers_in_them():
    found = resolve(Everything(pair=[1, 3]), 5, 3, 100)
    assert found._fields == (*(field.name for field in dataclasses.fields(Everything)), "width")
    assert found.pair.tolist() == [1.0, 3.0]
    numbers = found._replace(pair=None)
    assert numbers == (2.0, 0.0, 0.5, 0, 100.0, 1, 1, 1, None, 2.0)
    assert [type(part) for part in numbers] == [float, float, float, int, float, int, int, int, type(None), float]
    assert resolve(Everything(ties="first", word="low", flag=False), 5, 3, 1)[5:8] == (0, 0, 0)


@pytest.mark.parametrize(
    ("keyword", "value", "message"),
    [
        ("positive", 0, "positive must be a positive number (at least 1e-100), not 0"),
        ("at_least_zero", -1, "at_least_zero must be a number >= 0, not -1"),
        ("probability", 1, "probability must be a number strictly between 0 and 1, not 1"),
        ("whole", 1.5, "whole must be a whole number >= 0, not 1.5"),
        ("rounds", 0, "rounds must be a whole number >= 1, not 0"),
        ("flag", 1, "flag must be True or False, not 1"),
        ("ties", "last", "ties must be one of 'random', 'first', not 'last'"),
        ("word", "middle", "word must be one of 'low', 'high', not 'middle'"),
        ("pair", (1, 2, 3), "pair must have shape (2,), got (3,)"),
        ("pair", (2, 1), "pair must ascend"),
        ("positive", None, "positive must be a positive number, not None"),
    ],
)
def test_a_wrong_value_is_refused_by_name(keyword, value, message):
    with pytest.raises(ValueError) as caught:
        Everything(**{keyword: value})
    assert str(caught.value) == message


def test_a_check_may_say_what_is_kept():
    assert Everything(pair=np.array([1, 2])).pair == (1.0, 2.0)


def test_a_policy_is_a_frozen_dataclass_of_keywords_alone():
    made = Everything(positive=3)
    assert made == dataclasses.replace(Everything(), positive=3)
    assert eval(repr(made)) == made
    assert copy.deepcopy(made) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.positive = 4
    with pytest.raises(TypeError, match="positional"):
        Everything(3)
    with pytest.raises(TypeError, match="width"):
        Everything(width=1.0)


def test_what_resolve_must_give_is_asked_for():
    with pytest.raises(TypeError, match="'rounds', 'pair', and 'width'"):
        parameters(Everything())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rounds'"):
        parameters(Everything(), pair=(0.0, 1.0), width=1.0)
    with pytest.raises(TypeError, match="no_keyword"):
        parameters(policies.LinUCB(), no_keyword=1.0)


def test_a_keyword_without_an_option_is_a_mistake_of_the_author():
    with pytest.raises(
        TypeError, match=r"Plain\.size: annotate it with an option such as Positive, not <class 'float'>"
    ):

        @policy
        class Plain:
            size: float = 1.0


def test_documentation_shows_plain_types():
    types = {field.name: field.type for field in dataclasses.fields(Everything)}
    assert types["positive"] is float
    assert types["rounds"] == int | None
    assert types["ties"] is str


# ------------------------------------------------------------------------------------------------ verbs by inheritance


class Waits:
    """What several policies share: it has the keyword `rounds`."""


@tag_size.register
def tag_size_waits(policy: Waits):
    return 3


@hold.register
def hold_waits(policy: Waits, state, choice):
    return policy.rounds


@policy
class Short(Waits):
    rounds: Rounds = 2


@policy
class Long(Short):
    rounds: Rounds = 1_000
    more: Positive = 1.0


@hold.register
def hold_long(policy: Long, state, choice):
    return policy.rounds + policy.more


def test_verbs_are_registered_on_a_policy_or_on_what_it_derives_from():
    short, long = resolve(Short(), 1, 1, None), resolve(Long(), 1, 1, None)
    assert (tag_size(short), tag_size(long)) == (3, 3)
    assert (hold(short, None, None), hold(long, None, None)) == (2.0, 1_001.0)
    assert long == (1_000.0, 1.0)
    with pytest.raises(ValueError, match="more must be"):
        Long(more=0)
    with pytest.raises(ValueError, match="rounds must be"):
        Long(rounds=0)


def test_parameters_are_pickled_by_name_as_numbas_cache_needs():
    made = resolve(policies.LinUCB(alpha=2), 5, 3, None)
    assert pickle.loads(pickle.dumps(made)) == made
    assert type(pickle.loads(pickle.dumps(made))) is type(made)
    assert type(made).__name__ == "LinUCBParameters"


@policy
class Fickle:
    """A policy in a user's own file, declared like those of the library."""

    arm: Whole = 1
    bonus: AtLeastZero = 1


@init.register
def init_fickle(policy: Fickle, n_arms, dim, rng):
    return PlaysInOrder(np.zeros(n_arms), np.arange(n_arms))


class PlaysInOrder(NamedTuple):
    pulls: np.ndarray
    priority: np.ndarray


@score.register
def score_fickle(policy: Fickle, state, offer, noise):
    scores = -state.pulls
    scores[policy.arm] += policy.bonus
    return scores, np.zeros(scores.size)


@update.register
def update_fickle(policy: Fickle, state, choice, reward, n):
    state.pulls[choice.arm] += n


def test_a_policy_of_ones_own_is_declared_like_those_of_the_library():
    agent = Agent(Fickle(arm=2), n_arms=3, dim=1)
    chosen = []
    for _ in range(3):
        decision = agent.select(np.ones(1))
        agent.update(decision, 1.0)
        chosen.append(decision.arm)
    assert chosen == [2, 0, 1]


# --------------------------------------------------------------------------------------------------- `_replace`


@compiled
def bolder(policy, alpha):
    return policy._replace(alpha=2.0 * alpha, biases=policy.biases + 1)


def test_parameters_are_derived_by_name_in_compiled_code_as_in_python():
    before = resolve(policies.LinUCB(), 5, 3, None)
    after = bolder(before, 1.5)
    assert after == before._replace(alpha=3.0, biases=2)
    assert type(after) is type(before)
    assert bolder(before._replace(ridge=np.ones(2)), 1.0).ridge.tolist() == [1.0, 1.0]
    assert math.isclose(before.alpha, 1.0)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compiled code only")
def test_a_name_that_is_no_field_is_refused_in_compiled_code():
    @numba.njit
    def wrong(policy):
        return policy._replace(width=1.0)

    with pytest.raises(numba.TypingError, match="unexpected keyword argument 'width'"):
        wrong(resolve(policies.LinUCB(), 5, 3, None))
