"""What can be asked of a service: each function returns a request, and how to read its answer."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np

from albatross.service.settings import ModelSettings
from albatross.service.wire import (
    ActivatedAnswer,
    ArmAnswer,
    ArmRequest,
    ArmsAnswer,
    DecisionAnswer,
    ErasedAnswer,
    ImportAnswer,
    ImportedDecision,
    ImportRequest,
    ModelAnswer,
    ModelsAnswer,
    RankAnswer,
    RankBatch,
    RankBatchAnswer,
    RankItem,
    RankRequest,
    RewardItem,
    RewardRequest,
    RewardResult,
    RewardsAnswer,
    RewardsRequest,
    StatsAnswer,
    UserAnswer,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how to read its answer."""

    method: str
    path: str
    read: Callable[[bytes], T]
    body: Any = None
    version: int | None = None  # for If-Match
    repeatable: bool = True  # whether sending it twice does no harm

    @property
    def request(self) -> dict[str, Any]:
        """The request for httpx."""
        request: dict[str, Any] = {"method": self.method, "url": self.path, "headers": {}}
        if self.body is not None:
            request["content"] = msgspec.json.encode(self.body)
            request["headers"]["Content-Type"] = "application/json"
        if self.version is not None:
            request["headers"]["If-Match"] = f'"{self.version}"'
        return request


def _as(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.json.Decoder(kind).decode


def path(*parts: str) -> str:
    return "/".join(("/v1", *map(_quoted, parts)))


def _quoted(part: str) -> str:
    # A part "." or ".." would be taken for a step in the path: retiring an arm ".." would archive its model.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def rank(
    model: str,
    user: str,
    *,
    context: Mapping[str, Any] | None = None,
    arms: Mapping[str, Mapping[str, Any]] | Sequence[str] | None = None,
    features: Any = None,
    exclude: Sequence[str] = (),
    baseline: str | None = None,
    slots: int = 1,
    defer: bool = False,
    explain: bool = False,
    id: str | None = None,
) -> Call[RankAnswer]:
    """Ask which arm a user should get. `arms` maps names to features, or lists names; without it, all are eligible.

    `features` (n, d) are encoded features of the arms in the list `arms`: the fast form. A request id is made if none
    is given.
    """
    eligible: dict[str, dict[str, Any]] | list[str] | None = None
    if isinstance(arms, Mapping):
        eligible = {arm: dict(given) for arm, given in arms.items()}
    elif arms is not None:
        eligible = list(arms)
    rows = None if features is None else b64encode(np.asarray(features, "<f4").tobytes()).decode()
    request = RankRequest(
        user=user,
        context=dict(context or {}),
        arms=eligible,
        exclude=list(exclude),
        baseline=baseline,
        slots=slots,
        defer=defer,
        explain=explain,
        id=id or _new_id(),
        features_b64=rows,
    )
    return Call("POST", path("models", model, "rank"), _as(RankAnswer), request)


def rank_batch(model: str, requests: Iterable[RankRequest]) -> Call[list[RankItem]]:
    """Ask for several users at once. Each request is answered, or has a problem, by itself."""
    named = [each if each.id else msgspec.structs.replace(each, id=_new_id()) for each in requests]
    read = _as(RankBatchAnswer)
    return Call(
        "POST", path("models", model, "rank", "batch"), lambda data: read(data).answers, RankBatch(requests=named)
    )


def _new_id() -> str:
    return secrets.token_hex(12)


def reward(decision: str, value: float) -> Call[RewardResult]:
    """Say what a decision brought. The status says what became of it: "learnt", "duplicate", "conflict", ..."""
    return Call("POST", path("decisions", decision, "reward"), _as(RewardResult), RewardRequest(value=value))


def rewards(model: str, rewards: Mapping[str, float] | Iterable[tuple[str, float]]) -> Call[list[RewardResult]]:
    """Say what several decisions brought. The results are in the same order."""
    pairs = rewards.items() if isinstance(rewards, Mapping) else rewards
    body = RewardsRequest(rewards=[RewardItem(id=decision, value=value) for decision, value in pairs])
    read = _as(RewardsAnswer)
    return Call("POST", path("models", model, "rewards"), lambda data: read(data).results, body)


def activate(decision: str) -> Call[ActivatedAnswer]:
    """Say that a deferred decision was shown."""
    return Call("POST", path("decisions", decision, "activate"), _as(ActivatedAnswer))


def decision(decision: str) -> Call[DecisionAnswer]:
    """Return what was offered and chosen, and what came of it."""
    return Call("GET", path("decisions", decision), _as(DecisionAnswer))


def import_decisions(model: str, decisions: Iterable[ImportedDecision]) -> Call[int]:
    """Learn from decisions that were made elsewhere; return their number. It is not repeated once it was sent."""
    read, body = _as(ImportAnswer), ImportRequest(decisions=list(decisions))
    return Call("POST", path("models", model, "decisions"), lambda data: read(data).learnt, body, repeatable=False)


def models() -> Call[list[str]]:
    """Return the names of all models."""
    read = _as(ModelsAnswer)
    return Call("GET", path("models"), lambda data: read(data).models)


def model(model: str) -> Call[ModelAnswer]:
    """Return a model as it is now."""
    return Call("GET", path("models", model), _as(ModelAnswer))


def put_model(
    model: str, settings: ModelSettings | Mapping[str, Any], *, version: int | None = None
) -> Call[ModelAnswer]:
    """Create a model or change it, only if it still has the version."""
    return Call("PUT", path("models", model), _as(ModelAnswer), settings, version, repeatable=version is None)


def archive_model(model: str) -> Call[ModelAnswer]:
    """End a model. Its log stays."""
    return Call("DELETE", path("models", model), _as(ModelAnswer), repeatable=False)


def arms(model: str) -> Call[list[ArmAnswer]]:
    """Return all arms with their decisions and mean rewards."""
    read = _as(ArmsAnswer)
    return Call("GET", path("models", model, "arms"), lambda data: read(data).arms)


def put_arm(model: str, arm: str, features: Mapping[str, Any] | None = None) -> Call[ArmAnswer]:
    """Add an arm, bring it back, or change its features."""
    return Call("PUT", path("models", model, "arms", arm), _as(ArmAnswer), ArmRequest(features=dict(features or {})))


def retire_arm(model: str, arm: str) -> Call[ArmAnswer]:
    """Retire an arm. What it taught stays."""
    return Call("DELETE", path("models", model, "arms", arm), _as(ArmAnswer), repeatable=False)


def user(model: str, user: str) -> Call[UserAnswer]:
    """Return what is known of a user."""
    return Call("GET", path("models", model, "users", user), _as(UserAnswer))


def erase_user(user: str, *, model: str | None = None) -> Call[int]:
    """Erase all that is kept of a user, in one model or in all; return the number of records."""
    where = path("users", user) if model is None else path("models", model, "users", user)
    read = _as(ErasedAnswer)
    return Call("DELETE", where, lambda data: read(data).erased)


def stats(model: str) -> Call[list[dict[str, Any]]]:
    """Return counts of the last two weeks, by the hour."""
    read = _as(StatsAnswer)
    return Call("GET", path("models", model, "stats"), lambda data: read(data).hours)
