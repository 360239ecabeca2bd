"""The rows of all users of a fleet: admitted, released, widened when arms are added, and one by one as bytes.

Named users are admitted when they first come. A newcomer is a copy of one empty row, and its order of equal arms comes
from its name and the fleet's secret: a user's state does not depend on when, or beside whom, it was admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from albatross import checks, saving
from albatross.crowd.arms import Name, NumberedArms, PassingRows
from albatross.crowd.named_arms import NamedArms
from albatross.crowd.recipe import Recipe
from albatross.crowd.rows import RowBytes, Rows
from albatross.crowd.users import NamedUsers, NumberedUsers, leaving, user_keys
from albatross.noise import shuffle_arms
from albatross.states import leaves, mapped


class Crowd:
    """Users, arms, and what is kept of every user; `rows` may have more rows than there are users.

    Without a secret, states are drawn from a stream, one user after the other (`add`).
    """

    def __init__(self, recipe: Recipe, users: NumberedUsers, arms: NumberedArms, secret: bytes | None) -> None:
        self.recipe, self.users, self.arms, self.secret = recipe, users, arms, secret
        self.parameters = recipe.parameters(arms.first)
        self._bytes = RowBytes(recipe, arms)
        self.layout = self._bytes.layout(arms.first)
        self._model = self.layout.empty()  # the row of a newcomer, except for random orders of the arms
        self._orders = recipe.random_orders(arms.first) if secret else None
        for name, array in leaves(self.layout.views(self._model).states):
            if self._orders and name in self._orders:
                array[:] = np.arange(arms.first)
        self._hold(np.empty((0, self.layout.n_bytes), np.uint8), np.empty((0, 2 if secret else 0), np.uint64))

    def _hold(self, block: np.ndarray, keys: np.ndarray) -> None:
        if len(block) < 2:  # a single row would be of another type for compiled code: it passes for C-ordered
            block, keys = (np.pad(array, ((0, 2 - len(array)), (0, 0))) for array in (block, keys))
        rows = self.layout.views(block)
        ordered = self._random_orders(rows)
        # keys are those of the users' random numbers
        self.block, self.rows, self.keys, self._ordered = block, rows, keys, ordered

    def _random_orders(self, rows: Rows) -> list[np.ndarray]:
        """Return the arrays of rows that hold random orders of the arms: to look them up costs more than a newcomer."""
        found = dict(leaves(rows.states))
        return [found[name] for name in self._orders or ()]

    @property
    def n_slots(self) -> int:
        """Number of slots for arms."""
        return self.rows.pending.shape[1]

    @property
    def pending(self) -> np.ndarray:
        """(N, K) decisions of each user and arm that await rewards."""
        return self.rows.pending

    @property
    def decisions(self) -> np.ndarray:
        """(N,) decisions of each user."""
        return self.rows.decisions

    @property
    def nbytes(self) -> int:
        """Memory of all rows, in bytes."""
        return self.block.nbytes + self.keys.nbytes

    # ---------------------------------------------------------------------------------------------- coming and going

    def add(self, n_users: int, rng: np.random.Generator) -> None:
        """Add the next numbered users, with states drawn from a stream."""
        known, before = len(self.users), rng.bit_generator.state
        size = (known + 2 * n_users) * self.layout.n_bytes  # newcomers exist twice for a moment
        checks.fits_in_memory(f"{known + n_users} users", size, "take fewer")
        try:
            new = np.zeros((n_users, self.layout.n_bytes), np.uint8)
            arrays = leaves(self.layout.views(new).states)
            for user in range(n_users):
                for (_, array), (_, drawn) in zip(arrays, leaves(self.recipe.fresh(self.n_slots, rng)), strict=True):
                    array[user] = drawn
            self._hold(np.concatenate([self.block[:known], new]), np.empty((known + n_users, 0), np.uint64))
        except BaseException:  # too little memory, or a Ctrl-C
            rng.bit_generator.state = before
            raise
        self.users = NumberedUsers(known + n_users)

    def admit(self, newcomers: Mapping[Name, int]) -> None:
        """Give newcomers, found by `users.listed`, their rows."""
        if newcomers:
            slots = np.fromiter(newcomers.values(), np.int64, len(newcomers))
            self.make_room(1 + max(newcomers.values()))
            self._fill(slots, user_keys(newcomers, self.secret or b""))
            self.users.admit(newcomers)

    def release(self, users: Any, *, pending: bool) -> list[bytes]:
        """Remove users and return their rows; with `pending` also users with pending decisions."""
        slots, names = leaving(self.users, users, self.pending, with_pending=pending)
        found = [self._bytes.write(self.block[slot]) for slot in slots.tolist()]
        self.users.release(names)
        return found

    def make_room(self, n_rows: int) -> None:
        """Make sure that there are so many rows."""
        have = len(self.keys)
        if n_rows <= have:
            return
        more = max(n_rows - have, have, 8)
        size = (have + more) * (self.layout.n_bytes + 8 * self.keys.shape[1])
        checks.fits_in_memory(f"{have + more} users", size, "release some")
        block, keys = (
            np.concatenate([array, np.zeros((more, array.shape[1]), array.dtype)]) for array in (self.block, self.keys)
        )
        self._hold(block, keys)

    def _fill(self, slots: np.ndarray, keys: np.ndarray) -> None:
        """Write the rows of newcomers with these keys."""
        first, made = self.arms.first, self._model
        if self._orders is None:  # the policy draws more than orders of arms
            drawn = (self.recipe.fresh(first, np.random.Generator(np.random.Philox(key=key))) for key in keys)
            made = self._up_to_date(_without_decisions(drawn, first), n_slots=first, n_arms=first)
        self.block[slots] = made
        for place, order in enumerate(self._ordered):
            shuffle_arms(order, slots, keys, place, first)  # arms that came later keep their places
        self.keys[slots] = keys

    # ----------------------------------------------------------------------------------------------------------- arms

    def free_slots(self) -> list[int]:
        """Return the slots of retired arms without pending decisions."""
        users = self.users.in_use
        return [slot for slot in self.arms.retired_slots if not self.rows.pending[users, slot].any()]

    def take(self, arms: NumberedArms, slot: int) -> None:
        """Take these arms, one of them new in a slot: all users do, or none."""
        n_slots = arms.capacity(len(arms.taken))
        size = 2 * self.nbytes * n_slots // self.n_slots  # copies, and their block
        checks.fits_in_memory(f"copies of {len(self.users)} users", size, "keep several fleets")
        in_bytes = RowBytes(self.recipe, arms)
        layout, parameters = in_bytes.layout(n_slots), self.recipe.parameters(n_slots)
        block = layout.block(self._with_arm(self.rows, slot, n_slots=n_slots, users=self.users.in_use))
        alone = self.layout.views(self._model)
        model = layout.block(self._with_arm(alone, slot, n_slots=n_slots, users=[0]))
        rows = layout.views(block)
        ordered = self._random_orders(rows)
        # No calls here: neither a Ctrl-C nor a lack of memory can come in between.
        self.arms, self.parameters, self.layout, self._bytes = arms, parameters, layout, in_bytes
        self.block, self.rows, self._model, self._ordered = block, rows, model, ordered

    def _with_arm(self, rows: Rows, slot: int, *, n_slots: int, users: Iterable[int]) -> Rows:
        n_users, had = rows.pending.shape
        states = self.recipe.with_arm(rows.states, slot, had=had, n_slots=n_slots, users=users)
        pending = np.zeros((n_users, n_slots), np.int32)
        pending[:, :had] = rows.pending
        pending[:, slot] = 0
        return Rows(states, pending, rows.decisions)

    def _up_to_date(self, rows: Rows, *, n_slots: int, n_arms: int) -> np.ndarray:
        """Return a block of rows, of a time when there had been so many arms, with all that were added since."""
        users = range(len(rows.decisions))
        for later, (_, slot) in enumerate(self.arms.taken[n_arms:], n_arms + 1):
            n_slots = self.arms.capacity(later) if slot >= n_slots else n_slots
            rows = self._with_arm(rows, slot, n_slots=n_slots, users=users)
        if n_slots < self.n_slots:
            states = self.recipe.widened(rows.states, self.n_slots)
            rows = Rows(states, np.pad(rows.pending, ((0, 0), (0, self.n_slots - n_slots))), rows.decisions)
        return self.layout.block(rows)

    # -------------------------------------------------------------------------------------------------- single rows

    def row(self, user: Any) -> bytes:
        """Return what is kept of one user, as bytes."""
        (slot,) = self.users.slots([user])
        return self._bytes.write(self.block[slot])

    def put(self, user: Any, data: Any) -> None:
        """Set one user, known or new, to a row."""
        row, n_slots, n_arms = self._bytes.read(data)
        if (n_slots, n_arms) != (self.n_slots, len(self.arms.taken)):
            rows = self._bytes.layout(n_slots).views(row[None])
            row = self._up_to_date(rows, n_slots=n_slots, n_arms=n_arms)[0]
        _, (slot,), newcomers = self.users.listed([user])
        if newcomers:
            self.make_room(slot + 1)
            self.keys[slot] = user_keys(newcomers, self.secret or b"")[0]
        self.block[slot] = row  # at once: a Ctrl-C cannot come in between
        if newcomers:
            self.users.admit(newcomers)

    # ----------------------------------------------------------------------------------------------------- in a file

    def header(self) -> dict[str, Any]:
        """Return what the header of a saved file says."""
        named = isinstance(self.users, NamedUsers)
        return {
            "n_users": len(self.users),
            "n_arms": self.n_slots,
            "users": self.users.names if named else None,
            "arms": self.arms.to_dict(),
            "key": None if self.secret is None else self.secret.hex(),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the rows of the users as arrays of a saved file."""
        slots = self.users.in_use
        in_order = np.array_equal(slots, np.arange(len(slots)))  # then there is no need for a copy
        rows: Rows = mapped(lambda array: array[: len(slots)] if in_order else array[slots], self.rows)
        return saving.state_arrays((rows.states, rows.pending)) | {"decisions": rows.decisions}

    @classmethod
    def restored(cls, saved: saving.Saved, recipe: Recipe) -> Crowd:
        """Return the crowd of a saved file; a damaged one raises a ValueError."""
        header = saved.header
        n_users, n_slots = header["n_users"], header["n_arms"]
        names, arms, secret = (header.get(name) for name in ("users", "arms", "key"))  # absent before 0.3
        checks.whole("n_users", n_users, least=0 if names is not None else 1)
        checks.whole("n_arms", n_slots, least=1)
        most = saved.nbytes // n_users if n_users else saving.AFFORDABLE  # bytes of one state
        _, user = saving.new_state(recipe.policy, n_slots, recipe.dim, recipe.horizon, most_bytes=most)
        passing = PassingRows() if arms == {"passing": True} else None
        lasting = NumberedArms(n_slots) if arms is None or passing else NamedArms.from_dict(arms, n_slots=n_slots)
        known = passing or lasting
        if known.capacity(len(known.taken)) != n_slots:
            raise ValueError(f"arms do not take {n_slots} slots")
        if (secret is None) != (names is None and arms is None):
            raise ValueError("key must be given if users or arms have names")
        if secret is not None and len(secret) != 32:
            raise ValueError("key must have 32 digits")
        crowd = cls(recipe, NumberedUsers(n_users), known, None if secret is None else bytes.fromhex(secret))
        states = saved.state(recipe.parameters(n_slots), user, prefix="0", leading=(n_users,))
        pending = saved.array("state/1", (n_users, n_slots), np.int32)
        decisions = np.zeros(n_users, np.int32)
        if "decisions" in saved:  # absent from files of version 0.1
            decisions = saved.array("decisions", (n_users,), np.int32)
        for name, counts in (("pending", pending), ("decisions", decisions)):
            checks.indices(name, counts, checks.MOST_DECISIONS)
        alone = crowd.layout.views(crowd._model)
        crowd.parameters, crowd.layout = recipe.parameters(n_slots), crowd._bytes.layout(n_slots)
        crowd._hold(crowd.layout.block(Rows(states, pending, decisions)), np.empty((n_users, 0), np.uint64))
        crowd._model = crowd._up_to_date(alone, n_slots=known.first, n_arms=known.first)
        if names is not None:
            crowd.users = NamedUsers()
            crowd.users.admit(crowd.users.listed(names)[2])
            if len(crowd.users) != n_users:
                raise ValueError("users lists somebody twice")
        if crowd.secret is not None:
            crowd._hold(crowd.block[:n_users], user_keys(crowd.users.names, crowd.secret))
        return crowd


def _without_decisions(states: Iterable[Any], n_slots: int) -> Rows:
    """Return the rows of newcomers with these states."""
    stacked = mapped(lambda *arrays: np.stack(arrays), *states)
    n_users = len(leaves(stacked)[0][1])
    return Rows(stacked, np.zeros((n_users, n_slots), np.int32), np.zeros(n_users, np.int32))
