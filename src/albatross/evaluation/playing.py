"""Policies on a log: replay by rejection, and the probabilities of the choices of a trained policy."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from threadpoolctl import threadpool_limits

from albatross import checks
from albatross.environments.logged import Logged
from albatross.evaluation.estimates import DEVIATIONS, EXCESS, MISSING, standard_error
from albatross.loops import count_choices_on_log, learn_rows, replay_rounds
from albatross.parallel import default_workers, in_threads, progress_bar
from albatross.protocol import Offer, check_policy, init, noise_size, on_ball, refuse_choice, resolve, tag_size
from albatross.simulation import BYTES_A_TRIAL, streams
from albatross.states import leaves, mapped, state_of

_CHUNK_BYTES = 1 << 20  # of contexts and noise at a time


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Rewards of one policy in the accepted rounds, per trial.

    If the log lacks actions that the policy chooses, or its propensities are wrong, the rewards are not distributed as
    in online play: means and errors are then NaN, and `reason` says why.
    """

    policy: Any
    rewards: list[np.ndarray]  # one array per trial, in the order of play
    reason: str | None = None

    @property
    def accepted(self) -> np.ndarray:
        """(trials,) number of accepted rounds."""
        return np.array([len(earned) for earned in self.rewards])

    @property
    def reward(self) -> np.ndarray:
        """(trials,) mean reward per round; NaN if no round was accepted, or if there is a `reason`."""
        counts = self.reason is None
        return np.array([earned.mean() if counts and earned.size else math.nan for earned in self.rewards])

    @property
    def value(self) -> float:
        """Mean reward per round, over the trials with accepted rounds."""
        found = self.reward[self.accepted > 0]
        return float(found.mean()) if found.size else math.nan

    @property
    def standard_error(self) -> float:
        """Mean of the trials' standard errors: an upper bound, because trials share a log and are dependent."""
        found = [] if self.reason else [standard_error(earned) for earned in self.rewards]
        known = [error for error in found if not math.isnan(error)]
        return float(np.mean(known)) if known else math.nan

    def __repr__(self) -> str:
        if self.reason is not None:
            return f"Replay({self.policy!r}: none, because {self.reason})"
        rounds = f"{self.accepted.mean():,.0f} rounds in {len(self.rewards)} trials"
        return f"Replay({self.policy!r}: {self.value:.4g} +- {self.standard_error:.2g} from {rounds})"


@dataclass(frozen=True)
class PerUser:
    """A policy with a state of its own for every user of the log, as a `Fleet` has.

    A policy alone has one state, which learns from all users. A policy that needs the number of rounds gets their mean
    per user.
    """

    policy: Any


