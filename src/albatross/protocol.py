"""The verbs that every policy and every environment implements, for single steps and for compiled loops.

A policy's parameters are a NamedTuple of numbers, its state is a NamedTuple of arrays. A verb is registered on the type
of the parameters. Python calls look up this type at run time, compiled calls when Numba compiles them:

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

from functools import singledispatch, wraps
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic, python_verb
from albatross.picking import pick_best
from albatross.states import leaves

# ------------------------------------------------------------------------------------------- what is passed


class Offer(NamedTuple):
    """The choices of one round, as a policy sees them: rows of features, and the arm that each row belongs to.

    Mostly there is one row per arm, in the order of the arms. But an arm may have several rows, such as the articles of
    one outlet, or none.
    """

    contexts: np.ndarray  # (R, d)
    eligible: np.ndarray  # (R,) bool
    pending: np.ndarray  # (K,) int64, decisions for each arm whose reward has not come yet
    retry: int  # a row that may get another first play although one is pending, -1 if none: see row_to_retry
    arms: np.ndarray  # (R,) int64, the arm of each row


class Choice(NamedTuple):
    """A policy's choice, with everything that `update` needs, however late the reward arrives."""

    arm: int  # as `select` returns it, the row of the offer; as `update` gets it, the arm that the row belongs to
    action: np.ndarray  # (d,) the arm's context, or the vector that was chosen; empty where `track` left out the axes
    score: float  # what the policy maximised
    width: float  # the part of the score that is exploration
    propensity: float  # probability of this choice, NaN where it is not known
    tag: np.ndarray  # (tag_size,) the policy's own note to its later self; NaN where it did not choose this itself


class Environment(Protocol):
    """A problem that `simulate` plays: it states its size, and the verbs `begin` and `draw` are registered for it."""

    @property
    def n_arms(self) -> int:
        """Number of arms; 1 on the unit ball."""

    @property
    def dim(self) -> int:
        """Number of features."""


class Declared(Protocol):
    """A policy as a user writes it: a dataclass for which `resolve` is registered, as `options.policy` does."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Parameters(Protocol):
    """A policy as it is compiled: a NamedTuple of numbers, for which the verbs are registered."""

    @property
    def _fields(self) -> tuple[str, ...]: ...


Policy = Declared | Parameters

# ----------------------------------------------------------------------------------------- verbs of a policy


@singledispatch
def resolve(policy: Any, n_arms: int, dim: int, horizon: int | None) -> Any:
    """Turn a policy as a user writes it into compiled parameters: a NamedTuple of numbers.

    A NamedTuple of numbers stands for itself, so a policy in a user's own file needs no second class.
    """
    check_policy(policy)
    return policy


def is_policy(value: Any) -> bool:
    """Return whether `resolve` accepts it: a policy of this library, or parameters of a user's own policy."""
    known = resolve.dispatch(type(value)) is not resolve.dispatch(object)
    return known or (hasattr(value, "_fields") and not isinstance(value, type))


def check_policy(value: Any) -> None:
    """Raise a TypeError that says what to give instead, unless this is a policy."""
    if is_policy(value):
        return
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is not a policy but a class: add parentheses, {value.__name__}()")
    if isinstance(value, str):
        raise TypeError(f"{value!r} is not a policy but a text: give an object, such as albatross.policies.LinTS()")
    raise TypeError(f"{value!r} is not a policy: take one from albatross.policies or register your own")


def _with_checks(verb: Any) -> Any:
    """Check the result of `init`, so that one sentence, not the compiler, says what a user's policy lacks."""

    @wraps(verb)
    def wrapped(policy: Any, n_arms: int, dim: int, rng: np.random.Generator) -> Any:
        state, name = verb(policy, n_arms, dim, rng), type(policy).__name__
        if not hasattr(state, "_fields"):
            raise TypeError(f"init of {name} must return a NamedTuple of arrays, not {checks.shown(state)}")
        for field, array in leaves(state):
            if not isinstance(array, np.ndarray):
                wanted = "an array, of length one for a single number"
                raise TypeError(f"the state of {name} holds {field}={checks.shown(array)}: it must be {wanted}")
        if not update.has(type(policy)):
            raise TypeError(f"update is not defined for {name}: register it")
        if not (select.has(type(policy)) or score.has(type(policy))):
            raise TypeError(f"neither score nor select is defined for {name}: register one")
        if not select.has(type(policy)) and getattr(getattr(state, "priority", None), "shape", None) != (n_arms,):
            wanted = f"priority=tie_priority({n_arms}, 1, rng)"
            raise TypeError(f"{name} has a score, so its state needs the order of equal arms: {wanted}, one per arm")
        return state

    return wrapped


