"""Random numbers by decision: those of one decision do not depend on how many were drawn for the others.

A stream would: an agent that draws one number more per decision, because it has one arm more, plays differently ever
after. Philox is a function of key and counter (Salmon, Moraes, Dror and Shaw 2011). For a batch of many users'
events, setting its counter from Python is too slow: there, SFC64 starts anew from the user's key and the number of the
decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.normals import next_normal, next_word, start


class NoiseByDecision:
    """Standard normal numbers for every decision, by a key.

    >>> noise = NoiseByDecision((1, 2))
    >>> long = noise(7, 5)
    >>> np.array_equal(noise(7, 3), long[:3]), np.array_equal(noise(8, 3), long[:3])
    (True, False)
    """

    def __init__(self, key: Sequence[int]) -> None:
        if len(key) != 2:
            raise ValueError("a key has two numbers")
        for number in key:
            checks.whole("key", number, least=0)
        self.key = tuple(key)
        self._bits = np.random.Philox(key=np.array(key, np.uint64))
        self._generator = np.random.Generator(self._bits)
        self._start = self._bits.state

    @classmethod
    def seeded(cls, rng: np.random.Generator) -> NoiseByDecision:
        """With a key drawn from a generator."""
        one, other = rng.integers(0, 2**63, 2).tolist()
        return cls((one, other))

    def __call__(self, decision: int, size: int) -> np.ndarray:
        """The first `size` numbers of a decision. Setting the counter costs 2 us, a new generator 9."""
        self._start["state"]["counter"][3] = decision
        self._bits.state = self._start
        return self._generator.standard_normal(size)


@compiled
def fill_by_user(out, keys, secret, users, decisions):
    """Fill (m, n) standard normal numbers, a function of secret (2,), the user's key and the number of the decision.

    `decisions` counts each user's decisions so far; a user may occur several times. It is as before afterwards.
    """
    state = np.empty(4, np.uint64)
    for event in range(users.size):
        user = users[event]
        start(state, keys[user, 0] ^ secret[0], keys[user, 1] ^ secret[1], np.uint64(decisions[user]))
        for j in range(out.shape[1]):
            out[event, j] = next_normal(state)
        decisions[user] += 1
    for event in range(users.size):
        decisions[users[event]] -= 1


@compiled
def fill_orders(out, keys, place):
    """Fill (n, K) random orders of K arms, a function of the users' keys (n, 2) and of `place`, a number below 2^32."""
    state = np.empty(4, np.uint64)
    for user in range(out.shape[0]):
        start(state, keys[user, 0], keys[user, 1], ~np.uint64(place))  # no number of a decision is as large
        for arm in range(out.shape[1]):  # Fisher and Yates, from the inside out
            other = np.int64(next_word(state) % np.uint64(arm + 1))
            out[user, arm] = out[user, other]
            out[user, other] = arm


@compiled
def shuffle_arms(order, users, keys, place, first):
    """Replace arms 0 to `first` - 1 in these users' rows of `order` (N, K) by others of them, in random orders."""
    orders = np.empty((users.size, first), np.int64)
    fill_orders(orders, keys, place)
    for i in range(users.size):
        for j in range(order.shape[1]):
            arm = order[users[i], j]
            if arm < first:
                order[users[i], j] = orders[i, arm]
