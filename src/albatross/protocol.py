"""The verbs that every policy and every environment speaks, and how one text of them runs stepped and compiled.

A policy's parameters are a NamedTuple of numbers, its state a NamedTuple of arrays. A verb is registered on the
type of the parameters; called from Python it looks the type up, called inside compiled code Numba does:

>>> from typing import NamedTuple
>>> class Always(NamedTuple):
...     arm: int
>>> @hold.register
... def hold_always(policy: Always, state, choice):
...     return 7
>>> hold(Always(arm=2), None, None)
7
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import shutil
from collections.abc import Callable
from functools import singledispatch, wraps
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_type_hints

import numba
import numpy as np
from numba.extending import overload

from albatross import checks
from albatross.cache import private_folder

# --------------------------------------------------------------------------------------------- compiling

_PACKAGE = str(Path(__file__).parent)
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
_NEVER_COMPILED = {"experiments", "report", "cli"}


def _cache_folder() -> str:
    """Where Numba keeps machine code for exactly these sources; empty if there is no safe place for it.

    Numba only watches the file of the outermost function: after an edit to a policy it would go on running the old
    one. So the folder's name is a hash of all sources, and the folders of earlier hashes are deleted.
    """
    package = Path(_PACKAGE)
    sources = sorted(p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in _NEVER_COMPILED)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    installation = private_folder(hashlib.sha256(_PACKAGE.encode()).hexdigest()[:16])
    if installation is None:
        return ""
    if not (installation / digest).exists():
        for stale in installation.glob("*"):
            shutil.rmtree(stale, ignore_errors=True)
    return str(private_folder(installation.name, digest) or "")


_CACHE_FOLDER = _cache_folder()
_PROCESS = secrets.token_hex(4)


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile one of Albatross's own functions, cached on disk in a folder keyed by the sources."""
    config: Any = numba.config
    users_folder, config.CACHE_DIR = config.CACHE_DIR, _CACHE_FOLDER
    try:
        dispatcher = numba.njit(cache=bool(_CACHE_FOLDER), **_OPTIONS, **options)(function)
    finally:
        config.CACHE_DIR = users_folder
    _name_files_apart(dispatcher)
    return dispatcher


def _name_files_apart(dispatcher: Any) -> None:
    """Let no two processes write machine code to the same file.

    Numba numbers the files of a function by what its index knows. Of two processes that compile for different types at
    the same time both may take the same number, and the index then leads to the other one's code.
    """
    files = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if files is not None:
        numbered = files._data_name
        files._data_name = lambda number: f"{_PROCESS}-{os.getpid()}-{numbered(number)}"  # a fork has the same token


def is_ours(parameters: Any) -> bool:
    """Whether a policy and all that it holds are defined in this package."""
    parts = parameters if isinstance(parameters, tuple) else ()
    ours = not hasattr(parameters, "_fields") or type(parameters).__module__.startswith("albatross.")
    return ours and all(is_ours(part) for part in parts)


