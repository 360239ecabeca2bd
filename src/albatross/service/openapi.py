"""The OpenAPI 3.1 document, made from the same types that parse and answer."""

from __future__ import annotations

import json
import re
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec

import albatross
from albatross.service.personalizer import PersonalizerRank
from albatross.service.problems import MEDIA_TYPE, ProblemBody
from albatross.service.routes import ENDPOINTS
from albatross.service.settings import ModelSettings
from albatross.service.wire import (
    CODES,
    ArmRequest,
    ImportRequest,
    RankAnswer,
    RankBatch,
    RankRequest,
    RewardRequest,
    RewardResult,
    RewardsAnswer,
    RewardsRequest,
)

EXAMPLES: dict[Any, Any] = {
    RankRequest: {
        "user": "u-4711",
        "context": {"device": "phone"},
        "arms": {"tagesblatt": {"topic": "sport", "age": 2.5}, "morgenpost": {"topic": "politics", "age": 0.3}},
        "id": "request-1",
    },
    RankBatch: {"requests": [{"user": "u-4711"}, {"user": "u-4712", "slots": 2}]},
    RewardRequest: {"value": 1.0},
    RewardsRequest: {"rewards": [{"id": "00-3-q40twd11", "value": 1.0}, {"id": "00-5-002xtyv2", "value": 0.0}]},
    ImportRequest: {
        "decisions": [{"user": "u-9", "arm": "morgenpost", "features": {"topic": "sport", "age": 1.0}, "reward": 1.0}]
    },
    ArmRequest: {"features": {"price": 9.0}},
    ModelSettings: {
        "arms": {"basic": {"price": 9.0}, "plus": {"price": 19.0}},
        "features": {"price": {"kind": "number", "mean": 20.0, "sd": 10.0}},
        "rewards": {"wait": "2h", "default": 0.0, "low": 0.0, "high": 1.0},
    },
    PersonalizerRank: {
        "contextFeatures": [{"device": "phone"}],
        "actions": [{"id": "tagesblatt", "features": [{"topic": "sport"}]}, {"id": "morgenpost", "features": []}],
        "eventId": "event-1",
    },
}
_REFUSED = (400, 404, 413, 415, 422, 503)
_HOT: list[tuple[str, str, str, Any, Any, tuple[int, ...], str]] = [
    ("POST", "/v1/models/{model}/rank", "decide", RankRequest, RankAnswer, _REFUSED, "Decide which arm a user gets."),
    (
        "POST",
        "/v1/models/{model}/rewards",
        "reward",
        RewardsRequest,
        RewardsAnswer,
        _REFUSED,
        "Say what decisions brought. Every reward has its status.",
    ),
    (
        "POST",
        "/v1/decisions/{id}/reward",
        "reward",
        RewardRequest,
        RewardResult,
        (400, 413, 415, 503),
        "Say what one decision brought.",
    ),
]


@cache
def document() -> bytes:
    """Return the document as JSON."""
    operations = [
        *((*each, 200) for each in _HOT),
        *((e.method, e.path, e.scope, e.body, e.gives, e.statuses, e.summary, e.success) for e in ENDPOINTS),
    ]
    types = {kind for _, _, _, *both, _, _, _ in operations for kind in both if isinstance(kind, type)} | {ProblemBody}
    listed = sorted(types, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(listed, ref_template="#/components/schemas/{name}")
    refs = dict(zip(listed, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for method, path, scope, body, gives, statuses, summary, success in operations:
        shown = re.sub(r":path}", "}", path)
        paths.setdefault(shown, {})[method.lower()] = _operation(
            shown, scope, body, gives, (success, *statuses), summary, refs, method
        )
    described = {
        "openapi": "3.1.0",
        "info": {"title": "Albatross", "version": albatross.__version__, "description": "A decision service."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "personalizer": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
            },
        },
    }
    return json.dumps(described).encode()


def _operation(
    path: str, scope: str | None, body: Any, gives: Any, statuses: tuple[int, ...], summary: str, refs: Any, method: str
) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]
    if path.endswith("}/log") and "user" not in names:
        parameters.append({"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0}})
    if method == "PUT" and names == ["model"]:
        parameters.append({"name": "If-Match", "in": "header", "schema": {"type": "string"}})
    found: dict[str, Any] = {"summary": summary, "parameters": parameters, "responses": {}}
    if body is not None:
        described = {"schema": refs[body], "example": EXAMPLES[body]}
        found["requestBody"] = {"required": True, "content": {"application/json": described}}
        statuses = (*statuses, *(status for status in (400, 413, 415, 422) if status not in statuses))
    if scope is not None:
        found["security"] = [{"key": []}, *([{"personalizer": []}] if path.startswith("/personalizer/") else [])]
        found["description"] = f"Needs a key of scope `{scope}`."
        statuses = (*statuses, 401, 403, 429)
    own = set(CODES.values()) if gives is RewardResult else set()
    for status in sorted({*statuses, *own}):
        good = status < 300 or status in own
        content: dict[str, Any] = {gives: {}} if isinstance(gives, str) else {}
        if gives is not None and not isinstance(gives, str):
            content = {"application/json": {"schema": refs[gives]}}
        refused = {MEDIA_TYPE: {"schema": refs[ProblemBody]}}
        if good and status in own and status >= 400:
            content = {**content, **refused}
        found["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": content if good else refused,
        }
    return found
