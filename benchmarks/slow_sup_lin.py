"""SupLinRel, SupLinUCB and ALB-Dim for finite arms, slowly: all data are kept, and solved from anew in every round."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


def scale_of_features(dim, n_arms, rounds, delta):
    """b(delta) for N(0, I): a bound on the length of all features of so many rounds."""
    return math.sqrt(dim) + math.sqrt(2 * math.log(4 * rounds * n_arms / delta))


def lin_rel(past, z, *, factor):
    """Auer 2002: estimate and width of z, with a weight for every past round; eigenvalues below 1 do not count."""
    dim = z.size
    Z = np.array([x for x, _ in past]).reshape(-1, dim).T  # (d, n)
    rewards = np.array([r for _, r in past])
    values, vectors = np.linalg.eigh(Z @ Z.T)
    large = values >= 1.0
    coordinates = vectors.T @ z
    u, v = coordinates[large], coordinates[~large]
    a = Z.T @ vectors[:, large] @ (u / values[large])  # (n,)
    return float(a @ rewards), float(factor * np.linalg.norm(a) + np.linalg.norm(v))


def ridge_ucb(past, z, *, factor):
    """Chu et al. 2011: estimate and width of z by ridge regression of strength 1."""
    dim = z.size
    Z = np.array([x for x, _ in past]).reshape(-1, dim).T
    rewards = np.array([r for _, r in past])
    inverse = np.linalg.inv(np.eye(dim) + Z @ Z.T)
    return float(z @ inverse @ (Z @ rewards)), float(factor * math.sqrt(z @ inverse @ z))


class SlowChoice(NamedTuple):
    """A decision, in the user's units, and how it came about."""

    arm: int
    width: float
    upper: float  # estimate + width
    stage: int  # counted from 1; 0 where no stage learns from it
    sets: list  # the arms alive at stage 1, 2, ... up to the last that was visited
    widths: list  # the widths {arm: width} of these, in units of b


class SlowSup:
    """SupLinRel ("suplinrel", Auer 2002) or SupLinUCB ("suplinucb", Chu et al. 2011), features and rewards over b."""

    def __init__(self, kind, *, n_arms, dim, horizon, delta, sigma, feature_bound=None):
        self.horizon = horizon
        self.n_stages = max(1, math.ceil(math.log(horizon)))
        self.b = feature_bound or scale_of_features(dim, n_arms, horizon, delta)
        if kind == "suplinrel":
            self.estimate = lin_rel
            delta_of_linrel = delta / (1 + math.log(horizon))  # Figure 3 of Auer 2002
            inside = 2 * horizon * n_arms / delta_of_linrel
            self.factor = math.sqrt(2) * sigma / self.b * math.sqrt(math.log(inside))
        else:
            self.estimate = ridge_ucb
            inside = 2 * horizon * n_arms * self.n_stages / delta
            self.factor = 2 * sigma / self.b * math.sqrt(0.5 * math.log(inside)) + 1
        self.past = {s: [] for s in range(1, self.n_stages + 1)}
        self.unstaged = 0

    def choose(self, contexts, eligible=None):
        alive = sorted(range(len(contexts)) if eligible is None else eligible)
        sets, all_widths = [], []
        s = 1
        while True:
            found = {a: self.estimate(self.past[s], contexts[a] / self.b, factor=self.factor) for a in alive}
            upper = {a: mean + width for a, (mean, width) in found.items()}
            width = {a: found[a][1] for a in alive}
            sets.append(list(alive))
            all_widths.append(width)
            if all(width[a] <= 1 / math.sqrt(self.horizon) for a in alive):
                arm, stage = max(alive, key=lambda a: upper[a]), 0
                break
            if all(width[a] <= 2.0**-s for a in alive):
                best = max(upper.values())
                alive = [a for a in alive if upper[a] >= best - 2 * 2.0**-s]
                s += 1
                continue
            arm, stage = max(alive, key=lambda a: width[a]), s  # the widest, which is wider than 2^-s
            break
        return SlowChoice(arm, self.b * width[arm], self.b * upper[arm], stage, sets, all_widths)

    def learn(self, choice, context, reward):
        if choice.stage:
            self.past[choice.stage].append((context / self.b, reward / self.b))
        else:
            self.unstaged += 1

    def stage_plays(self):
        return [len(self.past[s]) for s in self.past]


