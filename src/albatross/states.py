"""States of policies: nested NamedTuples and tuples of arrays, with a leading user axis for a fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from albatross.compiling import code_of
from albatross.inlining import VerbCompiler


def leaves(state: Any, prefix: str = "") -> list[tuple[str, np.ndarray]]:
    """List the arrays of a state with their names, through nested NamedTuples and tuples."""
    if not isinstance(state, tuple):
        return [(prefix, state)]
    names = getattr(state, "_fields", range(len(state)))
    return [
        leaf
        for name, part in zip(names, state, strict=True)
        for leaf in leaves(part, f"{prefix}.{name}" if prefix else str(name))
    ]


def mapped(function: Callable[..., np.ndarray], *states: Any) -> Any:
    """Apply a function to corresponding arrays of the states, through nested NamedTuples and tuples."""
    first = states[0]
    if isinstance(first, np.ndarray):
        return function(*states)
    parts = tuple(mapped(function, *column) for column in zip(*states, strict=True))
    return type(first)(*parts) if hasattr(first, "_fields") else parts


def widened(state: Any, fresh: Any) -> Any:
    """Return a `fresh` state with more arms, with the entries of the known arms copied into it.

    Both may have the same axes in front, such as that of users. New arms are the last in the order of equal scores.
    """

    def copied(new: np.ndarray, old: np.ndarray) -> np.ndarray:
        new[tuple(map(slice, old.shape))] = old
        return new

    wide = mapped(copied, fresh, state)
    for (name, new), (_, old) in zip(leaves(wide), leaves(state), strict=True):
        if is_priority(name):
            known = old.shape[-1]
            new[..., known:] = old.max(axis=-1, keepdims=True) + np.arange(1, 1 + new.shape[-1] - known)
    return wide


def without_axis_of_arms(fresh: Any, wider: Any) -> str | None:
    """Return the name of an array that holds something per arm, but not along an axis of arms; None if there is none.

    `wider` is a fresh state with an arm more.
    """
    for (name, array), (_, more) in zip(leaves(fresh), leaves(wider), strict=True):
        if any(want - have not in (0, 1) for have, want in zip(array.shape, more.shape, strict=True)):
            return name
    return None


def clear_arm(state: Any, fresh: Any, wider: Any, arm: int) -> None:
    """Set all entries of one arm to those of a `fresh` state; `wider` is one with an arm more, to find their axes.

    The state may have axes in front, such as that of users. In the order of equal scores the arm becomes the last.
    """
    for (name, array), (_, new), (_, more) in zip(leaves(state), leaves(fresh), leaves(wider), strict=True):
        axes = [axis for axis, (have, want) in enumerate(zip(new.shape, more.shape, strict=True)) if have != want]
        for axis in axes:
            where = (slice(None),) * axis + (arm,)
            array[(..., arm) + (slice(None),) * (new.ndim - 1 - axis)] = (
                array.max(axis=-1) + 1 if is_priority(name) else new[where]
            )


def is_priority(name: str) -> bool:
    """Return whether the array of this name holds the order that breaks ties."""
    return name.rpartition(".")[2] == "priority"


def state_of(states: Any, user: int) -> Any:
    """Return the state of one user: views into arrays whose first axis is the user."""
    return mapped(lambda array: array[user], states)


@intrinsic
def unowned(typing: Any, view: Any) -> Any:
    """Return a C-ordered view without a reference to its array, which outlives it: counting references costs half.

    The arrays of one user are C-ordered, though those of all users are not: a user's arrays lie side by side.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, value=args[0])
        array.meminfo = context.get_constant_null(types.voidptr)
        return array._getvalue()

    return types.Array(view.dtype, view.ndim, "C")(view), generate


@code_of(state_of, pipeline_class=VerbCompiler)
def _compile_state_of(states: Any, user: Any) -> Any:
    if isinstance(states, types.Array):
        return lambda states, user: unowned(states[user])  # type: ignore[call-arg]
    if hasattr(states, "instance_class"):
        kind = states.instance_class
        if len(states) == 0:
            return lambda states, user: kind()
        return lambda states, user: kind(*(state_of(states[0], user), *state_of(states[1:], user)))
    if len(states) == 0:
        return lambda states, user: ()
    return lambda states, user: (state_of(states[0], user), *state_of(states[1:], user))
