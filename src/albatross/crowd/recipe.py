"""How the states of a policy are made, and changed when arms come and go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from albatross.protocol import Policy, fold_arm, init, noise_size, open_arm, resolve
from albatross.states import clear_arm, is_priority, leaves, mapped, state_of, widened, without_axis_of_arms


class Recipe:
    """A policy with the sizes that do not change: the number of features, and the horizon if there is one.

    A state has one entry for every slot, which an arm takes when it is added. In `with_arm`, states have the user as
    first axis of every array.
    """

    def __init__(self, policy: Policy, dim: int, horizon: int | None) -> None:
        self.policy, self.dim, self.horizon = policy, dim, horizon
        self._parameters: dict[int, Any] = {}  # by the number of slots
        self._noise_sizes: dict[int, int] = {}
        self._fresh: dict[int, Any] = {}

    def parameters(self, n_slots: int) -> Any:
        """Return the policy's parameters for so many slots."""
        if n_slots not in self._parameters:
            self._parameters[n_slots] = resolve(self.policy, n_slots, self.dim, self.horizon)
        return self._parameters[n_slots]

    def noise_size(self, n_slots: int) -> int:
        """Return the number of standard normal numbers per decision."""
        if n_slots not in self._noise_sizes:
            self._noise_sizes[n_slots] = noise_size(self.parameters(n_slots), n_slots, self.dim)
        return self._noise_sizes[n_slots]

    def fresh(self, n_slots: int, rng: np.random.Generator | None = None) -> Any:
        """Return a state without data. Without `rng` it is one and the same for all callers, not to be changed."""
        if rng is not None:
            return init(self.parameters(n_slots), n_slots, self.dim, rng)
        if n_slots not in self._fresh:
            self._fresh[n_slots] = self.fresh(n_slots, np.random.default_rng(0))
        return self._fresh[n_slots]

    def with_arm(self, states: Any, slot: int, *, had: int, n_slots: int, users: Iterable[int]) -> Any:
        """Return a copy of the states in which these users have a new arm in `slot`.

        The states had so many slots and get `n_slots`. What the last arm of the slot taught about theta stays; its bias
        does not pass to the new one.
        """
        parameters, fresh, wider = self.parameters(n_slots), self.fresh(n_slots), self.fresh(n_slots + 1)
        if name := without_axis_of_arms(fresh, wider):
            needs = f"the array {name!r} of its state needs an axis with one entry per arm"
            raise ValueError(f"{type(self.policy).__name__} can take no new arms: {needs}")
        new: Iterable[int] = [slot]
        if n_slots > had:
            states, new = self.widened(states, n_slots), range(had, n_slots)  # slots that are still empty, too
        else:
            states = mapped(np.copy, states)
            if is_registered(fold_arm, parameters):
                for user in users:
                    fold_arm(parameters, state_of(states, user), slot)
            clear_arm(states, fresh, wider, slot)
        if is_registered(open_arm, parameters):
            for user in users:
                for arm in new:
                    open_arm(parameters, state_of(states, user), arm)
        return states

    def widened(self, states: Any, n_slots: int) -> Any:
        """Return a copy of the states with more slots."""
        n_users = len(leaves(states)[0][1])
        return widened(states, mapped(lambda array: np.repeat(array[None], n_users, axis=0), self.fresh(n_slots)))

    def random_orders(self, n_slots: int) -> list[str] | None:
        """Return the names of arrays that hold a random order of the arms; None if `init` draws anything else.

        Found by repeating the draws: the order in which `init` fills these arrays must be that of the arrays.
        """
        arms = np.arange(n_slots)
        seed = next(
            s for s in range(1_000) if n_slots == 1 or (np.random.default_rng(s).permutation(arms) != arms).any()
        )
        rng, again = np.random.default_rng(seed), np.random.default_rng(seed)
        state, orders = self.fresh(n_slots, rng), []
        for name, array in leaves(state):
            before = again.bit_generator.state
            if is_priority(name) and np.array_equal(array, again.permutation(n_slots)):
                orders.append(name)
            else:
                again.bit_generator.state = before
        other = dict(leaves(self.fresh(n_slots, np.random.default_rng(seed + 1))))
        fixed = all(
            np.array_equal(array, other[name], equal_nan=True) for name, array in leaves(state) if name not in orders
        )
        return orders if fixed and rng.bit_generator.state == again.bit_generator.state else None


def is_registered(verb: Any, parameters: Any) -> bool:
    """Return whether a verb is registered for the policy, apart from the default."""
    return verb.dispatch(type(parameters)) is not verb.dispatch(object)