@_with_checks
@python_verb
def init(policy: Any, n_arms: int, dim: int, rng: np.random.Generator) -> Any:
    """Return the state before the first round: a NamedTuple of arrays."""
    raise TypeError(f"init is not defined for {type(policy).__name__}: register it")


@singledispatch
def on_ball(policy: Any) -> bool:
    """Return whether the policy's arms are the vectors of the unit ball."""
    return False


@python_verb
def track(policy: Any, state: Any, theta: np.ndarray) -> tuple[Any, Any]:
    """Prepare a simulation on the unit ball: return the state to play with, and theta* as the simulation keeps it.

    Called before the first round. theta* is kept beside the state: a policy that registers `track` is trusted not to
    put it into the state. A policy that stores its actions in a basis of its own can leave the axes out of its state
    and have theta* follow its basis instead: it registers `track`, `mean_reward` and `update_tracking`.
    """
    return state, theta[None, :]


@python_verb
def noise_size(policy: Any, n_arms: int, dim: int) -> int:
    """Return the number of standard normal numbers that `select` uses per round."""
    return 0


@python_verb
def tag_size(policy: Any) -> int:
    """Return the number of values that `select` stores in `Choice.tag`."""
    return 0


@python_verb
def fold_arm(policy: Any, state: Any, arm: int) -> None:
    """Take the bias of a retired arm out of sums that all arms share, in place, before its own entries are cleared.

    What its plays taught about theta stays. By default there is nothing to do.
    """


@python_verb
def open_arm(policy: Any, state: Any, arm: int) -> None:
    """Adjust the entries of a new arm, in place, where those of an arm without plays change as the policy learns.

    An arm that is added and never played must change nothing: the policy plays as if it had been there from the start,
    never eligible. By default its entries are as `init` makes them.
    """


@python_verb
def check_change_of_arms(policy: Any) -> None:
    """Refuse to add, retire or reset an arm, if the policy plans for a fixed set of arms: raise a ValueError.

    By default, arms may come and go.
    """


@python_verb
def check_state(policy: Any, state: Any) -> None:
    """Refuse a state, read from a file, whose indices lead outside of its arrays: raise a ValueError.

    Shapes and types are as `init` makes them, with one more axis in front for the users of a fleet. A policy whose
    `select` or `update` uses numbers of its state as indices must register this: compiled code does not check them.
    """


@python_verb
def check_tags(policy: Any, state: Any, tags: np.ndarray) -> None:
    """Refuse tags (m, tag_size) whose indices lead outside of the arrays: raise a ValueError. NaN is not an index."""


def _with_warnings(verb: Any) -> Any:
    """Add `warnings` to every result of the verb."""

    @wraps(verb)
    def wrapped(policy: Any, state: Any) -> dict[str, Any]:
        found = verb(policy, state)
        return {**found, "warnings": found.get("warnings", [])}

    return wrapped


@_with_warnings
@python_verb
def diagnostics(policy: Any, state: Any) -> dict[str, Any]:
    """Describe the state for a person, by name; `warnings` is a list of sentences, often empty."""
    return {name: np.copy(array) for name, array in state._asdict().items() if isinstance(array, np.ndarray)}


score = generic("score")  # score(policy, state, offer, noise) -> scores (R,), widths (R,); +inf asks for a first play


def _select_by_score(policy, state, offer, noise):
    scores, widths = score(policy, state, offer, noise)
    row, best, width = -1, np.nan, np.nan  # which is_sound refuses
    if scores.size == offer.eligible.size == widths.size:
        row = pick_best(scores, offer, state.priority)
        best, width = scores[row], widths[row]
    propensity = 1.0 if noise.size == 0 else np.nan
    return Choice(row, offer.contexts[row], best, width, propensity, np.empty(0))


def _hold_once(policy, state, choice):
    return 1


