"""The API of Azure Personalizer, mapped: rank, reward and activate with its bodies and status codes.

All events belong to the model `personalizer`, which the first rank creates with Personalizer's defaults: one bandit for
all users, a reward wait of ten minutes and a default reward of 0. A model of that name that is there already is used as
it is, if it has the same features (`FEATURES`); with `users = "own"` the user is the context feature `user`.

Features have no schema. They are flattened to names, texts and truth values to `name=value`, and hashed into 64 buckets
with signs: those of the action, those of the context, and the products of both, for without products the context could
not change which action is best. Numbers keep their value.

An action is an arm, added when it first comes. Once there are 1,000, the one that was not offered for the longest time
makes room: it is retired, and comes back as a new arm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec import Meta
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from albatross.features import Features
from albatross.service.endpoints import answered, endpoint
from albatross.service.model import Model
from albatross.service.names import ArmName
from albatross.service.problems import Problem, absent, invalid
from albatross.service.settings import LARGEST, MOST_ARMS, ModelSettings, RewardRules
from albatross.service.wire import RankAnswer, RankRequest, Request, RewardItem, RewardRequest, check_name, parse

if TYPE_CHECKING:
    from albatross.service.http import Service

NAME = "personalizer"
BUCKETS = 64
FEATURES: dict[str, dict[str, Any]] = {"hashed": {"kind": "vector", "length": BUCKETS}}
MOST_ACTIONS = 50  # of one call, as in Personalizer
_MOST_TERMS, _DEEPEST = 200, 20  # features of a context or an action, and how deep they may be nested
_USER = "user"  # the context feature that names the user of a model with one bandit per user
_SIGN = np.uint64(BUCKETS)
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

Objects = list[dict[str, Any]]
EventId = Annotated[str, Meta(min_length=1, max_length=256)]


class Action(Request, kw_only=True):
    """An action with its features."""

    id: ArmName
    features: Objects = msgspec.field(default_factory=list)


class PersonalizerRank(Request, kw_only=True, rename="camel"):
    """Personalizer's rank request."""

    actions: Annotated[list[Action], Meta(min_length=1, max_length=MOST_ACTIONS)]
    context_features: Objects | None = None
    excluded_actions: list[str] | None = None
    event_id: EventId | None = None
    defer_activation: bool | None = None


class RankedAction(msgspec.Struct, kw_only=True):
    """An action with the probability with which it was chosen."""

    id: str
    probability: float | None


class PersonalizerRanked(msgspec.Struct, kw_only=True, rename="camel"):
    """Personalizer's answer to a rank request."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


# ------------------------------------------------------------------------------------------------------------- routes


@endpoint(
    "POST",
    "/personalizer/v1.0/rank",
    scope="decide",
    model=NAME,
    body=PersonalizerRank,
    gives=PersonalizerRanked,
    success=201,
    statuses=(404, 409, 503),
)
async def rank(service: Service, request: HttpRequest, body: bytes) -> Response:
    """Decide which action to show, as Personalizer's rank does."""
    asked: PersonalizerRank = parse(body, PersonalizerRank)
    ids = [action.id for action in asked.actions]
    if len(set(ids)) < len(ids):
        raise invalid("actions lists an id twice", at="/actions")
    excluded = set(asked.excluded_actions or ())
    eligible = [each for each in ids if each not in excluded]
    if not eligible:
        raise invalid("all actions are excluded", at="/excludedActions")
    for place, each in enumerate(ids):
        check_name(each, "an action's id", at=f"/actions/{place}/id")
    model = await _model(service, eligible)
    user, context = _user(model, asked.context_features or [])
    rows = encoded(context, [action for action in asked.actions if action.id not in excluded])
    await _offer(service, model, eligible)
    made = RankRequest(
        user=user,
        arms={name: {"hashed": row} for name, row in zip(eligible, rows.tolist(), strict=True)},
        baseline=eligible[0],
        defer=bool(asked.defer_activation),
        explain=True,
        id=asked.event_id,
    )
    keep = 2 * model.settings.rewards.wait_ms  # a reward finds its decision by the event id
    answer = await service.engine.rank(NAME, made, body, keep=keep)
    return answered(_ranked(msgspec.json.decode(answer, type=RankAnswer), asked, model.settings.floor), 201)


