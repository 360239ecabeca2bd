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
`reason` and a warning. It is not an exception, so that one unsupported policy does not cost the others' results. A mean
of w above 1, or a replay that accepts more rounds, shows that the propensities are wrong, and has the same effect.

*Eligible arms and users.* Policies are offered the arms that were eligible in the logged round, and no others. If the
log says whom its rounds were for, `PerUser(policy)` keeps a state for every user, as a fleet does; a policy alone has
one state for all. Standard errors take rounds as independent given their users and contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.agent import Agent
from albatross.environments.logged import Logged
from albatross.evaluation.agents import FrozenAgent, FrozenFleet
from albatross.evaluation.estimates import (
    Estimate,
    check_eligible,
    checked_probabilities,
    doubly_robust,
    doubly_robust_of,
    ips,
    ips_of,
    snips,
    snips_of,
    standard_error,
    weighted,
)
from albatross.evaluation.playing import (
    Pace,
    PerUser,
    Replay,
    bare,
    check_log,
    check_tables,
    check_trials,
    draws_per_round,
    in_parallel,
    named_policies,
    probabilities,
    replay,
    replay_once,
    replayed,
    trained,
)
from albatross.evaluation.predictions import folds_of_rows, in_order_of_log, predict_fold, predicted_rewards
from albatross.fleet import Fleet
from albatross.protocol import is_policy
from albatross.simulation import streams

__all__ = [
    "Estimate",
    "Evaluation",
    "PerUser",
    "Replay",
    "doubly_robust",
    "evaluate",
    "ips",
    "predicted_rewards",
    "probabilities",
    "replay",
    "snips",
    "standard_error",
]


class Evaluation(NamedTuple):
    """All estimates for one policy."""

    replay: Replay | None  # None for an agent, a fleet or a table of probabilities, which do not learn
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate


def evaluate(policies: Any, env: Logged, *, folds: int = 2, trials: int = 1, draws: int = 20, seed: int = 0) -> Any:
    """Replay and off-policy estimates for one policy, or a dict of policies; a dict gives a dict of `Evaluation`.

    IPS, SNIPS and DR evaluate the trained policy: for each fold, it learns from the other folds as another policy's
    decisions and is then frozen. `PerUser(policy)` does so with a state per user. Instead of a policy, you may give an
    array (n, K) of probabilities, or a trained `Agent` or `Fleet`, which is evaluated as it is and does not change: if
    it has learnt from this log, the estimate is too good. A fleet takes every round for its user. Few `draws` of a
    policy's randomness reduce precision, but do not bias IPS and DR. The numbers depend only on `seed`.

    >>> from albatross import environments
    >>> log = environments.Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 2],
    ...                           propensities=[0.5] * 4)
    >>> evaluate(np.full((4, 2), 0.5), log).ips
    Estimate(value=0.75, standard_error=0.47871355387816905, effective_sample_size=4.0, reason=None)
    """
    named = dict(policies) if isinstance(policies, Mapping) else {"": policies}
    check_log(env)
    learning = {name: each for name, each in named.items() if is_policy(bare(each)) or isinstance(each, PerUser)}
    if learning or not named:
        named_policies(learning, env)
    frozen: dict[type, Any] = {Agent: FrozenAgent, Fleet: FrozenFleet}
    agents = {
        name: kind(name, each, env)
        for name, each in named.items()
        for given, kind in frozen.items()
        if isinstance(each, given)
    }
    fold_of_row = folds_of_rows(env, folds, seed)
    check_trials(trials, len(learning), env)
    checks.whole("draws", draws, least=1)
    check_tables(env.length, env.n_arms, 2 + len(named))
    targets = {
        name: checked_probabilities(each, env.length)
        for name, each in named.items()
        if name not in learning and name not in agents
    }
    for name, target in targets.items():
        if target.shape[1] != env.n_arms:
            raise ValueError(f"probabilities {name} have {target.shape[1]} columns, but the log has {env.n_arms} arms")
        check_eligible(name, target, env.eligible)

    def learnt(each: Any, fold: int, pace: Pace) -> np.ndarray:
        learner = trained(each, env, np.flatnonzero(fold_of_row != fold), streams(seed, fold)[1], pace)
        return learner.probabilities(np.flatnonzero(fold_of_row == fold), draws, pace)

    jobs: list[Callable[[Pace], Any]] = [partial(predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    for each in learning.values():
        jobs += [partial(learnt, each, fold) for fold in range(folds)]
        jobs += [partial(replay_once, each, env, trial, seed) for trial in range(trials)]
    jobs += [partial(each.probabilities, draws, seed) for each in agents.values()]
    # Each fold predicts all rows; a policy learns each row in all folds but one, and chooses in that one.
    steps = (
        folds + len(agents) + sum(folds - 1 + trials + draws_per_round(each, env, draws) for each in learning.values())
    )
    done = iter(in_parallel(jobs, steps * env.length))
    predictions = in_order_of_log([next(done) for _ in range(folds)], fold_of_row, env.n_arms)
    replays = {}
    for name, each in learning.items():
        targets[name] = in_order_of_log([next(done) for _ in range(folds)], fold_of_row, env.n_arms)
        replays[name] = replayed(name, each, [next(done) for _ in range(trials)], env)
    targets |= {name: next(done) for name in agents}
    found = {}
    for name in named:
        on_log = weighted(name or "the target", targets[name], env.actions, env.rewards, env.propensities)
        estimates = ips_of(on_log), snips_of(on_log), doubly_robust_of(on_log, predictions)
        found[name] = Evaluation(replays.get(name), *estimates)
    return found if isinstance(policies, Mapping) else found[""]
