"""Estimate what a policy would have earned, from a log whose actions were taken with known probabilities.

*Replay* runs a learning policy on the log: a round counts, and the policy learns from it, if it chooses the logged
action (Li, Chu, Langford and Wang 2011). A round whose action had probability p is only offered with probability
min p / p. Every choice is then matched equally often, and the accepted rounds are distributed as in online play,
whatever policy wrote the log.

*Off-policy estimates* are for a policy that no longer learns, with probabilities pi(a|x). With w = pi(a|x) / p they are

    IPS     mean of w r                                     (Horvitz and Thompson 1952)
    SNIPS   sum of w r / sum of w                           (Swaminathan and Joachims 2015)
    DR      mean of sum_a pi(a|x) m(x,a) + w (r - m(x,a))   (Dudik, Langford and Li 2011)

where m is a ridge regression of the rewards. IPS and DR are unbiased. The effective sample size of w,
(sum w)^2 / sum w^2, is the number of rounds that they effectively rest on.

*Support.* The logging policy must be able to take every action that the new policy takes. The log of a deterministic
policy, with propensities of 1, says nothing about other actions, yet the formulas give numbers with small errors. Such
cases can be detected: with support, w has mean 1 and replay accepts a share min p of the rounds. If replay accepts too
few rounds, if the mean of w is too small, or if too few rounds carry all the weight, the estimate is NaN, with a
`reason` and a warning. It is not an exception, so that one unsupported policy does not cost the others' results.
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
from albatross.parallel import default_workers, in_threads, progress_bar
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
from albatross.simulation import BYTES_A_TRIAL, streams

_CHUNK_BYTES = 1 << 20  # of contexts and noise at a time
_ROUNDING = 1e-6  # tolerance for probabilities to sum to 1
_ALIKE = 1e-12  # a spread this small relative to the mean is rounding
# On simulated logs with support, SNIPS +- two standard errors contains the truth in 20 % of cases with fewer than 3
# effective rounds, in 70 % with 3 to 10, in 85 % with 10 to 30 and in 90 % and more beyond. For a log of fewer than 100
# rounds, a tenth is enough: its size is obvious.
_FEWEST, _SMALLEST_SHARE = 10.0, 0.1
_MISSING = 0.01  # share of a policy's choices that may be missing from the log
_DEVIATIONS = 4.0  # standard deviations by which it must be exceeded
_CERTAIN = 1.0 - 1e-6  # a propensity that leaves no probability for other actions


class Estimate(NamedTuple):
    """Mean reward per round, its standard error and the number of rounds that it effectively rests on.

    If the log does not support an estimate, value and error are NaN and `reason` says why: more than 1 % of the
    policy's choices are actions that the logging policy could not take, or did not take according to the mean weight;
    or fewer than 10 effective rounds remain (for a log of fewer than 100 rounds: fewer than a tenth).
    """

    value: float
    standard_error: float  # NaN if all averaged values are equal, as without any reward
    effective_sample_size: float
    reason: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Rewards of one policy in the accepted rounds, per trial.

    If the log lacks actions that the policy chooses, the rewards are not distributed as in online play: means and
    errors are then NaN, and `reason` says why.
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


class Evaluation(NamedTuple):
    """All estimates for one policy."""

    replay: Replay | None  # None for a table of probabilities, which does not learn
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate


# --------------------------------------------------------------------------------------------- a policy on a log


class _Pace(NamedTuple):
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


class _Learner:
    """A policy with its state and its random numbers."""

    def __init__(self, policy: Any, env: Logged, horizon: int, rng: np.random.Generator) -> None:
        self.env, self.rng = env, rng
        self.parameters = resolve(policy, env.n_arms, env.dim, horizon)
        self.state = init(self.parameters, env.n_arms, env.dim, rng)
        self.noise_size = noise_size(self.parameters, env.n_arms, env.dim)
        self.eligible, self.pending = np.ones(env.n_arms, bool), np.zeros(env.n_arms, np.int64)

    def replay(self, rows: np.ndarray, pace: _Pace) -> np.ndarray:
        """Learn online from the rows whose action the policy chooses; return their rewards."""
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
        """Learn from rows as choices of another policy."""
        env, tag = self.env, np.full(tag_size(self.parameters), np.nan)
        for part in pace.chunks(rows, env.dim):
            arms = env.actions[part]
            learn_log(self.parameters, self.state, env.contexts[part, arms], arms, env.rewards[part], tag)

    def probabilities(self, rows: np.ndarray, draws: int, pace: _Pace) -> np.ndarray:
        """(m, K) choice probabilities in each row, from `draws` draws, without learning."""
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
    """Return the expected number of accepted rounds: each is accepted with the smallest propensity."""
    return max(1, round(env.length * float(env.propensities.min())))


def _choices(policy: Any, env: Logged, draws: int) -> int:
    """Return the number of draws per round needed for the choice probabilities of a policy."""
    size = noise_size(resolve(policy, env.n_arms, env.dim, _expected(env)), env.n_arms, env.dim)
    checks.fits_in_memory(f"draws={draws} of the policy's noise", 8 * int(draws) * size, "take fewer")
    return draws if size else 1


def check_tables(n_rounds: int, n_arms: int, n_tables: int) -> None:
    """Refuse more tables of rounds and actions, of probabilities or predictions, than fit in memory."""
    what = f"{n_tables} tables of {n_rounds:,} rounds and {n_arms:,} actions"
    checks.fits_in_memory(what, 8 * n_tables * n_rounds * n_arms, "take fewer rounds, actions or policies")


def _check_trials(trials: int, n_policies: int, env: Logged) -> None:
    """Refuse an invalid number of replays, or one whose rewards do not fit in memory."""
    checks.whole("trials", trials, least=1)
    n_bytes = n_policies * int(trials) * (8 * _expected(env) + BYTES_A_TRIAL)
    checks.fits_in_memory(f"the rewards of trials={trials} replays", n_bytes, "take fewer trials")


def _in_parallel(jobs: Sequence[Callable[[_Pace], Any]], total: int) -> list[Any]:
    """Run the jobs and return their results in order; `total` is their number of steps: rows learnt and choices."""
    stop = threading.Event()
    with threadpool_limits(1, user_api="blas"), progress_bar(total, None) as advance:
        pace = _Pace(advance, stop)
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
    """Return the replay; if too few rounds were accepted, add the reason and warn."""
    least, granted = float(env.propensities.min()), float(np.mean([len(earned) for earned in rewards]))
    expected = env.length * least  # for any policy, if the log takes every action
    missing = expected - granted
    reason = None
    if missing > max(_MISSING * expected, _DEVIATIONS * math.sqrt(expected * (1.0 - least))):
        reason = (
            f"{granted:,.0f} rounds were accepted where about {expected:,.0f} are expected: "
            "the log lacks actions that the policy chooses"
        )
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
    _named({"": policy}, env)
    checks.whole("draws", draws, least=1)
    checks.seed("seed", seed)
    known, asked = _rows("trained_on", trained_on, env), _rows("rows", rows, env)
    check_tables(asked.size, env.n_arms, 2)

    def job(pace: _Pace) -> np.ndarray:
        return _trained(policy, env, known, streams(seed, 0)[1], pace).probabilities(asked, draws, pace)

    return _in_parallel([job], known.size + asked.size * _choices(policy, env, draws))[0]


def _rows(name: str, value: Any, env: Logged) -> np.ndarray:
    """Return row numbers (m,) from numbers, a mask or a slice."""
    try:
        return np.atleast_1d(np.arange(env.length)[value])
    except (IndexError, TypeError):
        raise ValueError(
            f"{name} must be row numbers from 0 to {env.length - 1}, a mask or a slice, not {checks.shown(value)}"
        ) from None


def _trained(policy: Any, env: Logged, rows: np.ndarray, rng: np.random.Generator, pace: _Pace) -> _Learner:
    learner = _Learner(policy, env, max(1, rows.size), rng)
    learner.learn(rows, pace)
    return learner


def _check_log(env: Any) -> None:
    if not isinstance(env, Logged):
        raise TypeError(f"{env!r} is not a log: give an albatross.environments.Logged")


def _named(policy: Any, env: Any) -> dict[str, Any]:
    """Return the policies by name after checking, before any work, that all suit this log."""
    _check_log(env)
    named = dict(policy) if isinstance(policy, Mapping) else {"": policy}
    if not named:
        raise ValueError("give at least one policy")
    for each in named.values():
        check_policy(each)
        if on_ball(each):
            raise ValueError(f"{type(each).__name__} plays on the unit ball, but the log has {env.n_arms} arms")
        resolve(each, env.n_arms, env.dim, _expected(env))
    return named


# ------------------------------------------------------------------------------------------- off-policy estimates


class _Target(NamedTuple):
    """A policy that does not learn, evaluated on the rounds of a log."""

    probabilities: np.ndarray  # (n, K)
    actions: np.ndarray  # (n,) logged
    rewards: np.ndarray  # (n,)
    weights: np.ndarray  # (n,) probability of the logged action divided by its propensity
    effective_sample_size: float
    reason: str | None  # why the log does not support an estimate


def ips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """Inverse propensity score: an unbiased estimate for a policy with choice probabilities `target` (n, K).

    >>> ips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    4.0
    """
    return _ips(_checked_target("the target", target, actions, rewards, propensities))


def snips(target: Any, *, actions: Any, rewards: Any, propensities: Any) -> Estimate:
    """IPS divided by the mean weight: slightly biased, often with a much smaller variance.

    >>> snips([[0, 1], [0.5, 0.5]], actions=[1, 0], rewards=[1, 3], propensities=[0.5, 0.25]).value
    2.0
    """
    return _snips(_checked_target("the target", target, actions, rewards, propensities))


def doubly_robust(target: Any, *, actions: Any, rewards: Any, propensities: Any, predictions: Any) -> Estimate:
    """Mean of the predicted rewards (n, K) plus IPS of their errors: unbiased for any predictions.

    A prediction must not use the reward of its own round: see `predicted_rewards`.

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
    """Return the standard error of the mean; NaN if it is unknown."""
    if values.size < 2:
        return math.nan
    return _known(float(values.std(ddof=1)) / math.sqrt(values.size), float(values.mean()))


