"""Online-to-confidence sets: action for action as a slow transcription plays, and theta* stays inside."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from albatross import Agent, environments, policies, simulate
from albatross.linalg.eigen import optimistic_action


class SlowOnlineToConfidence:
    """All data are kept, and every regression is solved anew."""

    def __init__(self, dim, *, sparsity, sigma, delta, norm_bound):
        self.dim, self.sigma, self.delta, self.S = dim, sigma, delta, norm_bound
        self.supports = [list(support) for support in combinations(range(dim), sparsity)]
        self.x, self.y, self.p = np.empty((0, dim)), np.empty(0), np.empty(0)

    def penalised(self, support):
        """Least squares on a support, the value of its objective, and its log evidence."""
        ridge = self.sigma**2 / self.S**2
        X = self.x[:, support]
        V = ridge * np.eye(len(support)) + X.T @ X
        theta = np.linalg.solve(V, X.T @ self.y)
        objective = np.sum((self.y - X @ theta) ** 2) + ridge * theta @ theta
        # The rewards are N(0, sigma^2 I + S^2 X X') under the model of this support.
        covariance = self.sigma**2 * np.eye(len(self.y)) + self.S**2 * X @ X.T
        _, log_det = np.linalg.slogdet(covariance)
        return theta, objective, -0.5 * log_det - 0.5 * self.y @ np.linalg.solve(covariance, self.y)

    def predict(self, x):
        found = [self.penalised(support) for support in self.supports]
        evidence = np.array([log for _, _, log in found])
        weights = np.exp(evidence - evidence.max())
        means = [x[support] @ theta for support, (theta, _, _) in zip(self.supports, found)]
        return float(weights @ means / weights.sum())

    def conversion(self):
        """V, q, the squared radius about q, and B."""
        best = min(self.penalised(support)[1] for support in self.supports)
        B = max(np.sum((self.y - self.p) ** 2) - (best - self.sigma**2), 0.0)
        inside = (np.sqrt(8) * self.sigma + np.sqrt(1 + B)) / self.delta
        beta = 1 + 2 * B + 32 * self.sigma**2 * np.log(inside)
        V = np.eye(self.dim) + self.x.T @ self.x
        q = np.linalg.solve(V, self.x.T @ self.p)
        squared = self.S**2 + beta - (q @ q + np.sum((self.p - self.x @ q) ** 2))
        return V, q, squared, B

    def learn(self, x, y):
        prediction = self.predict(x)
        self.x, self.y, self.p = np.vstack([self.x, x]), np.append(self.y, y), np.append(self.p, prediction)


@pytest.mark.parametrize(
    ("dim", "given"),
    [
        (4, {"sparsity": 2, "sigma": 0.1, "delta": 0.1, "norm_bound": 1.0}),
        (5, {"sparsity": 1, "sigma": 0.5, "delta": 0.01, "norm_bound": 2.0}),
        (3, {"sparsity": 3, "sigma": 0.3, "delta": 0.5, "norm_bound": 1.5}),
    ],
)
def test_it_plays_the_actions_of_the_slow_transcription(dim, given):
    rng = np.random.default_rng(dim)
    theta = np.zeros(dim)
    theta[: given["sparsity"]] = given["norm_bound"] / np.sqrt(given["sparsity"])
    slow = SlowOnlineToConfidence(dim, **given)
    agent = Agent(policies.OnlineToConfidence(**given), dim=dim)
    for t in range(120):
        decision = agent.select()
        V, q, squared, B = slow.conversion()
        found = agent.diagnostics()
        assert found["radius"] == pytest.approx(np.sqrt(squared), rel=1e-8)
        assert found["regret_bound"] == pytest.approx(B, rel=1e-7, abs=1e-9)
        assert found["theta_hat"] == pytest.approx(q, abs=1e-9)
        action, value = optimistic_action(V, q, float(np.sqrt(squared)))
        assert decision.score == pytest.approx(value, rel=1e-9)
        # Where several actions promise the same, as in the first rounds, any of them will do.
        promised = decision.action @ q + np.sqrt(squared * decision.action @ np.linalg.solve(V, decision.action))
        assert promised == pytest.approx(value, rel=1e-9)
        if t > 20:
            assert decision.action == pytest.approx(action, abs=1e-6)
        reward = float(decision.action @ theta + given["sigma"] * rng.standard_normal())
        agent.update(decision, reward)
        slow.learn(decision.action, reward)
    assert found["support"].tolist() == list(range(given["sparsity"]))


def test_theta_stays_inside_the_set_and_the_bound_on_the_loss_holds():
    dim, sigma, delta = 4, 0.5, 0.1
    theta = np.array([0.0, 0.8, 0.0, -0.6])
    outside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        agent = Agent(policies.OnlineToConfidence(sparsity=2, sigma=sigma, delta=delta), dim=dim)
        V, inside = np.eye(dim), True
        for _ in range(150):
            decision = agent.select()
            V += np.outer(decision.action, decision.action)
            agent.update(decision, float(decision.action @ theta + sigma * rng.standard_normal()))
            found = agent.diagnostics()
            error = theta - found["theta_hat"]
            inside = inside and error @ V @ error <= found["radius"] ** 2
        outside += not inside
    assert outside <= delta * 40


def test_at_20_coordinates_sparsity_pays_over_oful_which_ignores_it():
    theta = np.zeros(20)
    theta[:2] = 0.8, 0.6
    env = environments.Ball(dim=20, theta=theta, noise_sd=0.5)
    named = {"sparse": policies.OnlineToConfidence(sparsity=2, sigma=0.5), "oful": policies.BallOFUL(sigma=0.5)}
    runs = simulate(named, env, horizon=20_000, trials=2, record=2)
    assert (runs["sparse"].regret[:, -1] < runs["oful"].regret[:, -1]).all()


def test_more_supports_than_it_can_keep_and_more_coordinates_than_there_are_are_refused():
    with pytest.raises(ValueError, match="too many supports of 5 of 20 coordinates"):
        Agent(policies.OnlineToConfidence(sparsity=5), dim=20)
    with pytest.raises(ValueError, match="too many supports of 500000 of 1000000 coordinates"):
        Agent(policies.OnlineToConfidence(sparsity=500_000), dim=1_000_000)
    with pytest.raises(ValueError, match=r"a regression for each of the supports .* GB of memory"):
        Agent(policies.OnlineToConfidence(sparsity=4_899), dim=4_900)
    with pytest.raises(ValueError, match="sparsity is 4, but the ball has only 3"):
        Agent(policies.OnlineToConfidence(sparsity=4), dim=3)
    with pytest.raises(ValueError, match="sparsity"):
        policies.OnlineToConfidence(sparsity=0)
