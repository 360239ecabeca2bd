"""Predicted rewards of all actions of a log, for doubly robust estimates."""

from __future__ import annotations

from functools import partial

import numpy as np

from albatross import checks
from albatross.environments.logged import Logged
from albatross.evaluation.playing import Pace, check_log, check_tables, in_parallel
from albatross.simulation import streams


def predicted_rewards(env: Logged, *, folds: int = 2, seed: int = 0) -> np.ndarray:
    """(n, K) rewards predicted by ridge regression on contexts and a bias per arm, fitted to other folds only.

    >>> log = Logged(contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1], propensities=[0.5] * 4)
    >>> predicted_rewards(log)[0].round(6).tolist()
    [0.25, 0.75]
    """
    fold_of_row = folds_of_rows(env, folds, seed)
    check_tables(env.length, env.n_arms, 2)

    jobs = [partial(predict_fold, env, fold_of_row, fold) for fold in range(folds)]
    parts = in_parallel(jobs, folds * env.length)
    return in_order_of_log(parts, fold_of_row, env.n_arms)


def folds_of_rows(env: Logged, folds: int, seed: int) -> np.ndarray:
    """(n,) the fold of every row: random, and of equal sizes, also among the rows of each user."""
    check_log(env)
    checks.whole("folds", folds, least=2)
    checks.seed("seed", seed)
    if folds > env.length:
        raise ValueError(f"folds={folds} needs at least {folds} rounds, but the log has {env.length}")
    shuffled = streams(seed, 0)[2].permutation(env.length)
    if env.users is None:
        return shuffled % folds
    # A state per user learns from the rows of that user in the other folds, so every fold needs its share of them.
    order = np.lexsort((shuffled, env.users))
    first = np.searchsorted(env.users[order], env.users[order])
    fold_of_row = np.empty(env.length, np.int64)
    fold_of_row[order] = (np.arange(env.length) - first + env.users[order]) % folds
    return fold_of_row


def in_order_of_log(parts: list[np.ndarray], fold_of_row: np.ndarray, n_arms: int) -> np.ndarray:
    """Put the rows of all folds into the order of the log."""
    whole = np.empty((fold_of_row.size, n_arms))
    for fold, part in enumerate(parts):
        whole[fold_of_row == fold] = part
    return whole


def predict_fold(env: Logged, fold_of_row: np.ndarray, fold: int, pace: Pace) -> np.ndarray:
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
