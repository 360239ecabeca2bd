"""What is kept of a user: the arrays of a row side by side in one block of bytes, in memory and outside.

Outside, a row has a header and a checksum. It holds no code, and rows from elsewhere are not trusted.
"""

from __future__ import annotations

import json
import sys
import zlib
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from albatross import checks, saving
from albatross.compiling import all_ours, compiled
from albatross.crowd.arms import NumberedArms
from albatross.crowd.recipe import Recipe, is_registered
from albatross.protocol import check_state
from albatross.states import leaves, mapped

_MAGIC = b"albatross row 1\n"  # with the version of the format
_CHECKSUM = 4  # bytes


class Rows(NamedTuple):
    """What is kept of N users, one row each."""

    states: Any  # of the policy, with the user as first axis of every array
    pending: np.ndarray  # (N, K) int32, decisions for each arm whose reward has not come yet
    decisions: np.ndarray  # (N,) int32


class Layout:
    """Where the arrays of a row lie in its bytes, for so many slots. A block of N rows is an array (N, n_bytes)."""

    def __init__(self, recipe: Recipe, n_slots: int) -> None:
        empty = Rows(recipe.fresh(n_slots), np.zeros(n_slots, np.int32), np.zeros((), np.int32))
        self._empty = mapped(lambda array: np.array(array, order="C"), empty)
        self._parameters = recipe.parameters(n_slots)
        arrays = leaves(self._empty)
        # Numbers of plays first, then other floats, and decisions last: checked in one pass.
        floats = [array.dtype == np.float64 for _, array in arrays]
        counts = [is_float and saving.is_count(name) for is_float, (name, _) in zip(floats, arrays, strict=True)]
        n = len(arrays) - 2  # the last two count decisions
        order = sorted(range(n), key=lambda i: (not counts[i], not floats[i], -arrays[i][1].itemsize))
        self._offsets, place = [0] * len(arrays), 0
        for i in order:
            self._offsets[i], place = place, place + arrays[i][1].nbytes
        place = -(-place // 4) * 4
        self._decisions = slice(place, place + 4 * (n_slots + 1))
        self._offsets[n:] = [place, place + 4 * n_slots]
        place = self._decisions.stop
        self.n_bytes = -(-place // 8) * 8  # so that the floats of every row are aligned
        self._floats = slice(0, sum(array.nbytes for (_, array), known in zip(arrays, floats, strict=True) if known))
        self._n_counts = sum(array.size for (_, array), known in zip(arrays, counts, strict=True) if known)
        self._is_ours = all_ours(self._parameters)
        has_flags = any(array.dtype == bool for _, array in arrays)
        self._needs_views = has_flags or is_registered(check_state, self._parameters)

    def views(self, block: np.ndarray) -> Rows:
        """Return the arrays in a block of rows, of one at least. They share its memory."""
        offsets, n_users = iter(self._offsets), len(block)

        def view(array: np.ndarray) -> np.ndarray:
            shape, strides = (n_users, *array.shape), (self.n_bytes, *array.strides)
            return np.ndarray(shape, array.dtype, block, next(offsets), strides)

        rows: Rows = mapped(view, self._empty)
        return rows

    def block(self, rows: Rows) -> np.ndarray:
        """Return a new block with these rows."""
        block = np.zeros((len(rows.decisions), self.n_bytes), np.uint8)
        if len(block):
            for (_, array), (_, given) in zip(leaves(self.views(block)), leaves(rows), strict=True):
                array[...] = given
        return block

    def empty(self) -> np.ndarray:
        """Return a block with one row, of a user without decisions."""
        return self.block(mapped(lambda array: array[None], self._empty))

    def check(self, row: np.ndarray) -> None:
        """Refuse a row, as bytes (n_bytes,), with impossible numbers: raise a ValueError."""
        floats, decisions = row[self._floats].view(np.float64), row[self._decisions].view(np.int32)
        if not self._needs_views and are_possible(floats, self._n_counts, decisions):
            return
        if decisions.min() < 0 or decisions.max() > checks.MOST_DECISIONS_IN_ROW:
            raise ValueError(f"it must hold numbers of decisions, from 0 to {checks.MOST_DECISIONS_IN_ROW}")
        states = self.views(row[None]).states
        for name, array in leaves(states):
            if self._is_ours:
                saving.check_numbers(name, array)
            if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
                raise ValueError(f"{name} must hold only True and False")
        check_state(self._parameters, states)


@compiled
def are_possible(floats, n_counts, decisions):
    """Return whether no float is infinite, and the first ones and the decisions are possible counts."""
    wrong = 0
    for i in range(n_counts):
        wrong += not 0.0 <= floats[i] <= checks.MOST_ROUNDS
    for value in floats:
        wrong += abs(value) == np.inf
    for number in decisions:
        wrong += not 0 <= number <= checks.MOST_DECISIONS_IN_ROW
    return wrong == 0


class RowBytes:
    """Writes and reads the rows of users with these arms."""

    def __init__(self, recipe: Recipe, arms: NumberedArms) -> None:
        described = {"policy": saving.describe_policy(recipe.policy), "horizon": recipe.horizon}
        self._recipe, self._arms = recipe, arms
        self._about = {
            "policy": type(recipe.policy).__name__,
            "settings": blake2b(json.dumps(described).encode(), digest_size=8).hexdigest(),
            "dim": recipe.dim,
            "byteorder": sys.byteorder,
        }
        self._n_arms = len(arms.taken)
        self._n_slots = arms.capacity(self._n_arms)
        self._header = self._in_bytes(self._n_slots, self._n_arms)
        self._layouts: dict[int, Layout] = {}  # by the number of slots

    def layout(self, n_slots: int) -> Layout:
        """Return the layout of rows with so many slots."""
        if n_slots not in self._layouts:
            self._layouts[n_slots] = Layout(self._recipe, n_slots)
        return self._layouts[n_slots]

    def _in_bytes(self, n_slots: int, n_arms: int) -> bytes:
        about = {**self._about, "slots": n_slots, "arms": n_arms, "names": self._arms.digest(n_arms)}
        return _MAGIC + json.dumps(about).encode() + b"\n"

    def write(self, row: np.ndarray) -> bytes:
        """Return a row of a block as bytes for elsewhere."""
        body = self._header + row.tobytes()
        return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")

    def read(self, data: Any) -> tuple[np.ndarray, int, int]:
        """Return a row, its number of slots, and the number of arms that there had been. A wrong row is refused."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ValueError(f"a row must be bytes, not {type(data).__name__}")
        data = bytes(data)
        if not data.startswith(_MAGIC):
            raise ValueError("this is not a row of a fleet: its header is missing")
        if zlib.crc32(data[:-_CHECKSUM]) != int.from_bytes(data[-_CHECKSUM:], "little"):
            raise ValueError("the row is damaged: its checksum is wrong")
        n_slots, n_arms, header = self._n_slots, self._n_arms, self._header
        if not data.startswith(header):
            n_slots, n_arms, length = self._other(data)
            header = data[:length]
        layout = self.layout(n_slots)
        if len(data) != len(header) + layout.n_bytes + _CHECKSUM:
            raise ValueError(f"the row is damaged: it has {len(data)} bytes")
        row = np.frombuffer(data, np.uint8, layout.n_bytes, len(header)).copy()  # aligned
        try:
            layout.check(row)
        except Exception as error:  # damage may cause any error
            raise ValueError(f"the row is damaged: {error}") from None
        return row, n_slots, n_arms

    def _other(self, data: bytes) -> tuple[int, int, int]:
        """Return the numbers of slots, arms and bytes of its header of a row that was written with fewer arms."""
        try:
            end = data.index(b"\n", len(_MAGIC))
            about = json.loads(data[len(_MAGIC) : end])
            found = {name: about[name] for name in self._about}
            n_slots, n_arms, names = (about[name] for name in ("slots", "arms", "names"))
        except Exception:  # damage may cause any error
            raise ValueError("the row is damaged: its header cannot be read") from None
        for name, ours in self._about.items():
            if found[name] != ours:
                what = f"{name} {checks.shown(found[name])}, not {checks.shown(ours)}"
                what = "other settings of the same policy" if name == "settings" else what
                raise ValueError(f"the row belongs to another fleet: it is for {what}")
        arms = self._arms
        known = type(n_arms) is int and 0 < n_arms <= self._n_arms and names == arms.digest(n_arms)
        used = arms.used(n_arms) if known else 0
        if not (known and type(n_slots) is int and used <= n_slots <= arms.capacity(n_arms)):
            raise ValueError("the row belongs to a fleet with other arms, or with more of them")
        return n_slots, n_arms, end + 1
