"""The bandits of a model, of those users that are in memory: a fleet or a flock, one event at a time.

Everything that changes a state is a verb here, and the log has a record for each. So a replay calls the same verbs in
the same order, and gets the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from albatross.features import Features
from albatross.fleet import Fleet
from albatross.flock import Flock
from albatross.flocking.looks import Looks
from albatross.loops import Choices
from albatross.models.population import Population
from albatross.models.population_looks import USERS
from albatross.models.units import unit_of
from albatross.protocol import Offer
from albatross.service.events import Choice, pack_arrays, unpack_arrays
from albatross.service.settings import PASSING, ModelSettings, policy_in_words


class Rows(NamedTuple):
    """What a user is offered: a row of features for each arm, and which of them are eligible."""

    arms: list[str]
    contexts: np.ndarray  # (K, d)
    eligible: np.ndarray  # (K,) bool


class Bandits:
    """A fleet or a flock behind one interface. Users are named by their digests."""

    def __init__(self, settings: ModelSettings, features: Features, seed: int) -> None:
        self.features, self.is_flock = features, settings.policy == "flock"
        self.passing, first = settings.passing, list(settings.first_arms)
        arms = PASSING if self.passing else first
        common: dict[str, Any] = {"users": [], "arms": arms, "features": features, "floor": settings.floor}
        self._crowd: Any
        if self.is_flock:
            self._crowd = Flock(**common, looks=False, seed=seed)
        else:
            self._crowd = Fleet(policy_in_words(settings), **common, horizon=settings.horizon, seed=seed)
        self.tag_size: int = self._crowd.tag_size
        self.looks = Looks(features.dim + self._crowd.n_slots)  # of a flock
        self._set_arms(first)

    def _set_arms(self, arms: Iterable[str]) -> None:
        self._arms = list(arms)
        self._places = {arm: place for place, arm in enumerate(self._arms)}

    # ------------------------------------------------------------------------------------------------------- decisions

    @property
    def arms(self) -> list[str]:
        """The active arms, in the order of the rows of contexts."""
        return self._arms

    def rows(self, arms: list[str], features: np.ndarray) -> Rows:
        """Return the rows of all active arms, or of those that pass, from the features (n, d) of the eligible ones."""
        if self.passing:
            return Rows(arms, features, np.ones(len(arms), bool))
        if arms == self._arms:
            return Rows(arms, features, np.ones(len(arms), bool))
        places = [self._places[arm] for arm in arms]
        contexts, mask = np.zeros((len(self._places), features.shape[1])), np.zeros(len(self._places), bool)
        contexts[places], mask[places] = features, True
        return Rows(self._arms, contexts, mask)

    def decide(self, user: bytes, rows: Rows) -> Choice:
        """Choose an arm for a user. It is pending until `learn` or `drop`."""
        made = self._crowd.select([user.hex()], rows.contexts[None], rows.eligible[None])
        return _choice(rows.arms[made.arms[0]] if self.passing else str(made.arms[0]), made)

    def record(self, user: bytes, choice: Choice) -> None:
        """Take a choice from the log: to the user's state the same as `decide`."""
        self._crowd.record(
            [user.hex()],
            None if self.passing else [choice.arm],
            choice.action[None],
            scores=[choice.score],
            widths=[choice.width],
            propensities=[choice.propensity],
            tags=choice.tag[None],
        )

    def another(self, arm: str, action: np.ndarray, propensity: float = np.nan) -> Choice:
        """Return a choice that somebody else made."""
        return Choice(arm, self.slot(arm), action, 0.0, 0.0, propensity, np.full(self.tag_size, np.nan))

    def learn(self, user: bytes, choice: Choice, reward: float) -> None:
        """Learn the reward of a choice."""
        self._crowd.update(_choices(user, choice), np.array([reward]))
        self.looks.rewards += 1

    def drop(self, user: bytes, choice: Choice) -> None:
        """Discard a choice that is never rewarded."""
        self._crowd.drop(_choices(user, choice))

    @property
    def floor(self) -> float:
        """Probability of a random arm."""
        return float(self._crowd.floor)

    @floor.setter
    def floor(self, floor: float) -> None:
        self._crowd.floor = floor

    # ------------------------------------------------------------------------------------------------- users and arms

    def __contains__(self, user: bytes) -> bool:
        return user.hex() in self._crowd

    @property
    def n_users(self) -> int:
        """Number of users in memory."""
        return int(self._crowd.n_users)

    @property
    def nbytes(self) -> int:
        """Memory of all users."""
        return int(self._crowd.nbytes)

    def admit(self, user: bytes) -> None:
        """Admit a newcomer."""
        self._crowd.admit([user.hex()])

    def row(self, user: bytes) -> bytes:
        """Return all that is kept of a user."""
        return self._crowd.row(user.hex())

    def put(self, user: bytes, row: bytes) -> None:
        """Set a user to a row."""
        self._crowd.put(user.hex(), row)

    def release(self, user: bytes) -> bytes:
        """Remove a user from memory and return the row."""
        return self._crowd.release([user.hex()], pending=True)[0]

    def slot(self, arm: str) -> int:
        """Return where the policy keeps an active arm, or one that passes."""
        return 0 if self.passing else int(self._crowd.slot_of(arm))

    def add_arm(self, name: str, slot: int) -> None:
        """Add an arm in a slot."""
        self._crowd.add_arm(name, slot=slot)
        self._set_arms(self._crowd.arms)

    def retire_arm(self, name: str) -> None:
        """Retire an arm."""
        self._crowd.retire_arm(name)
        self._set_arms(self._crowd.arms)

    @property
    def n_slots(self) -> int:
        """Number of slots that active and retired arms take."""
        return int(self._crowd.n_slots)

    def explain(self, user: bytes, rows: Rows) -> Any:
        """Return what the policy expects of every arm, and what decides; None if it cannot say."""
        try:
            return self._crowd.explain(user.hex(), rows.contexts, rows.eligible)
        except ValueError:  # a policy without a score for every arm
            return None

    def propensity(self, user: bytes, rows: Rows, arm: str, *, draws: int, seed: int) -> float:
        """Estimate the probability of an arm for a user now, where the policy draws."""
        offered = rows.contexts[None], rows.eligible[None]
        found = self._crowd.propensity([user.hex()], *offered, draws=draws, seed=seed)
        return float(found[0, rows.arms.index(arm)])

    def describe(self, user: bytes) -> dict[str, Any]:
        """Return what is known of a user, as plain objects."""
        found = self._crowd.user(user.hex())._asdict() if self.is_flock else self._crowd.diagnostics(user.hex())
        return {name: _plain(value) for name, value in found.items()}

    # ------------------------------------------------------------------------------------------ what a flock shares

    def missing_unit(self, rows: Rows) -> float | None:
        """Return the unit of contexts that the first decision of a flock fixes, None if there is nothing to fix."""
        if not self.is_flock or self._crowd.unit is not None:
            return None
        n = len(rows.arms)
        return float(unit_of(Offer(rows.contexts, rows.eligible, np.zeros(n, np.int32), -1, np.arange(n))))

    @property
    def misses_level(self) -> bool:
        """Whether the first reward of a flock is still to come."""
        return self.is_flock and self._crowd.level is None

    def fix(self, content: dict[str, float]) -> None:
        """Fix unit or level of a flock."""
        self._crowd.fix(**content)

    @property
    def look_is_due(self) -> bool:
        """Whether the population of a flock should be learnt anew."""
        return self.is_flock and self.looks.are_due

    def look(self, others: Bandits | None = None) -> dict[str, Any]:
        """Learn the population anew from the users here, and some elsewhere; return it as a record of the log.

        Nothing changes.
        """
        rewards, crowds = self.looks.rewards, [each._crowd for each in (self, others) if each is not None]
        heard = np.zeros(0)

        def hear(present: Population) -> np.ndarray:
            nonlocal heard
            heard = np.sum([crowd.hear(present) for crowd in crowds], axis=0)
            return heard

        population = self._crowd.look(hear, rewards=rewards, last=self.looks.last)
        users = int(heard[:, USERS].sum())
        return {"users": users, "rewards": rewards, "population": pack_arrays(population._asdict())}

    def take_up(self, content: dict[str, Any]) -> None:
        """Use a population from the log. Users take it up at their next decisions."""
        population = Population(**unpack_arrays(content["population"]))
        self._crowd.take_up(population, users=content["users"], rewards=content["rewards"])
        looks = self.looks
        looks.rewards, looks.last = max(looks.rewards, content["rewards"]), content["rewards"]
        looks.pass_due()

    def population(self) -> Any:
        """Return what all users of a flock have in common; None for others."""
        return self._crowd.population() if self.is_flock else None

    def rehearse(self) -> None:
        """Do everything once, on bandits that nobody uses: whatever needs compiling is compiled then."""
        user, arms = bytes(16), self.arms or [PASSING]
        rows = self.rows(arms, np.zeros((len(arms), self.features.dim)))
        if self.is_flock:
            self.fix({"unit": 1.0, "level": 0.0})
        first = self.decide(user, rows)
        self.learn(user, first, 0.0)
        self.drop(user, self.decide(user, rows))
        self.record(user, first)
        self.put(user, self.release(user))
        self.explain(user, rows)
        self.describe(user)
        if self.is_flock:
            self.take_up(self.look())


def _choice(arm: str, made: Choices) -> Choice:
    assert made.slots is not None
    return Choice(
        arm,
        int(made.slots[0]),
        made.actions[0],
        float(made.scores[0]),
        float(made.widths[0]),
        float(made.propensities[0]),
        made.tags[0],
    )


def _choices(user: bytes, choice: Choice) -> Choices:
    users, arms = np.empty(1, object), np.empty(1, object)
    users[0], arms[0] = user.hex(), choice.arm
    score, width, propensity = np.array([[choice.score], [choice.width], [choice.propensity]])
    return Choices(
        users, arms, choice.action[None], score, width, propensity, choice.tag[None], np.array([choice.slot])
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
