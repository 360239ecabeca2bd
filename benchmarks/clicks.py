"""Rewards of 0 and 1: Albatross, which takes them for real numbers, beside a logistic model of the right form.

Ten arms have five normal features each, and the log-odds of a click are a constant, a bias per arm and a linear
function of the features, small or large. The larger it is, the less a linear model of the rewards fits.

The rival is Thompson sampling on the Laplace approximation of that model's posterior (Chapelle and Li 2011). It is
given the variances that biases and coefficients are drawn with. It also plays with half the spread of its draws:
Chapelle and Li found that less exploration is often better. The same with a linear model, whose slope and noise are
those of the logistic one at the given click rate, shows what the model alone costs.

Run it as `python benchmarks/clicks.py [trials [seed]]`; by default, 40 trials take some minutes.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from albatross import policies, simulate
from albatross.compiling import compiled
from albatross.protocol import begin, describe, draw, init, noise_size, score, update

RATES = (0.002, 0.01, 0.05, 0.2, 0.5)
N_ARMS, DIM, HORIZON = 10, 5, 20_000
BIAS_SD = 0.3
COEFFICIENT_SDS = (0.3, 1.0)
CONSTANT_SD = 5.0  # of the rival's prior; its mean is 0
REFIT_GROWTH, NEWTON_STEPS = 1.1, 8


@dataclass(frozen=True)
class Clicks:
    """Arms that are clicked with a probability that is logistic in their features."""

    rate: float  # where features and bias are 0
    coefficient_sd: float
    n_arms: int = N_ARMS
    dim: int = DIM


class ClicksInstance(NamedTuple):
    theta: np.ndarray  # (d,)
    offsets: np.ndarray  # (K,)


@begin.register
def begin_clicks(env: Clicks, rng):
    theta, biases = env.coefficient_sd * rng.standard_normal(env.dim), BIAS_SD * rng.standard_normal(env.n_arms)
    return ClicksInstance(theta, math.log(env.rate / (1.0 - env.rate)) + biases)


@draw.register
def draw_clicks(instance: ClicksInstance, chunk, rng):
    chunk.contexts[:] = rng.standard_normal(chunk.contexts.shape)
    chunk.means[:] = 1.0 / (1.0 + np.exp(-(chunk.contexts @ instance.theta + instance.offsets)))
    chunk.noise[:] = (rng.random(chunk.means.shape) < chunk.means) - chunk.means


@describe.register
def describe_clicks(instance: ClicksInstance) -> dict[str, Any]:
    return {"theta": instance.theta}


class LogisticTS(NamedTuple):
    """Thompson sampling with a logistic model."""

    rounds: int  # at most
    coefficient_sd: float
    spread: float = 1.0  # of the draws, in units of the posterior's
    variance: float = 0.0  # if positive, that of real rewards, whose mean is linear: variance <row, coefficients>


class LogisticState(NamedTuple):
    rows: np.ndarray  # (rounds, p) of all plays: [1, arm, x]
    clicks: np.ndarray  # (rounds,)
    numbers: np.ndarray  # (2,) plays, and the number of plays of the next refit
    prior: np.ndarray  # (p,) precisions
    mean: np.ndarray  # (p,)
    precision: np.ndarray  # (p, p)
    priority: np.ndarray  # (K,)


@init.register
def init_logistic(policy: LogisticTS, n_arms, dim, rng):
    prior = np.repeat([CONSTANT_SD, BIAS_SD, policy.coefficient_sd], [1, n_arms, dim]) ** -2.0
    rows = np.zeros((policy.rounds, prior.size))
    return LogisticState(
        rows,
        np.zeros(policy.rounds),
        np.array([0.0, 1.0]),
        prior,
        np.zeros(prior.size),
        np.diag(prior),
        rng.permutation(n_arms),
    )


@noise_size.register
def noise_size_logistic(policy: LogisticTS, n_arms, dim):
    return 1 + n_arms + dim


@score.register
def score_logistic(policy: LogisticTS, state, offer, noise):
    n_arms, root = state.priority.size, np.linalg.cholesky(state.precision)
    drawn = policy.spread * np.linalg.solve(root.T, noise)
    widths = offer.contexts @ drawn[1 + n_arms :] + drawn[1 + offer.arms] + drawn[0]
    means = offer.contexts @ state.mean[1 + n_arms :] + state.mean[1 + offer.arms] + state.mean[0]
    return means + widths, widths


@update.register
def update_logistic(policy: LogisticTS, state, choice, reward, n):
    n_arms, t = state.priority.size, int(state.numbers[0])
    row = state.rows[t]
    row[0], row[1 + choice.arm] = 1.0, 1.0
    row[1 + n_arms :] = choice.action
    state.clicks[t] = reward
    state.numbers[0] += 1.0
    log_odds = np.sum(row * state.mean)
    chance = 1.0 / (1.0 + np.exp(-log_odds)) if policy.variance == 0.0 else policy.variance * log_odds
    variance = chance * (1.0 - chance) if policy.variance == 0.0 else policy.variance
    state.precision[:] += variance * row.reshape((-1, 1)) * row
    state.mean[:] += np.linalg.solve(state.precision, (reward - chance) * row)
    if policy.variance == 0.0 and state.numbers[0] >= state.numbers[1]:
        state.numbers[1] = max(REFIT_GROWTH * state.numbers[1], state.numbers[1] + 1.0)
        refit(state, t + 1)


@compiled
def refit(state, n):
    """Find the mode of the posterior of n plays by Newton's method, and the curvature there."""
    rows = state.rows[:n]
    for _ in range(NEWTON_STEPS):
        chances = 1.0 / (1.0 + np.exp(-(rows @ state.mean)))
        weighted = rows * (chances * (1.0 - chances)).reshape((-1, 1))
        state.precision[:] = rows.T @ weighted
        for j in range(state.prior.size):
            state.precision[j, j] += state.prior[j]
        step = np.linalg.solve(state.precision, rows.T @ (state.clicks[:n] - chances) - state.prior * state.mean)
        state.mean[:] += step * min(1.0, 2.0 / np.max(np.abs(step)))  # long steps would leave the range of exp
        if np.max(np.abs(step)) < 1e-6:
            break