class SlowLinUCB:
    """LinUCB on features and rewards divided by b, as ALB-Dim plays it inside a phase."""

    def __init__(self, *, n_arms, horizon, delta, sigma, feature_bound):
        self.b = feature_bound
        self.factor = 2 * sigma / self.b * math.sqrt(0.5 * math.log(2 * horizon * n_arms / delta)) + 1
        self.past = []

    def choose(self, contexts, eligible=None):
        alive = sorted(range(len(contexts)) if eligible is None else eligible)
        found = {a: ridge_ucb(self.past, contexts[a] / self.b, factor=self.factor) for a in alive}
        arm = max(alive, key=lambda a: sum(found[a]))
        return SlowChoice(arm, self.b * found[arm][1], self.b * sum(found[arm]), 1, [alive], [])

    def learn(self, choice, context, reward):
        self.past.append((context / self.b, reward / self.b))


class SlowALBDimFinite:
    """Ghosh, Sankararaman and Ramchandran (2021), Algorithm 3. Exploration is told which arm was drawn.

    Rounds of a phase are counted by the rewards that came. A reward that comes after its phase teaches the gone inner
    policy nothing; if it was of exploration it is a sample all the same.
    """

    def __init__(
        self,
        *,
        dims,
        n_arms,
        first_phase,
        delta,
        sigma,
        inner,
        feature_bound=None,
        growth=(25, 5),
        threshold="pseudocode",
    ):
        self.dims, self.n_arms, self.T_0 = dims, n_arms, first_phase
        self.delta, self.sigma, self.kind, self.bound = delta, sigma, inner, feature_bound
        self.growth, self.threshold = growth, threshold
        self.samples = []
        self.models, self.supports, self.sample_counts, self.estimates = [], [], [], []
        self.rounds_so_far = 0  # until the end of the phase that is being played
        self.phase = -1
        self.begin_phase(list(range(dims[-1])), dims[-1], None)

    def begin_phase(self, support, model, estimate):
        self.phase += 1
        self.supports.append(support)
        self.models.append(model)
        self.sample_counts.append(len(self.samples))
        self.estimates.append(estimate)
        self.played = self.explored = 0
        self.to_play = self.growth[0] ** self.phase * self.T_0
        self.to_explore = self.growth[1] ** self.phase * math.ceil(math.sqrt(self.T_0))
        self.rounds_so_far += self.to_play + self.to_explore
        b = self.bound or scale_of_features(self.dims[-1], self.n_arms, self.rounds_so_far, self.delta)
        given = {
            "n_arms": self.n_arms,
            "horizon": self.to_play,
            "delta": self.delta / 2**self.phase,
            "sigma": self.sigma,
            "feature_bound": b,
        }
        self.inner = SlowLinUCB(**given) if self.kind == "linucb" else SlowSup(self.kind, dim=model, **given)

    def exploring(self):
        return self.played >= self.to_play

    def choose(self, contexts, eligible=None):
        return self.inner.choose(contexts[:, : self.models[-1]], eligible)

    def learn_play(self, phase, choice, context, reward):
        if phase == self.phase:
            self.inner.learn(choice, context[: self.models[-1]], reward)
            self.played += 1
            self.end_phase_if_over()

    def learn_exploration(self, phase, context, reward):
        self.samples.append((context[: self.dims[-1]], reward))
        if phase == self.phase:
            self.explored += 1
        self.end_phase_if_over()

    def end_phase_if_over(self):
        if not (self.exploring() and self.explored >= self.to_explore):
            return
        d = self.dims[-1]
        X = np.array([x for x, _ in self.samples])
        y = np.array([r for _, r in self.samples])
        if len(y) < d or np.linalg.matrix_rank(X) < d:
            self.begin_phase(list(range(d)), d, None)
            return
        theta = np.linalg.lstsq(X, y, rcond=None)[0]
        i = self.phase + 1
        least = 2.0**-i if self.threshold == "text" else 2.0 ** -(i + 1)  # eps_i / 2
        support = [j for j in range(d) if abs(theta[j]) >= least]
        last = max(support) + 1 if support else 0  # the largest index, counted from 1 as the paper does
        self.begin_phase(support, next(m for m in self.dims if m >= last), theta)
