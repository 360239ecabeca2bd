"""A policy's keywords, each declared once: `policy` makes the checks, the documentation and the compiled parameters.

>>> from albatross.protocol import resolve
>>> @policy
... class Patient:
...     '''A policy with two keywords.'''
...
...     patience: Positive = 2  #: rounds to wait
...     ties: Ties = "random"  #: who wins when scores are equal
>>> Patient(ties="first")
Patient(patience=2, ties='first')
>>> Patient(patience=-1)
Traceback (most recent call last):
ValueError: patience must be a positive number (at least 1e-100), not -1
>>> resolve(Patient(), 5, 3, None)
PatientParameters(patience=2.0, ties=1)

The parameters are a NamedTuple with the same names and numbers in them, which is what compiled code sees. Verbs are
registered on the policy: `def score_patient(policy: Patient, state, offer, noise)` is for its parameters. Verbs that
several policies share are registered on a class that these derive from.

A policy whose parameters follow from more than its keywords registers `resolve` and states the difference alone:
`return parameters(policy, ridge=policy.ridge * policy.sigma**2)`. A parameter that is no keyword is declared as
`price: float = derived()`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, dataclass_transform, get_args, get_type_hints

import numpy as np

from albatross import checks
from albatross.compiling import parameters_type
from albatross.protocol import is_policy, on_ball, resolve

_Policy = TypeVar("_Policy")
_DERIVED: Any = object()


class Option(NamedTuple):
    """The check of a keyword, and its value in compiled code."""

    # Raises a ValueError; what it returns, if anything, is kept instead. None: the policy's `__post_init__` checks it.
    check: Callable[[str, Any], Any] | None = None
    number: Callable[[Any], Any] | None = None  # None: `resolve` says what compiled code gets


def whole(least: int) -> Option:
    """A whole number of at least `least`."""
    return Option(partial(checks.whole, least=least), int)


def one_of(*words: str) -> Option:
    """One of a few words; compiled code gets its index."""
    return Option(partial(checks.one_of, choices=words), words.index)


Positive = Annotated[float, Option(checks.positive, float)]
AtLeastZero = Annotated[float, Option(checks.at_least_zero, float)]
Probability = Annotated[float, Option(checks.probability, float)]
Share = Annotated[float, Option(checks.share, float)]
Whole = Annotated[int, whole(0)]
AtLeastOne = Annotated[int, whole(1)]
Rounds = Annotated[int, Option(checks.rounds, float)]
Interval = Annotated[tuple[float, float], Option(checks.interval, tuple)]
Flag = Annotated[bool, Option(checks.flag, int)]
#: compiled code gets 1 for "random" and 0 for "first"
Ties = Annotated[str, Option(partial(checks.one_of, choices=("random", "first")), lambda ties: int(ties == "random"))]


def check_base(name: str, value: Any) -> None:
    """Require a policy for finitely many arms, which another policy plays."""
    if not is_policy(value):
        raise ValueError(f"{name} must be a policy, and {value!r} is not one")
    if on_ball(value):
        raise ValueError(f"{name} must play finitely many arms, but {type(value).__name__} plays on the unit ball")


def derived(*, init: Literal[False] = False) -> Any:
    """Declare a parameter that is not a keyword: `resolve` sets it."""
    return _DERIVED


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(derived,))
def policy(cls: type[_Policy]) -> type[_Policy]:
    """Make a policy of a class that declares each keyword on one line.

    It becomes a frozen dataclass that checks its keywords; a `__post_init__` of its own may check more. The type of its
    parameters derives from the types of the parameters of its base classes, and so has their verbs.
    """
    made: Any = cls
    plain, annotated = get_type_hints(cls), get_type_hints(cls, include_extras=True)
    options: dict[str, Option] = dict(getattr(made, "_options", {}))
    numbers: dict[str, Any] = dict(getattr(made, "_numbers", {}))
    keywords = {}
    for name in cls.__annotations__:
        if getattr(cls, name, None) is _DERIVED:
            numbers[name] = plain[name]
            delattr(cls, name)
        else:
            options[name] = _option(cls, name, annotated[name])
            numbers[name] = options[name].number
            keywords[name] = plain[name]  # in place of `Positive`, `float` is what stands in the reference
    cls.__annotations__ = keywords
    check_more = getattr(cls, "__post_init__", None)

    def check_keywords(self: Any) -> None:
        _check(self, options)
        if check_more is not None:
            check_more(self)

    made.__post_init__, made._options, made._numbers = check_keywords, options, numbers
    parents = [parameters_type(base) for base in cls.__bases__ if base is not object]
    where = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}._parameters_type", "__slots__": ()}
    made._parameters_type = type(f"{cls.__name__}Parameters", (namedtuple(cls.__name__, numbers), *parents), where)
    if resolve.dispatch(cls) is resolve.dispatch(object):  # not that of a base class
        resolve.register(cls, lambda policy, n_arms, dim, horizon: parameters(policy))
    return dataclass(frozen=True, kw_only=True)(cls)


def _option(cls: type, name: str, annotation: Any) -> Option:
    """The option that annotates a keyword, which may be `Positive` or `Positive | None`."""
    kinds = [annotation, *get_args(annotation)]
    found = [part for kind in kinds for part in getattr(kind, "__metadata__", ()) if isinstance(part, Option)]
    if not found:
        raise TypeError(f"{cls.__name__}.{name}: annotate it with an option such as Positive, not {annotation}")
    check, number = found[0]
    if check is None or type(None) not in get_args(annotation):
        return found[0]
    return Option(lambda name, value: None if value is None else check(name, value), number)


def _check(policy: Any, options: dict[str, Option]) -> None:
    for name, option in options.items():
        kept = option.check(name, getattr(policy, name)) if option.check else None
        if kept is not None:
            object.__setattr__(policy, name, kept)


def parameters(policy: Any, /, **given: Any) -> Any:
    """Return the compiled parameters: the keywords as numbers, except for those given here.

    A keyword that is None and a derived parameter must be given.
    """
    values = dict(given)
    for name, number in policy._numbers.items():
        if name in given:
            values[name] = number(given[name]) if number in (float, int) and np.isscalar(given[name]) else given[name]
        elif name in policy._options and number is not None and getattr(policy, name) is not None:
            values[name] = number(getattr(policy, name))
    return policy._parameters_type(**values)
