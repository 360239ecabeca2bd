"""A model as people declare it: a TOML file, or the body of `PUT /v1/models/{name}`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from albatross.service.names import FOREVER, ArmName, Duration, DurationOrForever, in_words, is_short

if TYPE_CHECKING:  # a client needs these types, but no compiler
    from albatross.features import Features

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MOST_ARMS, MOST_FEATURES, MOST_SLOTS = 1_000, 512, 10
PASSING = "passing"  # in place of arms: every call brings its own
LARGEST = 1e30  # size of a number in a request
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_WAIT = 366 * _UNITS["d"]

Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


class RewardRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """When a reward counts, and what it may be."""

    wait: Duration = "24h"  #: from the decision, or from its activation: a later reward is not learnt
    default: Finite | None = None  #: reward of a decision without one, learnt at the end of the wait; None: not learnt
    combine: Literal["first", "last", "sum"] = "first"  #: of several rewards; "last" and "sum" are learnt at the end
    learn: Literal["at_once", "at_close"] | None = None  #: None: at_close where there is a default, else at_once
    low: Finite | None = None  #: smallest reward that is accepted
    high: Finite | None = None  #: largest reward that is accepted

    @property
    def wait_ms(self) -> int:
        """The wait in milliseconds."""
        return milliseconds(self.wait)

    @property
    def at_once(self) -> bool:
        """Whether a reward is learnt when it comes. With a default, clicks come early and misses at the end: learning
        at once would take recent plays for better than they are."""
        if self.combine != "first":
            return False
        return self.default is None if self.learn is None else self.learn == "at_once"


class ModelSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A policy, features, arms and rules, under a name."""

    #: the first arms, with features that do not change; "passing": every rank brings arms of its own
    arms: dict[ArmName, dict[str, Any]] | list[ArmName] | Literal["passing"] = []
    features: dict[str, dict[str, Any]]  #: kind, scale and owner of every feature, as `albatross schema` writes them
    products: list[tuple[str, str]] = []  #: pairs of features whose products are features too
    policy: str = "flock"  #: "flock", or a policy in words as on the command line
    users: Literal["own", "shared"] = "own"  #: a bandit for every user, or one that all users share
    mode: Literal["online", "apprentice", "frozen"] = "online"  #: play, learn from a baseline, or learn nothing
    floor: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.02  #: probability of a uniformly random arm
    horizon: Annotated[int, Meta(ge=1, le=10**9)] | None = None  #: expected decisions of a user, for policies that ask
    rewards: RewardRules = RewardRules()
    log_offers: Literal["all", "chosen"] = "all"  #: "chosen" saves most of the disk and gives up evaluation
    keep: DurationOrForever = "400d"  #: how long records stay in the log, or "forever"; what was learnt from them stays

    @property
    def passing(self) -> bool:
        """Whether arms are there for one call only, and nothing is kept of them."""
        return self.arms == PASSING

    @property
    def first_arms(self) -> dict[str, dict[str, Any]]:
        """The first arms with their features."""
        if isinstance(self.arms, str):
            return {}
        return self.arms if isinstance(self.arms, dict) else {name: {} for name in self.arms}

    @property
    def keep_ms(self) -> int | None:
        """How long records stay in the log, in milliseconds; None if they stay forever."""
        return None if self.keep == FOREVER else milliseconds(self.keep)

    def schema(self) -> Features:
        """Return the features as a schema."""
        from albatross.features import Features

        return Features.from_dict({"features": self.features, "products": self.products})


# What may change while a model runs: nothing that states depend on.
CHANGEABLE = ("mode", "floor", "rewards", "log_offers", "keep")


def check(settings: ModelSettings) -> None:
    """Refuse a model that cannot work: raise a ValueError."""
    from albatross.service.bandits import Bandits

    features = settings.schema()
    if features.dim > MOST_FEATURES:
        raise ValueError(f"the features have {features.dim} coordinates: at most {MOST_FEATURES} are allowed")
    names = [] if settings.passing else list(settings.arms)
    if not (names or settings.passing):
        raise ValueError("arms must name at least one arm")
    if len(names) > MOST_ARMS:
        raise ValueError(f"there are {len(names)} arms: at most {MOST_ARMS} are allowed")
    if len(set(names)) < len(names):
        raise ValueError("arms lists a name twice")
    if any(not is_short(name) for name in names):
        raise ValueError("the name of an arm must have at most 256 bytes")
    if names:
        features.encode({}, list(settings.first_arms.values()))
    rules = settings.rewards
    if not 0 < rules.wait_ms <= _LONGEST_WAIT:
        raise ValueError(f"wait must be more than 0 and at most 366d, not {rules.wait}")
    if settings.keep_ms is not None and settings.keep_ms < rules.wait_ms:
        raise ValueError(f"keep must be at least the wait of {rules.wait}, or {FOREVER!r}, not {settings.keep}")
    if rules.low is not None and rules.high is not None and rules.low > rules.high:
        raise ValueError(f"low must be at most high, but {rules.low} is above {rules.high}")
    if rules.learn == "at_once" and (rules.combine != "first" or rules.default is not None):
        raise ValueError('learn="at_once" needs combine="first" and no default: anything else is known at the end')
    policy_in_words(settings)
    Bandits(settings, features, seed=0)  # which finds the rest, such as a policy that needs more arms


def policy_in_words(settings: ModelSettings) -> Any:
    """Return the policy of a model, or None for a flock."""
    from albatross.crowd.arms import PassingRows
    from albatross.policies.in_words import build
    from albatross.protocol import on_ball

    if settings.policy == "flock":
        if settings.passing:
            raise ValueError(
                'arms="passing" needs a policy without biases, such as "albatross(biases=False)", not "flock"'
            )
        if settings.users == "shared":
            raise ValueError('users="shared" needs one bandit: take another policy than "flock", such as "albatross"')
        return None
    policy = build(settings.policy, {"horizon": settings.horizon or 10_000})
    if on_ball(policy):
        raise ValueError(f"{settings.policy} plays on the unit ball, but a service needs arms")
    if settings.passing:
        PassingRows.check_policy(policy)
    return policy


def milliseconds(duration: str) -> int:
    """Return a duration in milliseconds.

    >>> milliseconds("90s"), milliseconds("24h")
    (90000, 86400000)
    """
    number = duration.rstrip("smhd")
    return int(number) * _UNITS[duration[len(number) :]]


def read_model(path: Path) -> ModelSettings:
    """Read a model from a TOML file; its name is that of the file."""
    try:
        check_model_name(path.stem)
        if not path.is_file():  # reading a pipe would wait for its writer
            raise ValueError("it is not a regular file")
        settings = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8-sig")), ModelSettings)
        check(settings)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path.name} is not a model: {in_words(error)}") from None
    except ValueError as error:  # of tomllib too
        raise ValueError(f"{path.name} is not a model: {error}") from None
    except RecursionError:
        raise ValueError(f"{path.name} is not a model: it has too many brackets within brackets") from None
    return settings


def check_model_name(name: str) -> None:
    """Refuse a name that cannot stand in a path: raise a ValueError."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"a model's name has 1 to 64 small letters, digits, - and _, a letter or digit first: not {name!r}"
        )