class Pace(NamedTuple):
    """Progress and cancellation of work in a thread."""

    advance: Callable[[int], None]
    stop: threading.Event

    def chunks(self, rows: np.ndarray, numbers_a_row: int, *, steps: int = 1) -> Iterator[np.ndarray]:
        """Yield the rows in chunks that take little memory; each row advances the bar by `steps`."""
        size = max(1, _CHUNK_BYTES // (8 * numbers_a_row))
        for start in range(0, len(rows), size):
            if self.stop.is_set():
                return
            yield rows[start : start + size]
            self.advance(steps * len(rows[start : start + size]))


class Learner:
    """A policy with its random numbers and its state, or one state per user."""

    def __init__(self, policy: Any, env: Logged, n_rounds: int, rng: np.random.Generator) -> None:
        self.env, self.rng = env, rng
        self.parameters = resolved(policy, env, n_rounds)
        n_states = n_states_of(policy, env)
        first = init(self.parameters, env.n_arms, env.dim, rng)
        each = sum(array.nbytes for _, array in leaves(first))
        # They exist twice for a moment.
        checks.fits_in_memory(f"{n_states} users", 2 * (n_states - 1) * each, "take fewer, or one state for all")
        others = (init(self.parameters, env.n_arms, env.dim, rng) for _ in range(n_states - 1))
        self.states = mapped(lambda *arrays: np.stack(arrays), first, *others)
        self.users = env.users if n_states > 1 else np.zeros(env.length, np.int64)
        self.noise_size = noise_size(self.parameters, env.n_arms, env.dim)
        self.pending = np.zeros(env.n_arms, np.int64)

    def replay(self, rows: np.ndarray, pace: Pace) -> np.ndarray:
        """Learn online from the rows whose action the policy chooses; return their rewards."""
        env, earned = self.env, [np.empty(0)]
        for part in pace.chunks(rows, env.n_arms * env.dim + self.noise_size):
            noise = self.rng.standard_normal((len(part), self.noise_size))
            contexts, eligible = self._offered(part)
            played, rewards = (contexts, env.actions[part], env.rewards[part], eligible), np.empty(len(part))
            granted, wrong = replay_rounds(
                self.parameters, self.states, self.users[part], *played, self.pending, noise, rewards
            )
            if wrong >= 0:
                self._refuse(part[wrong], noise[wrong])
            earned.append(rewards[:granted])
        return np.concatenate(earned)

    def learn(self, rows: np.ndarray, pace: Pace) -> None:
        """Learn from rows as choices of another policy."""
        env, tag = self.env, np.full(tag_size(self.parameters), np.nan)
        for part in pace.chunks(rows, env.dim):
            arms = env.actions[part]
            played = env.contexts[part, arms], arms, env.rewards[part], tag
            learn_rows(self.parameters, self.states, self.users[part], *played)

    def probabilities(self, rows: np.ndarray, draws: int, pace: Pace) -> np.ndarray:
        """(m, K) choice probabilities in each row, from `draws` draws, without learning."""
        env = self.env
        draws = draws if self.noise_size else 1
        counts = [np.empty((0, env.n_arms))]
        for part in pace.chunks(rows, env.n_arms * env.dim + draws * self.noise_size, steps=draws):
            noise = self.rng.standard_normal((len(part), draws, self.noise_size))
            counts.append(np.zeros((len(part), env.n_arms)))
            wrong, draw = count_choices_on_log(
                self.parameters, self.states, self.users[part], *self._offered(part), self.pending, noise, counts[-1]
            )
            if wrong >= 0:
                self._refuse(part[wrong], noise[wrong, draw])
        return np.concatenate(counts) / draws

    def _offered(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.env.contexts[rows], np.ascontiguousarray(self.env.eligible[rows])

    def _refuse(self, row: int, noise: np.ndarray) -> NoReturn:
        contexts, eligible = self._offered(np.array([row]))
        offer = Offer(contexts[0], eligible[0], self.pending, -1, np.arange(self.env.n_arms))
        refuse_choice(self.parameters, state_of(self.states, self.users[row]), offer, noise)


def replay_once(policy: Any, env: Logged, trial: int, seed: int, pace: Pace) -> np.ndarray:
    log_rng, policy_rng, _ = streams(seed, trial)
    order = np.arange(env.length) if trial == 0 else log_rng.permutation(env.length)
    least = env.propensities.min()
    offered = order[log_rng.random(env.length) < least / env.propensities[order]]
    pace.advance(env.length - offered.size)
    return Learner(policy, env, _expected(env), policy_rng).replay(offered, pace)


def _expected(env: Logged) -> int:
    """Return the expected number of accepted rounds: each is accepted with the smallest propensity."""
    return max(1, round(env.length * float(env.propensities.min())))


def bare(policy: Any) -> Any:
    """Return the policy without `PerUser`."""
    return policy.policy if isinstance(policy, PerUser) else policy


def n_states_of(policy: Any, env: Logged) -> int:
    """Return the number of states: one, or one per user."""
    return env.n_users if isinstance(policy, PerUser) else 1


def resolved(policy: Any, env: Logged, n_rounds: int) -> Any:
    """Return the parameters of a policy whose states learn from so many rounds in total."""
    horizon = max(1, round(n_rounds / n_states_of(policy, env)))
    return resolve(bare(policy), env.n_arms, env.dim, horizon)


def draws_per_round(policy: Any, env: Logged, draws: int) -> int:
    """Return the number of draws per round needed for the choice probabilities of a policy."""
    size = noise_size(resolved(policy, env, _expected(env)), env.n_arms, env.dim)
    n_bytes = 8 * int(draws) * size * default_workers()  # each draws for a round of its own
    checks.fits_in_memory(f"draws={draws} of the policy's noise", n_bytes, "take fewer")
    return draws if size else 1


def check_tables(n_rounds: int, n_arms: int, n_tables: int) -> None:
    """Refuse more tables of rounds and actions, of probabilities or predictions, than fit in memory."""
    what = f"{n_tables} tables of {n_rounds:,} rounds and {n_arms:,} actions"
    checks.fits_in_memory(what, 8 * n_tables * n_rounds * n_arms, "take fewer rounds, actions or policies")


def check_trials(trials: int, n_policies: int, env: Logged) -> None:
    """Refuse an invalid number of replays, or one whose rewards do not fit in memory."""
    checks.whole("trials", trials, least=1)
    n_bytes = n_policies * int(trials) * (8 * _expected(env) + BYTES_A_TRIAL)
    checks.fits_in_memory(f"the rewards of trials={trials} replays", n_bytes, "take fewer trials")


def in_parallel(jobs: Sequence[Callable[[Pace], Any]], total: int) -> list[Any]:
    """Run the jobs and return their results in order; `total` is their number of steps: rows learnt and choices."""
    stop = threading.Event()
    with threadpool_limits(1, user_api="blas"), progress_bar(total, None) as advance:
        pace = Pace(advance, stop)
        return in_threads(lambda j: jobs[j](pace), len(jobs), default_workers(), stop)


def replay(policy: Any, env: Logged, *, trials: int = 1, seed: int = 0) -> Any:
    """Run a learning policy, or a dict of policies, on a log by rejection; a dict gives a dict of `Replay`.

    The first trial uses the order of the log, every other trial a random order. The numbers depend only on `seed`.

    >>> from albatross import environments, policies
    >>> rng = np.random.default_rng(0)
    >>> log = environments.Logged(contexts=np.ones((600, 3, 1)), actions=rng.integers(3, size=600),
    ...                           rewards=rng.random(600), propensities=np.full(600, 1 / 3))
    >>> replay(policies.UCB(sigma=0.3), log).accepted.tolist()
    [174]
    """
    named = named_policies(policy, env)
    check_trials(trials, len(named), env)
    checks.seed("seed", seed)

    jobs = [partial(replay_once, each, env, trial, seed) for each in named.values() for trial in range(trials)]
    done = iter(in_parallel(jobs, len(jobs) * env.length))
    found = {}
    for name, each in named.items():
        found[name] = replayed(name, each, [next(done) for _ in range(trials)], env)
    return found if isinstance(policy, Mapping) else found[""]


def replayed(name: str, policy: Any, rewards: list[np.ndarray], env: Logged) -> Replay:
    """Return the replay; if too few or too many rounds were accepted, add the reason and warn."""
    least, granted = float(env.propensities.min()), float(np.mean([len(earned) for earned in rewards]))
    expected = env.length * least  # for any policy, if the log takes every action
    luck = DEVIATIONS * math.sqrt(expected * (1.0 - least))
    why = None
    if expected - granted > max(MISSING * expected, luck):
        why = "the log lacks actions that the policy chooses"
    elif granted - expected > max(EXCESS * expected, luck):
        why = "the propensities are wrong"
    reason = None
    if why is not None:
        reason = f"{granted:,.0f} rounds were accepted where about {expected:,.0f} are expected: {why}"
        warnings.warn(f"{name or 'the policy'}: no replay, because {reason}", stacklevel=3)
    return Replay(policy, rewards, reason)


def probabilities(
    policy: Any, env: Logged, *, trained_on: Any, rows: Any, draws: int = 100, seed: int = 0
) -> np.ndarray:
    """(m, K) probability that the policy chooses each arm in `rows`, after learning from the rows `trained_on`.

    It learns from those rows as another policy's decisions, and from nothing else. A deterministic policy has one arm
    of probability 1; for others, this is the share of `draws` draws. Rows are indices, a mask or a slice.

    >>> from albatross import environments, policies
    >>> log = environments.Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1],
    ...                           propensities=[0.5] * 4)
    >>> probabilities(policies.Greedy(), log, trained_on=slice(3), rows=[3]).tolist()
    [[0.0, 1.0]]
    """
    named_policies({"": policy}, env)
    checks.whole("draws", draws, least=1)
    checks.seed("seed", seed)
    known, asked = _rows("trained_on", trained_on, env), _rows("rows", rows, env)
    check_tables(asked.size, env.n_arms, 2)

    def job(pace: Pace) -> np.ndarray:
        return trained(policy, env, known, streams(seed, 0)[1], pace).probabilities(asked, draws, pace)

    return in_parallel([job], known.size + asked.size * draws_per_round(policy, env, draws))[0]


def _rows(name: str, value: Any, env: Logged) -> np.ndarray:
    """Return row numbers (m,) from numbers, a mask or a slice."""
    try:
        rows = np.arange(env.length)[value]
    except (IndexError, TypeError):
        rows = None
    if rows is None or value is None or isinstance(value, bool | np.bool_) or rows.ndim > 1:
        wanted = f"row numbers from 0 to {env.length - 1}, a mask or a slice"
        raise ValueError(f"{name} must be {wanted}, not {checks.shown(value)}")
    return np.atleast_1d(rows)


def trained(policy: Any, env: Logged, rows: np.ndarray, rng: np.random.Generator, pace: Pace) -> Learner:
    learner = Learner(policy, env, max(1, rows.size), rng)
    learner.learn(rows, pace)
    return learner


def check_log(env: Any) -> None:
    if not isinstance(env, Logged):
        raise TypeError(f"{env!r} is not a log: give an albatross.environments.Logged")


def named_policies(policy: Any, env: Any) -> dict[str, Any]:
    """Return the policies by name after checking, before any work, that all suit this log."""
    check_log(env)
    named = dict(policy) if isinstance(policy, Mapping) else {"": policy}
    if not named:
        raise ValueError("give at least one policy")
    for each in named.values():
        check_policy(bare(each))
        if on_ball(bare(each)):
            raise ValueError(f"{type(bare(each)).__name__} plays on the unit ball, but the log has {env.n_arms} arms")
        if isinstance(each, PerUser) and env.users is None:
            raise ValueError("PerUser needs a log that names the user of every round: give Logged(users=[...])")
        resolved(each, env, _expected(env))
    return named
