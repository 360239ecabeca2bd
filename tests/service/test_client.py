"""The clients, against the service itself and against servers that are away or busy."""

from __future__ import annotations

import inspect
import subprocess
import sys

import httpx
import numpy as np
import pytest
from serving_tests import NEWS

from albatross import client as library
from albatross.client import (
    AsyncClient,
    Client,
    ImportedDecision,
    NotAllowed,
    NotFound,
    RankRequest,
    Refused,
    Unavailable,
)


class Bridge(httpx.BaseTransport):
    """Carries requests of a synchronous client into the service's loop."""

    def __init__(self, served):
        self.served = served

    def handle_request(self, request):
        async def answer():
            transport = httpx.ASGITransport(app=self.served.service, raise_app_exceptions=False)
            inner = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
            response = await transport.handle_async_request(inner)
            return response.status_code, response.headers, await response.aread()

        status, headers, content = self.served.run(answer())
        return httpx.Response(status, headers=headers, content=content)


@pytest.fixture
def client(served):
    with Client("http://service", served.key) as made:
        made._http = httpx.Client(**made._options, transport=Bridge(served))
        made.put_model("news", NEWS)
        yield made


@pytest.mark.parametrize("key", ["alb_x\n", " alb_x", "alb_\x00x", "alb_ä"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_key_that_no_request_can_carry_is_refused_and_not_shown(kind, key):
    with pytest.raises(ValueError, match="does it end in a line end") as refused:
        kind("http://127.0.0.1:1", key)
    assert "alb_" not in str(refused.value)


def test_a_decision_and_its_reward(client):
    answer = client.rank("news", "an/na ä", context={"device": "phone"}, explain=True)
    (made,) = answer.decisions
    assert answer.new_user
    assert {ranked.arm for ranked in answer.ranking} == set(NEWS["arms"])
    assert client.reward(made.id, 1.0).status == "learnt"
    assert client.reward(made.id, 1.0).status == "duplicate"
    assert client.reward(made.id, 2.0).status == "conflict"
    assert client.reward("00-1-00000000", 2.0).status == "unknown"
    assert [result.status for result in client.rewards("news", [(made.id, 1.0), (made.id, 3.0)])] == [
        "duplicate",
        "conflict",
    ]
    assert client.decision(made.id).arm == made.arm
    assert [record["record"] for record in client.log("news")] == ["decision", "outcome"]
    assert not client.user("news", "an/na ä").new_user
    assert client.erase_user("an/na ä", model="news") == 2
    assert client.user("news", "an/na ä").new_user


def test_features_as_numbers_are_those_of_names(client):
    client.put_model("pure", {**NEWS, "features": {"x": {"kind": "vector", "length": 2}}})
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    made = client.rank("pure", "anna", arms=["bote", "anzeiger"], features=rows).decisions[0]
    assert client.decision(made.id).offer == {
        "bote": {"x[0]": 1.0, "x[1]": 2.0},
        "anzeiger": {"x[0]": 3.0, "x[1]": 4.0},
    }


def test_several_users_at_once_each_by_themselves(client):
    first, second = client.rank_batch("news", [RankRequest(user="anna"), RankRequest(user="bob", arms=["nobody"])])
    assert first.answer.decisions[0].arm in NEWS["arms"]
    assert second.problem.status == 422


def test_models_arms_and_imports(client):
    assert client.models() == ["news"]
    assert client.put_arm("news", "neu", {"topic": "sport"}).active
    assert {arm.arm for arm in client.arms("news")} == {*NEWS["arms"], "neu"}
    assert not client.retire_arm("news", "neu").active
    assert client.import_decisions("news", [ImportedDecision(user="anna", arm="bote", reward=1.0)]) == 1
    assert client.stats("news")
    deferred = client.rank("news", "anna", defer=True).decisions[0].id
    assert [client.activate(deferred).status for _ in range(2)] == ["activated", "active"]
    assert client.archive_model("news").archived


@pytest.mark.parametrize("name", [".", ".."])
def test_names_that_look_like_steps_of_a_path_are_names(client, name):
    assert client.put_arm("news", name).arm == name
    assert client.retire_arm("news", name).arm == name
    client.rank("news", name)
    assert not client.user("news", name).new_user
    assert client.erase_user(name, model="news") == 1
    client.rank("news", name)
    assert client.erase_user(name) == 1
    assert client.models() == ["news"]


def test_refusals_say_what_and_where(client):
    with pytest.raises(NotFound, match="there is no model 'nothing'"):
        client.rank("nothing", "anna")
    with pytest.raises(NotFound):
        list(client.log("nothing"))
    with pytest.raises(Refused) as caught:
        client.rewards("news", {"00-1-00000000": float("inf")})
    assert (caught.value.status, caught.value.at) == (422, "/rewards/0/value")
    with pytest.raises(Refused, match="412"):
        client.put_model("news", NEWS, version=7)
    client._http.headers["Authorization"] = "Bearer nonsense"
    with pytest.raises(NotAllowed):
        client.models()


def answering(*answers):
    """Return a transport that gives these answers in turn, and the requests that it got."""
    got, left = [], list(answers)

    def handle(request):
        got.append(request)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(handle), got


RANKED = httpx.Response(200, json={"decisions": [], "model_version": 1, "new_user": True})
BUSY = httpx.Response(503, headers={"Retry-After": "0"})
TOO_MANY = httpx.Response(429)
LOST = httpx.ReadError("lost")


def test_what_is_not_answered_is_asked_again_with_the_same_id():
    transport, got = answering(httpx.ConnectError("away"), LOST, BUSY, TOO_MANY, RANKED)
    with Client("http://service", "key") as client:
        client._http = httpx.Client(**client._options, transport=transport)
        assert client.rank("news", "anna").new_user
    assert len(got) == 5
    assert len({request.content for request in got}) == 1
    assert b'"id":"' in got[0].content


def test_an_import_is_sent_again_only_if_it_was_not_seen():
    transport, got = answering(httpx.ConnectError("away"), TOO_MANY, LOST)
    with Client("http://service", "key") as client:
        client._http = httpx.Client(**client._options, transport=transport)
        with pytest.raises(Unavailable, match="lost"):
            client.import_decisions("news", [])
    assert len(got) == 3


def test_a_timeout_is_named_although_it_has_no_text():
    transport, _ = answering(httpx.ReadTimeout(""))
    with Client("http://service", "key", patience=0.0) as client:
        client._http = httpx.Client(**client._options, transport=transport)
        with pytest.raises(Unavailable, match="no answer: ReadTimeout"):
            client.models()


def test_patience_ends(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(library.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(library.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    transport, got = answering(*(httpx.Response(503, headers={"Retry-After": "2"}) for _ in range(100)))
    with Client("http://service", "key", patience=30.0) as client:
        client._http = httpx.Client(**client._options, transport=transport)
        with pytest.raises(Unavailable, match="503"):
            client.models()
    assert 20.0 < now[0] < 30.0
    assert 4 <= len(got) <= 15  # pauses grow, and are never shorter than asked for


def test_the_same_methods_can_be_awaited(served):
    async def use():
        async with AsyncClient("http://service", served.key) as client:
            client._http = httpx.AsyncClient(**client._options, transport=httpx.ASGITransport(app=served.service))
            await client.put_model("news", NEWS)
            made = (await client.rank("news", "anna")).decisions[0]
            assert (await client.reward(made.id, 1.0)).status == "learnt"
            return [record["record"] async for record in client.log("news")]

    assert served.run(use()) == ["decision", "outcome"]


def test_both_clients_have_the_same_methods():
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        other = getattr(AsyncClient, name.replace("__enter", "__aenter").replace("__exit", "__aexit"))
        assert inspect.signature(method).parameters.keys() == inspect.signature(other).parameters.keys(), name
        assert method.__doc__ == other.__doc__ or name == "__init__"
    assert list(inspect.signature(Client("http://x", "key").rank).parameters)[:2] == ["model", "user"]


def test_a_client_needs_no_compiler():
    command = "import sys, albatross.client; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], timeout=60).returncode == 0


def test_an_address_without_a_scheme_is_refused():
    with pytest.raises(ValueError, match="http://"):
        Client("127.0.0.1:8000", "key")