def _known(error: float, value: float) -> float:
    """Return the error, or NaN if it is 0 up to rounding: equal values say nothing about their error."""
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
    """Compute the weights; warn if the log lacks actions of the target."""
    weights = target[np.arange(len(target)), actions] / propensities
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    unknown = target[:, np.bincount(actions, minlength=target.shape[1]) == 0]
    reason = _why_refused(weights, effective, propensities, unknown)
    if reason is not None:
        warnings.warn(f"{name}: no IPS, SNIPS or DR, because {reason}", stacklevel=stacklevel)
    elif unknown.any():
        warnings.warn(
            f"{name} {_spent(unknown)}: IPS and SNIPS omit their rewards, DR extrapolates them, and replay never "
            "accepts them",
            stacklevel=stacklevel,
        )
    return _Target(target, actions, rewards, weights, effective, reason)


def _spent(unknown: np.ndarray) -> str:
    """Describe how often a policy takes actions that were never logged, from their probabilities (n, number)."""
    number = int(unknown.any(axis=0).sum())
    kind = "action that was" if number == 1 else "actions that were"
    return f"spends {unknown.sum():.4g} of {len(unknown)} rounds on {number} {kind} never logged"


def _why_refused(weights: np.ndarray, effective: float, propensities: np.ndarray, unknown: np.ndarray) -> str | None:
    """Return why the log does not support off-policy estimates, or None."""
    n = weights.size
    impossible = float((1.0 - weights)[propensities >= _CERTAIN].sum())
    if impossible > _MISSING * n:
        return (
            f"it spends {impossible:,.4g} of {n:,} rounds on actions that the logging policy could not take: the "
            "logged action had propensity 1"
        )
    fewest = min(_FEWEST, _SMALLEST_SHARE * n)
    if effective < fewest:
        return f"it rests on {effective:.2g} effective rounds of {n:,}, but needs at least {fewest:.3g}"
    average = float(weights.mean())
    error = float(weights.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    missing = 1.0 - average
    if missing <= max(_MISSING, _DEVIATIONS * error):
        return None
    if unknown.sum() > 0.5 * missing * n:
        return f"it {_spent(unknown)}"
    return (
        f"its weights average {average:.2f} ± {error:.2f}, not 1: the log hardly contains the actions of "
        f"{100.0 * missing:.0f} % of its choices, or the propensities are wrong"
    )


def _checked_probabilities(target: Any, length: int) -> np.ndarray:
    """Check choice probabilities (n, K) for the rounds of the log."""
    if isinstance(target, str) or np.ndim(target) != 2:
        raise TypeError(f"{target!r} is neither a policy nor an array of probabilities ({length}, number of arms)")
    target = checks.finite_array("probabilities", target, (length, None))
    sums = target.sum(axis=1)
    if target.size and target.min() < 0.0:
        raise ValueError(f"probabilities must not be negative, but hold {target.min():g}")
    if (np.abs(sums - 1.0) > _ROUNDING).any():
        row = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(f"probabilities must sum to 1 in each round, but to {sums[row]:g} in round {row}")
    return target


def predicted_rewards(env: Logged, *, folds: int = 2, seed: int = 0) -> np.ndarray:
    """(n, K) rewards predicted by ridge regression on contexts and a bias per arm, fitted to other folds only.

    >>> log = Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1], propensities=[0.5] * 4)
    >>> predicted_rewards(log)[0].round(6).tolist()
    [0.25, 0.75]
    """
    fold_of_row = _folds(env, folds, seed)
    check_tables(env.length, env.n_arms, 2)

    jobs = [partial(_predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    parts = _in_parallel(jobs, folds * env.length)
    return _assembled(parts, fold_of_row, env.n_arms)


def _folds(env: Logged, folds: int, seed: int) -> np.ndarray:
    """(n,) the fold of every row: random, and of equal sizes."""
    _check_log(env)
    checks.whole("folds", folds, least=2)
    checks.seed("seed", seed)
    if folds > env.length:
        raise ValueError(f"folds={folds} needs at least {folds} rounds, but the log has {env.length}")
    return streams(seed, 0)[2].permutation(env.length) % folds


def _assembled(parts: list[np.ndarray], fold_of_row: np.ndarray, n_arms: int) -> np.ndarray:
    """Put the rows of all folds into the order of the log."""
    whole = np.empty((fold_of_row.size, n_arms))
    for fold, part in enumerate(parts):
        whole[fold_of_row == fold] = part
    return whole


def _predict_fold(env: Logged, fold_of_row: np.ndarray, fold: int, pace: _Pace) -> np.ndarray:
    """(m, K) predictions for the rows of a fold, fitted to all other rows and shrunk to their mean reward."""
    known, asked = np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)
    level = env.rewards[known].mean()
    # The prior makes the bias of an arm, and all features of variance 1 together, as large as the noise. The biases are
    # eliminated, as in models.ridge.Joint: there may be thousands.
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
    """Replay and off-policy estimates for one policy, or a dict of policies; a dict gives a dict of `Evaluation`.

    IPS, SNIPS and DR evaluate the trained policy: for each fold, it learns from the other folds as another policy's
    decisions and is then frozen. Instead of a policy, you may give an array (n, K) of probabilities. Few `draws` of a
    policy's randomness reduce precision, but do not bias IPS and DR. The numbers depend only on `seed`.

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
    check_tables(env.length, env.n_arms, 2 + len(named))
    targets = {name: _checked_probabilities(each, env.length) for name, each in named.items() if name not in learning}
    for name, target in targets.items():
        if target.shape[1] != env.n_arms:
            raise ValueError(f"probabilities {name} have {target.shape[1]} columns, but the log has {env.n_arms} arms")

    def learnt(each: Any, fold: int, pace: _Pace) -> np.ndarray:
        learner = _trained(each, env, np.flatnonzero(fold_of_row != fold), streams(seed, fold)[1], pace)
        return learner.probabilities(np.flatnonzero(fold_of_row == fold), draws, pace)

    jobs: list[Callable[[_Pace], Any]] = [partial(_predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    for each in learning.values():
        jobs += [partial(learnt, each, fold) for fold in range(folds)]
        jobs += [partial(_replay_once, each, env, trial, seed) for trial in range(trials)]
    # Each fold predicts all rows; a policy learns each row in all folds but one, and chooses in that one.
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
