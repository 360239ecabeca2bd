"""NAOFUL, SF-OFUL, EB-UCB, EB-LinTS and the lasso bandits: against plain dense algebra, coverage, and supports."""

from __future__ import annotations

import math

import numpy as np
import pytest
from stepping import state_of

from albatross import Agent, environments, policies, simulate

N_ARMS, DIM, SIGMA, DELTA = 4, 3, 0.5, 0.05
REFITS = {*range(17), *range(16, 33, 2), *range(32, 65, 4), *range(64, 129, 8)}
with_and_without_biases = pytest.mark.parametrize("biases", [True, False])


def features(contexts, biases):
    return np.hstack([np.eye(len(contexts)), contexts]) if biases else contexts


class Plays:
    """All rows and rewards so far, and the sums at the last refit."""

    def __init__(self, size):
        self.Z, self.y, self.refit = np.empty((0, size)), np.empty(0), 0

    def add(self, z, reward):
        self.Z, self.y = np.vstack([self.Z, z]), np.append(self.y, reward)
        if len(self.y) in REFITS:
            self.refit = len(self.y)

    def ridge(self, strength):
        """theta_hat, V^-1 and ln det V/V_0."""
        size = self.Z.shape[1]
        V = self.Z.T @ self.Z + strength * np.eye(size)
        log_det = np.linalg.slogdet(V)[1] - size * math.log(strength)
        return np.linalg.solve(V, self.Z.T @ self.y), np.linalg.inv(V), log_det


def lengths(z, matrix):
    return np.sqrt(np.einsum("ij,jk,ik->i", z, matrix, z))


def follow(policy, *, biases, rounds, rng, dim=DIM):
    """Let an agent play; yields its contexts' features, its decision and the plays before it."""
    agent = Agent(policy, n_arms=N_ARMS, dim=dim)
    plays = Plays(N_ARMS + dim if biases else dim)
    for _ in range(rounds):
        contexts = rng.standard_normal((N_ARMS, dim))
        z = features(contexts, biases)
        decision = agent.select(contexts)
        yield z, decision, plays, agent
        reward = float(z[decision.arm].sum() + SIGMA * rng.standard_normal())
        agent.update(decision, reward)
        plays.add(z[decision.arm], reward)


@with_and_without_biases
@pytest.mark.parametrize("decay", [1.0, 2.0])
def test_na_ofuls_index_is_that_of_dense_algebra_with_its_fading_ridge(biases, decay):
    policy = policies.NAOFUL(sigma=SIGMA, delta=DELTA, decay=decay, biases=biases, ties="first")
    for z, decision, plays, _ in follow(policy, biases=biases, rounds=90, rng=np.random.default_rng(0)):
        size, t = z.shape[1], plays.refit + 1
        theta, inverse, log_det = plays.ridge(SIGMA**2 * size / t**decay)
        level = 6 * DELTA / (math.pi * t) ** 2
        reach = SIGMA * (math.sqrt(log_det + 2 * math.log(1 / level)) + math.sqrt(size))
        index = z @ theta + reach * lengths(z, inverse)
        assert decision.arm == np.argmax(index)
        assert decision.score == pytest.approx(index.max(), rel=1e-8)


@with_and_without_biases
def test_sf_ofuls_index_is_the_support_function_of_its_set(biases):
    strength = 0.7
    policy = policies.SFOFUL(sigma=SIGMA, delta=DELTA, ridge=strength, biases=biases, ties="first")
    spanned = 0
    for z, decision, plays, _ in follow(policy, biases=biases, rounds=90, rng=np.random.default_rng(0)):
        G = plays.Z.T @ plays.Z
        inverse = np.linalg.pinv(G, rcond=1e-10, hermitian=True)
        outside = np.linalg.norm(z - z @ inverse @ G, axis=1) > 1e-6
        if outside.any():
            assert decision.arm == np.argmax(outside)
            assert decision.score == np.inf
            continue
        spanned += 1
        _, _, log_det = plays.ridge(strength)
        reach = SIGMA * math.sqrt(log_det + 2 * math.log(1 / DELTA))
        index = z @ inverse @ plays.Z.T @ plays.y + reach * lengths(z, inverse + strength * inverse @ inverse)
        assert decision.arm == np.argmax(index)
        assert decision.score == pytest.approx(index.max(), rel=1e-8)
    assert spanned >= 90 - 2 * (N_ARMS + DIM)