@endpoint(
    "POST",
    "/personalizer/v1.0/events/{eventId:path}/reward",
    scope="reward",
    model=NAME,
    body=RewardRequest,
    gives=None,
    success=204,
    statuses=(404, 503),
)
async def reward(service: Service, request: HttpRequest, body: bytes) -> Response:
    """Say what an event brought, as Personalizer's reward does."""
    given: RewardRequest = parse(body, RewardRequest)
    decision = _decision(service, request.path_params["eventId"])
    result = await service.engine.reward(NAME, RewardItem(id=decision, value=given.value))
    if result.status in ("unknown", "gone"):
        raise absent("there is no such event")
    if result.status == "invalid":
        raise invalid(result.detail, at="/value")
    return Response(status_code=204)  # late, duplicate and further rewards count for nothing, and are no errors


@endpoint(
    "POST",
    "/personalizer/v1.0/events/{eventId:path}/activate",
    scope="reward",
    model=NAME,
    gives=None,
    success=204,
    statuses=(404, 503),
)
async def activate(service: Service, request: HttpRequest, body: bytes) -> Response:
    """Say that the action of an event was shown, as Personalizer's activate does."""
    decision = _decision(service, request.path_params["eventId"])
    try:
        await service.engine.activate(decision, NAME)
    except Problem as problem:
        raise absent("there is no such event") if problem.status == 410 else problem from None
    return Response(status_code=204)


# --------------------------------------------------------------------------------------------------- model and events


_making: WeakKeyDictionary[Service, asyncio.Future[Any]] = WeakKeyDictionary()  # while the model is being made


async def _model(service: Service, actions: list[str]) -> Model:
    """Return the model of all events, made now if it is not there. Everybody waits until it is compiled."""
    if NAME not in service.engine.models and service not in _making:
        rules = RewardRules(wait="10m", default=0.0)
        settings = ModelSettings(arms=actions, features=FEATURES, policy="albatross", users="shared", rewards=rules)
        making = _making[service] = asyncio.ensure_future(service.engine.put_model(NAME, settings))
        making.add_done_callback(lambda _: _making.pop(service, None))
    if service in _making:
        await asyncio.shield(_making[service])  # whoever asked first may go away
    model = service.engine.model(NAME)
    if model.features != Features.from_dict({"features": FEATURES}):
        raise Problem(409, f"the model {NAME!r} has features of its own: call it by /v1/models/{NAME}")
    return model


def _user(model: Model, context: Objects) -> tuple[str, Objects]:
    """Return the user of a context, and the context without it."""
    if model.settings.users == "shared":
        return "everybody", context
    named = [each[_USER] for each in context if isinstance(each.get(_USER), str)]
    if len(named) != 1 or not named[0]:
        raise invalid(f"every user has a bandit of their own: contextFeatures must hold one text {_USER!r}", at="")
    return named[0], [{name: value for name, value in each.items() if name != _USER} for each in context]


_offered: WeakKeyDictionary[Model, dict[str, None]] = WeakKeyDictionary()  # arms, the last offered one last


async def _offer(service: Service, model: Model, actions: list[str]) -> None:
    """Make sure that all actions are arms; others make room, those first that were not offered for long."""
    if model.settings.passing:
        return
    order = _offered.setdefault(model, dict.fromkeys(model.arms))
    for name in actions:
        order.pop(name, None)
        order[name] = None
    missing = [name for name in actions if name not in model.arms]
    surplus = len(model.arms) + len(missing) - MOST_ARMS
    for name in [name for name in order if name in model.arms][: max(surplus, 0)]:
        del order[name]
        await service.engine.happen(model, partial(model.retire_arm, name))
    await asyncio.gather(*(service.engine.put_arm(model, name, {}) for name in missing))


def _decision(service: Service, event: str) -> str:
    """Return the decision of an event: one that the caller named, or whose name is that of the decision."""
    model = service.engine.model(NAME)
    answer = service.engine.answer_to(model, event)
    return event if answer is None else msgspec.json.decode(answer, type=RankAnswer).decisions[0].id