def _theta_times_action(policy, state, choice, tracked):
    return (tracked @ choice.action)[0]


def _update_alone(policy, state, choice, reward, n, tracked):
    update(policy, state, choice, reward, n)


select = generic("select", _select_by_score)  # select(policy, state, offer, noise) -> Choice; writes nothing
update = generic("update")  # update(policy, state, choice, reward, n): learns from n plays that brought `reward` in sum
hold = generic("hold", _hold_once)  # hold(policy, state, choice) -> rounds for which the choice stays as it is
# mean_reward(policy, state, choice, tracked) -> <theta*, action>, by what `track` returned
mean_reward = generic("mean_reward", _theta_times_action)
# update_tracking(policy, state, choice, reward, n, tracked): `update`, with theta* turned into the policy's new basis
update_tracking = generic("update_tracking", _update_alone)
reset = generic("reset")  # reset(policy, state): back to before the first round, in place, for policies that can


@compiled
def all_finite(array):
    """Return whether all numbers are finite, in one pass; NumPy needs three passes and two temporary arrays."""
    wrong = 0
    for value in array.flat:
        wrong += not abs(value) <= checks.LARGEST  # counting vectorises, unlike a sum of floats
    return wrong == 0


@compiled
def is_sound(choice, offer):
    """Return whether a policy may choose this.

    It must be an eligible row with a finite action, its score a number, and its propensity a probability or unknown.
    """
    known = choice.propensity == choice.propensity
    return (
        0 <= choice.arm < offer.eligible.size
        and offer.eligible[choice.arm]
        and choice.action.size == offer.contexts.shape[1]
        and choice.score == choice.score
        and not (known and not 0.0 < choice.propensity <= 1.0 + 1e-9)
        and all_finite(choice.action)
    )


def refuse_choice(policy: Any, state: Any, offer: Offer, noise: np.ndarray, choice: Choice | None = None) -> NoReturn:
    """Raise the error for an invalid choice; it names the policy and what it did, unless the contexts are to blame.

    Without the choice, `select` is compiled to make it again.
    """
    checks.finite_array("contexts", offer.contexts, offer.contexts.shape)
    name, n_arms = type(policy).__name__, offer.eligible.size
    if select.has(type(policy)):
        choice = choice or select(policy, state, offer, noise)
        eligible = np.flatnonzero(offer.eligible).tolist()
        flaw = "" if all_finite(choice.action) else ", not all finite,"
        raise ValueError(
            f"{name} chose arm {choice.arm} with score {choice.score}, propensity {choice.propensity}, "
            f"{choice.action.size} features{flaw} and a tag of {choice.tag.size}: needed are one of the eligible arms "
            f"{checks.shown(eligible)}, a score that is a number, a probability or NaN, {offer.contexts.shape[1]} "
            f"finite features and a tag of at most {tag_size(policy)}"
        )
    scores, widths = score(policy, state, offer, noise)
    if scores.size != n_arms or widths.size != n_arms:
        raise ValueError(f"{name} gave {scores.size} scores and {widths.size} widths for {n_arms} arms")
    arm = int(np.flatnonzero(np.isnan(scores) & offer.eligible)[0])
    raise ValueError(f"{name} gave arm {arm} the score nan: scores must be numbers, or inf to ask for a first play")


# ------------------------------------------------------------------------------------ verbs of an environment


class Rounds(NamedTuple):
    """A chunk of n rounds, which every policy plays."""

    contexts: np.ndarray  # (n, K, d)
    eligible: np.ndarray  # (n, K) bool
    means: np.ndarray  # (n, K)
    noise: np.ndarray  # (n, K) reward = mean + noise


@singledispatch
def begin(env: Any, rng: np.random.Generator) -> Any:
    """Draw the problem of one trial (parameter, biases): an instance from which `draw` takes rounds."""
    raise TypeError(f"{env!r} is not an environment: take one from albatross.environments or register your own")


@singledispatch
def draw(instance: Any, chunk: Rounds, rng: np.random.Generator) -> None:
    """Fill `chunk` with the instance's next rounds."""
    raise TypeError(f"draw is not defined for {type(instance).__name__}: register it")


@singledispatch
def describe(instance: Any) -> dict[str, Any]:
    """Return the true parameters of the instance, for results and oracles: theta, biases."""
    return {}