@with_and_without_biases
def test_eb_ucbs_index_is_that_of_dense_algebra_with_its_own_norm_bound(biases):
    bound, g, delta, warm_up = 20.0, 0.3, 1e-3, 30
    policy = policies.EBUCB(
        norm_bound=bound, sigma=SIGMA, delta=delta, ridge=g, warm_up=warm_up, biases=biases, ties="first"
    )
    strength, latest, smallest, seen = g * SIGMA**2, bound, bound, 0
    for z, decision, plays, _ in follow(policy, biases=biases, rounds=90, rng=np.random.default_rng(0)):
        played = len(plays.y)
        theta, inverse, log_det = plays.ridge(strength)

        def radius(norm_bound, played=played, log_det=log_det):
            level = min(delta, 1 / (played + 1) ** 2)
            return SIGMA * math.sqrt(log_det + 2 * math.log(1 / level)) + math.sqrt(strength) * norm_bound

        if played and played in REFITS:
            length, least = np.linalg.norm(theta), 1 / np.linalg.eigvalsh(inverse)[-1]
            latest = min(bound, length + radius(bound) / math.sqrt(least))
            smallest = min(smallest, length + radius(latest) / math.sqrt(least))
            seen += latest < bound
        index = z @ theta + radius(latest if played < warm_up else smallest) * lengths(z, inverse)
        assert decision.arm == np.argmax(index)
        assert decision.score == pytest.approx(index.max(), rel=1e-8)
    assert seen >= 5  # it was not the bound that was told all along


@with_and_without_biases
def test_eb_lints_has_the_posterior_of_the_prior_with_the_largest_likelihood(biases):
    bias_ridge, fixed = 0.8, N_ARMS if biases else 0
    policy = policies.EBLinTS(sigma=SIGMA, bias_ridge=bias_ridge, biases=biases, ties="first")
    candidates, chosen = [1.0, *(2.0**octave for octave in range(-20, 21))], set()
    for _, _, plays, agent in follow(policy, biases=biases, rounds=70, rng=np.random.default_rng(0)):
        if not plays.refit:
            continue
        then, rewards = plays.Z[: plays.refit], plays.y[: plays.refit]

        def likelihood(ridge, then=then, rewards=rewards):
            prior = np.array([bias_ridge] * fixed + [ridge] * DIM)
            covariance = SIGMA**2 * (np.eye(len(rewards)) + then / prior @ then.T)
            return -np.linalg.slogdet(covariance)[1] / 2 - rewards @ np.linalg.solve(covariance, rewards) / 2

        ridge = candidates[int(np.argmax([likelihood(candidate) for candidate in candidates]))]
        chosen.add(ridge)
        found = agent.diagnostics()
        assert found["ridge"] == ridge
        V = plays.Z.T @ plays.Z + np.diag([bias_ridge] * fixed + [ridge] * DIM)
        mean = np.linalg.solve(V, plays.Z.T @ plays.y)
        np.testing.assert_allclose(found["theta_hat"], mean[fixed:], rtol=1e-8, atol=1e-10)
        if biases:
            np.testing.assert_allclose(found["biases"], mean[:fixed], rtol=1e-8, atol=1e-10)
        root = agent._state.fit.root
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(V)[fixed:, fixed:], rtol=1e-8, atol=1e-10)
    assert len(chosen) > 1


def test_draws_of_eb_lints_do_not_depend_on_the_eigenbasis_that_lapack_returns():
    agent, rng = Agent(policies.EBLinTS(sigma=SIGMA, biases=False), n_arms=3, dim=5, seed=0), np.random.default_rng(0)
    agent.update(agent.select(rng.standard_normal((3, 5))), 1.0)  # four of five eigenvalues are equal now
    root = agent._state.fit.root
    np.testing.assert_allclose(root, root.T, rtol=0, atol=1e-12)


