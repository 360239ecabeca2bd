"""Call a decision service: `Client`, and `AsyncClient` with the same methods to await.

    from albatross.client import Client

    with Client("http://127.0.0.1:8000", key) as client:
        made = client.rank("news", "u-4711", context={"device": "phone"}).decisions[0]
        client.reward(made.id, 1.0)

A call is repeated while the service cannot be reached or is too busy, for as long as `patience` says. That is safe:
every `rank` has a request id, so that a repeated one is the same decision, and a reward counts once. Only where a model
adds rewards up (`combine="sum"`) may one be counted twice, if its answer was lost.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx
import msgspec

from albatross.client import calls
from albatross.client.answers import NotAllowed, NotFound, Refused, ServiceError, Tries, Unavailable, check, result
from albatross.client.calls import Call
from albatross.service.settings import ModelSettings
from albatross.service.wire import ImportedDecision, RankAnswer, RankRequest, RewardResult

__all__ = [
    "AsyncClient",
    "Client",
    "ImportedDecision",
    "ModelSettings",
    "NotAllowed",
    "NotFound",
    "RankAnswer",
    "RankRequest",
    "Refused",
    "RewardResult",
    "ServiceError",
    "Unavailable",
]

T = TypeVar("T")
P = ParamSpec("P")


def address(url: str) -> httpx.URL:
    """Return the address of a service, checked."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url must begin with http:// or https://, not {url!r}")
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is not an address: {error}") from None
    if not (found.host and (found.port or 0) < 2**16):
        raise ValueError(f"{url!r} is not an address: it needs a host, and a port below 65536")
    return found


class _Caller:
    """Address, key and patience."""

    def __init__(self, url: str, key: str, *, timeout: float = 10.0, patience: float = 30.0) -> None:
        address(url)
        if not (key.isascii() and key.isprintable() and key == key.strip()):  # not shown: it is a secret
            raise ValueError("the key must be printable ASCII without blanks at its ends: does it end in a line end?")
        self._patience = patience
        self._options: Any = {
            "base_url": url.rstrip("/"),
            "headers": {"Authorization": f"Bearer {key}"},
            "timeout": timeout,
        }

    def _tries(self, call: Call[Any]) -> Tries:
        return Tries(call, self._patience)


def _with_self(method: Callable[..., Any], call: Callable[..., Any]) -> None:
    """Give a method the name, documentation and signature of its call."""
    functools.update_wrapper(method, call)
    signature = inspect.signature(call)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[first, *signature.parameters.values()],
        return_annotation=signature.return_annotation.removeprefix("Call[").removesuffix("]"),
    )


def _now(call: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **options: P.kwargs) -> T:
        return self.send(call(*args, **options))

    _with_self(method, call)
    return method


def _later(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *args: P.args, **options: P.kwargs) -> T:
        return await self.send(call(*args, **options))

    _with_self(method, call)
    return method


class Client(_Caller):
    """A service at a URL, called with a key. May be shared by threads; `close` it, or use it in a `with` statement.

    `timeout` is for one try, in seconds; `patience` for how long a call is repeated while the service is away or busy.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 10.0, patience: float = 30.0) -> None:
        super().__init__(url, key, timeout=timeout, patience=patience)
        self._http = httpx.Client(**self._options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call until it is answered, or patience ends."""
        tries = self._tries(call)
        while True:
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = self._http.request(**call.request)
            except httpx.TransportError as error:
                outcome = error
            pause = tries.pause(outcome)
            if pause is None:
                return result(call, outcome)
            time.sleep(pause)

    def log(self, model: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the records of a model after a sequence number, as they are in the log."""
        with self._http.stream("GET", calls.path("models", model, "log"), params={"after": after}) as response:
            if response.status_code != 200:
                response.read()
                check(response)
            for line in response.iter_lines():
                yield msgspec.json.decode(line)

    rank = _now(calls.rank)
    rank_batch = _now(calls.rank_batch)
    reward = _now(calls.reward)
    rewards = _now(calls.rewards)
    activate = _now(calls.activate)
    decision = _now(calls.decision)
    import_decisions = _now(calls.import_decisions)
    models = _now(calls.models)
    model = _now(calls.model)
    put_model = _now(calls.put_model)
    archive_model = _now(calls.archive_model)
    arms = _now(calls.arms)
    put_arm = _now(calls.put_arm)
    retire_arm = _now(calls.retire_arm)
    user = _now(calls.user)
    erase_user = _now(calls.erase_user)
    stats = _now(calls.stats)


class AsyncClient(_Caller):
    """`Client` for asyncio: the same methods, to be awaited; `async with` and `async for`."""

    def __init__(self, url: str, key: str, *, timeout: float = 10.0, patience: float = 30.0) -> None:
        super().__init__(url, key, timeout=timeout, patience=patience)
        self._http = httpx.AsyncClient(**self._options)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a call until it is answered, or patience ends."""
        tries = self._tries(call)
        while True:
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = await self._http.request(**call.request)
            except httpx.TransportError as error:
                outcome = error
            pause = tries.pause(outcome)
            if pause is None:
                return result(call, outcome)
            await asyncio.sleep(pause)

    async def log(self, model: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the records of a model after a sequence number, as they are in the log."""
        async with self._http.stream("GET", calls.path("models", model, "log"), params={"after": after}) as response:
            if response.status_code != 200:
                await response.aread()
                check(response)
            async for line in response.aiter_lines():
                yield msgspec.json.decode(line)

    rank = _later(calls.rank)
    rank_batch = _later(calls.rank_batch)
    reward = _later(calls.reward)
    rewards = _later(calls.rewards)
    activate = _later(calls.activate)
    decision = _later(calls.decision)
    import_decisions = _later(calls.import_decisions)
    models = _later(calls.models)
    model = _later(calls.model)
    put_model = _later(calls.put_model)
    archive_model = _later(calls.archive_model)
    arms = _later(calls.arms)
    put_arm = _later(calls.put_arm)
    retire_arm = _later(calls.retire_arm)
    user = _later(calls.user)
    erase_user = _later(calls.erase_user)
    stats = _later(calls.stats)
