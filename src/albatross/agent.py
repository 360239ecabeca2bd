"""Agent: run a policy on your own data, one decision and one reward at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from albatross import checks, policies, saving
from albatross.compiling import first_cause
from albatross.crowd.arms import Name, NumberedArms, PassingRows, UnitBall
from albatross.crowd.named_arms import NamedArms
from albatross.crowd.recipe import Recipe
from albatross.explaining import Explanation, explain
from albatross.features import Features, given_dim
from albatross.floor import check_floor, estimated_propensity, with_floor
from albatross.forks import renew_after_fork
from albatross.loops import FLOOR_NUMBERS, decide, learn_log, learn_reward
from albatross.noise import NoiseByDecision
from albatross.notebook import html_table
from albatross.pending import Pending
from albatross.picking import row_to_retry
from albatross.protocol import (
    Choice,
    Offer,
    Policy,
    check_change_of_arms,
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
from albatross.states import mapped
from albatross.store.decision_log import LogWriter


class Decision(NamedTuple):
    """A decision of an agent. Only `id` is needed to reward it, now or after a restart."""

    id: str
    arm: Any  # the name of the arm, or its number if the arms have no names
    action: np.ndarray  # (d,) the chosen row of the contexts
    score: float  # what the policy maximised; inf for the first play of an arm
    width: float  # the exploration bonus in the score
    propensity: float | None  # the probability of choosing this row; None if unknown
    row: int  # the chosen row of the contexts

    def _repr_html_(self) -> str:
        return html_table(
            "Decision", [("", "value"), *((key, checks.shown(each)) for key, each in self._asdict().items())]
        )


class Agent:
    """A policy, its state and its random numbers: `select` an arm, play it, `update` with the reward.

    The default policy is `policies.Albatross`, which has nothing to tune. `arms` names the arms, which can be added and
    retired later; `n_arms` only counts them. Without either, the arms are the vectors of the unit ball and the default
    is `policies.AlbatrossDim`. With `arms="passing"`, every decision has rows of its own, which belong to no arm; the
    policy must be one without biases. `features` gives the coordinates their names, and `dim` is then not needed. With
    `floor=0.02`, two decisions in a hundred are for a random arm, so that propensities of a deterministic policy are
    known and never 0.

    Rewards may arrive late, in any order, or never. At most `max_pending` decisions are kept; beyond that the oldest is
    forgotten and counted in `diagnostics()["forgotten"]`. An agent may be shared by threads.

    >>> agent = Agent(arms=["sport", "politics", "art"], dim=2, seed=0)
    >>> decision = agent.select([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], eligible=["sport", "art"])
    >>> agent.update(decision, reward=0.7)
    >>> decision.arm, agent.diagnostics()["pulls"]
    ('art', {'sport': 0.0, 'politics': 0.0, 'art': 1.0})
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        arms: Iterable[Name] | Literal["passing"] | None = None,
        n_arms: int | None = None,
        dim: int | None = None,
        features: Features | None = None,
        floor: float = 0.0,
        seed: int | np.random.SeedSequence | None = None,
        max_pending: int = 10_000,
    ) -> None:
        if arms is not None and n_arms is not None:
            raise ValueError("give arms, their names, or n_arms, their number, but not both")
        passing = PassingRows() if isinstance(arms, str) and arms == "passing" else None
        named = None if arms is None or passing else NamedArms(arms)
        n_slots = passing.first if passing else n_arms if named is None else named.n_slots
        if policy is None:
            policy = policies.AlbatrossDim() if n_slots is None else policies.Albatross()
        check_policy(policy)
        if on_ball(policy):
            if n_slots is not None:
                given = f"n_arms={n_arms!r}" if named is None else "arms"
                raise ValueError(f"{type(policy).__name__} plays on the unit ball: give only dim, not {given}")
            n_slots = 1
        if n_slots is None:
            raise ValueError(f"{type(policy).__name__} plays finitely many arms: give arms or n_arms")
        if passing:
            passing.check_policy(policy)
        dim = given_dim(dim, features)
        checks.whole("n_arms", n_slots, least=1)
        checks.whole("max_pending", max_pending, least=1)
        check_floor(floor)
        rng = checks.generator("seed", seed)
        n_slots = int(n_slots)
        checks.fits_in_memory(f"contexts of {n_slots} arms and {dim} features", 8 * n_slots * dim, "take fewer")
        self.policy, self.dim, self.features, self.floor = policy, dim, features, float(floor)
        # Named arms come and go: what is drawn for a decision must not depend on how many there are.
        self._noise = None if named is None else NoiseByDecision.seeded(rng)
        self._parameters = resolve(policy, n_slots, dim, None)
        self._state = init(self._parameters, n_slots, dim, rng)
        self._rng = rng
        self._arms = passing or named or (UnitBall(dim) if on_ball(policy) else NumberedArms(n_slots))
        self._pending = Pending(n_slots, int(max_pending))
        self._set_up()

    def _set_up(self) -> None:
        self._tag_size, self._no_noise = tag_size(self._parameters), np.empty(0)
        self._learnt = np.zeros(1, np.int64)  # 1 once the policy has learnt a reward
        self._noise_size = noise_size(self._parameters, self._pending.of_arm.size, self.dim)
        self._log: Any = None  # the LogWriter, if there was one
        self._lock = threading.Lock()
        renew_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pending.rename()
        self._rng = checks.generator("seed", None)
        if self._noise is not None:
            self._noise = NoiseByDecision.seeded(self._rng)

    # Compiled at first use: an agent that only decides does not wait for the code that learns.

    @cached_property
    def _decide(self) -> Any:
        offered = np.zeros((1, self.dim)), np.ones(1, bool), self._pending.of_arm, np.zeros(1, np.int64)
        return decide.prepared(self._parameters, self._state, *offered, 0, self._no_noise)

    @cached_property
    def _learn(self) -> Any:
        kept = (0, np.zeros(self.dim), 0.0, 0.0, 0.0, np.zeros(self._tag_size))
        return learn_reward.prepared(self._parameters, self._state, kept, 0.0, 1, self._learnt)

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, {self._arms.described()}dim={self.dim})"

    def _repr_html_(self) -> str:
        found = self.diagnostics()
        rows = [(key, checks.shown(value)) for key, value in found.items()]
        return html_table(repr(self), [("", "value"), *rows])

    # ------------------------------------------------------------------------------------------------------------ arms

    @property
    def n_arms(self) -> int:
        """Number of arms, without retired ones."""
        return self._arms.active.size

    @property
    def arms(self) -> list[Any]:
        """The arms, in the order of the rows of contexts."""
        return self._arms.names

    @property
    def max_pending(self) -> int:
        """How many pending decisions are kept."""
        return self._pending.most

    def add_arm(self, name: Name) -> None:
        """Add an arm. Its row is the last one of the contexts that `select` takes."""
        with self._lock:
            arms = self._named().copied()
            self._take(arms, arms.add(name, free=self._free_slots()))

    def retire_arm(self, name: Name) -> None:
        """Remove an arm. What it taught about theta stays, and its pending decisions can still be rewarded."""
        with self._lock:
            arms = self._named().copied()
            arms.retire(name)
            self._arms = arms

    def reset_arm(self, name: Name) -> None:
        """Forget the bias of an arm, as if it were new. Rewards of its pending decisions then teach theta only."""
        with self._lock:
            arms = self._named().copied()
            self._take(arms, arms.move(name, free=self._free_slots()))

    def _named(self) -> NamedArms:
        if not isinstance(self._arms, NamedArms):
            raise ValueError("the arms of this agent have no names: give them, Agent(arms=[...])")
        check_change_of_arms(self._parameters)
        return self._arms

    def _free_slots(self) -> list[int]:
        return [slot for slot in self._named().retired_slots if not self._pending.of_arm[slot]]

    def _take(self, arms: NamedArms, slot: int) -> None:
        """Take these arms, one of them new in a slot: clear that of a retired one, or double the number of slots."""
        pending, of_arm, had = self._pending, self._pending.of_arm, self._pending.of_arm.size
        if slot == had:
            of_arm = np.append(of_arm, np.zeros_like(of_arm))  # nothing is offered in slots that are still empty
        recipe, alone = Recipe(self.policy, self.dim, None), mapped(lambda array: array[None], self._state)
        state = recipe.with_arm(alone, slot, had=had, n_slots=of_arm.size, users=[0])
        state, parameters = mapped(lambda array: array[0], state), recipe.parameters(of_arm.size)
        size = noise_size(parameters, of_arm.size, self.dim)
        # All or nothing: no calls here, so neither a Ctrl-C nor a lack of memory can come in between.
        self._arms, self._parameters, self._state = arms, parameters, state
        pending.of_arm, self._noise_size = of_arm, size

    # ------------------------------------------------------------------------------------- decisions and rewards

    def select(self, contexts: Any = None, eligible: Any = None, *, arms: Any = None) -> Decision:
        """Choose an arm, or one of several rows per arm.

        `contexts` (K, d) has one row per arm, in the order of `agent.arms`; (d,) is shared by all. `eligible` is a mask
        or a list of arms. With `arms`, contexts may have any number of rows, and `arms` says which arm each belongs to:
        an outlet may have several articles, or none. If rows pass, contexts (n, d) have any number of rows, and
        `decision.row` says which was chosen. On the unit ball, `select()` takes no arguments and chooses a
        vector, `decision.action`.
        """
        with self._lock:
            return self._select(*self._arms.rows(contexts, eligible, arms, self.dim))

    def rank(self, contexts: Any, k: int, eligible: Any = None, *, arms: Any = None) -> list[Decision]:
        """Choose k rows for k places, the first one first. Each is a decision with a reward of its own.

        The propensity of a place is that given the places above it.
        """
        checks.whole("k", k, least=1)
        with self._lock:
            table, mask, slots = self._arms.rows(contexts, eligible, arms, self.dim)
            if k > np.count_nonzero(mask):
                raise ValueError(f"k must be at most the {np.count_nonzero(mask)} eligible rows, not {k}")
            left, ranked = mask.copy(), []
            for _ in range(k):
                ranked.append(self._select(table, left, slots))
                left[ranked[-1].row] = False
            return ranked

    def _select(self, contexts: np.ndarray, mask: np.ndarray, slots: np.ndarray) -> Decision:
        z, rewind = self._draw() if self._noise_size or self.floor else (self._no_noise, None)
        noise = z[FLOOR_NUMBERS:] if self.floor else z
        arms, pending = self._arms, self._pending
        waiting = pending.of_arm if arms.last else arms.none_waiting
        try:
            sound, row, kept = self._decide(
                self._parameters, self._state, contexts, mask, waiting, slots, pending.made, noise
            )
        except SystemError as error:
            raise first_cause(error) from None
        if not sound or kept[5].size > self._tag_size:
            if rewind:
                self._rng.bit_generator.state = rewind
            offer = self._offer(contexts, mask, slots)
            refuse_choice(self._parameters, self._state, offer, noise, Choice(row, *kept[1:]))
        if kept[5].size < self._tag_size:  # as a fleet keeps it, and a file
            kept = (*kept[:5], np.append(kept[5], np.zeros(self._tag_size - kept[5].size)))
        if self.floor:
            row, kept = with_floor(self.floor, z, contexts, mask, slots, row, kept)
        arm, action, score, width, propensity, _ = kept
        if self._log is not None and not self._log.closed:
            eligible = [arms.name_of(slot) for slot in slots[mask].tolist()]
            chosen = {"action": arms.name_of(arm), "propensity": propensity}
            try:
                self._log.write_decision(pending.next_id, **chosen, eligible=eligible, contexts=contexts[mask])
            except BaseException:  # nothing is decided
                if rewind:
                    self._rng.bit_generator.state = rewind
                raise
        action.flags.writeable = False  # the update will learn from it
        known = propensity if propensity == propensity else None
        fields = pending.add(kept), arms.name_of(arm), action, score, width, known, row
        return tuple.__new__(Decision, fields)  # as Decision(*fields), in half the time

    def _draw(self) -> tuple[np.ndarray, Any]:
        """Return the random numbers of the next decision, and the state of the stream before them, if there is one."""
        size = self._noise_size + (FLOOR_NUMBERS if self.floor else 0)
        if self._noise is not None:
            return self._noise(self._pending.made, size), None
        before = self._rng.bit_generator.state
        return self._rng.standard_normal(size), before

    def _offer(self, contexts: np.ndarray, eligible: np.ndarray, slots: np.ndarray) -> Offer:
        waiting = self._pending.of_arm if self._arms.last else self._arms.none_waiting
        return Offer(contexts, eligible, waiting, row_to_retry(self._pending.made, eligible), slots)

    def update(self, decision: Decision | str | np.ndarray, reward: float) -> None:
        """Learn from the reward of a decision, given as a `Decision` or its id. Each decision is rewarded once.

        On the unit ball, an action vector is accepted as well: that of a pending decision, or one of your own.
        """
        name: Any = decision.id if isinstance(decision, Decision) else decision
        if isinstance(self._arms, UnitBall) and isinstance(name, np.ndarray | list | tuple):
            action = checks.finite_array("action", name, (self.dim,))
            with self._lock:
                name = self._pending.of_action(action)
            if name is None:
                self.warm_start(action[None, :], None, [checks.reward(reward)])
                return
        if type(reward) is not float or not abs(reward) <= checks.LARGEST:
            reward = checks.reward(reward)
        with self._lock:
            pending = self._pending
            kept = pending.kept.get(name) if type(name) is str else None
            if kept is None:
                kept = pending[name]  # raises, unless the name is of a subclass of str
            if self._log is not None and not self._log.closed:
                self._log.write_reward(name, reward)  # first: if the disk is full, nothing is learnt
            self._learnt[0] = 0
            try:
                self._learn(self._parameters, self._state, kept, reward, 1, self._learnt)
            finally:
                # If the policy raised, the decision stays pending. No calls here: a Ctrl-C cannot come in between.
                if self._learnt[0]:
                    pending.of_arm[kept[0]] -= 1
                    del pending.kept[name]

    def drop(self, decision: Decision | str) -> None:
        """Discard a decision whose reward will never arrive, given as a `Decision` or its id."""
        name = decision.id if isinstance(decision, Decision) else decision
        with self._lock:
            self._pending[name]  # raises if it is not pending
            self._pending.remove(name)

    def log(self, path: str | os.PathLike[str]) -> LogWriter:
        """Write all decisions and rewards from now on to a CSV or Parquet file, until the returned writer is closed.

        A row holds the decision, the eligible arms with their features, the propensity and the reward: what
        `albatross evaluate` needs. Its propensities are useful for a deterministic policy with a `floor`.
        """
        if isinstance(self._arms, UnitBall):
            raise ValueError("decisions on the unit ball have no propensities: a log needs finitely many arms")
        if isinstance(self._arms, PassingRows):
            raise ValueError("rows that pass have no names: a log needs arms that last, so give arms or n_arms")
        with self._lock:
            if self._log is not None and not self._log.closed:
                raise ValueError(f"this agent writes to {self._log.path} already: close that log first")
            self._log = LogWriter(path)
            return self._log

    def warm_start(self, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from a log: arms (n,), rewards (n,), and contexts (n, d) of the played arms or (n, K, d) of all arms.

        On the unit ball, contexts are the actions (n, d) and arms is None. If rows pass, arms is None too.
        """
        rewards = checks.finite_array("rewards", rewards, (None,))
        n = rewards.size
        if isinstance(self._arms, UnitBall):
            arms = np.zeros(n, np.int64) if arms is None else arms
            longest = np.linalg.norm(checks.finite_array("contexts", contexts, (n, self.dim)), axis=1).max(initial=0.0)
            if longest > 1.0 + 1e-9:
                raise ValueError(f"actions must have length at most 1, got {longest:.6g}")
        contexts = checks.numbers("contexts", contexts)
        tag = np.full(self._tag_size, np.nan)
        with self._lock:
            slots = self._arms.slots(arms, n)
            if contexts.ndim == 3:
                table = checks.finite_array("contexts", contexts, (n, self.n_arms, self.dim))
                rows = np.argsort(self._arms.active)[np.searchsorted(np.sort(self._arms.active), slots)]
                actions = np.ascontiguousarray(table[np.arange(n), rows])
            else:
                actions = checks.finite_array("contexts", contexts, (n, self.dim))
            learn_log(self._parameters, self._state, actions, slots, rewards, tag)

    def propensity(
        self, contexts: Any = None, eligible: Any = None, *, arms: Any = None, draws: int = 1_000, seed: int = 0
    ) -> np.ndarray:
        """Estimate the probability of each row being chosen now, from `draws` draws of the policy's randomness.

        Without a floor, a deterministic policy has one row of probability 1. The agent and its random numbers do not
        change.
        """
        if isinstance(self._arms, UnitBall):
            raise ValueError("propensities are undefined on the unit ball: an action has a density, not a probability")
        checks.whole("draws", draws, least=1)
        checks.seed("seed", seed)
        with self._lock:  # also while drawing: a new arm may need more noise
            table, mask, slots = self._arms.rows(contexts, eligible, arms, self.dim)
            checks.finite_array("contexts", table, table.shape)
            offer, size = self._offer(table, mask, slots), self._noise_size
            rng = np.random.default_rng(seed)
            return estimated_propensity(self._parameters, self._state, offer, size, self.floor, draws, rng)

    def explain(self, contexts: Any, eligible: Any = None, *, arms: Any = None) -> Explanation:
        """Explain which arm is best now: mean, width and score of every row, and the features that make the difference.

        Instead of contexts, a `Decision` may be given: then its row alone is explained, as it is seen now. Randomness
        is left out: Thompson sampling is explained by its means, and the floor is ignored.
        """
        if isinstance(contexts, Decision):
            if eligible is not None or arms is not None:
                raise ValueError("a decision has its arm and its row: give neither eligible nor arms")
            arms = None if contexts.arm is None else [contexts.arm]
            contexts = contexts.action[None]
        with self._lock:
            table, mask, slots = self._arms.rows(contexts, eligible, arms, self.dim)
            checks.finite_array("contexts", table, table.shape)
            names = self.features.names if self.features else [f"feature {j}" for j in range(self.dim)]
            arms = self._arms.row_names(slots)
            offer = self._offer(table, mask, slots)
            return explain(self._parameters, self._state, offer, self._noise_size, arms=arms, names=names)

    def diagnostics(self) -> dict[str, Any]:
        """Return what the policy has learnt, and the numbers of pending, forgotten and all decisions."""
        with self._lock:
            found = self._arms.labelled(diagnostics(self._parameters, self._state))
            if self.features and "theta_hat" in found:
                found["theta_hat"] = self.features.by_name(found["theta_hat"])
            pending = self._pending
            return {**found, "pending": len(pending), "forgotten": pending.forgotten, "decisions": pending.made}

    # ----------------------------------------------------------------------------------------------- save and load

    def save(self, target: saving.Source) -> None:
        """Save the agent, with its pending decisions and random numbers, to a path or an open binary file.

        The file contains arrays and JSON, no code. Saving to a path is atomic.
        """
        with self._lock:
            header = {
                "policy": saving.describe_policy(self.policy),
                "n_arms": self._pending.of_arm.size,
                "dim": self.dim,
                **self._pending.header(),
                "rng": saving.describe_rng(self._rng),
                "arms": self._arms.to_dict(),
                "noise_key": None if self._noise is None else self._noise.key,
                "floor": self.floor,
                "features": None if self.features is None else self.features.to_dict(),
            }
            saving.check_state_can_be_read(self._parameters, self._state)
            arrays = {**saving.state_arrays(self._state), **self._pending.arrays()}
            saving.write(target, kind="agent", header=header, arrays=arrays)

    @classmethod
    def load(cls, source: saving.Source, policy: Policy | None = None) -> Agent:
        """Load a saved agent from a path or an open binary file. It continues exactly where the saved one stopped.

        Pass `policy` if it is one of your own. Damaged and malicious files are refused.
        """
        with saving.reading(source, kind="agent") as saved:
            header = saved.header
            policy = saving.restore_policy(header["policy"], policy)
            n_slots, dim = header["n_arms"], header["dim"]
            for name in ("n_arms", "dim"):
                checks.whole(name, header[name], least=1)
            if on_ball(policy) and n_slots != 1:
                raise ValueError("the unit ball has no arms")
            agent = cls.__new__(cls)
            parameters, template = saving.new_state(policy, n_slots, dim, None, most_bytes=saved.nbytes)
            agent.policy, agent._parameters, agent._state = policy, parameters, saved.state(parameters, template)
            agent._rng = saving.restore_rng(header["rng"])
            arms, key, schema = (header.get(name) for name in ("arms", "noise_key", "features"))  # absent before 0.3
            if on_ball(policy) and arms is not None:
                raise ValueError("the unit ball has no arms to name")
            passing = PassingRows() if arms == {"passing": True} else None
            named = None if arms is None or passing else NamedArms.from_dict(arms, n_slots=n_slots)
            agent._arms = passing or named or (UnitBall(dim) if on_ball(policy) else NumberedArms(n_slots))
            agent._noise = None if named is None else NoiseByDecision(key or ())
            agent.features = None if schema is None else Features.from_dict(schema)
            agent.dim, agent.floor = given_dim(dim, agent.features), header.get("floor", 0.0)
            check_floor(agent.floor)
            agent._pending, tags = Pending.restored(saved, n_slots, dim, tag_size(parameters))
            check_tags(parameters, agent._state, tags)
            agent._set_up()
        return agent

    def __reduce__(self) -> Any:
        """Pickle and copy in the saved form, which has no attributes that a subclass adds."""
        return type(self).load, (saving.in_memory(self), self.policy)