def slow_lasso(X, y, alpha):
    """The minimum of |y - X theta|^2 / 2n + alpha |theta|_1, by coordinates, from 0."""
    theta = np.zeros(X.shape[1])
    for _ in range(20_000):
        before = theta.copy()
        for j in range(len(theta)):
            pull = X[:, j] @ (y - X @ theta) + X[:, j] @ X[:, j] * theta[j]
            theta[j] = np.sign(pull) * max(abs(pull) - len(y) * alpha, 0.0) / (X[:, j] @ X[:, j])
        if np.abs(theta - before).max() < 1e-14:
            break
    return theta


def without_biases(Z, y, strength):
    """Rows and rewards of theta once the biases are minimised over: (I - E (E'E + strength)^-1 E')^(1/2) of each."""
    E, X = Z[:, :N_ARMS], Z[:, N_ARMS:]
    values, basis = np.linalg.eigh(np.eye(len(y)) - E @ np.linalg.solve(E.T @ E + strength * np.eye(N_ARMS), E.T))
    half = basis * np.sqrt(np.maximum(values, 0.0)) @ basis.T
    return half @ X, half @ y


@with_and_without_biases
@pytest.mark.parametrize("name", ["sa-lasso", "threshold-lasso"])
def test_a_lasso_bandit_is_greedy_on_what_a_plain_lasso_leaves(name, biases):
    dim, bias_ridge = 5, 0.8
    policy = {
        "sa-lasso": policies.SALasso(
            sigma=SIGMA, feature_bound=0.3, bias_ridge=bias_ridge, biases=biases, ties="first"
        ),
        "threshold-lasso": policies.ThresholdLasso(penalty=0.07, bias_ridge=bias_ridge, biases=biases, ties="first"),
    }[name]
    theta, refitted, supports = np.zeros(dim), 0, set()
    for z, decision, plays, agent in follow(policy, biases=biases, rounds=70, rng=np.random.default_rng(3), dim=dim):
        t = plays.refit
        if t > refitted:
            refitted = t
            X, y = without_biases(plays.Z, plays.y, bias_ridge) if biases else (plays.Z, plays.y)
            if name == "sa-lasso":
                theta = slow_lasso(X, y, 2 * SIGMA * 0.3 * math.sqrt((4 * math.log(t) + 2 * math.log(dim)) / t))
            else:
                penalty = 0.07 * math.sqrt(2 * math.log(max(t, 2)) * math.log(dim) / t)
                lasso = slow_lasso(X, y, penalty)
                first = np.abs(lasso) > 4 * penalty
                second = first & (np.abs(lasso) > 4 * penalty * math.sqrt(first.sum()))
                theta = np.zeros(dim)
                theta[second] = np.linalg.lstsq(X[:, second], y, rcond=None)[0]
            supports.add(tuple(np.flatnonzero(theta)))
            np.testing.assert_allclose(agent.diagnostics()["theta_hat"], theta, rtol=1e-8, atol=1e-8)
        index = z[:, -dim:] @ theta
        if biases:
            E = plays.Z[:, :N_ARMS]
            index += E.T @ (plays.y - plays.Z[:, N_ARMS:] @ theta) / (E.sum(axis=0) + bias_ridge)
        assert decision.arm == np.argmax(index)
        assert decision.score == pytest.approx(index.max(), rel=1e-7, abs=1e-7)
    assert len(supports) > 1


