"""HTTP: routes, keys and problems. Rank and rewards are plain ASGI; everything else goes through Starlette."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from albatross.service import endpoints
from albatross.service.engine import Engine
from albatross.service.keys import Keys
from albatross.service.problems import Problem
from albatross.service.routes import ENDPOINTS
from albatross.service.wire import (
    CODES,
    RankBatch,
    RankRequest,
    RewardItem,
    RewardRequest,
    RewardResult,
    RewardsAnswer,
    RewardsRequest,
    convert,
    parse,
)

log = logging.getLogger("albatross.service")
MOST_BYTES = 2**20  # of a body
_JSON = b"application/json"
_RANK = re.compile(r"/v1/models/([^/]+)/rank")
_REWARDS = re.compile(r"/v1/models/([^/]+)/rewards")
_REWARD = re.compile(r"/v1/decisions/([^/]+)/reward")
_ANSWER = tuple[int, bytes]


class Service:
    """The ASGI application."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.keys = engine, Keys(engine.store)
        self._encode = msgspec.json.Encoder().encode
        # The two hot routes and the reward of one decision do without Starlette, which costs as much as deciding.
        self._hot: list[tuple[re.Pattern[str], str, Callable[[str, bytes, str], Awaitable[_ANSWER]]]] = [
            (_RANK, "decide", self._rank),
            (_REWARDS, "reward", self._rewards),
            (_REWARD, "reward", self._reward),
        ]
        routes = [Route(each.path, self._endpoint(each), methods=[each.method]) for each in ENDPOINTS]
        self._rest = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=endpoints.HANDLERS)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        await self.engine.start()
        try:
            yield
        finally:
            await self.engine.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            for pattern, key_scope, answer in self._hot:
                found = pattern.fullmatch(scope["path"])
                if found:
                    await self._answer_hot(scope, receive, send, found[1], key_scope, answer)
                    return
        await self._rest(scope, receive, send)

    async def _answer_hot(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        name: str,
        key_scope: str,
        answer: Callable[[str, bytes, str], Awaitable[_ANSWER]],
    ) -> None:
        headers = dict(scope["headers"])
        try:
            if scope["method"] != "POST":
                raise Problem(405, "this path takes POST only", allow="POST")
            model = None if answer == self._reward else name
            key = headers.get(b"authorization", b"").decode("latin-1")
            self.keys.check(key, key_scope, model)
            check_media_type(headers.get(b"content-type", b""))
            body = await read_body(receive, headers.get(b"content-length"))
            status, content = await answer(name, body, key)
            sent = [(b"content-type", _JSON)]
        except Problem as problem:
            status, content, sent = problem.status, self._encode(problem.body), problem.headers
        except Exception:
            log.exception("unexpected error")
            unexpected = Problem(500, "an unexpected error: see the service's log")
            status, content, sent = 500, self._encode(unexpected.body), unexpected.headers
        sent.append((b"content-length", str(len(content)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": content})

    # --------------------------------------------------------------------------------------------------- hot routes

    async def _rank(self, name: str, body: bytes, key: str) -> _ANSWER:
        return 200, await self.engine.rank(name, parse(body, RankRequest), body)

    async def _rewards(self, name: str, body: bytes, key: str) -> _ANSWER:
        request: RewardsRequest = parse(body, RewardsRequest)
        self.engine.model(name)
        results = await asyncio.gather(*(self._rewarded(name, item) for item in request.rewards))
        problems = [each for each in results if isinstance(each, Problem)]
        if len(problems) == len(results) and problems[0].status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise problems[0]  # nothing has happened
        shown = [_failed(item, each) for item, each in zip(request.rewards, results, strict=True)]
        return 200, self._encode(RewardsAnswer(results=shown))

    async def _rewarded(self, name: str, item: RewardItem) -> RewardResult | Problem:
        """Return what became of one reward of many, which concerns no other."""
        try:
            return await self.engine.reward(name, item)
        except Problem as problem:
            return problem

    async def _reward(self, decision: str, body: bytes, key: str) -> _ANSWER:
        request: RewardRequest = parse(body, RewardRequest)
        item = RewardItem(id=decision, value=request.value)
        result = await self.engine.reward(None, item, may=lambda model: self.keys.may(key, model))
        return CODES.get(result.status, 200), self._encode(result)

    async def rank_batch(self, name: str, body: bytes) -> bytes:
        """Answer several requests, each by itself."""
        batch: RankBatch = parse(body, RankBatch)
        self.engine.model(name)
        answers = await asyncio.gather(*(self._one(name, each, number) for number, each in enumerate(batch.requests)))
        return b'{"answers":[' + b",".join(answers) + b"]}"

    async def _one(self, name: str, plain: Any, number: int) -> bytes:
        try:
            request = convert(plain, RankRequest, at=f"/requests/{number}")
            return b'{"answer":' + await self.engine.rank(name, request, self._encode(plain)) + b"}"
        except Problem as problem:
            return b'{"problem":' + self._encode(problem.body) + b"}"

    # --------------------------------------------------------------------------------------------------- other routes

    def _endpoint(self, endpoint: endpoints.Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            start = time.perf_counter()
            if endpoint.scope is not None:
                model = endpoint.model or request.path_params.get("model")
                header = request.headers.get("authorization", "")
                if endpoint.model is not None:  # clients of Personalizer send the key in a header of its own
                    own = request.headers.get("ocp-apim-subscription-key")
                    header = header if own is None else f"Bearer {own}"
                self.keys.check(header, endpoint.scope, model)
            body = b""
            if endpoint.body is not None:
                check_media_type(request.headers.get("content-type", "").encode("latin-1"))
                body = await read_body(request.receive, request.headers.get("content-length", "").encode() or None)
            response = await endpoint.answer(self, request, body)
            log.info(
                "answered",
                extra={"path": endpoint.path, "status": response.status_code, "seconds": time.perf_counter() - start},
            )
            return response

        return answer


def _failed(item: RewardItem, result: RewardResult | Problem) -> RewardResult:
    if isinstance(result, Problem):
        return RewardResult(id=item.id, status="failed", detail=result.detail)
    return result


def check_media_type(given: bytes) -> None:
    """Refuse a body that does not say that it is JSON."""
    if given.partition(b";")[0].strip().lower() != _JSON:
        raise Problem(415, "the body must be JSON: send Content-Type: application/json")


async def read_body(receive: Receive, length: bytes | None) -> bytes:
    """Return the body of a request, of at most 1 MiB."""
    if length is not None and length.isdigit() and int(length) > MOST_BYTES:
        raise Problem(413, f"the body has {int(length):,} bytes: at most {MOST_BYTES:,} are read")
    parts, size = [], 0
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the connection was closed before the body ended")
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise Problem(413, f"the body has more than {MOST_BYTES:,} bytes")
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
