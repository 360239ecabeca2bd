"""A dense transcription of the flock in plain NumPy, to test the compiled one against: one user and one kind at a time.

It keeps every event, forms Z, and follows the formulas in the order in which docs/flock.md states them. Nothing is
shared with the library.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lgamma, log

import numpy as np
from scipy.linalg import null_space

KINDS = [(0.0, 0.0), (1.0, 0.25), (1.0, 0.5), (1.0, 1.0), (1.0, 2.0), (1.0, 4.0)]
BASE = np.array([0.1, 0.05, 0.1, 0.6, 0.1, 0.05])


@dataclass
class SlowPopulation:
    f: np.ndarray
    omega: np.ndarray
    s0: float
    nu: float
    pi: np.ndarray
    covariance: np.ndarray

    def row(self):
        parts = (self.f, self.omega.ravel(), [self.s0, self.nu], np.log(self.pi), self.covariance.ravel())
        return np.concatenate(parts)


def first_population(n_arms, dim, independent):
    p = n_arms + dim
    omega, covariance = np.eye(p), np.zeros((p, p))
    (covariance if independent else omega)[:n_arms, :n_arms] += 1e6
    return SlowPopulation(np.zeros(p), omega, 1.0, 2.0, BASE.copy(), covariance)


@dataclass
class SlowUser:
    Z: list = field(default_factory=list)
    y: list = field(default_factory=list)
    look: tuple | None = None  # mean, covariance, s2, D_eff
    version: int = -1
    t_look: int = 0


def in_kind(population, user, kind, prior, n_arms):
    """Quantities of one user under one kind."""
    p, d = len(population.f), len(population.f) - n_arms
    b, c = kind
    Db = np.diag([1.0] * n_arms + [b] * d)
    Dc = np.diag([1.0] * n_arms + [c] * d)
    Z, y = np.array(user.Z).reshape(-1, p), np.array(user.y)
    S, m, t = Z.T @ Z, Z.T @ y, len(y)
    o = Db @ population.f
    F = np.linalg.cholesky(prior + (1e-12 * np.trace(prior) / p + 1e-14) * np.eye(p))
    g = m - S @ o
    L = np.linalg.cholesky(np.eye(p) + F.T @ Dc @ S @ Dc @ F)
    G = np.linalg.solve(L, F.T)
    Q = G.T @ G
    a = Q @ Dc @ g
    q = max(y @ y - 2 * o @ m + o @ S @ o - np.sum((G @ Dc @ g) ** 2), 0.0)
    return {"Db": Db, "Dc": Dc, "S": S, "m": m, "t": t, "o": o, "g": g, "Q": Q, "a": a, "q": q,
            "logdet": 2 * np.log(np.diag(L)).sum()}  # fmt: skip


def kinds_of(population, user, prior, n_arms):
    """All six kinds of one user with their log weights and weights."""
    each = [in_kind(population, user, kind, prior, n_arms) for kind in KINDS]
    logs = np.array(
        [log_weight(population, k, log_pi, population.nu) for k, log_pi in zip(each, np.log(population.pi))]
    )
    w = np.exp(logs - logs.max())
    return each, logs, w / w.sum()


def log_weight(population, k, log_pi, nu):
    return log_pi - k["logdet"] / 2 - (nu + k["t"]) / 2 * log(nu * population.s0 + k["q"])


def evidence(population, each, nu):
    """Log evidence of one user, of whom `each` is known under each kind."""
    logs = np.array([log_weight(population, k, lp, nu) for k, lp in zip(each, np.log(population.pi))])
    t, top = each[0]["t"], logs.max()
    return (
        lgamma((nu + t) / 2) - lgamma(nu / 2) + nu / 2 * log(nu * population.s0) + top + log(np.exp(logs - top).sum())
    )


def look(population, user, n_arms):
    prior = population.omega + population.covariance / population.s0
    each, _, w = kinds_of(population, user, prior, n_arms)
    v = np.array([(population.nu * population.s0 + k["q"]) / (population.nu + k["t"]) for k in each])
    s2 = float(w @ v)
    w = np.where(w < 1e-3, 0.0, w)
    w /= w.sum()
    means = [k["o"] + k["Dc"] @ k["a"] for k in each]
    mean = sum(wi * u for wi, u in zip(w, means))
    cov = sum(
        wi * (vi * k["Dc"] @ k["Q"] @ k["Dc"] + np.outer(u - mean, u - mean))
        for wi, vi, k, u in zip(w, v, each, means)
    ) / s2  # fmt: skip
    return mean, cov, s2, float(np.trace(cov @ each[0]["S"]))


def em_step(population, users, n_arms, independent, few):
    p = len(population.f)
    d = p - n_arms
    blocks = [slice(0, n_arms), slice(n_arms, p)]
    W = B = 0.0
    N = 0
    second = np.zeros((p, p))
    H, j = np.zeros((2, 2)), np.zeros(2)
    A, r = np.zeros((p, p)), np.zeros(p)
    shares, ev = np.zeros(6), np.zeros(6)
    nus = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    for user in users:
        t = len(user.y)
        if t == 0:
            continue
        N += 1
        each, _, w = kinds_of(population, user, population.omega, n_arms)
        shares += w
        ev += [evidence(population, each, x) for x in nus]
        for wi, k in zip(w, each):
            if wi < 1e-3:
                continue
            e = (population.nu + t) / (population.nu * population.s0 + k["q"])
            E = k["Q"] + e * np.outer(k["a"], k["a"])
            R = k["Dc"] @ k["Q"] @ k["Dc"]
            W += wi
            B += wi * e
            second += wi * E
            SE = k["S"] * (k["Dc"] @ E @ k["Dc"])
            ag = k["Dc"] @ k["a"] * k["g"]
            for i in range(2):
                j[i] += wi * e * ag[blocks[i]].sum()
                for h in range(2):
                    H[i, h] += wi * SE[blocks[i], blocks[h]].sum()
            A += wi * e * k["Db"] @ (k["S"] - k["S"] @ R @ k["S"]) @ k["Db"]
            r += wi * e * k["Db"] @ (k["m"] - k["S"] @ R @ k["m"])
    bias, theta = blocks
    pi = (shares + 3 * BASE) / (N + 3)
    variance = np.var(np.concatenate([user.y for user in users]))
    s0 = max(W / B, 0.01 * variance, 1e-100)
    nu = nus[int(np.argmax(ev))]
    mean = second / W
    if independent:
        mean[bias, theta], mean[theta, bias] = 0.0, 0.0
        mean[bias, bias] = np.diag(np.diag(mean[bias, bias]))
    level, rest = level_and_rest(mean, n_arms)
    plain = np.zeros((p, p))
    plain[bias, bias] = level + rest * np.eye(n_arms)
    plain[theta, theta] = np.trace(mean[theta, theta]) / d * np.eye(d)
    omega = (W * mean + 8 * plain) / (W + 8)
    gamma = np.clip(np.linalg.solve(H + np.eye(2), j + 1), 0.25, 4.0)
    scale = np.repeat(gamma, [n_arms, d])
    omega = omega * scale[:, None] * scale
    omega = (omega + omega.T) / 2
    _, rest = level_and_rest(omega, n_arms)
    power = np.sum(population.f[theta] ** 2)
    if few:
        power += np.trace(population.covariance[theta, theta])
    A[bias, bias] += (np.eye(n_arms) - 1 / n_arms) / (s0 * (rest + 1)) + 1e-6 / (s0 * n_arms)
    A[theta, theta] += np.eye(d) * d / (s0 * (np.trace(omega[theta, theta]) + 1) + power)
    covariance = np.linalg.inv(A)
    f = covariance @ r
    topics = pi[1:] / pi[1:].sum()
    k = int(np.round(topics @ np.log2([c for _, c in KINDS[1:]])))
    if k != 0:
        omega[theta, :] *= 2.0**k
        omega[:, theta] *= 2.0**k
        least, moved = pi.min(), np.zeros(6)
        moved[0] = pi[0]
        for i in range(1, 6):
            moved[min(max(i - k, 1), 5)] += pi[i]
        moved = np.maximum(moved, least)
        pi = moved / moved.sum()
    return SlowPopulation(f, omega, s0, nu, pi, covariance)


def level_and_rest(matrix, n_arms):
    block = matrix[:n_arms, :n_arms]
    level = 0.0 if n_arms == 1 else max((block.sum() - np.trace(block)) / (n_arms * (n_arms - 1)), 0.0)
    return level, max(np.trace(block) / n_arms - level, 1e-8)


def with_arm(population, slot, n_arms):
    """A new arm, in the slot of a retired one or behind all others, of which it is only known how the others are."""
    f, omega, C = population.f.copy(), population.omega.copy(), population.covariance.copy()
    if slot == n_arms:
        f, n_arms = np.insert(f, slot, 0.0), n_arms + 1
        omega, C = (np.insert(np.insert(each, slot, 0.0, axis=0), slot, 0.0, axis=1) for each in (omega, C))
    others, known = ([k for k in range(n) if k != slot] for n in (n_arms, len(f)))
    level, rest = level_and_rest(omega[np.ix_(others, others)], len(others))
    f[slot] = f[others].mean()
    with_average, together = omega[np.ix_(known, others)].mean(axis=1), omega[np.ix_(others, others)].mean()
    omega[slot, known] = omega[known, slot] = level / together * with_average if level > 0.0 else 0.0
    omega[slot, slot] = level + rest
    C[slot, known] = C[known, slot] = C[np.ix_(known, others)].mean(axis=1)
    common = C[np.ix_(others, others)]
    C[slot, slot] = common.mean() + (population.s0 * (rest + 1.0) if common.any() else 0.0)
    return replace(population, f=f, omega=omega, covariance=C)


def without_bias(user, slot):
    """What plays say if nothing is known of an arm's bias: their part that is orthogonal to its indicator."""
    Z, y = np.array(user.Z), np.array(user.y)
    if len(y) and Z[:, slot].any():
        rest = null_space(Z[:, [slot]].T).T
        Z, y = rest @ Z, rest @ y
        Z[:, slot] = 0.0
        user.Z, user.y, user.t_look = list(Z), list(y), min(user.t_look, len(y))


