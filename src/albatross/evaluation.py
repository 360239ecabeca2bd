"""What would another policy have earned? Answers from a log whose actions were taken with known probabilities.

*Replay* plays a learning policy on the log: a round counts, and is learnt from, if the policy chooses the logged action
(Li, Chu, Langford and Wang 2011). If that had probability p, the round is only offered with probability min p / p: then
every choice is met equally often, and what is accepted has the law of online play, whatever policy wrote the log.

*Off-policy estimates* are of a policy that no longer learns, with probabilities pi(a|x). Of w = pi(a|x) / p they are

    IPS     mean of w r                                     (Horvitz and Thompson 1952)
    SNIPS   sum of w r / sum of w                           (Swaminathan and Joachims 2015)
    DR      mean of sum_a pi(a|x) m(x,a) + w (r - m(x,a))   (Dudik, Langford and Li 2011)

with m a ridge regression of the rewards. IPS and DR are unbiased, and w's effective sample size, (sum w)^2 / sum w^2,
says how many rounds they rest on.

*Support.* All of this needs a log whose policy could have taken every action that the new one takes. A log of a policy
without randomness, with propensities of 1, says nothing of any other action, yet the formulas give numbers with small
errors. They betray themselves: with support w has mean 1, and replay grants a share min p of the rounds. Where too
little is granted, where w averages too little, or where too few rounds carry all weight, there is no estimate but NaN,
with a `reason` and a warning. It is no exception, so that one policy without support does not cost the others' results.
"""

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
from albatross.environments.logged import Logged, checked_actions, checked_propensities
from albatross.loops import count_choices_on_log, learn_log, replay_rounds
from albatross.protocol import (
    Offer,
    check_policy,
    init,
    is_policy,
    noise_size,
    on_ball,
    refuse_choice,
    resolve,
    tag_size,
)
from albatross.simulation import BYTES_A_TRIAL, default_workers, in_threads, progress_bar, streams

_CHUNK_BYTES = 1 << 20  # of contexts and noise at once
_ROUNDING = 1e-6  # by which probabilities may miss a sum of 1
_ALIKE = 1e-12  # a spread of so little, relative to the mean, is rounding
# On simulated logs with support, SNIPS +- two standard errors holds the truth in 20 % of cases with fewer than 3
# effective rounds, in 70 % with 3 to 10, in 85 % with 10 to 30 and in 90 % and more beyond. Of a log of fewer than 100
# rounds a tenth will do: everybody sees how small it is.
_FEWEST, _SMALLEST_SHARE = 10.0, 0.1
_MISSING = 0.01  # of a policy's choices may lie outside of the log
_DEVIATIONS = 4.0  # by which that must show
_CERTAIN = 1.0 - 1e-6  # a propensity that leaves nothing to other actions


class Estimate(NamedTuple):
    """Mean reward a round, how far it may be off, and how many rounds it rests on.

    Where the log does not support an estimate, value and error are NaN and `reason` says why: more than 1 % of the
    policy's choices are actions that the log could not, or by the weights' mean did not, take; or it rests on fewer
    than 10 effective rounds (than a tenth of a log that is shorter than 100).
    """

    value: float
    standard_error: float  # NaN where all that is averaged is alike, as where no reward was met
    effective_sample_size: float
    reason: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """What one policy earned in the rounds that it was granted, trial by trial.

    Where the log does not take all actions that the policy chooses, its rewards do not have the law of online play:
    means and errors are then NaN, and `reason` says why.
    """

    policy: Any
    rewards: list[np.ndarray]  # of each trial, in the order they were earned
    reason: str | None = None

    @property
    def accepted(self) -> np.ndarray:
        """(trials,) how many rounds counted."""
        return np.array([len(earned) for earned in self.rewards])

    @property
    def reward(self) -> np.ndarray:
        """(trials,) mean reward a round; NaN where none counted, or where there is a `reason` against it."""
        counts = self.reason is None
        return np.array([earned.mean() if counts and earned.size else math.nan for earned in self.rewards])

    @property
    def value(self) -> float:
        """Mean reward a round over the trials that had any."""
        found = self.reward[self.accepted > 0]
        return float(found.mean()) if found.size else math.nan

    @property
    def standard_error(self) -> float:
        """Mean of the trials' own. They share a log, and however they depend, their mean's is no larger."""
        found = [] if self.reason else [standard_error(earned) for earned in self.rewards]
        known = [error for error in found if not math.isnan(error)]
        return float(np.mean(known)) if known else math.nan

    def __repr__(self) -> str:
        if self.reason is not None:
            return f"Replay({self.policy!r}: none, because {self.reason})"
        rounds = f"{self.accepted.mean():,.0f} rounds in {len(self.rewards)} trials"
        return f"Replay({self.policy!r}: {self.value:.4g} +- {self.standard_error:.2g} from {rounds})"