def missed_trials(policy, *, told, trials=200, rounds=60):
    """In how many trials theta* left the policy's confidence set at some time."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(trials):
        theta = rng.standard_normal(DIM)
        theta /= np.linalg.norm(theta)
        agent = Agent(policy, n_arms=N_ARMS, dim=DIM, seed=0)
        gram, cross, inside = np.zeros((DIM, DIM)), np.zeros(DIM), True
        for _ in range(rounds):
            decision = agent.select(rng.standard_normal((N_ARMS, DIM)))
            reward = float(decision.action @ theta + SIGMA * rng.standard_normal())
            agent.update(decision, reward)
            gram += np.outer(decision.action, decision.action)
            cross += reward * decision.action
            found = agent.diagnostics()
            if told == "na-oful":
                error, V = found["theta_hat"] - theta, gram + found["ridge"] * np.eye(DIM)
                length = error @ V @ error
            else:
                error = cross - gram @ theta
                length = error @ np.linalg.solve(gram + np.eye(DIM), error)
                inside &= found["norm_bound"] >= 1.0
            inside &= bool(length <= found["radius"] ** 2)
        missed += not inside
    return missed


@pytest.mark.parametrize(("name", "kind"), [("na-oful", policies.NAOFUL), ("sf-oful", policies.SFOFUL)])
def test_the_confidence_set_holds_theta_at_all_times_in_95_percent_of_the_trials(name, kind):
    assert missed_trials(kind(sigma=SIGMA, delta=DELTA, biases=False), told=name) <= DELTA * 200
    # and would not if the noise were a fifth of what it is: the test can tell
    assert missed_trials(kind(sigma=SIGMA / 5, delta=DELTA, biases=False), told=name) > DELTA * 200


def test_norm_certificates_come_down_to_theta_and_not_below():
    env = environments.Mixture(n_arms=10, dim=4, theta_norm=2.0, noise_sd=SIGMA, biases=np.zeros(10))
    contenders = {
        "sf-oful": policies.SFOFUL(sigma=SIGMA, biases=False),
        "eb-ucb": policies.EBUCB(sigma=SIGMA, biases=False),
    }
    for run in simulate(contenders, env, horizon=2_000, trials=5).values():
        for found in run.diagnostics:
            assert 2.0 <= found["norm_bound"] < 2.5


@pytest.mark.parametrize(
    "policy",
    [policies.SALasso(sigma=0.3, biases=False), policies.ThresholdLasso(penalty=0.04, biases=False)],
    ids=["sa-lasso", "threshold-lasso"],
)
def test_a_lasso_bandit_finds_the_support(policy):
    theta = np.zeros(30)
    theta[[2, 11, 25]] = 1.0, -0.8, 0.9
    env = environments.Mixture(n_arms=10, dim=30, theta=theta, noise_sd=0.3, biases=np.zeros(10))
    run = simulate(policy, env, horizon=2_000, trials=10)
    for found in run.diagnostics:
        assert found["support"].tolist() == [2, 11, 25]


RIVALS = ["NAOFUL", "SFOFUL", "EBUCB", "EBLinTS", "SALasso", "ThresholdLasso"]


@with_and_without_biases
@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("case", ["zero contexts", "constant rewards", "one arm", "few rounds", "fixed arms"])
def test_nothing_becomes_nan(name, biases, case):
    n_arms, dim = (1, 2) if case == "one arm" else (3, 40) if case == "few rounds" else (3, 5)
    agent = Agent(getattr(policies, name)(biases=biases), n_arms=n_arms, dim=dim, seed=0)
    rng = np.random.default_rng(0)
    fixed = rng.standard_normal((n_arms, dim))
    for _ in range(30):
        contexts = {"zero contexts": 0.0 * fixed, "fixed arms": fixed}.get(case, rng.standard_normal((n_arms, dim)))
        decision = agent.select(contexts)
        assert not math.isnan(decision.score)
        agent.update(decision, 1.0 if case == "constant rewards" else float(rng.standard_normal()))
    assert all(np.isfinite(array).all() for array in state_of(agent).values())
    agent.diagnostics()


WRONG = {"sigma": 0.0, "delta": 1.0, "decay": -1.0, "ridge": 0.0, "bias_ridge": 0.0, "penalty": 0.0}
WRONG |= {"feature_bound": 0.0, "norm_bound": 0.0, "warm_up": -1, "biases": 1, "ties": "last"}


@pytest.mark.parametrize("name", RIVALS)
def test_an_argument_that_makes_no_sense_is_refused(name):
    kind = getattr(policies, name)
    for argument in kind.__dataclass_fields__:
        with pytest.raises(ValueError, match=argument):
            kind(**{argument: WRONG[argument]})
