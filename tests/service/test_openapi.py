"""The OpenAPI document says what the service does: checked by requests that are made from it, and by malformed ones."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from running import Running
from serving_tests import NEWS, Served

from albatross.service.endpoints import ENDPOINTS
from albatross.service.openapi import EXAMPLES, document
from albatross.service.settings import ModelSettings, check
from albatross.service.wire import RankRequest, RewardRequest, RewardsRequest, convert, parse

schemathesis = pytest.importorskip("schemathesis")
RANK = "/v1/models/news/rank"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    service = Running(tmp_path_factory.mktemp("service") / "data")
    yield service
    service.close()


def test_every_route_is_described():
    paths = json.loads(document())["paths"]
    for each in ENDPOINTS:
        assert each.method.lower() in paths[re.sub(r":path}", "}", each.path)]
        assert each.summary.endswith(".")


def test_every_body_has_an_example_that_is_accepted():
    bodies = {RankRequest, RewardsRequest, RewardRequest, *(each.body for each in ENDPOINTS if each.body is not None)}
    assert set(EXAMPLES) == bodies
    for kind, example in EXAMPLES.items():
        parse(json.dumps(example).encode(), kind)
    check(convert(EXAMPLES[ModelSettings], ModelSettings))


@pytest.mark.filterwarnings("ignore")  # of the tool's own dependencies
def test_requests_made_from_the_document_get_documented_answers(running):
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    headers = {"Authorization": f"Bearer {running.key}"}
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
        )
        def check(case):
            nonlocal tried
            tried += 1
            archives = case.method == "DELETE" and case.path.endswith("{model}")
            if "model" in (case.path_parameters or {}) and tried % 3 and not archives:
                case.path_parameters["model"] = "news"  # one that is there
            case.call_and_validate(headers=headers, checks=checks, timeout=20)

        given(case=operation.as_strategy())(check)()
    assert tried > 150


def test_malformed_bodies_never_break_it_and_change_nothing(tmp_path):
    served = Served(tmp_path)
    served.model()
    good = json.dumps(
        {
            "user": "anna",
            "context": {"device": "phone"},
            "arms": {"anzeiger": {"topic": "sport", "age": 2.5}, "bote": {"topic": "politics", "age": 1}},
            "slots": 1,
            "id": "r",
        }
    ).encode()
    rng, seq = random.Random(0), served.engine.seq
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {served.key}"}

    async def send_all():
        codes, bodies = [], [_damaged(good, rng) for _ in range(5_000)]
        for body in bodies:
            before = served.engine.seq
            answer = await served.http.post(RANK, content=body, headers=headers)
            codes.append(answer.status_code)
            assert answer.status_code in (200, 400, 413, 422), (answer.status_code, body)
            assert answer.status_code == 200 or served.engine.seq == before
        return codes

    codes = served.run(send_all(), timeout=300)
    assert codes.count(400) > 1_000
    assert codes.count(422) > 100
    assert served.engine.seq > seq
    served.close()


def _damaged(body: bytes, rng: random.Random) -> bytes:
    """Return a body with a few bytes changed, removed, doubled or moved."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place : place + rng.randint(1, 8)]
        elif kind == 2:
            data[place:place] = data[place : place + rng.randint(1, 20)]
        elif kind == 3:
            data[place:place] = rng.choice([b"null", b"1e999", b"-0", b"{}", b"[]", b'"', b"\\u0000", b"\xff", b"true"])
        else:
            data = data[: rng.randrange(len(data) + 1)]
    return bytes(data)


def test_a_name_that_no_path_can_hold_gets_a_documented_answer(served):
    assert served.call("DELETE", "/v1/users/a%0Ab").status_code == 404
    assert "404" in json.loads(document())["paths"]["/v1/users/{user}"]["delete"]["responses"]


def test_the_settings_of_a_model_are_described():
    described = json.loads(document())["components"]["schemas"]
    assert set(NEWS) <= set(described["ModelSettings"]["properties"])
