"""Models and the users in memory: loaded from the log when they come, released when there are too many."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from albatross.service.events import Happening
from albatross.service.fold import check_crc
from albatross.service.ledger import Ledger, log
from albatross.service.loading import BATCH, Loaded, Loader
from albatross.service.model import Hot, Model, Ticket
from albatross.service.problems import Problem, absent, unavailable
from albatross.service.snapshots import evict, snapshot_if_old
from albatross.service.sqlite import SQLiteStore
from albatross.service.wire import check_name
from albatross.service.writer import Group

MOST_WAITING = 4_096  # commands
_ASIDE = 4  # threads for answers that take long to read
SHARED = "everybody"  # the user of a model whose users share one bandit


class HotUsers(Ledger):
    """All models of one log, with those users that are in memory. Commands run in the loop's thread."""

    def __init__(self, store: SQLiteStore, memory: int, clock: Callable[[], float]) -> None:
        super().__init__(store, clock)
        self.memory = memory  # bytes for users
        self.models: dict[str, Model] = {}
        self.models_by_number: dict[int, Model] = {}
        self._loaders: dict[int, Loader] = {}
        self._reader, self._aside = self.pool(1, "albatross-loader"), self.pool(_ASIDE, "albatross-readers")
        self._wanted: OrderedDict[tuple[int, bytes], asyncio.Future[None]] = OrderedDict()
        self._wake = asyncio.Event()
        self._waiting = 0

    async def start(self) -> None:
        """Start the writer and the loader."""
        await super().start()
        self.spawn(self._load())

    def read(self) -> None:
        """Take models and arms from the log; users are read when they come."""
        by_model: dict[int, list[Happening]] = {}
        for event in self.store.happenings(None):
            check_crc(event)
            by_model.setdefault(event.model, []).append(event)
        by_model.pop(0, None)
        self.models, self.models_by_number, self._loaders = {}, {}, {}
        for number, events in by_model.items():
            self.add(Model(number, events[0].content["name"], self.identity, events))

    def add(self, model: Model) -> None:
        """Take a new model, or one from the log."""
        model.began = self.seq
        self.models[model.name] = self.models_by_number[model.number] = model
        self._loaders[model.number] = Loader(model, self.store)

    def model(self, name: str) -> Model:
        """Return a model that is not archived."""
        model = self.kept(name)
        if model.archived:
            raise absent(f"there is no model {name!r}: it is archived")
        return model

    def kept(self, name: str) -> Model:
        """Return a model, also an archived one: its log stays."""
        self.refresh()
        model = self.models.get(name)
        if model is None:
            raise absent(f"there is no model {name!r}")
        return model

    def model_of(self, number: int) -> Model:
        """Return a model by its number, as the log has it now."""
        self.refresh()
        if number not in self.models_by_number:
            raise unavailable("the model could not be written: create it again")
        return self.models_by_number[number]

    @property
    def share(self) -> int:
        """Memory for the users of one model."""
        return self.memory // len(self.models)

    def user(self, model: Model, name: str) -> bytes:
        """Return the digest of a user."""
        check_name(name, "user", at="/user")
        return self.identity.user(model.number, SHARED if model.settings.users == "shared" else name)

    def from_log(self, read: Callable[..., Any], *values: Any) -> asyncio.Future[Any]:
        """Read the log in the loader's thread."""
        return self._loop.run_in_executor(self._reader, read, *values)

    def aside(self, read: Callable[..., Any], *values: Any) -> asyncio.Future[Any]:
        """Read what may take long in another thread: neither the loop nor loads should wait for it."""
        return self._loop.run_in_executor(self._aside, read, *values)

    async def in_memory(self, number: int, user: bytes) -> Model:
        """Wait until a user is in memory, and return the model."""
        while True:
            model = self.model_of(number)
            if user in model.hot:
                return model
            key = number, user
            if key not in self._wanted:
                self._wanted[key] = self._loop.create_future()
                self._wake.set()
            await asyncio.shield(self._wanted[key])

    async def _load(self) -> None:
        """Load users that somebody waits for, many at a time."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._wanted:
                number = next(iter(self._wanted))[0]
                users = [user for model, user in self._wanted if model == number][:BATCH]
                epoch, start = self.writer.epoch, time.perf_counter()
                try:
                    found = await self.from_log(self._loaders[number].load, users)
                except Exception as error:
                    log.error("loading failed", extra={"detail": str(error)})
                    problem = unavailable(f"the log cannot be read: {error}")
                    found = {user: Loaded(None, {}, 0, 0, problem) for user in users}
                self.metrics.load.observe(time.perf_counter() - start)
                for user in users:
                    future = self._wanted.pop((number, user))
                    model = self.models_by_number.get(number)
                    if self.writer.epoch == epoch and model is not None:  # otherwise it is asked for again
                        self._take_in(model, user, found[user], future)
                    if not future.done():
                        future.set_result(None)

    def _take_in(self, model: Model, user: bytes, loaded: Loaded, future: asyncio.Future[None]) -> None:
        error = loaded.error
        if error is None and loaded.row is not None:
            try:
                model.bandits.put(user, loaded.row)
            except ValueError as refused:
                error = refused
        if error is not None:
            log.error("a user cannot be rebuilt", extra={"detail": str(error), "model": model.name})
            problem = error if isinstance(error, Problem) else Problem(500, "the records of this user are damaged")
            future.set_exception(problem)
            future.exception()  # somebody may have stopped waiting
            return
        self.metrics.loads.inc()
        model.fold.open |= loaded.open
        model.hot[user] = Hot(loaded.last, loaded.new, OrderedDict.fromkeys(loaded.open))

    def leave_newcomer(self, model: Model, user: bytes) -> None:
        """Forget a user without a bandit, but keep in mind who was erased until that is on disk."""
        hot = model.hot.get(user)
        if hot is not None and user not in model.bandits and hot.erased <= self.committed:
            del model.hot[user]

    async def command(self, number: int, user: bytes, act: Callable[[Model, Group, Ticket], Any]) -> Any:
        """Run a command for a user of a model, and return its result once it is on disk."""
        if self._waiting >= MOST_WAITING:
            raise unavailable("too many requests are waiting")
        self._waiting += 1
        try:
            model = await self.in_memory(number, user)
            try:
                with self.acting() as group:
                    result = act(model, group, self.ticket())
                    snapshot_if_old(model, user, group, self.seq)
                    evict(model, self.share, self.committed, group, self.seq)
                    promise = self.promise(group)
            finally:
                self.leave_newcomer(model, user)  # who was refused
            self.learnt(model)
            await promise
            return result
        finally:
            self._waiting -= 1

    @abstractmethod
    def learnt(self, model: Model) -> None:
        """Do what is due after a command."""
