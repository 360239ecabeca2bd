"""The state of a model is a fold over its log: live, when users are loaded, and in `albatross verify`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from albatross.features import Features
from albatross.service.bandits import Bandits
from albatross.service.events import DROP, EFFECTS, LEARN, Choice, Decision, Happening, Outcome
from albatross.service.settings import ModelSettings


@dataclass(slots=True)
class Pending:
    """A decision whose wait has not ended."""

    user: bytes
    choice: Choice
    due: int = 0  # milliseconds since 1970
    active: bool = True
    kept: list[float] = field(default_factory=list)  # rewards that wait for the end, or for the activation
    by: str = "policy"  # who made it


class DamagedRecord(ValueError):
    """A record of the log is not as it was written."""


def check_crc(event: Decision | Outcome | Happening) -> None:
    """Refuse a record that is damaged."""
    if event.checksum() != event.crc:
        raise DamagedRecord(f"record {event.seq} is damaged: its checksum is wrong")


class Fold:
    """Bandits with the open decisions of their users. `apply` is the only way from the log to a state."""

    def __init__(self, settings: ModelSettings, features: Features, seed: int) -> None:
        self.bandits = Bandits(settings, features, seed)
        self.open: dict[int, Pending] = {}  # by sequence number

    def apply(self, event: Decision | Outcome | Happening) -> None:
        """Do what a record says, exactly as it was done when the record was made."""
        check_crc(event)
        if isinstance(event, Decision):
            self._decide(event)
        elif isinstance(event, Outcome):
            self._settle(event)
        else:
            self._happen(event)

    def _decide(self, made: Decision) -> None:
        self._keep_open(made)
        if made.own:  # the policy chose, and the baseline was played
            own = self._choice_of(made, made.own)
            self.bandits.record(made.user, own)
            self.bandits.drop(made.user, own)
        self.bandits.record(made.user, self.open[made.seq].choice)

    def expect(self, made: Decision) -> Pending:
        """Take a decision as open, whose effect on the state of the user is there already."""
        check_crc(made)
        return self._keep_open(made)

    def _keep_open(self, made: Decision) -> Pending:
        choice = Choice.from_bytes(made.arm, made.slot, made.choice, self.bandits.tag_size)
        pending = Pending(made.user, choice, by=made.by)
        self.open[made.seq] = pending
        return pending

    def _choice_of(self, made: Decision, data: bytes) -> Choice:
        arm, _, rest = data.partition(b"\0")
        slot, _, numbers = rest.partition(b"\0")
        return Choice.from_bytes(arm.decode(), int(slot), numbers, self.bandits.tag_size)

    def _settle(self, came: Outcome) -> None:
        effect = EFFECTS[came.status]
        if effect == LEARN:
            pending = self._closed(came)
            assert came.value is not None
            self.bandits.learn(pending.user, pending.choice, came.value)
        elif effect == DROP:
            pending = self._closed(came)
            self.bandits.drop(pending.user, pending.choice)

    def _closed(self, came: Outcome) -> Pending:
        try:
            return self.open.pop(came.decision)
        except KeyError:
            raise DamagedRecord(f"outcome {came.seq} is of decision {came.decision}, which is not open") from None

    def _happen(self, event: Happening) -> None:
        kind, content = event.kind, event.content
        if kind == "arm":
            if content["slot"] is not None:  # otherwise only its features changed
                self.bandits.add_arm(content["name"], content["slot"])
        elif kind == "retired":
            self.bandits.retire_arm(content["name"])
        elif kind == "origin":
            self.bandits.fix(content)
        elif kind == "settings":
            self.bandits.floor = content["settings"]["floor"]
        elif kind == "population":
            self.bandits.take_up(content)


def own_bytes(choice: Choice) -> bytes:
    """Return the policy's own choice, where another was played."""
    return b"\0".join((choice.arm.encode(), str(choice.slot).encode(), choice.to_bytes()))


def relived(settings: ModelSettings, features: Features, seed: int, happenings: Iterable[Happening]) -> Fold:
    """Return the fold of a model without users, after what happened to all of them."""
    fold = Fold(settings, features, seed)
    for event in happenings:
        fold.apply(event)
    return fold
