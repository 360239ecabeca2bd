"""Decisions whose rewards have not come yet, by id."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from albatross import checks, saving
from albatross.errors import UnknownDecision
from albatross.protocol import Choice

Kept = tuple[int, np.ndarray, float, float, float, np.ndarray]  # the fields of a Choice


class Pending:
    """At most `most` pending decisions; beyond that the oldest is forgotten. An id is a prefix of ours and a number."""

    def __init__(self, n_slots: int, most: int) -> None:
        self.most, self.made, self.forgotten = most, 0, 0
        self.of_arm = np.zeros(n_slots, np.int64)  # pending decisions of each arm
        self.kept: dict[str, Kept] = {}
        self.rename()

    def rename(self) -> None:
        """Take a new prefix, so that decisions of a copy are not mistaken for ours."""
        self._prefix = secrets.token_hex(4)

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def next_id(self) -> str:
        """The id of the next decision."""
        return f"{self._prefix}-{self.made + 1}"

    def add(self, kept: Kept) -> str:
        """Keep a decision and return its id."""
        name = f"{self._prefix}-{self.made + 1}"  # next_id, without the cost of a property
        if len(self.kept) >= self.most:
            self.remove(next(iter(self.kept)))
            self.forgotten += 1
        # No calls in these lines, nor in those of `remove`: a Ctrl-C cannot come between them.
        self.made += 1
        self.of_arm[kept[0]] += 1
        self.kept[name] = kept
        return name

    def __getitem__(self, name: Any) -> Kept:
        kept = self.kept.get(name) if isinstance(name, str) else None
        if kept is None:
            raise UnknownDecision(self._why_unknown(name))
        return kept

    def remove(self, name: str) -> None:
        """Take a decision off."""
        arm = self.kept[name][0]
        self.of_arm[arm] -= 1
        del self.kept[name]

    def of_action(self, action: np.ndarray) -> str | None:
        """Return the id of a pending decision for this vector."""
        return next((name for name, kept in self.kept.items() if np.array_equal(kept[1], action)), None)

    def _why_unknown(self, name: Any) -> str:
        prefix, _, number = name.rpartition("-") if isinstance(name, str) else ("", "", "")
        if not (prefix and number.isdecimal()):
            return f"{name!r} is not a decision: give the result of select, or its id"
        if prefix != self._prefix:
            return f"decision {name} belongs to another agent, or was rewarded before this agent was loaded"
        if len(number) > 20 or not 1 <= int(number) <= self.made:
            return f"decision {name} was never made"
        return (
            f"decision {name} is not pending: it was rewarded before, dropped, or forgotten "
            f"({self.forgotten} forgotten so far)"
        )

    # ----------------------------------------------------------------------------------------------------- in a file

    def header(self) -> dict[str, Any]:
        """Return what the header of a saved file says."""
        return {"max_pending": self.most, "made": self.made, "forgotten": self.forgotten, "pending": list(self.kept)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the pending decisions as arrays of a saved file."""
        columns = zip(*self.kept.values(), strict=True)
        return {f"pending/{field}": np.array(column) for field, column in zip(Choice._fields, columns, strict=False)}

    @classmethod
    def restored(cls, saved: saving.Saved, n_slots: int, dim: int, tag_size: int) -> tuple[Pending, np.ndarray]:
        """Return the pending decisions of a saved file, and their tags, which the policy must check."""
        header = saved.header
        for name, least in (("max_pending", 1), ("made", 0), ("forgotten", 0)):
            checks.whole(name, header[name], least=least)
        checks.indices("made", np.array(header["made"]), checks.MOST_ROUNDS)
        pending = cls(n_slots, header["max_pending"])
        pending.made, pending.forgotten = header["made"], header["forgotten"]
        names = header["pending"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("pending must be a list of ids")
        if not names:
            return pending, np.empty((0, tag_size))
        shapes = {"arm": (), "action": (dim,), "tag": (tag_size,)}
        columns = [
            saved.array(f"pending/{field}", (len(names), *shapes.get(field, ())), np.int64 if field == "arm" else float)
            for field in Choice._fields
        ]
        arms, actions, scores, _, propensities, tags = columns
        checks.indices("pending/arm", arms, n_slots - 1)
        checks.finite_array("pending/action", actions, actions.shape)
        if np.isnan(scores).any():
            raise ValueError("pending/score must hold numbers")
        if not (np.isnan(propensities) | ((propensities > 0.0) & (propensities <= 1.0 + 1e-9))).all():
            raise ValueError("pending/propensity must be above 0 and at most 1, or NaN")
        checks.tags("pending/tag", tags)
        for name, (arm, action, score, width, propensity, tag) in zip(names, zip(*columns, strict=True), strict=True):
            kept = (int(arm), action.copy(), float(score), float(width), float(propensity), tag.copy())
            pending.kept[name] = kept
            pending.of_arm[arm] += 1
        if len(pending) < len(names):
            raise ValueError("pending lists a decision twice")
        return pending, tags