class SlowFlock:
    """Users by number, batches of events, rewards in any order."""

    def __init__(self, n_users, n_arms, dim, priority, independent=False):
        self.users = [SlowUser() for _ in range(n_users)]
        self.n_arms, self.dim, self.priority = n_arms, dim, priority
        self.population, self.version = first_population(n_arms, dim, independent), 0
        self.independent = independent
        self.unit = self.origin = None
        self.pending = np.zeros((n_users, n_arms))
        self.n_rewards, self.last_look, self.history = 0, 0, []
        self.next_look = 16.0 if n_arms + dim <= 8 else 8.0

    def add_arm(self, slot):
        self.population, self.version = with_arm(self.population, slot, self.n_arms), self.version + 1
        for user in self.users:
            user.look = None  # it is made anew at the next decision
            if slot < self.n_arms:
                without_bias(user, slot)
            else:
                user.Z = [np.insert(z, slot, 0.0) for z in user.Z]
        if slot == self.n_arms:
            self.n_arms, self.pending = self.n_arms + 1, np.pad(self.pending, ((0, 0), (0, 1)))

    def rows(self, contexts):
        return np.hstack([np.eye(self.n_arms), contexts / self.unit])

    def select(self, users, contexts, eligible):
        if self.unit is None:
            size = np.sqrt(np.mean(np.sum(contexts[0][eligible[0]] ** 2, axis=1)))
            self.unit = size if size >= 1e-150 else 1.0
        arms, scores = [], []
        for number, x, open_ in zip(users, contexts, eligible):
            user = self.users[number]
            if user.version != self.version:
                self.look(user)
            mean, cov, s2, in_use = user.look
            Z = self.rows(x)
            h = np.maximum(np.einsum("ij,jk,ik->i", Z, cov, Z), 0.0)
            h = h / (1 + self.pending[number] * h)
            t = len(user.y) + 1
            score = Z @ mean + np.sqrt(2 * s2 * h * np.log1p(t * h / max(in_use, 1.0)))
            best = min((arm for arm in range(self.n_arms) if open_[arm]),
                       key=lambda arm: (-score[arm], self.priority[number][arm]))  # fmt: skip
            self.pending[number, best] += 1
            arms.append(best)
            scores.append(score[best])
        return np.array(arms), np.array(scores)

    def look(self, user):
        user.look, user.version, user.t_look = look(self.population, user, self.n_arms), self.version, len(user.y)

    def update(self, users, arms, contexts, rewards):
        for number, arm, x, reward in zip(users, arms, contexts, rewards):
            user = self.users[number]
            if self.origin is None:
                self.origin = reward
            z = np.concatenate([np.eye(self.n_arms)[arm], x / self.unit])
            y = reward - self.origin
            user.Z.append(z)
            user.y.append(y)
            self.pending[number, arm] -= 1
            t = len(user.y)
            if user.version == self.version and t >= max(user.t_look + 1, 2**0.25 * user.t_look):
                self.look(user)
            elif user.look is not None:
                mean, cov, s2, in_use = user.look
                k = cov @ z
                h = z @ k
                user.look = mean + k * (y - z @ mean) / (1 + h), cov - np.outer(k, k) / (1 + h), s2, in_use
        self.n_rewards += len(rewards)
        if self.n_rewards >= self.next_look:
            n, p = self.n_rewards, len(self.population.f)
            few = n < 2 * p
            variance = np.var(np.concatenate([user.y for user in self.users]))
            if p > 8 and self.last_look < 4 * p <= n:
                start = first_population(self.n_arms, self.dim, self.independent)
                low, high = (self.stepped(replace(start, s0=guess * variance), 8, few) for guess in (0.25, 1.0))
                self.population = high if self.evidence(high) > self.evidence(low) + 1.5 else low
            else:
                if self.population.s0 == 1.0 and variance > 0.0 and (p > 8 or not 0.1 <= variance <= 40.0):
                    self.population = replace(self.population, s0=0.25 * variance)
                self.population = self.stepped(self.population, 4 if few else 2, few)
            self.version, self.last_look = self.version + 1, n
            self.history.append(self.population.row())
            while self.next_look <= self.n_rewards:
                self.next_look = max(2**0.5 * self.next_look, self.next_look + 1)

    def stepped(self, population, steps, few):
        for _ in range(steps):
            population = em_step(population, self.users, self.n_arms, self.independent, few)
        return population

    def evidence(self, population):
        users = [user for user in self.users if user.y]
        known = [kinds_of(population, user, population.omega, self.n_arms)[0] for user in users]
        return sum(evidence(population, each, 64.0) for each in known)
