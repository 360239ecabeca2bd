"""Albatross: plays the arms of a dense transcription, whatever is switched on; needs no units and survives anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import golden_albatross
import numpy as np
import pytest
from slow_albatross import HALF_LIVES, Slow
from stepping import learn_block, state_of

from albatross import Agent, environments, policies, simulate
from albatross.linalg.eigen import optimistic_action
from albatross.protocol import Offer, begin, describe, draw, init, resolve, select

GRID = 4.0 ** np.arange(6)


class Dense(Slow):
    """The transcription, with the unit of the contexts, certificate and safeguard."""

    def __init__(self, policy, n_arms, dim):
        super().__init__(policy, n_arms, dim)
        self.unit = None
        self.account = np.zeros(5)  # unidentified, forced, spent, fallbacks, certified

    def in_unit(self, X, mask):
        return X / (self.unit or np.sqrt(np.mean(np.sum(X[mask] ** 2, axis=1))))

    def learn_in_unit(self, arm, x, y, unit, note):
        self.unit = self.unit or unit
        self.learn(arm, x / self.unit, y)
        self.account += note

    # ---- the certificate

    @property
    def sigma(self):
        return self.policy.sigma or np.sqrt(self.sig2)

    def log_dets_and_kappas(self):
        Z = np.hstack([np.eye(self.n_arms)[self.arms], self.X])
        scale = np.diag([1.0] * self.n_arms + [1.0 / self.dim] * self.dim)
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
        G[self.n_arms :, self.n_arms :] += 1e-8 / self.dim * np.eye(self.dim)
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
            mine = self.X[self.arms == i]
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
        if np.linalg.norm(inverse[self.n_arms :, self.n_arms :], 2) > 0.5e8 * self.dim:
            return np.inf
        bounds = []
        for lam, k in zip(GRID, kappa, strict=True):
            A = (inverse + lam * inverse @ scale @ inverse)[self.n_arms :, self.n_arms :]
            bounds.append(optimistic_action(np.linalg.inv(A), theta, self.sigma * np.sqrt(k))[1])
        return min(bounds) / self.unit


def play_beside(
    policy, *, rounds, seed, n_arms=4, dim=3, norm=1.0, some_eligible=False, late=0, fixed=False, turn=None
):
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
        rows = dense.in_unit(X, mask)
        means, bonus = dense.index(rows, pending)
        arm, note = int(np.argmax(np.where(mask, means + bonus, -np.inf))), np.zeros(5)
        if policy.safeguard:
            arm, note = dense.guard(rows, mask, means, arm)
        assert decision.arm == arm, t
        assert [decision.score, decision.width] == pytest.approx([means[arm] + bonus[arm], bonus[arm]], rel=1e-7)
        sign = -1.0 if turn is not None and t >= turn else 1.0
        reward = float(sign * (biases[arm] + X[arm] @ theta) + 0.5 * rng.standard_normal())
        waiting.append((decision, reward, np.sqrt(np.mean(np.sum(X[mask] ** 2, axis=1))), note))
        while len(waiting) > late:
            decision, reward, unit, note = waiting.pop(int(rng.integers(len(waiting))))
            agent.update(decision, reward)
            dense.learn_in_unit(decision.arm, decision.action, reward, unit, note)
    return agent.diagnostics(), dense


def agree(found, dense):
    assert found["noise_sd"] == pytest.approx(np.sqrt(dense.sig2), rel=1e-7)
    assert found["prior_norm"] == pytest.approx(np.sqrt(np.sum(dense.sig2 / dense.act)) / dense.unit, rel=1e-7)
    assert found["effective_parameters"] == pytest.approx(dense.D, rel=1e-7)
    assert found["sparse_probability"] == pytest.approx(dense.p, rel=1e-7)
    if dense.policy.biases:
        assert found["bias_ridge"] == pytest.approx(dense.r, rel=1e-7)
    if dense.policy.certificate or dense.policy.safeguard:
        assert found["norm_bound"] == pytest.approx(dense.norm_bound(), rel=1e-6)
    if dense.policy.safeguard:
        names = ("unidentified_rounds", "forced", "spent", "fallbacks", "certified_regret")
        digits = 1e-5 if found["norm_bound"] == np.inf else 1e-6  # the dense inverse is then nearly singular
        assert [found[name] for name in names] == pytest.approx(dense.account.tolist(), rel=digits)


@pytest.mark.parametrize("name", golden_albatross.CASES)
def test_it_replays_the_golden_cases(name):
    case = golden_albatross.load(name)
    arms, scores, propensities = golden_albatross.played(case)
    assert arms.tolist() == case["arms"].tolist()
    np.testing.assert_allclose(scores, case["scores"], rtol=1e-8, atol=0.0)
    np.testing.assert_allclose(propensities, case["propensities"], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("some_eligible", [False, True])
@pytest.mark.parametrize("biases", [True, False])
def test_it_plays_the_arms_of_the_transcription(biases, some_eligible, late):
    policy = policies.Albatross(biases=biases, ties="first")
    agree(*play_beside(policy, rounds=60, seed=1, some_eligible=some_eligible, late=late))


@pytest.mark.parametrize("biases", [True, False])
def test_it_does_so_where_only_some_bias_ridges_are_tried(biases):
    agree(*play_beside(policies.Albatross(biases=biases, ties="first"), rounds=420, seed=2, norm=0.1))


@pytest.mark.parametrize("memory", [20, "learnt"])
@pytest.mark.parametrize("biases", [True, False])
def test_and_where_it_forgets(biases, memory):
    found, dense = play_beside(
        policies.Albatross(biases=biases, memory=memory, ties="first"), rounds=250, seed=5, turn=120
    )
    agree(found, dense)
    if memory == "learnt":
        assert found["half_life"] == HALF_LIVES[dense.in_use]
    assert dense.w.sum() < 200


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


def test_before_8_rewards_it_says_that_it_guesses():
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
@pytest.mark.parametrize(
    "units", [{"reward_scale": 1e-6}, {"reward_scale": 1e6}, {"reward_scale": 20.0, "reward_offset": 500.0}]
)
def test_the_unit_and_the_origin_of_rewards_do_not_matter(units, biases):
    known = None if biases else np.zeros(10)
    env = environments.Mixture(n_arms=10, dim=5, noise_sd=0.7, biases=known)
    own, other = (
        simulate(policies.Albatross(biases=biases), each, horizon=1_000, trials=4, record=10).regret
        for each in (env, InOtherUnits(env, **units))
    )
    np.testing.assert_allclose(other / units["reward_scale"], own, rtol=1e-6)


@pytest.mark.parametrize("biases", [True, False])
def test_the_unit_of_contexts_does_not_matter(biases):
    known = None if biases else np.zeros(10)
    env = environments.Mixture(n_arms=10, dim=5, noise_sd=0.7, biases=known)
    own, other = (
        simulate(policies.Albatross(biases=biases), each, horizon=1_000, trials=4, record=10).diagnostics
        for each in (env, InOtherUnits(env, context_scale=10.0))
    )
    for one, two in zip(own, other, strict=True):
        assert one["pulls"].tolist() == two["pulls"].tolist()


# ------------------------------------------------------------------------------------- forgetting, and propensities


def test_it_forgets_what_no_longer_holds():
    env = environments.Drifting(n_arms=5, dim=3, noise_sd=0.5, drift="redrawn", rounds=500)
    forms = {name: policies.Albatross(memory=name) for name in (None, 60, "learnt")}
    regret = {
        str(name): simulate(each, env, horizon=1_500, trials=4, record=1).regret.mean() for name, each in forms.items()
    }
    assert max(regret["60"], regret["learnt"]) < 0.3 * regret["None"]


def test_propensities_are_the_frequencies_of_arms():
    parameters = resolve(policies.Albatross(explore=2.0, floor=0.1), 4, 2, None)
    state = init(parameters, 4, 2, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    offer = Offer(
        rng.standard_normal((4, 2)), np.array([True, True, False, True]), np.zeros(4, np.int64), -1, np.arange(4)
    )
    counts, said = np.zeros(4), np.full(4, np.nan)
    for noise in rng.standard_normal((4_000, 1)):
        choice = select(parameters, state, offer, noise)
        counts[choice.arm] += 1
        said[choice.arm] = choice.propensity
    eligible = [0, 1, 3]
    assert counts[2] == 0
    assert said[eligible].sum() == pytest.approx(1.0, abs=1e-12)
    assert (said[eligible] >= 0.1 / 3).all()
    np.testing.assert_allclose(counts[eligible] / 4_000, said[eligible], atol=4 * 0.5 / np.sqrt(4_000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": 0.1}, r"floor=0.1 needs explore: for a floor under any policy, use Agent\(floor=...\)"),
        ({"explore": 0.1, "floor": 1.0}, "floor must be 0 or a number strictly between 0 and 1"),
        ({"explore": 0.1, "safeguard": True}, "explore and safeguard exclude each other"),
        ({"memory": 100, "certificate": True}, "memory excludes certificate and safeguard"),
        ({"memory": "some"}, "memory must be None, a half-life in plays or \"learnt\", not 'some'"),
        ({"memory": 0.5}, "memory must be a half-life of at least one play"),
        ({"memory": -1}, "memory must be a positive number"),
        ({"explore": 0.0}, "explore must be a positive number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        policies.Albatross(**options)


# ------------------------------------------------------------------------------------------------- odd problems

KINDS = {
    "core": policies.Albatross(),
    "learnt": policies.Albatross(memory="learnt"),
    "half-life": policies.Albatross(memory=1),
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
        "rewards-without-squares": (plain, luck * 1e-161),
        "far-from-zero": (plain + 1e8, luck + 1e8),
        "all-zero": (np.zeros((60, 4, 3)), np.zeros(60)),
    }


@every_kind
@pytest.mark.parametrize("problem", odd_problems())
def test_odd_problems_are_survived(problem, kind):
    contexts, rewards = odd_problems()[problem]
    finite_after(Agent(KINDS[kind], n_arms=contexts.shape[1], dim=contexts.shape[2], seed=0), contexts, rewards)


@pytest.mark.parametrize("biases", [True, False])
def test_after_a_thousand_half_lives_of_equal_rewards_it_learns_again(biases):
    agent, rng = Agent(policies.Albatross(biases=biases, memory=4), n_arms=2, dim=1, seed=0), np.random.default_rng(0)
    clicks = np.r_[0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, np.zeros(4_500)]
    finite_after(agent, rng.standard_normal((len(clicks), 2, 1)), clicks)
    played = []
    for X in rng.standard_normal((200, 2, 1)):
        played.append(agent.select(X))
        agent.update(played[-1], float(X[played[-1].arm, 0]))
    assert np.mean([decision.action[0] for decision in played]) > 0.4  # the better of two has 0.56


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
    if kind != "half-life":  # of one play, which remembers about two rewards
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
