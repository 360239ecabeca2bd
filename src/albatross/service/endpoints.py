"""All routes but the hot ones, each with what the OpenAPI document says of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from albatross.service.events import Decision, Outcome, unpack_offer
from albatross.service.identity import DecisionId
from albatross.service.model import Model
from albatross.service.problems import MEDIA_TYPE, Problem, absent, as_personalizer
from albatross.service.settings import ModelSettings
from albatross.service.wire import (
    ActivatedAnswer,
    ArmAnswer,
    ArmRequest,
    ArmsAnswer,
    DecisionAnswer,
    ErasedAnswer,
    HealthAnswer,
    ImportAnswer,
    ImportRequest,
    ModelAnswer,
    ModelsAnswer,
    RankBatch,
    RankBatchAnswer,
    StatsAnswer,
    UserAnswer,
    check_name,
    parse,
)

if TYPE_CHECKING:
    from albatross.service.http import Service

_PAGE = 1_000  # records of an export that are read at once
_STATS_HOURS = 24 * 14
# What is counted of outcomes that have a reward within the wait, learnt or not.
REWARDED = ("outcome:learnt", "outcome:closed", "outcome:default", "outcome:frozen", "outcome:frozen_default")
Answer = Callable[["Service", Request, bytes], Awaitable[Response]]


class Endpoint(NamedTuple):
    """A route, with what it takes and gives."""

    method: str
    path: str
    scope: str | None  # None: no key is needed
    answer: Answer
    body: Any  # type of the request, None if there is none
    gives: Any  # type of the answer, a media type, or None if it has no body
    statuses: tuple[int, ...]  # beside success, 401, 403 and 429
    summary: str
    success: int = 200
    model: str | None = None  # which model a key must be for, on the routes of Personalizer


ENDPOINTS: list[Endpoint] = []


def endpoint(
    method: str,
    path: str,
    *,
    scope: str | None,
    gives: Any,
    body: Any = None,
    statuses: tuple[int, ...] = (),
    success: int = 200,
    model: str | None = None,
) -> Callable[[Answer], Answer]:
    """Register a route; its docstring is its summary."""

    def register(answer: Answer) -> Answer:
        summary = (answer.__doc__ or "").strip()
        ENDPOINTS.append(Endpoint(method, path, scope, answer, body, gives, statuses, summary, success, model))
        return answer

    return register


def answered(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer as JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


# ------------------------------------------------------------------------------------------------------------ health


@endpoint("GET", "/healthz", scope=None, gives=HealthAnswer)
async def healthz(service: Service, request: Request, body: bytes) -> Response:
    """Say that the process runs."""
    return answered(HealthAnswer(status="ok"))


@endpoint("GET", "/readyz", scope=None, gives=HealthAnswer, statuses=(503,))
async def readyz(service: Service, request: Request, body: bytes) -> Response:
    """Say whether the log can be written."""
    await service.engine.probe()
    return answered(HealthAnswer(status="ok"))


@endpoint("GET", "/metrics", scope="read", gives="text/plain")
async def metrics(service: Service, request: Request, body: bytes) -> Response:
    """Return metrics as Prometheus reads them."""
    engine = service.engine
    if not service.keys.may(request.headers.get("authorization", ""), None):
        raise Problem(403, "metrics are of all models, and this key is for some")
    found = engine.metrics
    found.log_bytes.set(engine.store.n_bytes)
    for name, model in engine.models.items():
        found.hot_users.labels(name).set(len(model.hot))
        found.pending.labels(name).set(len(model.fold.open))
        found.missing.counts[name] = model.features.missing
        if model.rewarded:
            found.reward_mean.labels(name).set(model.reward_sum / model.rewarded)
    return Response(found.text(), media_type="text/plain; version=0.0.4")


@endpoint("GET", "/openapi.json", scope=None, gives="application/json")
async def openapi(service: Service, request: Request, body: bytes) -> Response:
    """Return this description of the service."""
    from albatross.service.openapi import document

    return Response(document(), media_type="application/json")


# ------------------------------------------------------------------------------------------------------------ models


@endpoint("GET", "/v1/models", scope="read", gives=ModelsAnswer)
async def list_models(service: Service, request: Request, body: bytes) -> Response:
    """List all models."""
    names = [name for name, model in service.engine.models.items() if not model.archived]
    header = request.headers.get("authorization", "")
    return answered(ModelsAnswer(models=[name for name in names if service.keys.may(header, name)]))


@endpoint("PUT", "/v1/models/{model}", scope="admin", body=ModelSettings, gives=ModelAnswer, statuses=(201, 412, 422))
async def put_model(service: Service, request: Request, body: bytes) -> Response:
    """Create a model, or change its mode, floor, reward rules or logging. If-Match may name the version to change."""
    settings = parse(body, ModelSettings)
    version = _version(request.headers.get("if-match"))
    model, new = await service.engine.put_model(request.path_params["model"], settings, version)
    return _shown(model, 201 if new else 200)


@endpoint("GET", "/v1/models/{model}", scope="read", gives=ModelAnswer, statuses=(404,))
async def get_model(service: Service, request: Request, body: bytes) -> Response:
    """Show a model."""
    shown = _shown(service.engine.kept(request.path_params["model"]), 200)
    await service.engine.settled()
    return shown


@endpoint("DELETE", "/v1/models/{model}", scope="admin", gives=ModelAnswer, statuses=(404,))
async def archive_model(service: Service, request: Request, body: bytes) -> Response:
    """Archive a model: it decides and learns no more, and its log stays."""
    model = service.engine.model(request.path_params["model"])
    await service.engine.happen(model, lambda group, ticket: model.happen("archived", {}, group, ticket))
    return _shown(model, 200)


def _shown(model: Model, status: int) -> Response:
    answer = ModelAnswer(
        name=model.name,
        version=model.version,
        archived=model.archived,
        coordinates=list(model.features.names),
        settings=model.settings,
    )
    return answered(answer, status, {"etag": f'"{model.version}"'})


def _version(header: str | None) -> int | None:
    if header in (None, "*"):
        return None
    text = str(header).strip().strip('"')
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise Problem(412, f"If-Match must be a version, not {header}")
    return int(text)


# -------------------------------------------------------------------------------------------------------------- arms


@endpoint("GET", "/v1/models/{model}/arms", scope="read", gives=ArmsAnswer, statuses=(404,))
async def list_arms(service: Service, request: Request, body: bytes) -> Response:
    """List arms with their decisions and mean rewards."""
    model = service.engine.model(request.path_params["model"])
    counts: dict[str, list[float]] = {}
    found = await service.engine.aside(service.engine.store.tallies_by_label, model.number, 0)
    for what, label, n, total, _ in found:
        cell = counts.setdefault(label, [0, 0, 0.0])
        if what.startswith("decision:"):
            cell[0] += n
        if what in REWARDED:
            cell[1] += n
            cell[2] += total
    arms = [(name, True, features) for name, features in model.counted_arms.items()]
    arms += [(name, False, {}) for name in dict.fromkeys(model.retired.values()) if name not in model.arms]
    shown = answered(ArmsAnswer(arms=[_arm(*arm, *counts.get(arm[0], (0, 0, 0.0))) for arm in arms]))
    await service.engine.settled()
    return shown


def _arm(name: str, active: bool, features: dict[str, Any], decisions: float, n: float, total: float) -> ArmAnswer:
    mean = total / n if n else None
    return ArmAnswer(
        arm=name, active=active, features=features, decisions=int(decisions), rewards=int(n), mean_reward=mean
    )


@endpoint(
    "PUT",
    "/v1/models/{model}/arms/{arm:path}",
    scope="admin",
    body=ArmRequest,
    gives=ArmAnswer,
    statuses=(201, 404, 422),
)
async def put_arm(service: Service, request: Request, body: bytes) -> Response:
    """Add an arm, bring it back, or change its features."""
    model, name = service.engine.model(request.path_params["model"]), _arm_name(request)
    given: ArmRequest = parse(body, ArmRequest)
    new = await service.engine.put_arm(model, name, given.features)
    return answered(_arm(name, True, given.features, 0, 0, 0.0), 201 if new else 200)


@endpoint("DELETE", "/v1/models/{model}/arms/{arm:path}", scope="admin", gives=ArmAnswer, statuses=(404, 422))
async def retire_arm(service: Service, request: Request, body: bytes) -> Response:
    """Retire an arm: it is no longer eligible, and what it taught of the features stays."""
    model, name = service.engine.model(request.path_params["model"]), _arm_name(request)
    await service.engine.happen(model, lambda group, ticket: model.retire_arm(name, group, ticket))
    return answered(_arm(name, False, {}, 0, 0, 0.0))


def _arm_name(request: Request) -> str:
    name: str = request.path_params["arm"]
    if not name or any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in name):
        raise Problem(422, "an arm's name must have no control characters")
    check_name(name, "an arm's name", at="")
    return name


# ---------------------------------------------------------------------------------------------------------- decisions


@endpoint(
    "POST",
    "/v1/models/{model}/rank/batch",
    scope="decide",
    body=RankBatch,
    gives=RankBatchAnswer,
    statuses=(400, 404, 413, 415, 422, 503),
)
async def rank_batch(service: Service, request: Request, body: bytes) -> Response:
    """Decide for up to 256 requests, each answered or refused by itself."""
    return Response(await service.rank_batch(request.path_params["model"], body), media_type="application/json")


@endpoint(
    "POST",
    "/v1/models/{model}/decisions",
    scope="import",
    body=ImportRequest,
    gives=ImportAnswer,
    statuses=(400, 404, 413, 415, 422, 503),
)
async def import_decisions(service: Service, request: Request, body: bytes) -> Response:
    """Learn up to 1,000 decisions that were made elsewhere, with their rewards."""
    learnt = await service.engine.learn(request.path_params["model"], parse(body, ImportRequest))
    return answered(ImportAnswer(learnt=learnt))


@endpoint("POST", "/v1/decisions/{id}/activate", scope="reward", gives=ActivatedAnswer, statuses=(404, 410, 503))
async def activate(service: Service, request: Request, body: bytes) -> Response:
    """Say that a deferred decision was shown: its wait begins."""
    header = request.headers.get("authorization", "")
    may = partial(service.keys.may, header)
    status = await service.engine.activate(request.path_params["id"], may=may)
    return answered(ActivatedAnswer(status=status))  # type: ignore[arg-type]


@endpoint("GET", "/v1/decisions/{id}", scope="read", gives=DecisionAnswer, statuses=(404, 410))
async def get_decision(service: Service, request: Request, body: bytes) -> Response:
    """Show a decision: what was offered and chosen, and what came of it."""
    engine, text = service.engine, request.path_params["id"]
    found = engine.identity.parse(text)
    made = engine.store.decision(found.seq) if found else None
    if found is None or found.seq > engine.committed:
        raise absent("there is no such decision")
    if made is None:
        raise Problem(410, "the decision was deleted")
    model = engine.models_by_number[made.model]
    if not service.keys.may(request.headers.get("authorization", ""), model.name):
        raise absent("there is no such decision")
    return answered(shown_decision(service, model, made, engine.store.outcomes(made.seq)))


def shown_decision(service: Service, model: Model, made: Decision, outcomes: Iterable[Outcome]) -> DecisionAnswer:
    """Return a decision as callers see it."""
    offer: dict[str, dict[str, float]] = {}
    if made.offer:
        arms, rows = unpack_offer(made.offer)
        offer = {
            arm: dict(zip(model.features.names, row, strict=True)) for arm, row in zip(arms, rows.tolist(), strict=True)
        }
    return DecisionAnswer(
        id=service.engine.identity.decision(DecisionId(0, made.seq)),
        model=model.name,
        at=shown_time(made.at),
        arm=made.arm,
        by=made.by,
        propensity=made.propensity,
        slot=made.place,
        offer=offer,
        outcomes=[shown_outcome(came) for came in outcomes],
    )


def shown_outcome(came: Outcome) -> dict[str, Any]:
    """Return an outcome as callers see it."""
    return {"at": shown_time(came.at), "status": came.status, "value": came.value}


def shown_time(at: int) -> str:
    """Return milliseconds since 1970 as ISO 8601.

    >>> shown_time(1_000)
    '1970-01-01T00:00:01.000+00:00'
    """
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="milliseconds")


# -------------------------------------------------------------------------------------------------------------- users


@endpoint(
    "GET", "/v1/models/{model}/users/{user:path}/log", scope="erase", gives="application/x-ndjson", statuses=(404,)
)
async def user_log(service: Service, request: Request, body: bytes) -> Response:
    """Return all that is kept of one user, one record per line."""
    engine = service.engine
    model = engine.kept(request.path_params["model"])
    user = engine.user(model, request.path_params["user"])

    def read() -> str:
        return "".join(f"{json.dumps(_line(service, model, event))}\n" for event in engine.store.of_user(user))

    return Response(await engine.aside(read), media_type="application/x-ndjson")


@endpoint("GET", "/v1/models/{model}/users/{user:path}", scope="read", gives=UserAnswer, statuses=(404, 422))
async def get_user(service: Service, request: Request, body: bytes) -> Response:
    """Show what is known of a user, with warnings in sentences."""
    engine = service.engine
    model = engine.model(request.path_params["model"])
    user = engine.user(model, request.path_params["user"])
    model = await engine.in_memory(model.number, user)
    if user not in model.bandits:
        engine.leave_newcomer(model, user)
        return answered(UserAnswer(new_user=True, estimates={}))
    shown = answered(UserAnswer(new_user=False, estimates=model.bandits.describe(user)))
    await engine.settled()
    return shown


@endpoint("DELETE", "/v1/models/{model}/users/{user:path}", scope="erase", gives=ErasedAnswer, statuses=(404, 422))
async def erase_user(service: Service, request: Request, body: bytes) -> Response:
    """Erase everything that is kept of a user in a model."""
    model = service.engine.kept(request.path_params["model"])
    return answered(ErasedAnswer(erased=await service.engine.erase([model], request.path_params["user"])))


@endpoint("DELETE", "/v1/users/{user:path}", scope="erase", gives=ErasedAnswer, statuses=(404, 422))
async def erase_user_everywhere(service: Service, request: Request, body: bytes) -> Response:
    """Erase everything that is kept of a user in all models that the key is for."""
    header = request.headers.get("authorization", "")
    models = [model for name, model in service.engine.models.items() if service.keys.may(header, name)]
    return answered(ErasedAnswer(erased=await service.engine.erase(models, request.path_params["user"])))


# ------------------------------------------------------------------------------------------------------ stats and log


@endpoint("GET", "/v1/models/{model}/stats", scope="read", gives=StatsAnswer, statuses=(404,))
async def stats(service: Service, request: Request, body: bytes) -> Response:
    """Return counts of the last two weeks, by the hour."""
    engine = service.engine
    model = engine.model(request.path_params["model"])
    since = engine.now // 3_600_000 - _STATS_HOURS

    def read() -> Response:  # a thousand arms have a million rows
        names = ("what", "label", "n", "sum", "squares")
        rows = [
            {"hour": shown_time(hour * 3_600_000), **dict(zip(names, cells, strict=True))}
            for hour, *cells in engine.store.tallies(model.number, since)
        ]
        return answered(StatsAnswer(hours=rows))

    response: Response = await engine.aside(read)
    return response


@endpoint("GET", "/v1/models/{model}/log", scope="export", gives="application/x-ndjson", statuses=(404, 422))
async def export_log(service: Service, request: Request, body: bytes) -> Response:
    """Return the log after a sequence number, one record per line; `after` of the next call is the last `seq`."""
    model = service.engine.kept(request.path_params["model"])
    text = request.query_params.get("after", "0")
    if not text.isdecimal() or len(text) > 15:
        raise Problem(422, f"after must be a sequence number, not {text!r}", at="/after")
    return StreamingResponse(_lines(service, model, int(text)), media_type="application/x-ndjson")


async def _lines(service: Service, model: Model, after: int) -> AsyncIterator[bytes]:
    def read(after: int) -> tuple[bytes, int]:
        page = service.engine.store.page(model.number, after, _PAGE)
        text = "".join(f"{json.dumps(_line(service, model, event))}\n" for event in page)
        return text.encode(), page[-1].seq if len(page) == _PAGE else 0

    while True:  # in a thread: others should not wait for it
        text, after = await service.engine.aside(read, after)
        yield text
        if not after:
            return


def _line(service: Service, model: Model, event: Decision | Outcome) -> dict[str, Any]:
    try:
        return _record(service, model, event)
    except Exception:  # damage may cause any error; the others are shown
        return {"seq": event.seq, "record": "damaged"}


def _record(service: Service, model: Model, event: Decision | Outcome) -> dict[str, Any]:
    if isinstance(event, Outcome):
        decision = service.engine.identity.decision(DecisionId(0, event.decision))
        return {"seq": event.seq, "record": "outcome", "decision": decision, **shown_outcome(event)}
    shown = msgspec.to_builtins(shown_decision(service, model, event, ()))
    del shown["outcomes"]
    return {"seq": event.seq, "record": "decision", "user": event.user.hex(), **shown}


# ------------------------------------------------------------------------------------------------------------- errors


async def problem(request: Request, error: Exception) -> Response:
    """Answer what is refused."""
    if isinstance(error, HTTPException):
        error = Problem(error.status_code, str(error.detail), allow=(error.headers or {}).get("Allow"))
    elif not isinstance(error, Problem):
        error = Problem(500, "an unexpected error: see the service's log")
    status, body = error.status, error.body
    if request.url.path.startswith("/personalizer/"):
        status, body = as_personalizer(error)
    response = Response(msgspec.json.encode(body), status, media_type=MEDIA_TYPE)
    response.raw_headers += [header for header in error.headers if header[0] != b"content-type"]
    return response


HANDLERS: dict[Any, Any] = {Problem: problem, HTTPException: problem, Exception: problem}
