"""The service without HTTP: decisions, rewards, models, arms, erasure, and what happens by the clock.

Everything here runs in the event loop's thread, except for the writer (`writer.py`), the loader (`loading.py`) and
looks at populations.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Set
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from albatross.service.events import Outcome
from albatross.service.hot import HotUsers
from albatross.service.ledger import log
from albatross.service.loading import bandits_elsewhere
from albatross.service.model import Hot, Made, Model, Ticket, created
from albatross.service.problems import Problem, absent, invalid, unavailable
from albatross.service.retention import Retention
from albatross.service.rewards import for_closed, outside
from albatross.service.settings import ModelSettings, check, check_model_name
from albatross.service.sqlite import SQLiteStore
from albatross.service.wire import ImportRequest, RankAnswer, RankRequest, RewardItem, RewardResult
from albatross.service.writer import Group

_REMEMBERED = 24 * 3_600_000  # milliseconds that answers are kept for requests with an id
_SWEEP_EVERY, _SWEPT = 0.5, 500  # seconds between looks for decisions whose wait has ended, and how many at once
_ENOUGH = 1_000  # users for a look at the population
_DELETE_EVERY, _FORGOTTEN = 3_600.0, 500  # seconds between removals of what is old, and how many answers at once


def _any(model: str) -> bool:
    return True


class Engine(HotUsers):
    """All models of one log. `start` and `stop` belong to the event loop that calls it."""

    def __init__(self, store: SQLiteStore, *, memory: int = 2**30, clock: Callable[[], float] = time.time) -> None:
        super().__init__(store, memory, clock)
        self._slow = self.pool(1, "albatross-looks")  # looks at populations, and compiling
        self._requests: dict[
            bytes, tuple[bytes, asyncio.Future[bytes]]
        ] = {}  # those with an id, until they are answered
        self._looking: set[int] = set()  # models
        self._retention = Retention(self)
        self.refresh()

    async def start(self) -> None:
        """Start the writer, the loader and the clock."""
        await super().start()
        self.spawn(self._repeat(self.close_due, 0.0, "closing decisions failed"))
        self.spawn(self._repeat(self._delete_old, _DELETE_EVERY, "deleting what is old failed"))  # may take hours

    # ---------------------------------------------------------------------------------------------- decisions

    async def rank(self, name: str, request: RankRequest, body: bytes, *, keep: int = 0) -> bytes:
        """Decide, and return the answer as JSON once it is on disk.

        The answer to a request with an id is kept for a day, or for `keep` milliseconds if that is longer.
        """
        model = self.model(name)
        user = self.user(model, request.user)
        if request.id is None:
            return msgspec.json.encode(await self._rank(model, user, request, None, b"", keep))
        digest = self.identity.request(model.number, request.id)
        said = hashlib.blake2b(body, digest_size=16).digest()
        known = self._requests.get(digest)
        if known is None:
            stored = self.store.request(digest, self.now)
            if stored is not None:
                return _same(said, *stored)
            future: asyncio.Future[bytes] = self._loop.create_future()
            self._requests[digest] = said, future
            try:
                answer = msgspec.json.encode(await self._rank(model, user, request, digest, said, keep))
                future.set_result(answer)
                return answer
            except BaseException as error:
                future.set_exception(error if isinstance(error, Problem) else unavailable("the request was given up"))
                future.exception()
                raise
            finally:
                self._requests.pop(digest, None)
        return _same(said, known[0], await asyncio.shield(known[1]))

    async def _rank(
        self, model: Model, user: bytes, request: RankRequest, digest: bytes | None, said: bytes, keep: int
    ) -> RankAnswer:
        start = time.perf_counter()

        def act(model: Model, group: Group, ticket: Ticket) -> RankAnswer:
            answer = model.rank(request, user, group, ticket)
            if digest is not None:
                until = ticket.at + max(_REMEMBERED, keep)
                group.requests.append((digest, user, said, msgspec.json.encode(answer), until))
            return answer

        answer: RankAnswer = await self.command(model.number, user, act)
        self.metrics.decided(model.name, answer, time.perf_counter() - start)
        return answer

    def answer_to(self, model: Model, request: str) -> bytes | None:
        """Return the answer to a request by its id, None if there is none or it was forgotten."""
        stored = self.store.request(self.identity.request(model.number, request), self.now)
        return stored and stored[1]

    # ------------------------------------------------------------------------------------------------ rewards

    async def reward(self, name: str | None, item: RewardItem, *, may: Callable[[str], bool] = _any) -> RewardResult:
        """Take a reward, and return what became of it once that is on disk. `may` says of which models."""
        result = await self._reward(name, item, may)
        self.metrics.rewards.labels(result.status).inc()
        return result

    async def _reward(self, name: str | None, item: RewardItem, may: Callable[[str], bool]) -> RewardResult:
        value = item.value + 0.0  # -0.0 would be another number in the log
        model, made = self._decision(name, item.id)
        if model is None or made is None or not may(model.name):
            return RewardResult(id=item.id, status="gone" if model and made is None else "unknown")
        rules = model.settings.rewards
        refused = outside(value, rules)
        if refused:
            return RewardResult(id=item.id, status="invalid", detail=refused)

        def act(model: Model, group: Group, ticket: Ticket) -> str:
            pending = model.fold.open.get(made.seq)
            if pending is not None and pending.due <= ticket.at:
                model.close(made.seq, group, ticket)
                pending = None
            if pending is not None:
                return model.reward(made.seq, value, group, ticket)
            outcomes = self._outcomes(model, made.seq)
            if not outcomes or made.seq < model.hot[made.user].erased:  # erased while this waited
                return "gone"
            status = for_closed(outcomes, value, rules)
            if status == "late":
                model.late(made, value, group, ticket)
            return status

        status = await self.command(model.number, made.user, act)
        return RewardResult(id=item.id, status=status)

    def _outcomes(self, model: Model, decision: int) -> list[Outcome]:
        """Return what came of a closed decision, on disk or about to be."""
        found = {came.seq: came for came in (*self.store.outcomes(decision), *model.recent.get(decision, ()))}
        return [found[seq] for seq in sorted(found)]

    def _decision(self, name: str | None, text: str) -> tuple[Model | None, Made | None]:
        """Return the model and the decision of an id; a model without a decision if it was deleted."""
        self.refresh()
        found = self.identity.parse(text)
        if found is None or found.seq > self.seq:
            return None, None
        for model in self.models.values():
            if found.seq in model.fold.open:
                pending = model.fold.open[found.seq]
                made = Made(found.seq, pending.user, pending.choice.arm)
                return (model, made) if name in (None, model.name) else (None, None)
        stored = self.store.decision(found.seq)
        if stored is None:
            return (self.models.get(name or "") or next(iter(self.models.values()), None)), None
        model = self.models_by_number[stored.model]
        made = Made(stored.seq, stored.user, stored.arm)
        return (model, made) if name in (None, model.name) else (None, None)

    async def activate(self, text: str, name: str | None = None, *, may: Callable[[str], bool] = _any) -> str:
        """Begin the wait of a deferred decision, of a model if one is named."""
        model, made = self._decision(name, text)
        if model is None or (made is not None and not may(model.name)):
            raise absent("there is no such decision")
        if made is None:
            raise Problem(410, "the decision was deleted")

        def act(model: Model, group: Group, ticket: Ticket) -> str:
            pending = model.fold.open.get(made.seq)
            if pending is not None and pending.due <= ticket.at:
                model.close(made.seq, group, ticket)
                pending = None
            return "closed" if pending is None else model.activate(made.seq, group, ticket)

        status: str = await self.command(model.number, made.user, act)
        return status

    async def learn(self, name: str, request: ImportRequest) -> int:
        """Learn decisions that were made elsewhere."""
        model = self.model(name)
        for number, item in enumerate(request.decisions):
            user = self.user(model, item.user)

            def act(model: Model, group: Group, ticket: Ticket, item: Any = item, user: bytes = user) -> None:
                model.learn_import(item, user, group, ticket)

            try:
                await self.command(model.number, user, act)
            except Problem as problem:
                problem.at = f"/decisions/{number}{problem.at}"
                problem.detail += f"; {number} decisions before it were learnt"
                raise
        return len(request.decisions)

    # ------------------------------------------------------------------------------------------ models and arms

    async def put_model(self, name: str, settings: ModelSettings, version: int | None = None) -> tuple[Model, bool]:
        """Create a model or change it. Return it, and whether it is new."""
        try:
            check_model_name(name)
            await self._loop.run_in_executor(self._slow, check, settings)  # it may compile
        except ValueError as error:
            raise invalid(str(error)) from None
        self.refresh()
        model = self.models.get(name)
        with self.acting() as group:
            if model is None:
                if version is not None:
                    raise Problem(412, f"there is no model {name!r}, of whatever version")
                number = 1 + max(self.models_by_number, default=0)
                first = created(settings, number, name, self.ticket())
                group.happenings.append(first)
                model, new = Model(number, name, self.identity, [first]), True
                self.add(model)
            else:
                if version is not None and version != model.version:
                    raise Problem(412, f"the model has version {model.version}, not {version}")
                if model.archived:
                    raise invalid(f"the model {name!r} is archived: take another name")
                model.change(settings, group, self.ticket())
                new = False
            promise = self.promise(group)
        if new:
            await self._loop.run_in_executor(self._slow, model.compile)
        await promise
        return model, new

    async def put_arm(self, model: Model, name: str, features: dict[str, Any]) -> bool:
        """Add an arm, bring it back or change its features. Return whether it is new."""

        def in_use(slot: int) -> bool:
            here = any(pending.choice.slot == slot for pending in model.fold.open.values())
            return here or self.store.is_open(model.number, slot)

        new: bool = await self.happen(model, lambda group, ticket: model.put_arm(name, features, in_use, group, ticket))
        return new

    async def happen(self, model: Model, act: Callable[[Group, Ticket], Any]) -> Any:
        """Run a command that concerns all users of a model."""
        if self.model_of(model.number) is not model:  # a commit failed since the caller found it
            raise unavailable("the log was read again: try once more")
        with self.acting() as group:
            result = act(group, self.ticket())
            promise = self.promise(group)
        await promise
        return result

    def learnt(self, model: Model) -> None:
        """Learn the population of a flock anew if that is due, beside everything else."""
        is_due = model.bandits.look_is_due or (model.bandits.is_flock and not model.is_counted)
        if is_due and model.number not in self._looking:
            self._looking.add(model.number)
            self.spawn(self._look_now(model))

    async def _look_now(self, model: Model) -> None:
        slow, before = partial(self._loop.run_in_executor, self._slow), (model.changed, self.writer.epoch)
        try:
            if not model.is_counted:  # else a service that restarts often would never come to the next look
                n = await slow(self.store.count_learnt, model.number, model.looked, model.began)
                model.bandits.looks.rewards, model.is_counted = model.bandits.looks.rewards + n, True
            if not model.bandits.look_is_due or model.changed > self.committed:  # arms, and the log has others
                return
            counted = {"rewards": model.bandits.looks.rewards, "seen": self.seq}  # others may come meanwhile
            found = await slow(self._looked, model, set(model.hot)) | counted
            if (model.changed, self.writer.epoch) == before:  # no arm came in between
                await self.happen(model, lambda group, ticket: model.happen("population", found, group, ticket))
        except Exception as error:  # the next command tries again
            if (model.changed, self.writer.epoch) == before:
                log.error("a look at the population failed", extra={"detail": str(error), "model": model.name})
        finally:
            self._looking.discard(model.number)

    def _looked(self, model: Model, here: Set[bytes]) -> dict[str, Any]:
        """Look at the population. If few users are in memory, as after a start, some others are heard, too."""
        if len(here) >= _ENOUGH:
            return model.bandits.look()
        memory = self.share // 4
        return model.bandits.look(bandits_elsewhere(model, self.store, here, _ENOUGH - len(here), memory))

    # ----------------------------------------------------------------------------------------------- the clock

    async def _repeat(self, work: Callable[[], Awaitable[None]], pause: float, failed: str) -> None:
        """Do something again and again, with a pause after every success."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY)
            try:
                await work()
                await asyncio.sleep(pause)
            except Problem as problem:
                log.warning(failed, extra={"detail": problem.detail})
            except Exception as error:  # the clock must go on
                log.error(failed, extra={"detail": str(error)})

    async def _delete_old(self) -> None:
        """Delete answers and records that are too old."""
        await self.forget_requests()
        await self._retention.delete_old()

    async def forget_requests(self) -> None:
        """Forget answers that are too old to be asked for again, a few at a time: commits and loads go first."""
        while await self.from_log(self.store.forget_requests, self.now, _FORGOTTEN):
            await asyncio.sleep(0.01)

    async def close_due(self) -> None:
        """Close decisions whose wait has ended."""
        refused: BaseException | None = None
        n_due, stay = _SWEPT, 0  # decisions of users who cannot be read stay open, and hold up nobody else
        while n_due == _SWEPT:
            due = await self.from_log(self.store.due, self.now, _SWEPT, stay)
            closed = await asyncio.gather(*(self._close(each.decision) for each in due), return_exceptions=True)
            errors = [each for each in closed if isinstance(each, BaseException)]
            refused = next(iter(errors), refused)
            if any(isinstance(each, Problem) and each.status == HTTPStatus.SERVICE_UNAVAILABLE for each in errors):
                break  # the log cannot be written
            n_due, stay = len(due), stay + sum(each is not True for each in closed)
        if refused is not None:
            raise refused

    async def _close(self, decision: int) -> bool:
        """Close a decision whose wait has ended; return whether it is closed."""
        made = self.store.decision(decision)
        if made is None:
            return False

        def act(model: Model, group: Group, ticket: Ticket) -> bool:
            pending = model.fold.open.get(decision)
            if pending is not None and pending.due <= ticket.at:
                model.close(decision, group, ticket)
            return decision not in model.fold.open

        closed: bool = await self.command(made.model, made.user, act)
        return closed

    # ------------------------------------------------------------------------------------------------- erasure

    async def erase(self, models: list[Model], name: str) -> int:
        """Delete everything that is kept of a user. Return the number of records."""
        erased = 0
        for model in models:
            user = self.user(model, name)
            if model.settings.users == "shared":
                continue
            try:
                present = await self.in_memory(model.number, user)
            except Problem as problem:
                if problem.status != HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
                present = self.model_of(model.number)  # the user cannot be rebuilt, but erased
                present.hot[user] = Hot()

            def act(group: Group, ticket: Ticket, model: Model = present, user: bytes = user) -> Group:
                hot = model.hot[user]
                if user in model.bandits:
                    model.bandits.release(user)
                elif not (hot.last or self.store.knows(user)):  # nothing was ever known
                    return group
                for seq in hot.open:
                    del model.fold.open[seq]
                # A hash of the digest: enough to tell in a backup who must be erased again.
                mark = hashlib.blake2b(user, digest_size=16).digest()
                model.happen("erased", {"mark": mark}, group, ticket)
                # A user who comes back before this is on disk is a newcomer, and must not be read from there.
                model.hot[user] = Hot(last=group.last, erased=group.last)
                group.erased[user] = group.last
                group.requests[:] = [each for each in group.requests if each[1] != user]
                return group

            group = await self.happen(present, act)
            erased += group.n_erased.get(user, 0)
            self.leave_newcomer(present, user)
        return erased


def _same(said: bytes, known: bytes, answer: bytes) -> bytes:
    if said != known:
        raise invalid("this id was used for another request", at="/id")
    return answer