COLUMNS = (
    *("coefficients", "click rate", "Albatross", "logistic", "logistic, half the spread", "linear, half the spread"),
    *("Albatross over the better logistic one", "linear over logistic, half the spread"),
)


def main(trials: int = 40, seed: int = 20261118) -> None:
    """Print a line for every click rate and size of the coefficients."""
    print("|", " | ".join(COLUMNS), "|")
    print("|---" * len(COLUMNS) + "|")
    for coefficient_sd, rate in product(COEFFICIENT_SDS, RATES):
        contenders = {
            "albatross": policies.Albatross(),
            "logistic": LogisticTS(HORIZON, coefficient_sd),
            "half": LogisticTS(HORIZON, coefficient_sd, spread=0.5),
            "linear": LogisticTS(HORIZON, coefficient_sd, spread=0.5, variance=rate * (1.0 - rate)),
        }
        env = Clicks(rate, coefficient_sd)
        runs = simulate(contenders, env, horizon=HORIZON, trials=trials, seed=seed, record=1, workers=1)
        regrets = {name: run.regret[:, -1] for name, run in runs.items()}
        better = min((regrets["logistic"], regrets["half"]), key=np.mean)
        shown = [f"{each.mean():.0f} ± {each.std(ddof=1) / trials**0.5:.0f}" for each in regrets.values()]
        ratios = ratio(regrets["albatross"], better), ratio(regrets["linear"], regrets["half"])
        print("|", " | ".join([f"{coefficient_sd:g}", f"{100 * rate:g} %", *shown, *ratios]), "|", flush=True)


def ratio(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return the ratio of the means and its interval of 95 %, by resampling trials."""
    draws = np.random.default_rng(0).integers(ours.size, size=(2_000, ours.size))
    low, high = np.quantile(ours[draws].mean(axis=1) / theirs[draws].mean(axis=1), [0.025, 0.975])
    return f"{ours.mean() / theirs.mean():.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