class entry:
    """A compiled function that Python enters with a policy as its first argument: a loop over rounds, or one step."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._cached = compiled(function)
        self._fresh = numba.njit(**_OPTIONS)(function)

    def __call__(self, *args: Any) -> Any:
        # Somebody else's policy is not cached on disk, because the cache could not see its file change.
        return (self._cached if is_ours(args[0]) else self._fresh)(*args)

    def prepared(self, *examples: Any) -> Any:
        """The function for arguments of exactly these types, which are not looked at again: 0.8 us a call, not 5."""
        function = self._cached if is_ours(examples[0]) else self._fresh
        if not hasattr(function, "compile"):  # Numba is switched off
            return function
        return function.compile(tuple(numba.typeof(example) for example in examples))


class generic:
    """A verb: one name, one function per type of the first argument, the same from Python and in compiled code."""

    def __init__(self, name: str, fallback: Callable[..., Any] | None = None) -> None:
        self.__name__ = name
        self._functions: dict[type, Any] = {}
        self._fallback = compiled(fallback) if fallback else None
        # Inlined, a verb costs no counting of references to the arrays of a state.
        options: Any = {**_OPTIONS, "forceinline": True}
        overload(self, jit_options=options, strict=False)(self._implement)

    def __call__(self, subject: Any, *args: Any) -> Any:
        return self._find(type(subject))(subject, *args)

    def register(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register `function` for the type that annotates its first argument."""
        first = function.__code__.co_varnames[0]
        subject = get_type_hints(function).get(first)
        if not isinstance(subject, type):
            raise TypeError(f"{function.__name__}: annotate {first!r} with the type that it is for")
        ours = function.__code__.co_filename.startswith(_PACKAGE)
        self._functions[subject] = compiled(function) if ours else numba.njit(**_OPTIONS)(function)
        return function

    def _find(self, subject: type) -> Any:
        """The function for the type, or for the nearest type that it derives from."""
        for kind in subject.__mro__:
            if kind in self._functions:
                return self._functions[kind]
        if self._fallback is None:
            raise TypeError(f"{self.__name__} is not defined for {subject.__name__}: register it")
        return self._fallback

    def has(self, subject: type) -> bool:
        """Whether a function is registered for the type, rather than the fallback."""
        return any(kind in self._functions for kind in subject.__mro__)

    def _implement(self, subject: Any, *args: Any) -> Any:
        return self._find(subject.instance_class).py_func


class reentrant:
    """A compiled helper of policies that hold policies: it may meet itself in one of those, with other types.

    Numba would take that for a recursion that it cannot resolve. This compiles anew wherever it is called from.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function = function
        overload(self, jit_options=_OPTIONS, strict=False)(lambda *args: function)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


# ------------------------------------------------------------------------------------------- what is passed


class Offer(NamedTuple):
    """What a policy may choose from in one round."""

    contexts: np.ndarray  # (K, d) one row an arm
    eligible: np.ndarray  # (K,) bool
    pending: np.ndarray  # (K,) int64, decisions for each arm whose reward has not come yet
    retry: int  # an arm that may get another first play although one is pending, -1 if none: see arm_to_retry


class Choice(NamedTuple):
    """What a policy chose, and all that `update` will need to know of it however late the reward comes."""

    arm: int
    action: np.ndarray  # (d,) the arm's context, or the vector that was chosen
    score: float  # what the policy maximised
    width: float  # the part of the score that is exploration
    propensity: float  # probability of this choice, NaN where it is not known
    tag: np.ndarray  # (tag_size,) the policy's own note to its later self; NaN where it did not choose this itself


# ----------------------------------------------------------------------------------------- verbs of a policy


@singledispatch
def resolve(policy: Any, n_arms: int, dim: int, horizon: int | None) -> Any:
    """Turn what a user wrote into what is compiled: a NamedTuple of numbers, settled once.

    A NamedTuple of numbers is itself such a thing, so a policy in a user's own file needs no second class.
    """
    check_policy(policy)
    return policy


def is_policy(value: Any) -> bool:
    """Whether it is what `resolve` takes: a policy of this library, or parameters of somebody's own."""
    known = resolve.dispatch(type(value)) is not resolve.dispatch(object)
    return known or (hasattr(value, "_fields") and not isinstance(value, type))


def check_policy(value: Any) -> None:
    """Refuse what is no policy, and say what to give instead."""
    if is_policy(value):
        return
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is not a policy but a class: add parentheses, {value.__name__}()")
    if isinstance(value, str):
        raise TypeError(f"{value!r} is not a policy but a text: give an object, such as albatross.policies.LinTS()")
    raise TypeError(f"{value!r} is not a policy: take one from albatross.policies or register your own")


@singledispatch
def init(policy: Any, n_arms: int, dim: int, rng: np.random.Generator) -> Any:
    """The state before the first round: a NamedTuple of arrays."""
    raise TypeError(f"init is not defined for {type(policy).__name__}: register it")


