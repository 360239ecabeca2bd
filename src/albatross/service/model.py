"""A model while it runs: commands become records of the log, and change the state as the fold would."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from albatross.service import rewards
from albatross.service.bandits import Rows
from albatross.service.events import DROP, EFFECTS, LEARN, Choice, Decision, Happening, Outcome, pack_offer, packed
from albatross.service.fold import Fold, Pending, own_bytes, relived
from albatross.service.identity import DecisionId, Identity
from albatross.service.offers import encoded, offered
from albatross.service.problems import absent, invalid
from albatross.service.seen import Seen
from albatross.service.settings import CHANGEABLE, MOST_ARMS, PASSING, ModelSettings
from albatross.service.store import OpenDecision
from albatross.service.wire import (
    Decided,
    ImportedDecision,
    RankAnswer,
    Ranked,
    RankRequest,
    check_name,
)
from albatross.service.writer import Group

MOST_OPEN, MOST_OPEN_SHARED = 1_000, 100_000  # decisions of a user, and of all users who share a bandit
_OF_USER, _OF_DECISION = 800, 950  # bytes in memory of a user and of an open decision, beside arrays of numbers
_RECENT = 20_000  # decisions whose outcomes are remembered; more than can await their commit
_HOUR = 3_600_000
_EXPLAINED = 5  # features per arm
_FEW = 3  # arms, to compile with
DELAYS = (
    (1_000, "1 s"),
    (10_000, "10 s"),
    (60_000, "1 min"),
    (600_000, "10 min"),
    (_HOUR, "1 h"),
    (24 * _HOUR, "1 d"),
)


class Ticket(NamedTuple):
    """The next numbers of the log, for one command."""

    at: int  # milliseconds since 1970; never before the last record
    next: Any  # () -> int, the next sequence number


class Played(NamedTuple):
    """A choice, who made it, and what the policy would have chosen instead."""

    choice: Choice
    by: str  # policy, floor, baseline or import
    own: bytes = b""


class Place(NamedTuple):
    """The place of a decision in the answer to its request."""

    number: int  # 0 is the first
    group: int  # sequence number of the request's first decision
    offer: bytes  # what was offered; those of later places are what is left of it


class Made(NamedTuple):
    """What a late reward needs to know of its decision."""

    seq: int
    user: bytes
    arm: str


@dataclass(slots=True)
class Hot:
    """What is known of a user in memory, beside the bandit."""

    last: int = 0  # sequence number of the last event
    new: int = 0  # events since the last snapshot
    open: OrderedDict[int, None] = field(default_factory=OrderedDict)
    erased: int = 0  # sequence number of an erasure: earlier decisions are gone, though perhaps still on disk


class Model:
    """The users in memory of one model, and its arms."""

    def __init__(self, number: int, name: str, identity: Identity, happenings: list[Happening]) -> None:
        self.number, self.name, self._identity = number, name, identity
        first = happenings[0]
        self.settings = msgspec.convert(first.content["settings"], ModelSettings)
        self._first = self.settings
        self.features = self.settings.schema()
        self.seen = Seen(self.features.dim)
        self._most_open = MOST_OPEN_SHARED if self.settings.users == "shared" else MOST_OPEN
        self.arms = dict(self.settings.first_arms)  # active ones, with registered features; none if arms pass
        self.retired: dict[int, str] = {}  # by slot; a slot is used again once no decision for its arm is open
        self.fold: Fold = relived(self.settings, self.features, self.seed, ())
        self.hot: OrderedDict[bytes, Hot] = OrderedDict()  # the least recently used first
        self.recent: OrderedDict[int, list[Outcome]] = OrderedDict()  # the last outcomes, by decision
        self.most_users: int | None = None  # in memory, once it is full
        self.most_bytes = 0  # that users have taken since then
        self.commands = 0
        self.rewarded, self.reward_sum = 0, 0.0  # since the start
        self.version, self.archived, self.changed = 1, False, first.seq
        # The last record that a look at the population counted; the last one when memory was empty; whether rewards in
        # between count.
        self.looked, self.began, self.is_counted = 0, 0, False
        for event in happenings[1:]:
            self.take(event)

    @property
    def counted_arms(self) -> dict[str, dict[str, Any]]:
        """The arms under whose names decisions are counted; one stands for all that pass: there is no end of them."""
        return {PASSING: {}} if self.settings.passing else self.arms

    @property
    def seed(self) -> int:
        """The seed of everything that is drawn."""
        return self._identity.seed(self.number)

    @property
    def bandits(self) -> Any:
        """The bandits of the users in memory."""
        return self.fold.bandits

    @property
    def nbytes(self) -> int:
        """Memory of all users, with their open decisions."""
        of_decision = _OF_DECISION + 8 * self.features.dim
        return int(self.bandits.nbytes) + _OF_USER * len(self.hot) + of_decision * len(self.fold.open)

    @property
    def learns_nothing(self) -> bool:
        """Whether rewards are logged and not learnt."""
        return self.archived or self.settings.mode == "frozen"

    def fresh_fold(self, happenings: list[Happening]) -> Fold:
        """Return a fold without users, after some of what happened to the model."""
        return relived(self._first, self.features, self.seed, happenings)

    # ---------------------------------------------------------------------------------------------------- happenings

    def happen(self, kind: str, content: Any, group: Group, ticket: Ticket) -> None:
        """Log what concerns all users, and do it."""
        event = Happening(ticket.next(), self.number, ticket.at, kind, packed(content)).sealed()
        try:
            self.take(event)
        except ValueError as error:  # a policy whose arms cannot change
            raise invalid(str(error)) from None
        group.happenings.append(event)

    def take(self, event: Happening) -> None:
        """Do what concerns all users."""
        content = event.content
        self.fold.apply(event)
        if event.kind in ("arm", "retired", "population", "origin"):
            self.changed = event.seq
        if event.kind == "population":
            self.looked = content["seen"]
        elif event.kind == "arm":
            self.retired.pop(content["slot"], None)
            self.arms[content["name"]] = content["features"]
        elif event.kind == "retired":
            self.retired[content["slot"]] = content["name"]
            del self.arms[content["name"]]
        elif event.kind == "settings":
            self.settings = msgspec.convert(content["settings"], ModelSettings)
            self.version = content["version"]
        elif event.kind == "archived":
            self.archived = True

    def change(self, settings: ModelSettings, group: Group, ticket: Ticket) -> None:
        """Change what may change while the model runs."""
        for name in ModelSettings.__struct_fields__:
            same = getattr(settings, name) == getattr(self.settings, name)
            if name == "arms":  # other changes of arms have calls of their own
                same = settings.passing == self.settings.passing
            if name not in CHANGEABLE and not same:
                raise invalid(
                    f"{name} cannot change: states depend on it. Make a new model, and import the log of this one",
                    at=f"/{name}",
                )
        if list(settings.features) != list(self.features.schema):  # dicts are equal in any order
            raise invalid(
                f"the order of features cannot change: those of this model are {', '.join(self.features.schema)}",
                at="/features",
            )
        kept = msgspec.structs.replace(settings, arms=self.settings.arms)
        if kept != self.settings:
            content = {"settings": msgspec.to_builtins(kept), "version": self.version + 1}
            self.happen("settings", content, group, ticket)

    def put_arm(
        self, name: str, features: dict[str, Any], in_use: Callable[[int], bool], group: Group, ticket: Ticket
    ) -> bool:
        """Add an arm, bring it back or change its features. Return whether it is new.

        `in_use` says whether a decision for a slot is open, in memory or on disk.
        """
        self._check_lasting()
        encoded(
            self.settings.schema(), {}, {"/features": features}
        )  # a schema of its own: what is absent here is not missing
        if name in self.arms:
            if self.arms[name] != features:
                self.happen("arm", {"name": name, "features": features, "slot": None}, group, ticket)
            return False
        if len(self.arms) >= MOST_ARMS:
            raise invalid(f"there are {MOST_ARMS} active arms already: retire one")
        free = (slot for slot in sorted(self.retired) if not in_use(slot))
        slot = next(free, self.bandits.n_slots)
        self.happen("arm", {"name": name, "features": features, "slot": slot}, group, ticket)
        return True

    def retire_arm(self, name: str, group: Group, ticket: Ticket) -> None:
        """Retire an arm; what it taught of theta stays."""
        self._check_lasting()
        if name not in self.arms:
            raise absent(f"there is no active arm {name!r}")
        if len(self.arms) == 1:
            raise invalid(f"{name!r} is the last arm: add another one first")
        self.happen("retired", {"name": name, "slot": self.bandits.slot(name)}, group, ticket)

    def _check_lasting(self) -> None:
        if self.settings.passing:
            raise invalid("the arms of this model pass: every rank brings its own, and none can be added or retired")

    # ----------------------------------------------------------------------------------------------------- decisions

    def rank(self, request: RankRequest, user: bytes, group: Group, ticket: Ticket) -> RankAnswer:
        """Decide. Everything is checked before anything changes."""
        arms, features = offered(request, self.features, None if self.settings.passing else self.arms)
        self._check_slots(request, arms)
        rows = self.bandits.rows(arms, features)
        answer = RankAnswer(decisions=[], model_version=self.version, new_user=user not in self.bandits)
        self._fix_unit(rows, group, ticket)
        self.seen.add(features)
        if answer.new_user:
            self.bandits.admit(user)
            group.tally(self.number, ticket.at // _HOUR, "newcomer", "")
        if request.explain:
            answer.ranking = self._explained(user, rows)
        offer, first = pack_offer(arms, features) if self.settings.log_offers == "all" else b"", 0
        for place in range(request.slots):
            if self.settings.mode == "apprentice":
                played = self._follow(request, user, rows, group, ticket)
            else:
                played = self._play(user, rows, group, ticket)
            seq = ticket.next()
            first = first or seq
            self._open(seq, user, played, Place(place, first, b"" if place else offer), request.defer, group, ticket)
            rows.eligible[rows.arms.index(played.choice.arm)] = False
            answer.decisions.append(
                Decided(
                    id=self._identity.decision(DecisionId(0, seq)),
                    arm=played.choice.arm,
                    propensity=_known(played.choice.propensity),
                    by=played.by,  # type: ignore[arg-type]
                    slot=place,
                )
            )
        self.hot.move_to_end(user)
        return answer

    def _check_slots(self, request: RankRequest, arms: list[str]) -> None:
        """Refuse more slots than arms, and what an apprentice cannot do."""
        if request.slots > len(arms):
            raise invalid(f"{request.slots} slots need as many eligible arms, but there are {len(arms)}", at="/slots")
        if self.settings.mode == "apprentice":
            if request.baseline not in arms:
                raise invalid("in apprentice mode, baseline must name an eligible arm", at="/baseline")
            if request.slots > 1:
                raise invalid("in apprentice mode there is one slot", at="/slots")

    def _fix_unit(self, rows: Rows, group: Group, ticket: Ticket) -> None:
        """Log the unit of contexts that the first decision of a flock fixes."""
        unit = self.bandits.missing_unit(rows)
        if unit is not None:
            self.happen("origin", {"unit": unit}, group, ticket)

    def _play(self, user: bytes, rows: Rows, group: Group, ticket: Ticket) -> Played:
        """Let the policy choose, or the floor."""
        choice, n = self.bandits.decide(user, rows), int(rows.eligible.sum())
        if choice.propensity > 0.0:  # NaN where it is not known
            weight = 1.0 / (n * choice.propensity)  # of the decision, in the evaluation of a uniform policy
            group.tally(self.number, ticket.at // _HOUR, "weight", "", weight)
        return Played(choice, "floor" if n > 1 and choice.propensity == self.bandits.floor / n else "policy")

    def _follow(self, request: RankRequest, user: bytes, rows: Rows, group: Group, ticket: Ticket) -> Played:
        """Play the baseline, and note what the policy would have chosen."""
        own = self.bandits.decide(user, rows)
        self.bandits.drop(user, own)
        arm = str(request.baseline)
        choice = self.bandits.another(arm, rows.contexts[rows.arms.index(arm)])
        self.bandits.record(user, choice)
        group.tally(self.number, ticket.at // _HOUR, "agreed", "", float(own.arm == choice.arm))
        return Played(choice, "baseline", own_bytes(own))

    def _open(
        self, seq: int, user: bytes, played: Played, place: Place, deferred: bool, group: Group, ticket: Ticket
    ) -> None:
        """Log a decision, and keep it until its wait ends."""
        choice, hot = played.choice, self.hot.setdefault(user, Hot())
        made = Decision(
            seq,
            self.number,
            user,
            ticket.at,
            choice.arm,
            choice.slot,
            played.by,
            _known(choice.propensity),
            choice.to_bytes(),
            place.offer,
            place.number,
            place.group,
            played.own,
        )
        group.decisions.append(made.sealed())
        pending = Pending(user, choice, ticket.at + self.settings.rewards.wait_ms, not deferred, by=played.by)
        self.fold.open[seq] = pending
        hot.open[seq], hot.last, hot.new = None, seq, hot.new + 1
        group.opened[seq] = OpenDecision(seq, user, pending.due, pending.active, pending.kept)
        group.tally(self.number, ticket.at // _HOUR, f"decision:{played.by}", self._label(choice.arm))
        if len(hot.open) > self._most_open:
            self.close(next(iter(hot.open)), group, ticket)

    def _explained(self, user: bytes, rows: Rows) -> list[Ranked]:
        found = self.bandits.explain(user, rows)
        if found is None:
            return []
        order = [row for row in np.argsort(-found.scores, kind="stable").tolist() if rows.eligible[row]]
        return [
            Ranked(
                arm=rows.arms[row],
                mean=_known(found.means[row]),
                width=_known(found.widths[row]),
                top=found.contributions[:_EXPLAINED] if row == found.best else [],
            )
            for row in order
        ]

    def learn_import(self, item: ImportedDecision, user: bytes, group: Group, ticket: Ticket) -> None:
        """Learn somebody else's decision with its reward."""
        if self.settings.passing:
            check_name(item.arm, "an arm's name", at="/arm")
        elif item.arm not in self.arms:
            raise invalid(f"there is no active arm {item.arm!r}", at="/arm")
        action = encoded(self.features, item.context, {"/features": {**self.arms.get(item.arm, {}), **item.features}})
        if self.learns_nothing:
            raise invalid("the model is frozen: it learns nothing")
        refused = rewards.outside(item.reward, self.settings.rewards)
        if refused:
            raise invalid(refused, at="/reward")
        self._fix_unit(self.bandits.rows([item.arm], action), group, ticket)
        choice = self.bandits.another(item.arm, action[0], item.propensity or math.nan)
        self.bandits.record(user, choice)
        seq = ticket.next()
        self._open(seq, user, Played(choice, "import"), Place(0, seq, b""), False, group, ticket)
        self.settle(seq, "learnt", item.reward + 0.0, group, ticket)

    # ------------------------------------------------------------------------------------------------------- rewards

    def reward(self, decision: int, value: float, group: Group, ticket: Ticket) -> str:
        """Take a reward for an open decision, and return its status."""
        pending, rules = self.fold.open[decision], self.settings.rewards
        status = rewards.for_open(pending, value, rules, frozen=self.learns_nothing)
        if status in ("learnt", "waits"):
            waited = ticket.at - (pending.due - rules.wait_ms)
            label = next((name for most, name in DELAYS if waited <= most), "longer")
            group.tally(self.number, ticket.at // _HOUR, "delay", label, waited / 1_000.0)
        if status in ("learnt", "frozen"):
            self.settle(decision, status, value, group, ticket)
        elif status in ("waits", "inactive"):
            pending.kept.append(value)
            self._note(decision, pending, status, value, group, ticket)
        return status

    def late(self, decision: Made, value: float, group: Group, ticket: Ticket) -> None:
        """Log a reward that came after the wait."""
        event = Outcome(ticket.next(), self.number, decision.user, decision.seq, ticket.at, value, "late").sealed()
        self._log(event, group)
        group.tally(self.number, ticket.at // _HOUR, "outcome:late", self._label(decision.arm), value)

    def activate(self, decision: int, group: Group, ticket: Ticket) -> str:
        """Begin the wait of a deferred decision, and learn what came before."""
        pending, rules = self.fold.open[decision], self.settings.rewards
        if pending.active:
            return "active"
        pending.active, pending.due = True, ticket.at + rules.wait_ms
        self._note(decision, pending, "activated", None, group, ticket)
        if pending.kept and rules.at_once:
            self.settle(decision, "frozen" if self.learns_nothing else "learnt", pending.kept[0], group, ticket)
        return "activated"

    def close(self, decision: int, group: Group, ticket: Ticket) -> None:
        """End the wait of a decision."""
        pending = self.fold.open[decision]
        status, value = rewards.at_the_end(pending, self.settings.rewards, frozen=self.learns_nothing)
        self.settle(decision, status, value, group, ticket)

    def settle(self, decision: int, status: str, value: float | None, group: Group, ticket: Ticket) -> None:
        """Log the outcome that closes a decision, and apply it."""
        pending = self.fold.open[decision]
        if EFFECTS[status] == LEARN and self.bandits.misses_level:
            self.happen("origin", {"level": value}, group, ticket)
        seq, hot = ticket.next(), self.hot[pending.user]
        event = Outcome(seq, self.number, pending.user, decision, ticket.at, value, status).sealed()
        self.fold.apply(event)
        self._log(event, group)
        group.opened.pop(decision, None)
        group.closed.append(decision)
        hot.open.pop(decision, None)
        hot.last, hot.new = seq, hot.new + 1
        self._tally_outcome(event, pending, group)

    def _note(
        self, decision: int, pending: Pending, status: str, value: float | None, group: Group, ticket: Ticket
    ) -> None:
        """Log what happened to a decision that stays open."""
        event = Outcome(ticket.next(), self.number, pending.user, decision, ticket.at, value, status).sealed()
        self._log(event, group)
        group.opened[decision] = OpenDecision(decision, pending.user, pending.due, pending.active, list(pending.kept))
        hot = self.hot[pending.user]
        hot.last, hot.new = event.seq, hot.new + 1

    def _log(self, event: Outcome, group: Group) -> None:
        """Log an outcome, and remember it for a while: a second reward may come before it is on disk."""
        group.outcomes.append(event)
        self.recent.setdefault(event.decision, []).append(event)
        self.recent.move_to_end(event.decision)
        if len(self.recent) > _RECENT:
            self.recent.popitem(last=False)

    def _tally_outcome(self, event: Outcome, pending: Pending, group: Group) -> None:
        hour, arm = event.at // _HOUR, self._label(pending.choice.arm)
        group.tally(self.number, hour, f"outcome:{event.status}", arm, event.value or 0.0)
        if event.value is not None:
            group.tally(self.number, hour, f"reward:{pending.by}", "", event.value)
            self.rewarded, self.reward_sum = self.rewarded + 1, self.reward_sum + event.value
        if EFFECTS[event.status] == DROP:
            group.tally(self.number, hour, "dropped", arm)

    def _label(self, arm: str) -> str:
        """Return the name under which an arm is counted."""
        return PASSING if self.settings.passing else arm

    def compile(self) -> None:
        """Compile what decides, learns, loads and explains, so that no request waits for it.

        The code is the same for any number of arms. With a thousand of them, this took most of a minute.
        """
        few = dict(islice(self._first.first_arms.items(), _FEW)) or self._first.arms
        relived(msgspec.structs.replace(self._first, arms=few), self.features, self.seed, ()).bandits.rehearse()


def created(settings: ModelSettings, number: int, name: str, ticket: Ticket) -> Happening:
    """Return the first record of a model, whose settings were checked."""
    content = {"name": name, "settings": msgspec.to_builtins(settings)}
    return Happening(ticket.next(), number, ticket.at, "model", packed(content)).sealed()


def _known(number: float) -> float | None:
    """Return a finite number, or None."""
    return float(number) if math.isfinite(number) else None
