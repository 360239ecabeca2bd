"""The log folded again, for some users of all models: to compare it, and to export it."""

from __future__ import annotations

import msgspec

from albatross.service.events import Decision, Happening, Outcome
from albatross.service.fold import Fold, check_crc
from albatross.service.identity import Identity
from albatross.service.settings import ModelSettings
from albatross.service.sqlite import SQLiteStore
from albatross.service.store import Base


class Refold:
    """The folds of all models. Users whose first records were too old to keep begin with their bases."""

    def __init__(self, store: SQLiteStore, users: tuple[bytes, bytes]) -> None:
        self.models: dict[int, Fold] = {}
        self._identity = Identity(store.secret)
        self._bases = sorted(store.bases(users), key=lambda base: -base.seq)  # the first one last
        self._since = {base.user: base.seq for base in self._bases}

    def bases_before(self, seq: int) -> list[Base]:
        """Return the bases to `begin` with before a record is applied."""
        found = []
        while self._bases and self._bases[-1].seq < seq:
            found.append(self._bases.pop())
        return found

    def begin(self, base: Base) -> None:
        """Set a user to a base."""
        fold = self.models[base.model]
        fold.bandits.put(base.user, base.row)
        for made in base.before:
            fold.expect(made)

    def is_covered(self, event: Decision | Outcome) -> bool:
        """Whether a base stands for all that a record did."""
        return event.seq <= self._since.get(event.user, 0)

    def apply(self, event: Decision | Outcome | Happening) -> None:
        """Do what the next record says."""
        if isinstance(event, Happening):
            if event.kind == "model":
                check_crc(event)
                settings = msgspec.convert(event.content["settings"], ModelSettings)
                self.models[event.model] = Fold(settings, settings.schema(), self._identity.seed(event.model))
            elif event.model in self.models:
                self.models[event.model].apply(event)
        elif event.model not in self.models:
            raise ValueError(f"there is no model {event.model}")
        elif not self.is_covered(event):
            self.models[event.model].apply(event)