class Evaluation(NamedTuple):
    """All that a log says of one policy."""

    replay: Replay | None  # None for a table of probabilities, which learns nothing
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate


# --------------------------------------------------------------------------------------------- a policy on a log


class _Pace(NamedTuple):
    """How work in a thread reports and is stopped."""

    advance: Callable[[int], None]
    stop: threading.Event

    def chunks(self, rows: np.ndarray, numbers_a_row: int, *, steps: int = 1) -> Iterator[np.ndarray]:
        """The rows, as many at once as their numbers take little memory; a row is so many steps of the bar."""
        size = max(1, _CHUNK_BYTES // (8 * numbers_a_row))
        for start in range(0, len(rows), size):
            if self.stop.is_set():
                return
            yield rows[start : start + size]
            self.advance(steps * len(rows[start : start + size]))


class _Learner:
    """A policy with its state and its own stream of random numbers."""

    def __init__(self, policy: Any, env: Logged, horizon: int, rng: np.random.Generator) -> None:
        self.env, self.rng = env, rng
        self.parameters = resolve(policy, env.n_arms, env.dim, horizon)
        self.state = init(self.parameters, env.n_arms, env.dim, rng)
        self.noise_size = noise_size(self.parameters, env.n_arms, env.dim)
        self.eligible, self.pending = np.ones(env.n_arms, bool), np.zeros(env.n_arms, np.int64)

    def replay(self, rows: np.ndarray, pace: _Pace) -> np.ndarray:
        """Learn online from those of the rows whose action it would have chosen: their rewards."""
        env, earned = self.env, [np.empty(0)]
        for part in pace.chunks(rows, env.n_arms * env.dim + self.noise_size):
            noise = self.rng.standard_normal((len(part), self.noise_size))
            rewards = np.empty(len(part))
            offered = (env.contexts[part], env.actions[part], env.rewards[part], self.eligible, self.pending)
            granted, wrong = replay_rounds(self.parameters, self.state, *offered, noise, rewards)
            if wrong >= 0:
                self._refuse(offered[0][wrong], noise[wrong])
            earned.append(rewards[:granted])
        return np.concatenate(earned)

    def learn(self, rows: np.ndarray, pace: _Pace) -> None:
        """Learn from rows as choices of somebody else."""
        env, tag = self.env, np.full(tag_size(self.parameters), np.nan)
        for part in pace.chunks(rows, env.dim):
            arms = env.actions[part]
            learn_log(self.parameters, self.state, env.contexts[part, arms], arms, env.rewards[part], tag)

    def probabilities(self, rows: np.ndarray, draws: int, pace: _Pace) -> np.ndarray:
        """(m, K) of its choice in each row, as the share of `draws` draws, learning nothing."""
        env = self.env
        draws = draws if self.noise_size else 1
        counts = [np.empty((0, env.n_arms))]
        for part in pace.chunks(rows, env.n_arms * env.dim + draws * self.noise_size, steps=draws):
            noise = self.rng.standard_normal((len(part), draws, self.noise_size))
            counts.append(np.zeros((len(part), env.n_arms)))
            offered = (env.contexts[part], self.eligible, self.pending)
            wrong, draw = count_choices_on_log(self.parameters, self.state, *offered, noise, counts[-1])
            if wrong >= 0:
                self._refuse(offered[0][wrong], noise[wrong, draw])
        return np.concatenate(counts) / draws

    def _refuse(self, contexts: np.ndarray, noise: np.ndarray) -> NoReturn:
        refuse_choice(self.parameters, self.state, Offer(contexts, self.eligible, self.pending, -1), noise)


def _replay_once(policy: Any, env: Logged, trial: int, seed: int, pace: _Pace) -> np.ndarray:
    log_rng, policy_rng, _ = streams(seed, trial)
    order = np.arange(env.length) if trial == 0 else log_rng.permutation(env.length)
    least = env.propensities.min()
    offered = order[log_rng.random(env.length) < least / env.propensities[order]]
    pace.advance(env.length - offered.size)
    return _Learner(policy, env, _expected(env), policy_rng).replay(offered, pace)


def _expected(env: Logged) -> int:
    """How many rounds replay will count, near enough: each is granted with the least propensity."""
    return max(1, round(env.length * float(env.propensities.min())))


def _choices(policy: Any, env: Logged, draws: int) -> int:
    """How often a policy chooses in a round, to say how likely each arm is."""
    return draws if noise_size(resolve(policy, env.n_arms, env.dim, _expected(env)), env.n_arms, env.dim) else 1


def _check_trials(trials: int, n_policies: int, env: Logged) -> None:
    """Refuse a number of replays that is no number of replays, or whose rewards do not fit in memory."""
    checks.whole("trials", trials, least=1)
    n_bytes = n_policies * int(trials) * (8 * _expected(env) + BYTES_A_TRIAL)
    checks.fits_in_memory(f"the rewards of trials={trials} replays", n_bytes, "take fewer trials")


def _in_parallel(jobs: Sequence[Callable[[_Pace], Any]], total: int) -> list[Any]:
    """What the jobs return, in their order; `total` is how many steps they take: rows learnt, and choices made."""
    stop = threading.Event()
    with threadpool_limits(1, user_api="blas"), progress_bar(total, None) as advance:
        pace = _Pace(advance, stop)
        return in_threads(lambda j: jobs[j](pace), len(jobs), default_workers(), stop)


def replay(policy: Any, env: Logged, *, trials: int = 1, seed: int = 0) -> Any:
    """Play a learning policy, or a dict of them, on a log by rejection; a dict gives a dict of `Replay`.

    The first trial takes the log in its order, each further one in a random order of its own. The numbers depend on
    `seed` alone.

    >>> from albatross import environments, policies
    >>> rng = np.random.default_rng(0)
    >>> log = environments.Logged(contexts=np.ones((600, 3, 1)), actions=rng.integers(3, size=600),
    ...                           rewards=rng.random(600), propensities=np.full(600, 1 / 3))
    >>> replay(policies.UCB(sigma=0.3), log).accepted.tolist()
    [174]
    """
    named = _named(policy, env)
    _check_trials(trials, len(named), env)
    checks.seed("seed", seed)

    jobs = [partial(_replay_once, each, env, trial, seed) for each in named.values() for trial in range(trials)]
    done = iter(_in_parallel(jobs, len(jobs) * env.length))
    found = {}
    for name, each in named.items():
        found[name] = _replayed(name, each, [next(done) for _ in range(trials)], env)
    return found if isinstance(policy, Mapping) else found[""]


def _replayed(name: str, policy: Any, rewards: list[np.ndarray], env: Logged) -> Replay:
    """With the reason, which is warned of, if the policy was granted too few rounds."""
    least, granted = float(env.propensities.min()), float(np.mean([len(earned) for earned in rewards]))
    expected = env.length * least  # whatever the policy, if the log takes every action
    missing = expected - granted
    reason = None
    if missing > max(_MISSING * expected, _DEVIATIONS * math.sqrt(expected * (1.0 - least))):
        reason = (
            f"it was granted {granted:,.0f} of about {expected:,.0f} rounds: "
            "the log does not take every action that it chooses"
        )
        warnings.warn(f"{name or 'the policy'}: no replay, because {reason}", stacklevel=3)
    return Replay(policy, rewards, reason)


def probabilities(
    policy: Any, env: Logged, *, trained_on: Any, rows: Any, draws: int = 100, seed: int = 0
) -> np.ndarray:
    """(m, K) how likely the policy would choose each arm in `rows`, once it has learnt the rows `trained_on`.

    It learns those as somebody else's decisions and then nothing more. A policy that draws nothing chooses one arm with
    certainty; of others this is the share of so many draws. Rows are numbers, a mask or a slice.

    >>> from albatross import environments, policies
    >>> log = environments.Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1],
    ...                           propensities=[0.5] * 4)
    >>> probabilities(policies.Greedy(), log, trained_on=slice(3), rows=[3]).tolist()
    [[0.0, 1.0]]
    """
    _named({"": policy}, env)
    checks.whole("draws", draws, least=1)
    checks.seed("seed", seed)
    every = np.arange(env.length)
    known, asked = np.atleast_1d(every[trained_on]), np.atleast_1d(every[rows])

    def job(pace: _Pace) -> np.ndarray:
        return _trained(policy, env, known, streams(seed, 0)[1], pace).probabilities(asked, draws, pace)

    return _in_parallel([job], known.size + asked.size * _choices(policy, env, draws))[0]


def _trained(policy: Any, env: Logged, rows: np.ndarray, rng: np.random.Generator, pace: _Pace) -> _Learner:
    learner = _Learner(policy, env, max(1, rows.size), rng)
    learner.learn(rows, pace)
    return learner


def _check_log(env: Any) -> None:
    if not isinstance(env, Logged):
        raise TypeError(f"{env!r} is not a log: make an albatross.environments.Logged")


def _named(policy: Any, env: Any) -> dict[str, Any]:
    """Policies by name, all of them fit for this log; a wrong one is told before any work."""
    _check_log(env)
    named = dict(policy) if isinstance(policy, Mapping) else {"": policy}
    if not named:
        raise ValueError("give at least one policy")
    for each in named.values():
        check_policy(each)
        if on_ball(each):
            raise ValueError(f"{type(each).__name__} plays actions of the unit ball, a log has {env.n_arms} arms")
        resolve(each, env.n_arms, env.dim, _expected(env))
    return named


# ------------------------------------------------------------------------------------------- off-policy estimates


class _Target(NamedTuple):
    """A policy that does not learn, on the rounds of a log."""

    probabilities: np.ndarray  # (n, K)
    actions: np.ndarray  # (n,) logged
    rewards: np.ndarray  # (n,)
    weights: np.ndarray  # (n,) probability of the logged action, against what it was
    effective_sample_size: float
    reason: str | None  # why the log does not support an estimate


def ips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """Inverse propensity score: unbiased for a policy that takes its actions with probabilities `target` (n, K).

    >>> ips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    4.0
    """
    return _ips(_checked_target("the target", target, actions, rewards, propensities))


def snips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """IPS divided by the weights' mean: a little biased, often far less spread.

    >>> snips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    2.0
    """
    return _snips(_checked_target("the target", target, actions, rewards, propensities))


def doubly_robust(target: Any, *, actions: Any, rewards: Any, propensities: Any, predictions: Any) -> Estimate:
    """IPS of what `predictions` (n, K) of the rewards miss, and their mean: unbiased whatever they are.

    No prediction may have seen its own round's reward: see `predicted_rewards`.

    >>> logged = {"actions": [1, 0], "rewards": [1, 3], "propensities": [0.5, 0.25]}
    >>> doubly_robust([[0, 1], [0.5, 0.5]], **logged, predictions=[[2, 1], [2, 1]]).value
    2.25
    """
    checked = _checked_target("the target", target, actions, rewards, propensities)
    predictions = checks.finite_array("predictions", predictions, checked.probabilities.shape)
    return _doubly_robust(checked, predictions)


def _ips(target: _Target) -> Estimate:
    return _mean(target.weights * target.rewards, target)


def _snips(target: _Target) -> Estimate:
    if target.reason is not None:
        return _refused(target)
    total = float(target.weights.sum())
    value = float(target.weights @ target.rewards) / total
    spread = math.sqrt(float((target.weights**2) @ (target.rewards - value) ** 2)) / total  # the delta method
    return Estimate(value, _known(spread, value), target.effective_sample_size)


def _doubly_robust(target: _Target, predictions: np.ndarray) -> Estimate:
    played = predictions[np.arange(len(predictions)), target.actions]
    expected = (target.probabilities * predictions).sum(axis=1)
    return _mean(expected + target.weights * (target.rewards - played), target)


def _mean(values: np.ndarray, target: _Target) -> Estimate:
    if target.reason is not None:
        return _refused(target)
    return Estimate(float(values.mean()), standard_error(values), target.effective_sample_size)


def _refused(target: _Target) -> Estimate:
    return Estimate(math.nan, math.nan, target.effective_sample_size, target.reason)


def standard_error(values: np.ndarray) -> float:
    """Of the mean; NaN where it is not known."""
    if values.size < 2:
        return math.nan
    return _known(float(values.std(ddof=1)) / math.sqrt(values.size), float(values.mean()))


def _known(error: float, value: float) -> float:
    """The error, NaN where it is 0 but for rounding: values that are all alike do not say how far they may be off."""
    return error if error > _ALIKE * abs(value) else math.nan


def _checked_target(name: str, target: Any, actions: Any, rewards: Any, propensities: Any) -> _Target:
    rewards = checks.finite_array("rewards", rewards, (None,))
    if not rewards.size:
        raise ValueError("rewards must hold at least one round")
    target = _checked_probabilities(target, rewards.size)
    actions = checked_actions(actions, *target.shape)
    propensities = checked_propensities(propensities, rewards.size)
    return _weighted(name, target, actions, rewards, propensities, stacklevel=4)


def _weighted(
    name: str,
    target: np.ndarray,
    actions: np.ndarray,
    rewards: np.ndarray,
    propensities: np.ndarray,
    *,
    stacklevel: int = 3,
) -> _Target:
    """With the weights; warns where the log knows nothing."""
    weights = target[np.arange(len(target)), actions] / propensities
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    unknown = target[:, np.bincount(actions, minlength=target.shape[1]) == 0]
    reason = _why_refused(weights, effective, propensities, unknown)
    if reason is not None:
        warnings.warn(f"{name}: no IPS, SNIPS or DR, because {reason}", stacklevel=stacklevel)
    elif unknown.any():
        warnings.warn(
            f"{name} {_spent(unknown)}: IPS and SNIPS leave out what they earn, DR guesses it, and replay waits for "
            "them in vain",
            stacklevel=stacklevel,
        )
    return _Target(target, actions, rewards, weights, effective, reason)


def _spent(unknown: np.ndarray) -> str:
    """How often a policy takes actions that were never logged, in words, from its probabilities (n, number) of them."""
    number = int(unknown.any(axis=0).sum())
    kind = "action that was" if number == 1 else "actions that were"
    return f"spends {unknown.sum():.4g} of {len(unknown)} rounds on {number} {kind} never logged"


def _why_refused(weights: np.ndarray, effective: float, propensities: np.ndarray, unknown: np.ndarray) -> str | None:
    """Why the log does not support off-policy estimates, in words."""
    n = weights.size
    impossible = float((1.0 - weights)[propensities >= _CERTAIN].sum())
    if impossible > _MISSING * n:
        return (
            f"it spends {impossible:,.4g} of {n:,} rounds on actions that the log could not take: another one had "
            "propensity 1"
        )
    fewest = min(_FEWEST, _SMALLEST_SHARE * n)
    if effective < fewest:
        return f"it rests on {effective:.2g} of {n:,} rounds, and at least {fewest:.3g} are needed"
    average = float(weights.mean())
    error = float(weights.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    missing = 1.0 - average
    if missing <= max(_MISSING, _DEVIATIONS * error):
        return None
    if unknown.sum() > 0.5 * missing * n:
        return f"it {_spent(unknown)}"
    return (
        f"its weights average {average:.2f} ± {error:.2f} and not 1: the log hardly ever takes the actions of "
        f"{100.0 * missing:.0f} % of its choices, or the propensities are wrong"
    )


def _checked_probabilities(target: Any, length: int) -> np.ndarray:
    """(n, K) of a policy's choices in each round of the log."""
    if isinstance(target, str) or np.ndim(target) != 2:
        raise TypeError(f"{target!r} is neither a policy nor a table of probabilities, ({length}, number of arms)")
    target = checks.finite_array("probabilities", target, (length, None))
    sums = target.sum(axis=1)
    if target.size and target.min() < 0.0:
        raise ValueError(f"probabilities must not be negative, but hold {target.min():g}")
    if (np.abs(sums - 1.0) > _ROUNDING).any():
        row = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(f"probabilities must sum to 1 in each round, but to {sums[row]:g} in round {row}")
    return target


def predicted_rewards(env: Logged, *, folds: int = 2, seed: int = 0) -> np.ndarray:
    """(n, K) by ridge regression on contexts and a bias an arm; rows are predicted by a model that never saw them."""
    fold_of_row = _folds(env, folds, seed)

    jobs = [partial(_predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    parts = _in_parallel(jobs, folds * env.length)
    return _assembled(parts, fold_of_row, env.n_arms)


def _folds(env: Logged, folds: int, seed: int) -> np.ndarray:
    """(n,) the fold of every row, at random and of equal sizes."""
    _check_log(env)
    checks.whole("folds", folds, least=2)
    checks.seed("seed", seed)
    if folds > env.length:
        raise ValueError(f"{folds} folds need at least as many rounds, the log has {env.length}")
    return streams(seed, 0)[2].permutation(env.length) % folds


def _assembled(parts: list[np.ndarray], fold_of_row: np.ndarray, n_arms: int) -> np.ndarray:
    """The rows of all folds in the order of the log."""
    whole = np.empty((fold_of_row.size, n_arms))
    for fold, part in enumerate(parts):
        whole[fold_of_row == fold] = part
    return whole


def _predict_fold(env: Logged, fold_of_row: np.ndarray, fold: int, pace: _Pace) -> np.ndarray:
    """(m, K) predictions for a fold's rows, fitted to all others: shrunk to their mean reward."""
    known, asked = np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)
    level = env.rewards[known].mean()
    # A prior by which an arm's bias, and all features of variance 1 together, are as large as the noise. The biases are
    # eliminated, as in linalg's Joint: there may be thousands.
    weight = 1.0 + np.bincount(env.actions[known], minlength=env.n_arms)
    reward_sum = np.bincount(env.actions[known], env.rewards[known] - level, env.n_arms)
    context_sum = np.zeros((env.n_arms, env.dim))
    gram, moment = env.dim * np.eye(env.dim), np.zeros(env.dim)
    for part in pace.chunks(known, env.dim):
        arms = env.actions[part]
        played = env.contexts[part, arms]
        np.add.at(context_sum, arms, played)
        gram += played.T @ played
        moment += played.T @ (env.rewards[part] - level)
    gram -= (context_sum.T / weight) @ context_sum
    moment -= context_sum.T @ (reward_sum / weight)
    theta = np.linalg.solve(gram, moment)
    biases = level + (reward_sum - context_sum @ theta) / weight
    predicted = [np.empty((0, env.n_arms))]
    for part in pace.chunks(asked, env.n_arms * env.dim):
        predicted.append(biases + env.contexts[part] @ theta)
    return np.concatenate(predicted)


def evaluate(policies: Any, env: Logged, *, folds: int = 2, trials: int = 1, draws: int = 20, seed: int = 0) -> Any:
    """Replay and off-policy estimates of one policy, or a dict of them; a dict gives a dict of `Evaluation`.

    IPS, SNIPS and DR are of what a policy has learnt: for each fold of the log it learns the others as somebody else's
    decisions and is then frozen. In place of a policy there may be a table (n, K) of probabilities. Few `draws` of a
    policy's randomness cost precision, but IPS and DR no bias. The numbers depend on `seed` alone.

    >>> from albatross import environments
    >>> log = environments.Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 2],
    ...                           propensities=[0.5] * 4)
    >>> evaluate(np.full((4, 2), 0.5), log).ips
    Estimate(value=0.75, standard_error=0.47871355387816905, effective_sample_size=4.0, reason=None)
    """
    named = dict(policies) if isinstance(policies, Mapping) else {"": policies}
    learning = {name: each for name, each in named.items() if is_policy(each)}
    if learning or not named:
        _named(learning, env)
    fold_of_row = _folds(env, folds, seed)
    _check_trials(trials, len(learning), env)
    checks.whole("draws", draws, least=1)
    targets = {name: _checked_probabilities(each, env.length) for name, each in named.items() if name not in learning}
    for name, target in targets.items():
        if target.shape[1] != env.n_arms:
            raise ValueError(f"probabilities {name} are of {target.shape[1]} arms, the log has {env.n_arms}")

    def learnt(each: Any, fold: int, pace: _Pace) -> np.ndarray:
        learner = _trained(each, env, np.flatnonzero(fold_of_row != fold), streams(seed, fold)[1], pace)
        return learner.probabilities(np.flatnonzero(fold_of_row == fold), draws, pace)

    jobs: list[Callable[[_Pace], Any]] = [partial(_predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    for each in learning.values():
        jobs += [partial(learnt, each, fold) for fold in range(folds)]
        jobs += [partial(_replay_once, each, env, trial, seed) for trial in range(trials)]
    # Predicting goes through all rows in each fold; a policy learns each row in all folds but one, and chooses in that.
    steps = folds + sum(folds - 1 + trials + _choices(each, env, draws) for each in learning.values())
    done = iter(_in_parallel(jobs, steps * env.length))
    predictions = _assembled([next(done) for _ in range(folds)], fold_of_row, env.n_arms)
    replays = {}
    for name, each in learning.items():
        targets[name] = _assembled([next(done) for _ in range(folds)], fold_of_row, env.n_arms)
        replays[name] = _replayed(name, each, [next(done) for _ in range(trials)], env)
    found = {}
    for name in named:
        on_log = _weighted(name or "the target", targets[name], env.actions, env.rewards, env.propensities)
        estimates = _ips(on_log), _snips(on_log), _doubly_robust(on_log, predictions)
        found[name] = Evaluation(replays.get(name), *estimates)
    return found if isinstance(policies, Mapping) else found[""]
