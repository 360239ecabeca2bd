"""Albatross: plays the arms of a dense transcription, whatever is switched on; needs no units and survives anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from stepping import learn_block, state_of

from albatross import Agent, environments, policies, simulate
from albatross.linalg.eigen import optimistic_action
from albatross.protocol import begin, describe, draw

RIDGES, SIGNALS, GRID = 4.0 ** np.arange(-12, 8), 2.0 ** np.arange(-20, 27), 4.0 ** np.arange(6)


class Dense:
    """The policy from all plays at once: the joint design, explicit inverses and determinants, no units."""

    def __init__(self, policy, n_arms, dim):
        self.policy, self.n_arms, self.dim = policy, n_arms, dim
        self.arms, self.X, self.y, self.msq = [], np.empty((0, dim)), np.empty(0), None
        self.r, self.lam, self.sig2, self.in_use, self.next = 1.0, None, policy.sigma**2 if policy.sigma else 1.0, 1, 16
        self.account = np.zeros(5)  # unidentified, forced, spent, fallbacks, certified

    # ---- the posterior

    def features(self, arms, X):
        """Biases (where there are any), the constant, contexts."""
        biases = np.eye(self.n_arms)[arms] if self.policy.biases else np.empty((len(X), 0))
        return np.hstack([biases, np.ones((len(X), 1)), X])

    def precision(self, lam):
        return np.diag([self.r] * (self.n_arms * self.policy.biases) + [1e-6] + [lam] * self.dim)

    def index(self, X, mask, pending):
        lam = np.mean(np.sum(X[mask] ** 2, axis=1)) if self.lam is None else self.lam
        Z, z = self.features(self.arms, self.X), self.features(range(self.n_arms), X)
        V = np.linalg.inv(self.precision(lam) + Z.T @ Z)
        h = np.sum(z @ V * z, axis=1)
        h = 1 / (1 / h + pending)  # as if each had been played so often with this context
        bonus = np.sqrt(2 * self.sig2 * h * np.log(1 + (len(self.y) + 1) * h / self.in_use))
        return z @ V @ Z.T @ self.y, bonus

    def learn(self, arm, x, y, msq, note):
        if self.msq is None:
            self.msq = self.lam = msq
            self.first_reward = y
        self.arms.append(arm)
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, y - self.first_reward)
        self.account += note
        if len(self.y) >= self.next:
            self.next = max(self.next * 2**0.25, self.next + 1)
            self.reestimate()

    def reestimate(self):
        t, power = len(self.y), np.mean(np.sum(self.X**2, axis=1))
        ridges = RIDGES if self.policy.biases else [1.0]
        if t > 300 and self.policy.biases:
            present = np.flatnonzero(1.01 * self.r >= RIDGES)[-1]
            ridges = RIDGES[max(present - 1, 0) : present + 3]
        plays, square = (2.0, 2 * self.policy.sigma**2) if self.policy.sigma else (1.0, 0.1 * np.var(self.y))
        found = []
        for r in ridges:
            for signal in SIGNALS:
                parts = [self.X * np.sqrt(signal / power)]
                if self.policy.biases:
                    parts.append(np.eye(self.n_arms)[self.arms] / np.sqrt(r))
                W = np.hstack(parts)
                # y'C^-1 y, C = I + WW' the rewards' covariance over sigma^2, is what ridge regression on W leaves of y.
                Q, R = np.linalg.qr(np.vstack([W, np.eye(W.shape[1])]))
                both = np.zeros((len(Q), 2))
                both[:t] = np.column_stack([np.ones(t), self.y])
                both -= Q @ (Q.T @ both)
                (ones, cross), (_, rewards) = both.T @ both
                left = rewards - cross**2 / ones + square
                log_det = 2 * np.sum(np.log(np.abs(np.diag(R))))
                log_evidence = -(log_det + np.log(ones) + (t - 1 + plays) * np.log(left)) / 2
                prior = np.sqrt(signal) / (1 + signal) * np.sqrt(r) / (1 + r)
                found.append((log_evidence + np.log(prior), r, signal, left / (t - 1 + plays)))
        logs, r, signal, variance = np.array(found).T
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        self.r = 1 / (weights @ r**-0.5) ** 2
        self.lam = power / (weights @ signal**0.5) ** 2
        self.sig2 = weights @ variance
        Z = self.features(self.arms, self.X)
        self.in_use = max(np.trace(np.linalg.inv(self.precision(self.lam) + Z.T @ Z) @ Z.T @ Z), 1)

    # ---- the certificate

    @property
    def sigma(self):
        return self.policy.sigma or np.sqrt(self.sig2)

    def log_dets_and_kappas(self):
        Z = np.hstack([np.eye(self.n_arms)[self.arms], self.X])
        c2 = (self.msq or 1.0) / self.dim
        scale = np.diag([1.0] * self.n_arms + [c2] * self.dim)
        log_dets = np.array(
            [np.linalg.slogdet(np.eye(len(scale)) + np.linalg.inv(lam * scale) @ Z.T @ Z)[1] for lam in GRID]
        )
        return log_dets, log_dets + 2 * np.log(2 * len(GRID) / self.policy.delta), scale

    def gram_inverse(self):
        """Of the biases of played arms and theta; rows and columns of other arms are 0."""
        played = np.isin(np.arange(self.n_arms), self.arms)
        Z = np.hstack([np.eye(self.n_arms)[self.arms], self.X])
        some = np.concatenate([played, np.ones(self.dim, bool)])
        G = Z.T @ Z
        G[self.n_arms :, self.n_arms :] += 1e-8 * (self.msq or 1.0) / self.dim * np.eye(self.dim)
        inverse = np.zeros_like(G)
        inverse[np.ix_(some, some)] = np.linalg.inv(G[np.ix_(some, some)])
        return inverse, played, Z

    def guard(self, X, mask, means, arm):
        note, t, sigma = np.zeros(5), len(self.y), self.sigma
        z = np.hstack([np.eye(self.n_arms), X])
        inverse, played, Z = self.gram_inverse()
        log_dets, kappa, scale = self.log_dets_and_kappas()
        centre = z @ inverse @ Z.T @ self.y

        def width(direction):
            v = inverse @ direction
            return sigma * np.sqrt(np.min(kappa * (direction @ v + GRID * (v @ scale @ v))))

        q1 = np.sum(z @ inverse * z, axis=1)
        unknown = mask & (~played | (q1 > 2))
        if unknown.any():
            note[0] = 1
            if not unknown[arm] and self.account[1] < np.sqrt(t) / 2:
                note[1] = 1
                arm = max(np.flatnonzero(unknown), key=lambda i: means[i])
            return arm, note
        w = np.full(self.n_arms, -np.inf)
        for i in np.flatnonzero(mask):
            w[i] = width(z[i])
            mine = self.X[np.array(self.arms) == i]
            if (mine == X[i]).all():
                n = len(mine)
                own = (1 + n) / n**2 * (np.log(1 + n) + 2 * np.log(2 * self.n_arms / self.policy.delta))
                w[i] = min(w[i], sigma * np.sqrt(own))
        optimistic = np.argmax(np.where(mask, centre + w, -np.inf))
        if arm != optimistic:
            gap = max(
                centre[i] - centre[arm] + (min(width(z[i] - z[arm]), w[i] + w[arm]) if i != arm else 0)
                for i in np.flatnonzero(mask)
            )
            if self.account[2] + gap <= 4 * sigma * np.sqrt(kappa[0] * 2 * log_dets[0] * (t + 1)):
                note[2] = note[4] = gap
                return arm, note
            note[3] = 1
        note[4] = 2 * w[optimistic]
        return optimistic, note

    def norm_bound(self):
        inverse, _, Z = self.gram_inverse()
        _, kappa, scale = self.log_dets_and_kappas()
        theta = (inverse @ Z.T @ self.y)[self.n_arms :]
        if np.linalg.norm(inverse[self.n_arms :, self.n_arms :], 2) > 0.5e8 * self.dim / self.msq:
            return np.inf
        bounds = []
        for lam, k in zip(GRID, kappa, strict=True):
            A = (inverse + lam * inverse @ scale @ inverse)[self.n_arms :, self.n_arms :]
            bounds.append(optimistic_action(np.linalg.inv(A), theta, self.sigma * np.sqrt(k))[1])
        return min(bounds)


def play_beside(policy, *, rounds, seed, n_arms=4, dim=3, norm=1.0, some_eligible=False, late=0, fixed=False):
    """Agent and transcription side by side: same arms, scores and widths in every round. Both, at the end."""
    rng = np.random.default_rng(seed)
    theta, biases = rng.standard_normal(dim), rng.uniform(-1, 1, n_arms)
    theta *= norm / np.linalg.norm(theta)
    agent, dense, waiting = Agent(policy, n_arms=n_arms, dim=dim), Dense(policy, n_arms, dim), []
    kept = rng.standard_normal((n_arms, dim))
    for t in range(rounds):
        X = kept if fixed else 3.0 * rng.standard_normal((n_arms, dim)) + 0.5
        mask = np.ones(n_arms, bool)
        if some_eligible:
            mask = rng.random(n_arms) < 0.6
            mask[rng.integers(n_arms)] = True
        pending = np.bincount([each[0].arm for each in waiting], minlength=n_arms)
        decision = agent.select(X, eligible=mask)
        means, bonus = dense.index(X, mask, pending)
        arm, note = int(np.argmax(np.where(mask, means + bonus, -np.inf))), np.zeros(5)
        if policy.safeguard:
            arm, note = dense.guard(X, mask, means, arm)
        assert decision.arm == arm, t
        assert [decision.score, decision.width] == pytest.approx([means[arm] + bonus[arm], bonus[arm]], rel=1e-7)
        reward = float(biases[arm] + X[arm] @ theta + 0.5 * rng.standard_normal())
        waiting.append((decision, reward, np.mean(np.sum(X[mask] ** 2, axis=1)), note))
        while len(waiting) > late:
            decision, reward, msq, note = waiting.pop(int(rng.integers(len(waiting))))
            agent.update(decision, reward)
            dense.learn(decision.arm, decision.action, reward, msq, note)
    return agent.diagnostics(), dense


def agree(found, dense):
    assert found["noise_sd"] == pytest.approx(np.sqrt(dense.sig2), rel=1e-7)
    assert found["prior_norm"] == pytest.approx(np.sqrt(dense.dim * dense.sig2 / dense.lam), rel=1e-7)
    assert found["effective_parameters"] == pytest.approx(dense.in_use, rel=1e-7)
    if dense.policy.biases:
        assert found["bias_ridge"] == pytest.approx(dense.r, rel=1e-7)
    if dense.policy.certificate or dense.policy.safeguard:
        assert found["norm_bound"] == pytest.approx(dense.norm_bound(), rel=1e-6)
    if dense.policy.safeguard:
        names = ("unidentified_rounds", "forced", "spent", "fallbacks", "certified_regret")
        digits = 1e-5 if found["norm_bound"] == np.inf else 1e-6  # the dense inverse is then nearly singular
        assert [found[name] for name in names] == pytest.approx(dense.account.tolist(), rel=digits)


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("some_eligible", [False, True])
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("sigma", [None, 0.5])
def test_it_plays_the_arms_of_the_transcription(sigma, biases, some_eligible, late):
    policy = policies.Albatross(sigma=sigma, biases=biases, ties="first")
    agree(*play_beside(policy, rounds=60, seed=1, some_eligible=some_eligible, late=late))


@pytest.mark.parametrize("biases", [True, False])
def test_it_does_so_where_only_four_bias_ridges_are_tried(biases):
    agree(*play_beside(policies.Albatross(biases=biases, ties="first"), rounds=420, seed=2, norm=0.1))


@pytest.mark.parametrize("sigma", [None, 0.5])
@pytest.mark.parametrize("biases", [True, False])
def test_a_certificate_changes_no_play(sigma, biases):
    policy = policies.Albatross(sigma=sigma, biases=biases, certificate=True, ties="first")
    agree(*play_beside(policy, rounds=60, seed=3))


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("plain", {}),
        ("eligible", {"some_eligible": True}),
        ("late", {"late": 7}),
        ("fixed-arms", {"fixed": True, "n_arms": 6, "dim": 2}),
        ("no-signal", {"norm": 0.0, "rounds": 250}),
    ],
)
@pytest.mark.parametrize("sigma", [None, 0.5])
@pytest.mark.parametrize("biases", [True, False])
def test_with_the_safeguard_too(sigma, biases, name, setting):
    policy = policies.Albatross(sigma=sigma, biases=biases, safeguard=True, ties="first")
    found, dense = play_beside(policy, **{"rounds": 90, "seed": 4, **setting})
    agree(found, dense)
    assert (found["norm_bound"] == np.inf) == (name == "fixed-arms")  # there contexts say nothing of theta


def test_the_safeguard_falls_back_when_the_gaps_are_spent():
    policy = policies.Albatross(sigma=0.5, safeguard=True)
    env = environments.Mixture(n_arms=10, dim=5, theta_norm=0.0, noise_sd=0.5)
    for found in simulate(policy, env, horizon=4_000, trials=3).diagnostics:
        assert found["fallbacks"] > 0
        assert found["spent"] <= found["allowance"]


# ------------------------------------------------------------------------------------------------ what it certifies


def test_the_set_excludes_the_truth_in_at_most_one_of_twenty_trials():
    env = environments.Mixture(n_arms=5, dim=3, theta_norm=0.5, noise_sd=0.7)
    run = simulate(policies.Albatross(sigma=0.7, certificate=True), env, horizon=300, trials=200, record=[300])
    excluded = 0
    for found in run.diagnostics:
        inside, truth = found["confidence_set"], found["truth"]["theta"]
        error = truth - inside["centre"]
        outside = error @ np.linalg.solve(inside["shape"], error) > inside["radius"] ** 2
        assert outside or found["norm_bound"] >= np.linalg.norm(truth)
        assert found["norm_bound"] < 2.0  # or it would be no news
        excluded += outside
    assert excluded <= 10


def test_half_the_noise_is_exposed_and_the_right_one_is_not():
    env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.7)
    told = {"half": policies.Albatross(sigma=0.35, certificate=True), "right": policies.Albatross(sigma=0.7)}
    runs = simulate(told, env, horizon=500, trials=5)
    for found in runs["half"].diagnostics:
        assert any("sigma=0.35 was given" in sentence for sentence in found["warnings"])
    for found in runs["right"].diagnostics:
        assert found["warnings"] == []
    assert runs["half"].regret[:, -1].mean() < 1.3 * runs["right"].regret[:, -1].mean()


def test_it_says_what_cannot_be_identified():
    agent = Agent(policies.Albatross(certificate=True), n_arms=3, dim=2, seed=0)
    fixed = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for _ in range(30):
        agent.update(agent.select(fixed, eligible=[0, 1]), 0.5)
    found = agent.diagnostics()
    assert found["norm_bound"] == np.inf
    told = " ".join(found["warnings"])
    assert "1 of 3 arms were never played" in told
    assert "theta is not identified" in told
    assert "sigma was not given" in told


def test_before_16_rewards_it_says_that_it_guesses():
    agent = Agent(policies.Albatross(), n_arms=2, dim=1, seed=0)
    assert "first guesses" in " ".join(agent.diagnostics()["warnings"])


def test_what_it_learns_of_the_variances():
    env = environments.Mixture(n_arms=20, dim=10, theta_norm=0.3, noise_sd=0.7)
    run = simulate(policies.Albatross(), env, horizon=4_000, trials=5)
    for found in run.diagnostics:
        assert found["noise_sd"] == pytest.approx(0.7, rel=0.05)  # its standard error is 0.7 / sqrt(8000)
        assert found["prior_norm"] == pytest.approx(0.3, rel=0.3)
        assert found["bias_sd"] == pytest.approx(np.sqrt(1 / 3), rel=0.5)


# -------------------------------------------------------------------------------------------------------- units


@dataclass(frozen=True)
class InOtherUnits:
    """An environment whose rewards and contexts somebody measures in other units."""

    env: Any
    reward_scale: float = 1.0
    reward_offset: float = 0.0
    context_scale: float = 1.0

    @property
    def n_arms(self):
        return self.env.n_arms

    @property
    def dim(self):
        return self.env.dim


@dataclass(frozen=True)
class InOtherUnitsInstance:
    units: InOtherUnits
    inner: Any


@begin.register
def begin_in_other_units(env: InOtherUnits, rng):
    return InOtherUnitsInstance(env, begin(env.env, rng))


@draw.register
def draw_in_other_units(instance: InOtherUnitsInstance, chunk, rng):
    draw(instance.inner, chunk, rng)
    units = instance.units
    chunk.contexts[:] *= units.context_scale
    chunk.means[:] = units.reward_scale * chunk.means + units.reward_offset
    chunk.noise[:] *= units.reward_scale


@describe.register
def describe_in_other_units(instance: InOtherUnitsInstance):
    return describe(instance.inner)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("units", [{"reward_scale": 20.0, "reward_offset": 500.0}, {"context_scale": 10.0}])
def test_units_of_rewards_and_contexts_hardly_matter(units, biases):
    known = None if biases else np.zeros(10)
    env = environments.Mixture(n_arms=10, dim=5, noise_sd=0.7, biases=known)
    policy = policies.Albatross(biases=biases)
    own, other = (
        simulate(policy, each, horizon=2_000, trials=40, record=[2_000]).regret.mean()
        for each in (env, InOtherUnits(env, **units))
    )
    assert other / units.get("reward_scale", 1.0) == pytest.approx(own, rel=0.1)


# ------------------------------------------------------------------------------------------------- odd problems

KINDS = {
    "core": policies.Albatross(),
    "no-biases": policies.Albatross(biases=False),
    "safeguard": policies.Albatross(sigma=1.0, safeguard=True),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def finite_after(agent, contexts, rewards):
    """Play it, with finite numbers all along."""
    for X, noise in zip(contexts, rewards, strict=True):
        decision = agent.select(X)
        assert np.isfinite([decision.score, decision.width]).all()
        agent.update(decision, float(noise))
    assert all(np.isfinite(array).all() for array in state_of(agent).values())
    found = agent.diagnostics()
    assert np.isfinite([found["noise_sd"], found["prior_norm"] or 0.0, found["effective_parameters"]]).all()
    assert np.isfinite(found["theta_hat"]).all()
    assert not np.isnan(found.get("norm_bound", 0.0))


def odd_problems():
    rng = np.random.default_rng(0)
    plain, luck = rng.standard_normal((60, 4, 3)), rng.standard_normal(60)
    scales = 10.0 ** rng.choice([-8, 8], (60, 4, 1))
    small_first = plain * np.where(np.arange(60) < 20, 1e-8, 1e8)[:, None, None]
    return {
        "constant-rewards": (plain, np.full(60, 3.0)),
        "one-arm": (plain[:, :1], luck),
        "one-arm-one-feature": (plain[:, :1, :1], luck),
        "equal-arms": (np.repeat(plain[:, :1], 4, axis=1), luck),
        "zero-contexts": (np.zeros((60, 4, 3)), luck),
        "zero-contexts-at-first": (plain * (np.arange(60) > 20)[:, None, None], luck),
        "constant-contexts": (np.ones((60, 4, 3)), luck),
        "more-features-than-rounds": (rng.standard_normal((60, 4, 80)), luck),
        "mixed-scales": (plain * scales, luck),
        "mixed-scales-of-features": (plain * np.array([1e-8, 1.0, 1e8]), luck),
        "small-at-first": (small_first, luck),
        "huge": (plain * 1e99, luck * 1e99),
        "tiny": (plain * 1e-100, luck * 1e-100),
        "far-from-zero": (plain + 1e8, luck + 1e8),
        "all-zero": (np.zeros((60, 4, 3)), np.zeros(60)),
    }


@every_kind
@pytest.mark.parametrize("problem", odd_problems())
def test_odd_problems_are_survived(problem, kind):
    contexts, rewards = odd_problems()[problem]
    finite_after(Agent(KINDS[kind], n_arms=contexts.shape[1], dim=contexts.shape[2], seed=0), contexts, rewards)


@every_kind
def test_an_offset_of_the_rewards_changes_nothing(kind):
    rng = np.random.default_rng(0)
    contexts, luck = rng.standard_normal((200, 4, 3)), rng.standard_normal(200)
    plain, lifted = (Agent(KINDS[kind], n_arms=4, dim=3, seed=0) for _ in range(2))
    for X, noise in zip(contexts, luck, strict=True):
        one, two = plain.select(X), lifted.select(X)
        assert one.arm == two.arm
        reward = X[one.arm, 0] + noise
        plain.update(one, float(reward))
        lifted.update(two, float(reward + 1e8))
    found, other = plain.diagnostics(), lifted.diagnostics()
    np.testing.assert_allclose(found["theta_hat"], other["theta_hat"], atol=1e-5)
    assert other["intercept"] - found["intercept"] == pytest.approx(1e8, rel=1e-12)


@every_kind
def test_a_million_million_plays_at_once_are_survived(kind):
    agent = Agent(KINDS[kind], n_arms=3, dim=2, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        decision = agent.select(rng.standard_normal((3, 2)))
        n = 10**12
        learn_block(agent, decision, 0.5 * n, n)
    finite_after(agent, rng.standard_normal((20, 3, 2)), rng.standard_normal(20))


@every_kind
def test_a_log_of_somebody_elses_choices_is_taken_and_its_first_context_sets_the_unit(kind):
    agent = Agent(KINDS[kind], n_arms=3, dim=2, seed=0)
    rng = np.random.default_rng(0)
    X, arms = 5.0 * rng.standard_normal((100, 2)), rng.integers(3, size=100)
    agent.warm_start(X, arms, X @ [1.0, -1.0])
    found = agent.diagnostics()
    assert agent._state.origin[0] == np.linalg.norm(X[0])
    np.testing.assert_allclose(found["theta_hat"], [1.0, -1.0], atol=0.05)
    assert found.get("spent", 0.0) == 0.0


def test_decisions_in_a_burst_are_not_all_for_one_arm():
    arms, means, regret = np.eye(20), np.linspace(0.0, 1.0, 20), []
    for seed in range(4):
        agent, rng, waiting, total = Agent(n_arms=20, dim=20, seed=seed), np.random.default_rng(seed), [], 0.0
        for _ in range(1_500):
            waiting.append(agent.select(arms))
            total += 1.0 - means[waiting[-1].arm]
            if len(waiting) > 50:
                decision = waiting.pop(0)
                agent.update(decision, means[decision.arm] + 0.5 * rng.standard_normal())
        regret.append(total)
    assert np.mean(regret) < 150  # one arm for all until the rewards come costs 350 and more


def test_a_feature_in_a_far_larger_unit_is_learnt():
    scales = np.r_[1e4, np.ones(9)]
    theta = np.full(10, 10**-0.5) / scales
    env = environments.Mixture(n_arms=10, dim=10, theta=theta, noise_sd=0.7, covariance=np.diag(scales**2))
    plain = environments.Mixture(n_arms=10, dim=10, theta=theta * scales, noise_sd=0.7)
    far, near = (
        simulate(policies.Albatross(), each, horizon=1_500, trials=4, record=1).regret.mean() for each in (env, plain)
    )
    assert far < 3.0 * near


@pytest.mark.parametrize(
    ("contexts", "reward", "sentence"),
    [
        (np.zeros((4, 3)), None, "All contexts played were zero"),
        (np.arange(12.0).reshape(4, 3), None, "Contexts never changed within an arm"),
        (None, 3.0, "All rewards were equal"),
    ],
    ids=["zero contexts", "fixed contexts", "constant reward"],
)
def test_diagnostics_say_what_cannot_be_identified(contexts, reward, sentence):
    agent, rng = Agent(n_arms=4, dim=3, seed=0), np.random.default_rng(0)
    for _ in range(60):
        decision = agent.select(rng.standard_normal((4, 3)) if contexts is None else contexts)
        agent.update(decision, reward if reward is not None else float(rng.standard_normal()))
    found = agent.diagnostics()
    assert any(sentence in warning for warning in found["warnings"])
    assert (found["prior_norm"] is None) == (sentence == "All contexts played were zero")
    free = Agent(n_arms=4, dim=3, seed=0)
    for _ in range(60):
        decision = free.select(rng.standard_normal((4, 3)))
        free.update(decision, float(decision.action.sum() + rng.standard_normal()))
    assert free.diagnostics()["warnings"] == []


def test_few_rewards_for_many_features_are_told():
    agent, rng = Agent(n_arms=3, dim=60, seed=0), np.random.default_rng(0)
    for _ in range(40):
        decision = agent.select(rng.standard_normal((3, 60)))
        agent.update(decision, float(rng.standard_normal()))
    assert any("40 rewards for 60 features" in warning for warning in agent.diagnostics()["warnings"])


def test_an_arm_that_appears_late_is_tried():
    agent, rng = Agent(n_arms=4, dim=3, seed=0), np.random.default_rng(0)
    for t in range(300):
        decision = agent.select(rng.standard_normal((4, 3)), eligible=[0, 1, 2] if t < 200 else None)
        agent.update(decision, float(decision.action.sum() + 2.0 * (decision.arm == 3) + 0.5 * rng.standard_normal()))
    assert agent.diagnostics()["pulls"][3] > 45  # it is the best one in most rounds
