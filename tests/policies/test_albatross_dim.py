"""AlbatrossDim: against a slow transcription of its description, its posterior, late rewards, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import hadamard as hadamard_matrix
from scipy.stats import norm as normal
from stepping import state_of

from albatross import Agent, policies, simulate
from albatross.environments import Ball
from albatross.linalg.vectors import hadamard
from albatross.models import soft_support
from albatross.protocol import Choice, Offer, init, resolve, select, update

SIGMA = 0.1


# ------------------------------------------------------------------------------------------- a slow transcription


class Slow:
    """The algorithm line by line: explicit matrices, a dense inverse, no sums by row."""

    def __init__(self, dim, columns, *, sigma, norm_bound=1.0, beta=0.1):
        self.d, self.sigma, self.S, self.beta = dim, sigma, norm_bound, beta
        order = 1
        while order < dim:
            order *= 2
        self.H = hadamard_matrix(order)[:, columns]
        self.served = np.zeros(order, int)
        self.G, self.b = np.zeros((dim, dim)), np.zeros(dim)
        self.prec = np.full(dim, dim / norm_bound**2)
        self.u, self.q = np.zeros(dim), np.full(dim, 1.0 / dim)
        self.t, self.kept_until, self.learnt, self.yy = 0, 1, sigma is None, 0.0

    def select(self, noise):
        waiting = np.flatnonzero(self.served == self.served.min())
        row = waiting[int(normal.cdf(noise[0]) * waiting.size)]
        sign = -1.0 if noise[1] < 0.0 else 1.0
        x = math.sqrt(max(1.0 - self.q.sum(), 0.0)) * self.u + sign * self.H[row] * np.sqrt(self.q)
        return row, x / np.linalg.norm(x)

    def update(self, row, x, y):
        self.t += 1
        self.G += np.outer(x, x)
        self.b += x * y
        self.yy += y * y
        if row is not None:
            self.served[row] += 1
        if self.t >= self.kept_until:
            if self.sigma is None:
                self.sigma = math.sqrt(self.yy / self.t)
            self.recompute()
            if self.learnt:  # for the next time
                errors = self.yy - 2 * self.mean @ self.b + self.mean @ self.G @ self.mean + np.diag(self.G) @ self.var
                self.sigma = math.sqrt(max(errors, 0.0) / self.t)
            self.kept_until = self.t + max(1, math.floor(self.beta * self.t))

    def recompute(self):
        for sweep in range(3):
            D = np.diag(self.prec**-0.5)
            C = np.linalg.inv(np.eye(self.d) + D @ self.G @ D / self.sigma**2)
            mu = D @ C @ D @ self.b / self.sigma**2
            own = np.minimum(np.diag(C), 1.0 - 1e-12)
            tau, nu = self.prec * (1.0 / own - 1.0), mu * self.prec / own
            scales = slow_scales(tau, nu, self.S)
            w = slow_weights(tau, nu, scales)
            mean, var = np.array([slow_moments(t, n, scales, w) for t, n in zip(tau, nu, strict=True)]).T
            var = np.maximum(var, 1e-9 / tau)
            if sweep < 2:
                self.prec = np.sqrt(self.prec / np.maximum(mean**2 + var, 1e-6 / tau))
        self.mean, self.var = mean, var
        self.u = mean / np.linalg.norm(mean)
        self.q = var / (mean @ mean + var.sum())


def slow_scales(tau, nu, norm_bound):
    largest = min(norm_bound, np.abs(nu / tau).max())
    bottom = min(1.0 / math.sqrt(tau.max()), largest / 2.0)
    n_scales = np.clip(math.ceil(math.log(largest / bottom) / math.log(math.sqrt(2.0))) + 1, 3, 14)
    return np.array([largest * 2.0 ** (-k / 2.0) for k in range(n_scales)])


def log_density(x, mean, sd):
    return -0.5 * ((x - mean) / sd) ** 2 - math.log(sd * math.sqrt(2.0 * math.pi))


def log_likelihood(tau, nu, scales):
    """Of 0, and of each scale as half a normal about + and half a normal about -."""
    x, rows = nu / tau, [log_density(nu / tau, 0.0, tau**-0.5)]
    for m in scales:
        sd = math.sqrt((0.25 * m) ** 2 + 1.0 / tau)
        rows.append(np.logaddexp(log_density(x, m, sd), log_density(x, -m, sd)) - math.log(2.0))
    return np.array(rows)


def slow_weights(tau, nu, scales):
    K = scales.size
    table = np.array([log_likelihood(t, n, scales) for t, n in zip(tau, nu, strict=True)])
    w = np.array([0.99] + [0.01 / K] * K)
    for _ in range(100):
        logs = np.log(w) + table
        responsibility = np.exp(logs - logs.max(axis=1, keepdims=True))
        responsibility /= responsibility.sum(axis=1, keepdims=True)
        w = responsibility.sum(axis=0) + np.array([10.0] + [1.0 / K] * K)
        w /= w.sum()
    return w


def slow_moments(tau, nu, scales, w):
    """Mean and variance, over 0 and all 2K normals one by one."""
    logs, means, variances = [math.log(w[0]) + log_density(nu / tau, 0.0, tau**-0.5)], [0.0], [0.0]
    for m, weight in zip(scales, w[1:], strict=True):
        spread = (0.25 * m) ** 2
        for centre in (m, -m):
            logs.append(math.log(weight / 2.0) + log_density(nu / tau, centre, math.sqrt(spread + 1.0 / tau)))
            means.append((nu + centre / spread) / (tau + 1.0 / spread))
            variances.append(1.0 / (tau + 1.0 / spread))
    share = np.exp(np.array(logs) - max(logs))
    share /= share.sum()
    mean = share @ np.array(means)
    return mean, share @ (np.array(variances) + (np.array(means) - mean) ** 2)


class Stepped:
    """The policy by its verbs, with noise from a test."""

    def __init__(self, policy, dim, seed):
        self.parameters = resolve(policy, 1, dim, None)
        self.state = init(self.parameters, 1, dim, np.random.default_rng(seed))
        self.offer = Offer(np.zeros((1, dim)), np.ones(1, bool), np.zeros(1, np.int64), -1, np.zeros(1, np.int64))

    def select(self, noise):
        return select(self.parameters, self.state, self.offer, noise)

    def update(self, choice, reward):
        update(self.parameters, self.state, choice, reward, 1)


def sparse_theta(dim, rng):
    theta = rng.standard_normal(dim) * (np.arange(dim) % 2 == 0)
    return 0.9 * theta / np.linalg.norm(theta)


@pytest.mark.parametrize(
    ("dim", "options"),
    [
        (1, {}),
        (3, {}),
        (4, {"norm_bound": 2.0}),
        (5, {"beta": 0.3}),
        (8, {}),
        (8, {"sigma": None}),
    ],
    ids=["1", "3", "4-norm-2", "5-beta-0.3", "8", "8-sigma-learnt"],
)
def test_it_plays_as_its_description_transcribed_slowly(dim, options):
    options = {"sigma": SIGMA, **options}
    fast = Stepped(policies.AlbatrossDim(**options), dim, seed=dim)
    slow = Slow(dim, fast.state.columns, **options)
    rng = np.random.default_rng(10 + dim)
    theta = sparse_theta(dim, rng)
    for _ in range(400):
        noise = rng.standard_normal(2)
        choice, (row, x) = fast.select(noise), slow.select(noise)
        np.testing.assert_allclose(choice.action, x, rtol=0.0, atol=1e-8)
        reward = float(x @ theta + SIGMA * rng.standard_normal())
        fast.update(choice, reward)
        slow.update(row, x, reward)
    np.testing.assert_allclose(fast.state.belief[soft_support.MEAN], slow.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fast.state.belief[soft_support.SPREAD] ** 2, slow.var, rtol=1e-7)
    np.testing.assert_allclose(fast.state.belief[soft_support.PRECISION], slow.prec, rtol=1e-7)


def test_late_rewards_lost_ones_and_somebody_elses_vectors_are_learnt_as_in_the_slow_transcription():
    dim = 6
    fast = Stepped(policies.AlbatrossDim(sigma=SIGMA), dim, seed=0)
    slow = Slow(dim, fast.state.columns, sigma=SIGMA)
    rng = np.random.default_rng(1)
    theta, waiting = sparse_theta(dim, rng), []
    for t in range(400):
        noise = rng.standard_normal(2)
        choice, (row, x) = fast.select(noise), slow.select(noise)
        np.testing.assert_allclose(choice.action, x, rtol=0.0, atol=1e-8)
        waiting.append((choice, row, x))
        if t % 50 == 0:
            x = np.eye(dim)[t // 50 % dim]
            waiting.append((Choice(0, x, 0.0, 0.0, np.nan, np.full(3, np.nan)), None, x))
        while len(waiting) > 12:
            choice, row, x = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.9:
                reward = float(x @ theta + SIGMA * rng.standard_normal())
                fast.update(choice, reward)
                slow.update(row, x, reward)
    assert fast.state.clock[0] == slow.t
    np.testing.assert_allclose(fast.state.belief[soft_support.MEAN], slow.mean, rtol=1e-8, atol=1e-10)


# ------------------------------------------------------------------------------------------------------ its actions


def test_a_hadamard_entry_is_that_of_sylvesters_matrix():
    table = [[hadamard(i, j) for j in range(64)] for i in range(64)]
    assert np.array_equal(table, hadamard_matrix(64))


def test_every_row_is_served_once_a_cycle_in_an_order_and_with_signs_that_change():
    agent = Agent(policies.AlbatrossDim(sigma=SIGMA), dim=6, seed=0)
    cycles = []
    for _ in range(4):
        cycle = []
        for _ in range(8):
            decision = agent.select()
            cycle.append(tuple(agent._pending[decision.id][5][1:].tolist()))
            agent.update(decision, 0.1)
        assert sorted(row for row, _ in cycle) == list(range(8))
        cycles.append(cycle)
    assert len({tuple(row for row, _ in cycle) for cycle in cycles}) == 4
    assert len({tuple(side for _, side in sorted(cycle)) for cycle in cycles}) == 4


def test_a_posterior_is_kept_for_a_tenth_of_the_rounds():
    agent = Agent(policies.AlbatrossDim(sigma=SIGMA), dim=3, seed=0)
    renewed = []
    for t in range(1, 60):
        before = agent.diagnostics()["renewals"]
        agent.update(agent.select(), 0.1)
        if agent.diagnostics()["renewals"] > before:
            renewed.append(t)
    assert renewed == [*range(1, 20), 20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 46, 50, 55]


def test_three_plays_at_once_teach_what_three_single_ones_do():
    one, many = (Stepped(policies.AlbatrossDim(sigma=SIGMA), 4, seed=0) for _ in range(2))
    rng = np.random.default_rng(3)
    for _ in range(30):  # the belief of round 30 is kept for 3 rounds
        noise, reward = rng.standard_normal(2), float(rng.standard_normal())
        for agent in (one, many):
            agent.update(agent.select(noise), reward)
    choice = one.select(np.zeros(2))
    update(one.parameters, one.state, choice, 1.5, 3)
    for _ in range(3):
        many.update(choice, 0.5)
    assert all(np.array_equal(a, b) for a, b in zip(one.state, many.state, strict=True))


# ------------------------------------------------------------------------------------------------------ its posterior


@pytest.mark.parametrize(("tau", "nu"), [(50.0, 0.0), (50.0, 8.0), (400.0, -60.0), (400.0, 20.0), (9.0, -40.0)])
def test_moments_are_those_of_numerical_integration(tau, nu):
    scales, weights = np.array([0.6, 0.3, 0.15]), np.array([0.7, 0.1, 0.05, 0.15])
    likelihood = soft_support.likelihoods(np.array([tau]), np.array([nu]), scales)[0]
    mean, variance, inclusion = soft_support.moments(tau, nu, scales, weights * likelihood)

    theta = np.linspace(-6.0, 6.0, 24_001)  # 75 points to the narrowest standard deviation: exact to rounding
    both = [normal.pdf(theta, m, m / 4.0) + normal.pdf(theta, -m, m / 4.0) for m in scales]
    slab = weights[1:] @ both / 2.0 * normal.pdf(theta, nu / tau, tau**-0.5) * (theta[1] - theta[0])
    total = slab.sum() + weights[0] * normal.pdf(nu / tau, 0.0, tau**-0.5)
    expected = theta @ slab / total
    assert inclusion == pytest.approx(slab.sum() / total, rel=1e-10)
    assert mean == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert variance == pytest.approx(theta**2 @ slab / total - expected**2, rel=1e-10)


def test_em_weights_are_those_of_a_slow_version():
    rng = np.random.default_rng(0)
    tau = rng.uniform(50.0, 500.0, 40)
    nu = tau * (np.where(np.arange(40) < 8, 0.3, 0.0) + rng.standard_normal(40) / np.sqrt(tau))
    scales = soft_support.slab_scales(tau, nu, 1.0)
    np.testing.assert_allclose(scales, slow_scales(tau, nu, 1.0), rtol=1e-13)
    weights = soft_support.mixture_weights(soft_support.likelihoods(tau, nu, scales))
    np.testing.assert_allclose(weights, slow_weights(tau, nu, scales), rtol=1e-10)


def test_a_cavity_is_what_the_rewards_say_without_the_coordinates_own_prior():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((12, 4))
    gram, cross, precision = rows.T @ rows, rows.T @ rng.standard_normal(12), rng.uniform(1.0, 5.0, 4)
    tau, nu = soft_support.leave_one_out(gram, cross, precision, 0.7)
    for j in range(4):
        prior = np.diag(np.where(np.arange(4) == j, 1e-9, precision))  # flat on j alone
        posterior = np.linalg.inv(gram / 0.49 + prior)
        assert tau[j] == pytest.approx(1.0 / posterior[j, j], rel=1e-7)
        assert nu[j] == pytest.approx((posterior @ cross)[j] / 0.49 / posterior[j, j], rel=1e-7)


def test_coordinates_that_matter_are_told_from_those_that_do_not_and_none_is_closed():
    theta = np.array([0.8, 0.0, -0.5, 0.0, 0.0, 0.0])
    run = simulate(policies.AlbatrossDim(sigma=SIGMA), Ball(dim=6, theta=theta, noise_sd=SIGMA), horizon=2_000, seed=1)
    found = run.diagnostics[0]
    assert found["support"].tolist() == [0, 2]
    assert np.abs(found["theta_hat"] - theta).max() < 0.05
    assert (found["inclusion"] > 0.0).all()
    assert (found["variance"] > 0.0).all()
    assert 2.0 < found["effective_dimension"] < 4.0
    assert found["warnings"] == []


def test_what_is_not_identified_yet_is_said():
    agent = Agent(policies.AlbatrossDim(sigma=SIGMA), dim=4, seed=0)
    coordinates, direction = agent.diagnostics()["warnings"]
    assert "4 of 4 coordinates are not identified yet" in coordinates
    assert "the best direction is not identified yet" in direction


def test_a_norm_bound_that_the_rewards_contradict_is_said():
    agent = Agent(policies.AlbatrossDim(sigma=SIGMA), dim=2, seed=0)
    for _ in range(100):
        decision = agent.select()
        agent.update(decision, 3.0 * float(decision.action[0]))
    (warning,) = agent.diagnostics()["warnings"]
    assert warning == "theta_hat is 3 long, norm_bound is 1: give a larger one"


# ------------------------------------------------------------------------------------------------------ degenerate


@pytest.mark.parametrize("dim", [1, 2, 5, 40])
@pytest.mark.parametrize("sigma", [None, 1e-100, 1e-12, 0.1, 1e12, 1e100])
@pytest.mark.parametrize("kind", ["nothing", "constant", "noise", "linear", "huge"])
def test_nothing_degenerate_brings_anything_but_finite_numbers(dim, sigma, kind):
    agent = Agent(policies.AlbatrossDim(sigma=sigma), dim=dim, seed=0)
    rng = np.random.default_rng(0)
    reward = {
        "nothing": lambda x: 0.0,
        "constant": lambda x: 1.0,
        "noise": lambda x: float(rng.standard_normal()),
        "linear": lambda x: float(x[0]),
        "huge": lambda x: 1e50 * float(x[0]),
    }[kind]
    for _ in range(80):
        decision = agent.select()
        assert np.linalg.norm(decision.action) == pytest.approx(1.0, abs=1e-12)
        agent.update(decision, reward(decision.action))
    for name, array in state_of(agent).items():
        assert np.isfinite(array).all(), name
    assert (agent._state.belief[soft_support.SPREAD] > 0.0).all()


def test_the_factor_of_a_matrix_of_which_rounding_left_no_identity_is_finite():
    row = np.random.default_rng(0).standard_normal(30)
    below = np.eye(30) + 1e25 * np.outer(row, row)
    soft_support.factorise(below)
    assert np.isfinite(np.tril(below)).all()
    assert (np.diag(below) >= 1.0).all()


@pytest.mark.parametrize("name", ["sigma", "norm_bound", "beta"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, "1"])
def test_a_parameter_that_is_not_a_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a"):
        policies.AlbatrossDim(**{name: value})


def test_a_posterior_must_be_renewed_before_the_rounds_have_doubled():
    with pytest.raises(ValueError, match="beta must be a number strictly between 0 and 1"):
        policies.AlbatrossDim(beta=1.0)


# ------------------------------------------------------------------------------------------------------ what it costs


def test_the_learnt_noise_level_is_right_and_costs_hardly_anything():
    env = Ball(dim=20, sparsity=4, smallest=0.3, noise_sd=0.3)
    both = {"given": policies.AlbatrossDim(sigma=0.3), "learnt": policies.AlbatrossDim()}
    runs = simulate(both, env, horizon=3_000, trials=10, seed=0, record=1)
    assert runs["learnt"].regret.mean() < 1.2 * runs["given"].regret.mean()
    for found in runs["learnt"].diagnostics:
        assert found["noise_sd"] == pytest.approx(0.3, rel=0.1)


def test_with_20_of_200_coordinates_its_regret_is_in_the_band_of_its_description():
    theta = np.zeros(200)
    theta[:20] = np.linspace(0.12, 0.30, 20)
    env = Ball(dim=200, theta=theta, noise_sd=SIGMA)
    run = simulate(policies.AlbatrossDim(sigma=SIGMA), env, horizon=10_000, trials=5, seed=0, record=[10_000])
    # 938 here; 12 other runs have a mean of 934 and a standard deviation of 157, so 70 for a mean of 5.
    assert 750.0 < run.regret.mean() < 1_050.0