@singledispatch
def on_ball(policy: Any) -> bool:
    """Whether the policy's arms are the vectors of the unit ball."""
    return False


@singledispatch
def noise_size(policy: Any, n_arms: int, dim: int) -> int:
    """How many standard normal numbers `select` wants each round."""
    return 0


@singledispatch
def tag_size(policy: Any) -> int:
    """How many numbers `select` leaves in `Choice.tag`."""
    return 0


@singledispatch
def check_state(policy: Any, state: Any) -> None:
    """Refuse a state, read from a file, whose indices lead outside of its arrays: raise a ValueError.

    Shapes and types are as `init` makes them, with one more axis in front for the users of a fleet. A policy whose
    `select` or `update` uses numbers of its state as indices must register this: compiled code does not check them.
    """


@singledispatch
def check_tags(policy: Any, state: Any, tags: np.ndarray) -> None:
    """Refuse tags (m, tag_size) whose indices lead outside of the arrays: raise a ValueError. NaN is no index."""


def _with_warnings(verb: Any) -> Any:
    """The verb with `warnings` in every answer, whoever registered the function behind it."""

    @wraps(verb)
    def wrapped(policy: Any, state: Any) -> dict[str, Any]:
        found = verb(policy, state)
        return {**found, "warnings": found.get("warnings", [])}

    return wrapped


@_with_warnings
@singledispatch
def diagnostics(policy: Any, state: Any) -> dict[str, Any]:
    """What a person would want to know of the state, by name; `warnings` is a list of sentences, often empty."""
    return {name: np.copy(array) for name, array in state._asdict().items() if isinstance(array, np.ndarray)}


_RETRY_EVERY = 10  # decisions, on average

score = generic("score")  # score(policy, state, offer, noise) -> scores (K,), widths (K,); +inf asks for a first play


@compiled
def uniform_from_normal(z):
    """Phi(z): a standard normal number as a uniform one in (0, 1)."""
    return min(0.5 * math.erfc(-z / math.sqrt(2.0)), 1.0 - 2.0**-53)


@compiled
def pick_uniformly(eligible, z):
    """A uniformly random eligible arm, and how likely it was, from one standard normal number."""
    n_eligible = 0
    for arm in range(eligible.size):
        n_eligible += eligible[arm]
    rank = int(uniform_from_normal(z) * n_eligible)
    for arm in range(eligible.size):
        if eligible[arm]:
            if rank == 0:
                break
            rank -= 1
    return arm, 1.0 / n_eligible


