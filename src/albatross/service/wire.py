"""Requests and answers. The same types parse, answer, and make the OpenAPI document."""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from albatross.service.names import MOST_BYTES, ArmName, RequestId, UserName, in_words
from albatross.service.problems import Problem, ProblemBody, invalid
from albatross.service.settings import MOST_ARMS, MOST_SLOTS, Finite, ModelSettings

MOST_REWARDS, MOST_REQUESTS, MOST_IMPORTED = 1_000, 256, 1_000
Context = dict[str, Any]


class Request(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What callers send. Unknown fields are refused."""


class RankRequest(Request, kw_only=True):
    """Which arm should this user get?"""

    user: UserName
    context: Context = {}  #: features of the situation
    #: eligible arms: names with features, names alone (then with registered features), or absent for all active arms
    arms: (
        Annotated[dict[ArmName, Context], Meta(max_length=MOST_ARMS)]
        | Annotated[list[ArmName], Meta(max_length=MOST_ARMS)]
        | None
    ) = None
    exclude: Annotated[list[ArmName], Meta(max_length=MOST_ARMS)] = []  #: arms that are not eligible
    baseline: ArmName | None = None  #: the arm that would be played without this service; apprentice mode needs it
    slots: Annotated[int, Meta(ge=1, le=MOST_SLOTS)] = 1  #: how many arms, each a decision with its own reward
    defer: bool = False  #: the decision counts once it is activated
    explain: bool = False  #: say what the policy expects of every arm, and why
    id: RequestId | None = None  #: the same id and body give the same decisions for 24 hours
    features_b64: str | None = (
        None  #: encoded features, float32, row by row in the order of `arms`, instead of features
    )


class RankBatch(Request, kw_only=True):
    """Several requests, each answered or refused by itself."""

    requests: Annotated[list[Any], Meta(max_length=MOST_REQUESTS)]


class Decided(msgspec.Struct, kw_only=True):
    """One arm, with the id for its reward."""

    id: str
    arm: str
    propensity: float | None  #: None if the policy draws: `albatross export` computes it
    by: Literal["policy", "floor", "baseline"]
    slot: int


class Ranked(msgspec.Struct, kw_only=True):
    """What the policy expects of an arm."""

    arm: str
    mean: float | None
    width: float | None
    top: list[tuple[str, float]]  #: what each feature, and the bias, adds, largest first


class RankAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The decisions of a request."""

    decisions: list[Decided]
    ranking: list[Ranked] | UnsetType = UNSET
    model_version: int
    new_user: bool


class RankItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of one request: an answer or a problem."""

    answer: RankAnswer | UnsetType = UNSET
    problem: ProblemBody | UnsetType = UNSET


class RankBatchAnswer(msgspec.Struct, kw_only=True):
    """Answers in the order of the requests."""

    answers: list[RankItem]


class RewardItem(Request, kw_only=True):
    """What a decision brought."""

    id: Annotated[str, Meta(max_length=MOST_BYTES)]
    value: Finite


class RewardsRequest(Request, kw_only=True):
    """Rewards of up to 1,000 decisions."""

    rewards: Annotated[list[RewardItem], Meta(min_length=1, max_length=MOST_REWARDS)]


class RewardRequest(Request, kw_only=True):
    """The reward of one decision."""

    value: Finite


Status = Literal[
    "learnt", "waits", "duplicate", "conflict", "late", "inactive", "frozen", "unknown", "gone", "invalid", "failed"
]
CODES: dict[str, int] = {"inactive": 202, "conflict": 409, "unknown": 404, "gone": 410, "invalid": 422}


class RewardResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of a reward."""

    id: str
    status: Status
    detail: str = ""


class RewardsAnswer(msgspec.Struct, kw_only=True):
    """Results in the order of the rewards."""

    results: list[RewardResult]


class ImportedDecision(Request, kw_only=True):
    """Somebody else's decision with its reward, for a warm start."""

    user: UserName
    arm: ArmName
    context: Context = {}
    features: Context = {}  #: of the arm
    reward: Finite
    propensity: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None


class ImportRequest(Request, kw_only=True):
    """Decisions that were made elsewhere, in the order in which they were made."""

    decisions: Annotated[list[ImportedDecision], Meta(min_length=1, max_length=MOST_IMPORTED)]


class ImportAnswer(msgspec.Struct, kw_only=True):
    """How many decisions were learnt."""

    learnt: int


class ArmRequest(Request, kw_only=True):
    """Features of an arm that do not change from call to call."""

    features: Context = {}


class ArmAnswer(msgspec.Struct, kw_only=True):
    """An arm with what it brought."""

    arm: str
    active: bool
    features: Context
    decisions: int
    rewards: int
    mean_reward: float | None


class ArmsAnswer(msgspec.Struct, kw_only=True):
    """All arms of a model."""

    arms: list[ArmAnswer]


class ModelAnswer(msgspec.Struct, kw_only=True):
    """A model as it is now."""

    name: str
    version: int
    archived: bool
    coordinates: list[str]  #: names of the features after encoding
    settings: ModelSettings


class ModelsAnswer(msgspec.Struct, kw_only=True):
    """The names of all models."""

    models: list[str]


class DecisionAnswer(msgspec.Struct, kw_only=True):
    """What was offered, chosen and brought."""

    id: str
    model: str
    at: str
    arm: str
    by: str
    propensity: float | None
    slot: int
    offer: dict[str, dict[str, float]]
    outcomes: list[dict[str, Any]]


class UserAnswer(msgspec.Struct, kw_only=True):
    """What is known of a user."""

    new_user: bool
    estimates: dict[str, Any]


class ActivatedAnswer(msgspec.Struct, kw_only=True):
    """Whether the wait of a decision has begun now, before, or has ended."""

    status: Literal["activated", "active", "closed"]


class ErasedAnswer(msgspec.Struct, kw_only=True):
    """How many records of a user were deleted."""

    erased: int


class StatsAnswer(msgspec.Struct, kw_only=True):
    """Counts by the hour."""

    hours: list[dict[str, Any]]


class HealthAnswer(msgspec.Struct, kw_only=True):
    """Whether the service can answer."""

    status: Literal["ok", "unavailable"]


_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PATH = re.compile(r" - at (?:`key` in )?`\$?(.*)`$")


def parse(body: bytes, kind: Any) -> Any:
    """Return the request in a body, or raise the problem with a pointer to its place."""
    try:
        plain = msgspec.json.decode(body)
        n_keys = _n_keys(plain)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # not UTF-8 is not a DecodeError
        at = _not_finite(body)
        if at is not None:
            raise invalid("numbers must be finite", at=at) from None
        raise Problem(400, f"the body is not JSON: {error}") from None
    # Every key has a colon. If a key were there twice, the last one would win in silence.
    if body.count(b":") != n_keys and _STRINGS.sub(b"", body).count(b":") != n_keys:
        raise invalid("the body has a key twice in one object")
    return convert(plain, kind)


def convert(plain: Any, kind: Any, *, at: str = "") -> Any:
    """Return plain objects as a request, or raise the problem with a pointer to its place."""
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        text = in_words(error)
        found = _PATH.search(text)
        pointer = _pointer(found[1]) if found else ""
        raise invalid(text[: found.start()] if found else text, at=at + pointer) from None


def _pointer(path: str) -> str:
    """Return a path of msgspec as a JSON pointer.

    >>> _pointer(".rewards[3].value")
    '/rewards/3/value'
    """
    return re.sub(r"[.\[]", "/", path).replace("]", "")


def escaped(name: str) -> str:
    """Return a name as a part of a JSON pointer.

    >>> escaped("a/b~c")
    'a~1b~0c'
    """
    return name.replace("~", "~0").replace("/", "~1")


def _not_finite(body: bytes) -> str | None:
    """Return where a body that is refused has a NaN or a number beyond all floats, None if that is not why."""
    try:
        waiting = [("", json.loads(body, parse_int=float))]  # takes both, where msgspec does not
    except (ValueError, RecursionError):
        return None
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{at}/{escaped(name)}", each) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{at}/{place}", each) for place, each in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            return at
    return None


def _n_keys(plain: Any) -> int:
    if isinstance(plain, dict):
        return len(plain) + _n_keys([*plain.values()])
    if isinstance(plain, list):
        return sum(_n_keys(each) for each in plain if isinstance(each, dict | list))
    return 0


def check_name(name: str, what: str, *, at: str) -> None:
    """Refuse a name of more than 256 bytes."""
    if len(name.encode()) > MOST_BYTES:
        raise invalid(f"{what} must have at most {MOST_BYTES} bytes", at=at)
