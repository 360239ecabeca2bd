"""Fleet: one bandit per user, with events processed in batches."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np

from albatross import checks, policies, saving
from albatross.crowd import events
from albatross.crowd.arms import Name, NumberedArms, PassingRows
from albatross.crowd.batches import Batches
from albatross.crowd.crowd import Crowd
from albatross.crowd.named_arms import NamedArms
from albatross.crowd.recipe import Recipe
from albatross.crowd.users import NamedUsers, NumberedUsers
from albatross.explaining import Explanation, explain
from albatross.features import Features, given_dim
from albatross.floor import check_floor, estimated_propensity
from albatross.forks import renew_after_fork
from albatross.loops import FLOOR_NUMBERS, Events, choose, learn_rewards
from albatross.noise import fill_by_user
from albatross.notebook import html_table
from albatross.picking import row_to_retry
from albatross.protocol import Offer, Policy, check_tags, diagnostics, on_ball, refuse_choice, tag_size
from albatross.states import state_of


class Fleet(Batches):
    """One bandit per user: `select` arms for a batch of events, play them, `update` with their rewards.

    The default policy is `policies.Albatross`. With `users`, a list of names that may be empty, users are admitted when
    they first come; with `n_users` they are numbered from 0. `arms` names the arms, which can be added and retired
    later; `n_arms` only counts them. With `arms="passing"`, every batch has rows of its own, which belong to no arm;
    the policy must be one without biases. `features` gives the coordinates their names, and `dim` is then not needed.
    With `floor=0.02`, two decisions in a hundred are for a random arm, so that propensities of a deterministic policy
    are known and never 0. `horizon` is the expected number of rounds per user, for policies that need it.

    The fleet only counts the pending choices of each user and arm: keep the `Choices` until the rewards arrive, and
    call `drop` for those that will not be rewarded. A fleet may be shared by threads.

    >>> fleet = Fleet(policies.LinTS(sigma=0.5), users=[], arms=["sport", "politics", "art"], dim=2, seed=0)
    >>> contexts = np.random.default_rng(0).standard_normal((2, 3, 2))
    >>> choices = fleet.select(["anna", "bob"], contexts)
    >>> fleet.update(choices, [0.7, -0.2])
    >>> choices.arms.tolist(), fleet.diagnostics("anna")["pulls"]
    (['art', 'politics'], {'sport': 0.0, 'politics': 0.0, 'art': 1.0})
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        users: Iterable[Name] | None = None,
        n_users: int | None = None,
        arms: Iterable[Name] | Literal["passing"] | None = None,
        n_arms: int | None = None,
        dim: int | None = None,
        features: Features | None = None,
        horizon: int | None = None,
        floor: float = 0.0,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        checks.names_or_number("users", users, n_users)
        checks.names_or_number("arms", arms, n_arms)
        dim = given_dim(dim, features)
        if horizon is not None:
            checks.rounds("horizon", horizon)
        check_floor(floor)
        rng = checks.generator("seed", seed)
        policy = policies.Albatross() if policy is None else policy
        if on_ball(policy):
            raise ValueError(f"{type(policy).__name__} plays on the unit ball, but a fleet needs finitely many arms")
        passing = PassingRows() if isinstance(arms, str) and arms == "passing" else None
        if passing:
            passing.check_policy(policy)
        known = passing or (NumberedArms(int(n_arms or 0)) if arms is None else NamedArms(arms))
        n_slots = known.first
        checks.fits_in_memory(f"contexts of {n_slots} arms and {dim} features", 8 * n_slots * dim, "take fewer")
        self.policy, self.dim, self.features, self.floor = policy, dim, features, float(floor)
        self.horizon = None if horizon is None else int(horizon)
        # Named users and arms come and go: what is drawn for a user must not depend on the others, nor on the arms.
        streamed = users is None and arms is None
        words = np.zeros(4, np.uint64) if streamed else rng.integers(0, 2**64, 4, np.uint64)
        self._rng, self._secret = rng, None if streamed else words[2:]
        recipe, crowd = Recipe(policy, dim, self.horizon), NumberedUsers(0) if users is None else NamedUsers()
        self._crowd = Crowd(recipe, crowd, known, None if streamed else words[:2].tobytes())
        self._set_up()
        if n_users is not None:
            self.add_users(n_users)
        if users is not None:
            self.admit(users)

    def _set_up(self) -> None:
        self._tag_size = tag_size(self._parameters)
        self._lock = threading.Lock()
        renew_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._rng = checks.generator("seed", None)
        if self._secret is not None:
            self._secret = self._rng.integers(0, 2**64, 2, np.uint64)

    # Compiled at first use: a fleet that only decides does not wait for the code that learns.

    @cached_property
    def _choose(self) -> Any:
        made, rows = events.new_events(np.empty(0, np.int64), self.dim, self._tag_size), self._crowd.rows
        offered = np.empty((0, 1, self.dim)), np.ones((1, 1), bool), np.empty((0, 1), np.int32), np.empty((0, 0)), 0.0
        return choose.prepared(self._parameters, *rows, self._crowd.arms.active, *offered, made, np.empty(0, np.int64))

    @cached_property
    def _learn(self) -> Any:
        made, rows = events.new_events(np.empty(0, np.int64), self.dim, self._tag_size), self._crowd.rows
        return learn_rewards.prepared(self._parameters, rows.states, rows.pending, made, np.empty(0))

    @property
    def _parameters(self) -> Any:
        return self._crowd.parameters

    @property
    def noise_size(self) -> int:
        """Number of standard normal numbers per decision, for `noise` of `select`."""
        own = self._crowd.recipe.noise_size(self._crowd.n_slots)
        return own + FLOOR_NUMBERS if self.floor else own

    def __repr__(self) -> str:
        crowd = self._crowd
        return f"Fleet({self.policy!r}, {crowd.users.described()}, {crowd.arms.described()}dim={self.dim})"

    def _repr_html_(self) -> str:
        rows, slots = self._crowd.rows, self._crowd.users.in_use
        counts = {
            "users": self.n_users,
            "decisions": int(rows.decisions[slots].sum()),
            "pending": int(rows.pending[slots].sum()),
            "bytes": self.nbytes,
        }
        return html_table(repr(self), [("", "value"), *((name, f"{value:,}") for name, value in counts.items())])

    def add_users(self, n_users: int) -> np.ndarray:
        """Add numbered users and return their numbers."""
        checks.whole("n_users", n_users, least=1)
        with self._lock:
            crowd, known = self._crowd, self.n_users
            if isinstance(crowd.users, NamedUsers):
                raise ValueError("the users of this fleet have names: admit them by name")
            if crowd.secret is None:
                crowd.add(int(n_users), self._rng)
            else:
                crowd.make_room(known + int(n_users))
                crowd.admit({number: number for number in range(known, known + int(n_users))})
            return np.arange(known, self.n_users)

    # ---------------------------------------------------------------------------------------- events and rewards

    def _choose_arms(
        self, contexts: np.ndarray, mask: np.ndarray, given: np.ndarray, noise: Any, made: Events
    ) -> np.ndarray | None:
        crowd, before = self._crowd, None
        slots, rows = crowd.arms.of_rows(contexts.shape[1]), np.empty(made.users.size, np.int64)
        if noise is None:
            noise, before = self._draw(made.users)
        offered = contexts, mask, given, noise, self.floor
        try:
            wrong = self._choose(self._parameters, *crowd.rows, slots, *offered, made, rows)
            if wrong >= 0:
                self._refuse(made.users[wrong], wrong, *offered)
        except BaseException:
            if before is not None:
                self._rng.bit_generator.state = before
            raise
        return None if crowd.arms.last else rows

    def _learn_rewards(self, made: Events, rewards: np.ndarray) -> None:
        rows = self._crowd.rows
        self._learn(self._parameters, rows.states, rows.pending, made, rewards)

    def _check_tags(self, tags: np.ndarray) -> None:
        if self._tag_size:
            check_tags(self._parameters, self._crowd.rows.states, tags)

    def _draw(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the random numbers of a batch, and the state of the stream before them, if there is one."""
        noise = np.empty((slots.size, self.noise_size))
        if not noise.size:
            return noise, None
        if self._secret is not None:
            fill_by_user(noise, self._crowd.keys, self._secret, slots, self._crowd.rows.decisions)
            return noise, None
        before = self._rng.bit_generator.state
        return self._rng.standard_normal(out=noise), before

    def _refuse(
        self, user: int, event: int, contexts: Any, masks: Any, counts: Any, noise: Any, floor: float
    ) -> NoReturn:
        """Raise the error for an invalid choice."""
        offer = self._offer(user, contexts[event], masks[min(event, len(masks) - 1)])
        if len(counts):
            offer = offer._replace(pending=counts[event])
        z = noise[event, FLOOR_NUMBERS:] if floor else noise[event]
        refuse_choice(self._parameters, state_of(self._crowd.rows.states, user), offer, z)

    def _offer(self, user: int, contexts: np.ndarray, mask: np.ndarray) -> Offer:
        rows, arms = self._crowd.rows, self._crowd.arms
        retry = row_to_retry(int(rows.decisions[user]), mask)
        waiting = rows.pending[user].astype(np.int64) if arms.last else arms.none_waiting
        return Offer(contexts, mask, waiting, retry, arms.of_rows(len(mask)))

    def propensity(
        self, users: Any, contexts: Any, eligible: Any = None, *, draws: int = 1_000, seed: int = 0
    ) -> np.ndarray:
        """Estimate the probability (m, K) of each arm being chosen now, for each of m events of known users.

        The estimates are from `draws` draws of the policy's randomness. Without a floor, a deterministic policy has one
        arm of probability 1. The fleet and its random numbers do not change.
        """
        checks.whole("draws", draws, least=1)
        checks.seed("seed", seed)
        with self._lock:
            crowd, offered = self._crowd, self._crowd.arms.offered(contexts)
            slots = crowd.users.slots(users)
            m, k = slots.size, offered.active.size
            contexts = events.finite("contexts", contexts, (m, k, self.dim))
            masks = np.array(np.broadcast_to(offered.masks(eligible, m), (m, k)))
            size, rng = crowd.recipe.noise_size(crowd.n_slots), np.random.default_rng(seed)
            found = np.empty((m, k))
            for event, user in enumerate(slots.tolist()):
                state, offer = state_of(crowd.rows.states, user), self._offer(user, contexts[event], masks[event])
                found[event] = estimated_propensity(self._parameters, state, offer, size, self.floor, draws, rng)
            return found

    def diagnostics(self, user: Name) -> dict[str, Any]:
        """Return what the policy has learnt about one user, and the numbers of pending and of all decisions."""
        with self._lock:
            crowd = self._crowd
            (slot,) = crowd.users.slots([user])
            found = crowd.arms.labelled(diagnostics(self._parameters, state_of(crowd.rows.states, slot)))
            if self.features and "theta_hat" in found:
                found["theta_hat"] = self.features.by_name(found["theta_hat"])
            pending, decisions = crowd.rows.pending[slot].sum(), crowd.rows.decisions[slot]
            return {**found, "pending": int(pending), "decisions": int(decisions)}

    def explain(self, user: Name, contexts: Any, eligible: Any = None) -> Explanation:
        """Explain what the policy would choose for a user: every arm's mean, width and score, and what decides.

        Nothing is drawn and nothing changes.
        """
        with self._lock:
            crowd = self._crowd
            (slot,) = crowd.users.slots([user])
            rows, mask, slots = crowd.arms.rows(contexts, eligible, None, self.dim)
            checks.finite_array("contexts", rows, rows.shape)
            state, offer = state_of(crowd.rows.states, slot), self._offer(slot, rows, mask)
            size = crowd.recipe.noise_size(crowd.n_slots)
            names = self.features.names if self.features else [f"feature {j}" for j in range(self.dim)]
            return explain(self._parameters, state, offer, size, arms=crowd.arms.row_names(slots), names=names)

    # ----------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Save all users to a path or an open binary file: arrays and JSON, no code. Saving to a path is atomic."""
        with self._lock:
            crowd = self._crowd
            header = {
                "policy": saving.describe_policy(self.policy),
                "dim": self.dim,
                "horizon": self.horizon,
                "rng": saving.describe_rng(self._rng),
                "noise_key": None if self._secret is None else self._secret.tolist(),
                "floor": self.floor,
                "features": None if self.features is None else self.features.to_dict(),
                **crowd.header(),
            }
            saving.write(target, kind="fleet", header=header, arrays=crowd.arrays())

    @classmethod
    def load(cls, source: saving.Source, policy: Policy | None = None) -> Fleet:
        """Load a saved fleet from a path or an open binary file. It continues exactly where the saved one stopped.

        Pass `policy` if it is one of your own. Damaged and malicious files are refused.
        """
        with saving.reading(source, kind="fleet") as saved:
            header = saved.header
            policy = saving.restore_policy(header["policy"], policy)
            dim, horizon = header["dim"], header["horizon"]
            checks.whole("dim", dim, least=1)
            if horizon is not None:
                checks.rounds("horizon", horizon)
            if on_ball(policy):
                raise ValueError("a fleet needs finitely many arms, not the unit ball")
            fleet = cls.__new__(cls)
            fleet.policy, fleet.horizon = policy, horizon
            fleet._crowd = Crowd.restored(saved, Recipe(policy, dim, horizon))
            words, schema = header.get("noise_key"), header.get("features")  # absent before 0.3
            fleet._secret = None if words is None else checks.words("noise_key", words, 2)
            if (fleet._secret is None) != (fleet._crowd.secret is None):
                raise ValueError("noise_key must be given if users or arms have names")
            fleet.features = None if schema is None else Features.from_dict(schema)
            fleet.dim, fleet.floor = given_dim(dim, fleet.features), float(header.get("floor", 0.0))
            check_floor(fleet.floor)
            fleet._rng = saving.restore_rng(header["rng"])
            fleet._set_up()
        return fleet

    def __reduce__(self) -> Any:
        """Pickle and copy in the saved form, which has no attributes that a subclass adds."""
        return type(self).load, (saving.in_memory(self), self.policy)