def _ranked(answer: RankAnswer, asked: PersonalizerRank, floor: float) -> PersonalizerRanked:
    """Return the chosen action, then the others by what is expected of them; excluded ones keep their places."""
    made = answer.decisions[0]
    expected = [each.arm for each in answer.ranking or []]
    order = [made.arm, *(name for name in expected if name != made.arm)]
    n = len(order)
    probabilities: dict[str, float | None] = dict.fromkeys(order, floor / n)
    if made.by == "baseline":
        probabilities = {**dict.fromkeys(order, 0.0), made.arm: 1.0}
    elif made.propensity is None:  # the policy draws
        probabilities = dict.fromkeys(order)
    elif made.by == "floor" and n > 1:
        probabilities[order[1]] = 1.0 - floor + floor / n  # what the policy would have played
    else:
        probabilities[made.arm] = made.propensity
    rest = iter(order)
    names = [next(rest) if each.id in probabilities else each.id for each in asked.actions]
    ranking = [RankedAction(id=name, probability=probabilities.get(name, 0.0)) for name in names]
    return PersonalizerRanked(ranking=ranking, event_id=asked.event_id or made.id, reward_action_id=made.arm)


# ----------------------------------------------------------------------------------------------------------- features


def encoded(context: Objects, actions: list[Action]) -> np.ndarray:
    """Return the features (n, 64) of actions in a context."""
    c_hashes, c_values = _hashed(context, "context", "/contextFeatures")
    rows = []
    for place, action in enumerate(actions):
        a_hashes, a_values = _hashed(action.features, "action", f"/actions/{place}/features")
        name = np.uint64(_hash(f"id:{action.id}"))
        crossed = _mixed(c_hashes[:, None], np.append(a_hashes, name)[None])
        products = c_values[:, None] * np.append(a_values, 1.0)[None]
        hashes = np.concatenate([a_hashes, c_hashes, crossed.ravel()])
        values = np.concatenate([a_values, c_values, products.ravel()])
        signs = np.where(hashes & _SIGN, -1.0, 1.0)
        rows.append(np.bincount((hashes % np.uint64(BUCKETS)).astype(int), signs * values, BUCKETS))
    return np.array(rows)


def _hashed(features: Objects, whose: str, at: str) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes and values of the terms of a context or an action."""
    found = [(_hash(f"{whose}:{name}"), value) for each in features for name, value in _terms("", each, at, 0)]
    if len(found) > _MOST_TERMS:
        raise invalid(f"there are {len(found)} features: at most {_MOST_TERMS} are read", at=at)
    hashes = np.array([each for each, _ in found], np.uint64)
    return hashes, np.array([value for _, value in found], float)


def _terms(name: str, value: Any, at: str, depth: int) -> Iterator[tuple[str, float]]:
    """Return the names and values into which a value is flattened; null says nothing.

    >>> list(_terms("", {"user": {"age": 31, "member": True}, "tags": ["a", "b"], "size": [2.5]}, "", 0))
    [('user.age', 31.0), ('user.member=true', 1.0), ('tags=a', 1.0), ('tags=b', 1.0), ('size[0]', 2.5)]
    """
    if depth > _DEEPEST:
        raise invalid(f"features are nested deeper than {_DEEPEST}", at=at)
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _terms(f"{name}.{key}" if name else key, part, at, depth + 1)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            is_number = isinstance(part, int | float) and not isinstance(part, bool)
            yield from _terms(f"{name}[{place}]" if is_number else name, part, at, depth + 1)
    elif isinstance(value, bool):
        yield f"{name}={str(value).lower()}", 1.0
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif value is not None:
        if not abs(value) <= LARGEST:
            raise invalid(f"numbers must be at most {LARGEST:g} in size", at=at)
        yield name, float(value)


@lru_cache(100_000)
def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return hashes of pairs of hashes: a finaliser of 64 bits over their combination."""
    z = one * _MIXERS[0] + other
    z = (z ^ (z >> np.uint64(30))) * _MIXERS[1]
    z = (z ^ (z >> np.uint64(27))) * _MIXERS[2]
    return z ^ (z >> np.uint64(31))