@compiled
def arm_to_retry(decision, n_arms):
    """The arm that may be asked for a first play again: any of them in about every tenth decision, else -1.

    A reward may be lost. If a first play were waited for without end, its arm would never be played again. Which
    decisions and arms these are is a hash of the decision's number: nothing that recurs can fall in step with it.
    """
    mixed = (decision % 2**32 * 1_664_525 + 1_013_904_223) % 2**32
    mixed = (mixed ^ (mixed >> 16)) * 69_069 % 2**32
    mixed ^= mixed >> 15
    return (mixed // _RETRY_EVERY) % n_arms if mixed % _RETRY_EVERY == 0 else -1


@compiled
def pick_best(scores, offer, priority):
    """The eligible arm of highest score; ties go to the lowest `priority`.

    A score of +inf asks for a first play. The lowest such arm without a pending decision is played, so that a
    burst of decisions before any reward does not repeat one arm; with nothing else to choose from, the arm with
    the fewest pending decisions. An arm with a score of NaN is returned at once, for `is_sound` to refuse.
    """
    best, waiting, again = -1, -1, -1
    for arm in range(scores.size):
        if not offer.eligible[arm]:
            continue
        if scores[arm] == np.inf:
            if offer.pending[arm] == 0:
                return arm
            if arm == offer.retry:
                again = arm
            if waiting < 0 or offer.pending[arm] < offer.pending[waiting]:
                waiting = arm
        elif best < 0 or scores[arm] > scores[best] or (scores[arm] == scores[best] and priority[arm] < priority[best]):
            best = arm
        elif scores[arm] != scores[arm]:
            return arm
    if best < 0:
        return waiting
    return again if again >= 0 else best


def _select_by_score(policy, state, offer, noise):
    scores, widths = score(policy, state, offer, noise)
    arm, best, width = -1, np.nan, np.nan  # which is_sound refuses
    if scores.size == offer.eligible.size == widths.size:
        arm = pick_best(scores, offer, state.priority)
        best, width = scores[arm], widths[arm]
    propensity = 1.0 if noise.size == 0 else np.nan
    return Choice(arm, offer.contexts[arm], best, width, propensity, np.empty(0))


def _hold_once(policy, state, choice):
    return 1


select = generic("select", _select_by_score)  # select(policy, state, offer, noise) -> Choice; writes nothing
update = generic("update")  # update(policy, state, choice, reward, n): learns from n plays that brought `reward` in sum
hold = generic("hold", _hold_once)  # hold(policy, state, choice) -> rounds for which the choice stays as it is


@compiled
def is_sound(choice, offer):
    """Whether the choice is one of the eligible arms, with a score that is a number and a probability that is one."""
    known = choice.propensity == choice.propensity
    return (
        0 <= choice.arm < offer.eligible.size
        and offer.eligible[choice.arm]
        and choice.score == choice.score
        and not (known and not 0.0 < choice.propensity <= 1.0 + 1e-9)
    )


def refuse_choice(policy: Any, state: Any, offer: Offer, noise: np.ndarray) -> NoReturn:
    """Raise the error for a choice that is not sound, which names the policy and what it did."""
    name, n_arms = type(policy).__name__, offer.eligible.size
    if select.has(type(policy)):
        choice = select(policy, state, offer, noise)
        eligible = np.flatnonzero(offer.eligible).tolist()
        raise ValueError(
            f"{name} chose arm {choice.arm} with score {choice.score}, propensity {choice.propensity}, "
            f"{choice.action.size} features and a tag of {choice.tag.size}: needed are one of the eligible arms "
            f"{checks.shown(eligible)}, a score that is a number, a probability or NaN, {offer.contexts.shape[1]} "
            f"features and a tag of at most {tag_size(policy)}"
        )
    scores, widths = score(policy, state, offer, noise)
    if scores.size != n_arms or widths.size != n_arms:
        raise ValueError(f"{name} gave {scores.size} scores and {widths.size} widths for {n_arms} arms")
    arm = int(np.flatnonzero(np.isnan(scores) & offer.eligible)[0])
    raise ValueError(f"{name} gave arm {arm} the score nan: scores must be numbers, or inf to ask for a first play")


def tie_priority(n_arms: int, ties: str | int, rng: np.random.Generator) -> np.ndarray:
    """The order in which arms of equal score are preferred, drawn once: `state.priority` of an index policy."""
    return rng.permutation(n_arms) if ties else np.arange(n_arms)


# ------------------------------------------------------------------------------------ verbs of an environment


class Rounds(NamedTuple):
    """A chunk of n rounds that every policy plays."""

    contexts: np.ndarray  # (n, K, d)
    eligible: np.ndarray  # (n, K) bool
    means: np.ndarray  # (n, K)
    noise: np.ndarray  # (n, K) reward = mean + noise


@singledispatch
def begin(env: Any, rng: np.random.Generator) -> Any:
    """Draw one trial's problem (its parameter, its biases): an instance that `draw` takes rounds from."""
    raise TypeError(f"{env!r} is not an environment: take one from albatross.environments or register your own")


@singledispatch
def draw(instance: Any, chunk: Rounds, rng: np.random.Generator) -> None:
    """Fill `chunk` with the instance's next rounds."""
    raise TypeError(f"draw is not defined for {type(instance).__name__}: register it")


@singledispatch
def describe(instance: Any) -> dict[str, Any]:
    """The instance's hidden truth, for results: theta, biases."""
    return {}
