"""Agent: run a policy on your own data, one decision and one reward at a time."""

from __future__ import annotations

import secrets
import threading
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from albatross import checks, policies, saving
from albatross.compiling import first_cause
from albatross.errors import UnknownDecision
from albatross.forks import renew_after_fork
from albatross.loops import count_choices, decide, learn_log, learn_reward
from albatross.picking import arm_to_retry
from albatross.protocol import (
    Choice,
    Offer,
    Policy,
    check_policy,
    check_tags,
    diagnostics,
    init,
    noise_size,
    on_ball,
    refuse_choice,
    resolve,
    tag_size,
)


class Decision(NamedTuple):
    """A decision of an agent. Only `id` is needed to reward it, now or after a restart."""

    id: str
    arm: int
    action: np.ndarray  # (d,) the chosen arm's context
    score: float  # what the policy maximised; inf for the first play of an arm
    width: float  # the exploration bonus in the score
    propensity: float | None  # the probability of choosing this arm; None if unknown


class Agent:
    """A policy, its state and its random numbers: `select` an arm, play it, `update` with the reward.

    The default policy is `policies.Albatross`, which has nothing to tune. Without `n_arms`, the arms are the vectors of
    the unit ball and the default is `policies.AlbatrossDim`.

    Rewards may arrive late, in any order, or never. At most `max_pending` decisions are kept; beyond that the oldest is
    forgotten and counted in `diagnostics()["forgotten"]`. An agent may be shared by threads.

    >>> agent = Agent(n_arms=3, dim=2, seed=0)
    >>> decision = agent.select([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], eligible=[0, 2])
    >>> agent.update(decision, reward=0.7)
    >>> agent.diagnostics()["pulls"].tolist()
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        n_arms: int | None = None,
        dim: int,
        seed: int | np.random.SeedSequence | None = None,
        max_pending: int = 10_000,
    ) -> None:
        if policy is None:
            policy = policies.AlbatrossDim() if n_arms is None else policies.Albatross()
        check_policy(policy)
        if on_ball(policy):
            if n_arms is not None:
                raise ValueError(
                    f"{type(policy).__name__} plays on the unit ball: give only dim, not n_arms={n_arms!r}"
                )
            n_arms = 1
        if n_arms is None:
            raise ValueError(f"{type(policy).__name__} plays finitely many arms: give n_arms")
        checks.whole("n_arms", n_arms, least=1)
        checks.whole("dim", dim, least=1)
        checks.whole("max_pending", max_pending, least=1)
        rng = checks.generator("seed", seed)
        n_arms, dim = int(n_arms), int(dim)
        checks.fits_in_memory(f"contexts of {n_arms} arms and {dim} features", 8 * n_arms * dim, "take fewer")
        parameters = resolve(policy, n_arms, dim, None)
        state = init(parameters, n_arms, dim, rng)
        self._set_up(policy, parameters, state, rng, n_arms, dim, int(max_pending))
        self._name = secrets.token_hex(4)
        self._made = self._forgotten = 0

    def _set_up(
        self, policy: Any, parameters: Any, state: Any, rng: Any, n_arms: int, dim: int, max_pending: int
    ) -> None:
        self.policy, self.n_arms, self.dim, self.max_pending = policy, n_arms, dim, max_pending
        self._parameters, self._state, self._rng = parameters, state, rng
        self._noise_size, self._tag_size = noise_size(parameters, n_arms, dim), tag_size(parameters)
        self._no_noise = np.empty(0)
        self._ball = np.zeros((1, dim)) if on_ball(policy) else None  # the offer on the ball: no arms to choose from
        self._all_eligible = np.ones(n_arms, bool)
        self._pending: dict[str, tuple[int, np.ndarray, float, float, float, np.ndarray]] = {}  # fields of Choice
        self._pending_of_arm = np.zeros(n_arms, np.int64)
        self._learnt = np.zeros(1, np.int64)  # 1 once the policy has learnt a reward
        self._lock = threading.Lock()
        renew_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._name = secrets.token_hex(4)
        self._rng = checks.generator("seed", None)

    # Compiled at first use: an agent that only decides does not wait for the code that learns.

    @cached_property
    def _decide(self) -> Any:
        offered = np.zeros((self.n_arms, self.dim)), self._all_eligible, self._pending_of_arm
        return decide.prepared(self._parameters, self._state, *offered, 0, self._no_noise)

    @cached_property
    def _learn(self) -> Any:
        kept = (0, np.zeros(self.dim), 0.0, 0.0, 0.0, np.zeros(self._tag_size))
        return learn_reward.prepared(self._parameters, self._state, kept, 0.0, self._learnt)

    def __repr__(self) -> str:
        arms = "" if self._ball is not None else f"n_arms={self.n_arms}, "
        return f"Agent({self.policy!r}, {arms}dim={self.dim})"

    # ------------------------------------------------------------------------------------- decisions and rewards

    def select(self, contexts: Any = None, eligible: Any = None) -> Decision:
        """Choose an arm. `contexts` is (K, d), or (d,) shared by all arms; `eligible` is a mask or a list of arms.

        On the unit ball, `select()` takes no arguments and chooses a vector, `decision.action`.
        """
        mask = self._all_eligible if eligible is None else checks.eligible(eligible, self.n_arms)
        contexts = self._contexts(contexts)
        if self._ball is not None and eligible is not None:
            raise ValueError("the arms are the unit ball: select() takes no eligible arms")
        with self._lock:
            noise, rewind = self._no_noise, None
            if self._noise_size:
                rewind = self._rng.bit_generator.state
                noise = self._rng.standard_normal(self._noise_size)
            offered = (contexts, mask, self._pending_of_arm, self._made)
            try:
                sound, kept = self._decide(self._parameters, self._state, *offered, noise)
            except SystemError as error:
                raise first_cause(error) from None
            if not sound or kept[5].size > self._tag_size:
                if rewind:
                    self._rng.bit_generator.state = rewind
                checks.finite_array("contexts", contexts, (self.n_arms, self.dim))
                refuse_choice(self._parameters, self._state, self._offer(contexts, mask), noise)
            if kept[5].size < self._tag_size:  # as a fleet keeps it, and a file
                kept = (*kept[:5], np.append(kept[5], np.zeros(self._tag_size - kept[5].size)))
            name = f"{self._name}-{self._made + 1}"
            if len(self._pending) >= self.max_pending:
                self._forget_oldest()
            arm, action, score, width, propensity, _ = kept
            action.flags.writeable = False  # the update will learn from it
            # No calls in these lines: a Ctrl-C cannot come between them.
            self._made += 1
            self._pending_of_arm[arm] += 1
            self._pending[name] = kept
        return Decision(name, arm, action, score, width, propensity if propensity == propensity else None)

    def update(self, decision: Decision | str | np.ndarray, reward: float) -> None:
        """Learn from the reward of a decision, given as a `Decision` or its id. Each decision is rewarded once.

        On the unit ball, an action vector is accepted as well: that of a pending decision, or one of your own.
        """
        name: Any = decision.id if isinstance(decision, Decision) else decision
        if self._ball is not None and isinstance(name, np.ndarray | list | tuple):
            action = checks.finite_array("action", name, (self.dim,))
            with self._lock:
                made = [one for one, kept in self._pending.items() if np.array_equal(kept[1], action)]
            if not made:
                self.warm_start(action[None, :], None, [checks.reward(reward)])
                return
            name = made[0]  # the vector is the action of this pending decision
        if type(reward) is not float or not abs(reward) <= checks.LARGEST:
            reward = checks.reward(reward)
        with self._lock:
            kept = self._choice(name)
            self._learnt[0] = 0
            try:
                self._learn(self._parameters, self._state, kept, reward, self._learnt)
            finally:
                # If the policy raised, the decision stays pending. No calls here: a Ctrl-C cannot come in between.
                if self._learnt[0]:
                    self._pending_of_arm[kept[0]] -= 1
                    del self._pending[name]

    def drop(self, decision: Decision | str) -> None:
        """Discard a decision whose reward will never arrive, given as a `Decision` or its id."""
        name = decision.id if isinstance(decision, Decision) else decision
        with self._lock:
            self._choice(name)
            self._take_off(name)

    def warm_start(self, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from a log: arms (n,), rewards (n,), and contexts (n, d) of the played arms or (n, K, d) of all arms.

        On the unit ball, contexts are the actions (n, d) and arms is None.
        """
        rewards = checks.finite_array("rewards", rewards, (None,))
        n = rewards.size
        if self._ball is not None:
            arms = np.zeros(n, np.int64) if arms is None else arms
            longest = np.linalg.norm(checks.finite_array("contexts", contexts, (n, self.dim)), axis=1).max(initial=0.0)
            if longest > 1.0 + 1e-9:
                raise ValueError(f"actions must have length at most 1, got {longest:.6g}")
        arms, contexts = checks.arms(arms, n, self.n_arms), checks.numbers("contexts", contexts)
        if contexts.ndim == 3:
            table = checks.finite_array("contexts", contexts, (n, self.n_arms, self.dim))
            actions = np.ascontiguousarray(table[np.arange(n), arms])
        else:
            actions = checks.finite_array("contexts", contexts, (n, self.dim))
        tag = np.full(tag_size(self._parameters), np.nan)
        with self._lock:
            learn_log(self._parameters, self._state, actions, arms, rewards, tag)

    def propensity(
        self, contexts: Any = None, eligible: Any = None, *, draws: int = 1_000, seed: int = 0
    ) -> np.ndarray:
        """Estimate the probability (K,) of each arm being chosen now, from `draws` draws of the policy's randomness.

        A deterministic policy has one arm of probability 1. The agent and its random numbers do not change.
        """
        if self._ball is not None:
            raise ValueError("propensities are undefined on the unit ball: an action has a density, not a probability")
        checks.whole("draws", draws, least=1)
        checks.seed("seed", seed)
        table = checks.finite_array("contexts", self._contexts(contexts), (self.n_arms, self.dim))
        mask = self._all_eligible if eligible is None else checks.eligible(eligible, self.n_arms)
        draws = draws if self._noise_size else 1
        checks.fits_in_memory(f"draws={draws} of the policy's noise", 8 * draws * self._noise_size, "take fewer")
        noise = np.random.default_rng(seed).standard_normal((draws, self._noise_size))
        counts = np.zeros(self.n_arms)
        with self._lock:
            offer = self._offer(table, mask)
            wrong = count_choices(self._parameters, self._state, offer, noise, counts)
            if wrong >= 0:
                refuse_choice(self._parameters, self._state, offer, noise[wrong])
        return counts / draws

    def diagnostics(self) -> dict[str, Any]:
        """Return what the policy has learnt, and the numbers of pending, forgotten and all decisions."""
        with self._lock:
            found = diagnostics(self._parameters, self._state)
            return {**found, "pending": len(self._pending), "forgotten": self._forgotten, "decisions": self._made}

    # ------------------------------------------------------------------------------------------- checked arguments

    def _contexts(self, contexts: Any) -> np.ndarray:
        """Return a C-ordered (K, d) array of float64. Compiled code checks that it is finite."""
        if self._ball is not None:
            if contexts is not None:
                raise ValueError("the arms are the unit ball: select() takes no contexts")
            return self._ball
        if contexts is None:
            raise ValueError(f"contexts must be given: shape ({self.n_arms}, {self.dim}) or ({self.dim},)")
        return checks.contexts(contexts, self.n_arms, self.dim)

    def _offer(self, contexts: np.ndarray, eligible: np.ndarray) -> Offer:
        retry = arm_to_retry(self._made, self.n_arms)
        return Offer(contexts, eligible, self._pending_of_arm, retry)

    def _choice(self, name: Any) -> tuple[int, np.ndarray, float, float, float, np.ndarray]:
        """Return the fields of a pending choice."""
        kept = self._pending.get(name) if isinstance(name, str) else None
        if kept is None:
            raise UnknownDecision(self._why_unknown(name))
        return kept

    def _take_off(self, name: Any) -> None:
        arm = self._pending[name][0]
        self._pending_of_arm[arm] -= 1
        del self._pending[name]

    def _forget_oldest(self) -> None:
        self._take_off(next(iter(self._pending)))
        self._forgotten += 1

    def _why_unknown(self, name: Any) -> str:
        prefix, _, number = name.rpartition("-") if isinstance(name, str) else ("", "", "")
        if not (prefix and number.isdecimal()):
            return f"{name!r} is not a decision: give the result of select, or its id"
        if prefix != self._name:
            return f"decision {name} belongs to another agent, or was rewarded before this agent was loaded"
        if len(number) > 20 or not 1 <= int(number) <= self._made:
            return f"decision {name} was never made"
        return (
            f"decision {name} is not pending: it was rewarded before, dropped, or forgotten "
            f"({self._forgotten} forgotten so far)"
        )

    # ----------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Save the agent, with its pending decisions and random numbers, to a path or an open binary file.

        The file contains arrays and JSON, no code. Saving to a path is atomic.
        """
        with self._lock:
            header = {
                "policy": saving.describe_policy(self.policy),
                "n_arms": self.n_arms,
                "dim": self.dim,
                "max_pending": self.max_pending,
                "made": self._made,
                "forgotten": self._forgotten,
                "pending": list(self._pending),
                "rng": saving.describe_rng(self._rng),
            }
            arrays = saving.state_arrays(self._state)
            for field, column in zip(Choice._fields, zip(*self._pending.values(), strict=True), strict=False):
                arrays[f"pending/{field}"] = np.array(column)
            saving.write(target, kind="agent", header=header, arrays=arrays)

    @classmethod
    def load(cls, source: saving.Source, policy: Policy | None = None) -> Agent:
        """Load a saved agent from a path or an open binary file. It continues exactly where the saved one stopped.

        Pass `policy` if it is one of your own. Damaged and malicious files are refused.
        """
        with saving.reading(source, kind="agent") as saved:
            header = saved.header
            policy = saving.restore_policy(header["policy"], policy)
            for name, least in (("n_arms", 1), ("dim", 1), ("max_pending", 1), ("made", 0), ("forgotten", 0)):
                checks.whole(name, header[name], least=least)
            n_arms, dim = header["n_arms"], header["dim"]
            checks.indices("made", np.array(header["made"]), checks.MOST_ROUNDS)
            if on_ball(policy) and n_arms != 1:
                raise ValueError("the unit ball has no arms")
            parameters, template = saving.new_state(policy, n_arms, dim, None, most_bytes=saved.nbytes)
            state = saved.state(parameters, template)
            agent = cls.__new__(cls)
            rng = saving.restore_rng(header["rng"])
            agent._set_up(policy, parameters, state, rng, n_arms, dim, header["max_pending"])
            # A new name, so that later decisions of the saved agent are not mistaken for ours.
            agent._name = secrets.token_hex(4)
            agent._made, agent._forgotten = header["made"], header["forgotten"]
            agent._restore_pending(saved)
        return agent

    def _restore_pending(self, saved: saving.Saved) -> None:
        names = saved.header["pending"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("pending must be a list of ids")
        if not names:
            return
        shapes = {"arm": (), "action": (self.dim,), "tag": (tag_size(self._parameters),)}
        columns = [
            saved.array(f"pending/{field}", (len(names), *shapes.get(field, ())), np.int64 if field == "arm" else float)
            for field in Choice._fields
        ]
        arms, actions, scores, _, propensities, tags = columns
        checks.indices("pending/arm", arms, self.n_arms - 1)
        checks.finite_array("pending/action", actions, actions.shape)
        if np.isnan(scores).any():
            raise ValueError("pending/score must hold numbers")
        if not (np.isnan(propensities) | ((propensities > 0.0) & (propensities <= 1.0 + 1e-9))).all():
            raise ValueError("pending/propensity must be above 0 and at most 1, or NaN")
        checks.tags("pending/tag", tags)
        check_tags(self._parameters, self._state, tags)
        for name, (arm, action, score, width, propensity, tag) in zip(names, zip(*columns, strict=True), strict=True):
            self._pending[name] = (int(arm), action.copy(), float(score), float(width), float(propensity), tag.copy())
            self._pending_of_arm[arm] += 1
        if len(self._pending) < len(names):
            raise ValueError("pending lists a decision twice")

    def __reduce__(self) -> Any:
        """Pickle and copy in the saved form."""
        return type(self).load, (saving.in_memory(self), self.policy)
