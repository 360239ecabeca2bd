"""Policies over policies: Corral, regret balancing, D3RB and ED2RB against plain transcriptions of their rules."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from albatross import Agent, environments, policies, simulate
from albatross.policies import D3RB, ED2RB, OSOM, UCB, Corral, LinTS, LinUCB, RegretBalancing, Uniform

N_ARMS, DIM, ROUNDS = 4, 3, 400
BASES = (
    LinUCB(alpha=0.5, ties="first"),
    LinTS(sigma=0.3),
    UCB(sigma=0.3),
    OSOM(sigma=0.3, norm_bound=1.0, horizon=ROUNDS),
)
M = len(BASES)


# ------------------------------------------------------------------------------------------------ transcriptions


class SlowBases:
    """Plays and rewards of every base, and what all the balancing rules make of them."""

    def __init__(self, n_bases, *, delta=0.01, width=1.0):
        self.rewards = [[] for _ in range(n_bases)]
        self.delta, self.width = delta, width

    def n(self, i):
        return len(self.rewards[i])

    def mean(self, i):
        return sum(self.rewards[i]) / self.n(i)

    def c(self, i):
        inside = len(self.rewards) * max(math.log(self.n(i)), 1.0) / self.delta
        return self.width * math.sqrt(math.log(inside) / self.n(i))

    def best_lower(self, among=None):
        among = range(len(self.rewards)) if among is None else among
        return max(self.mean(j) - self.c(j) for j in among if self.n(j))


class SlowBalancing(SlowBases):
    """The rules of Abbasi-Yadkori et al. 2020, Pacchiano et al. 2020 and Cutkosky et al. 2021 (v = 1, b = 0)."""

    def __init__(self, coefficients, *, rule, **given):
        super().__init__(len(coefficients), **given)
        self.coefficients, self.rule = coefficients, rule
        self.active = [True] * len(coefficients)

    def bound(self, i):
        return self.coefficients[i] * math.sqrt(self.n(i))

    def choose(self):
        everyone = range(len(self.rewards))
        unplayed = [i for i in everyone if not self.n(i)]
        if unplayed:
            return unplayed[0]
        if self.rule == "balance":
            value = max((sum(self.rewards[i]) + self.bound(i)) / self.n(i) for i in everyone)
            return min(everyone, key=lambda i: self.n(i) * value - sum(self.rewards[i]))
        return min((i for i in everyone if self.active[i]), key=self.bound)

    def learn(self, base, reward):
        self.rewards[base].append(reward)
        if self.rule == "balance":
            return
        seen = [i for i in range(len(self.rewards)) if self.n(i)]
        if self.rule == "eliminate":
            seen = [i for i in seen if self.active[i]]
        best = self.best_lower(seen)
        for i in seen:
            self.active[i] = self.mean(i) + self.c(i) + self.bound(i) / self.n(i) >= best


class SlowD3RB(SlowBases):
    """Pacchiano, Dann and Gentile 2024, doubling."""

    def __init__(self, n_bases, *, least=1.0, **given):
        super().__init__(n_bases, **given)
        self.least = least
        self.coefficients, self.potentials = [least] * n_bases, [least] * n_bases

    def choose(self):
        return min(range(len(self.rewards)), key=lambda i: self.potentials[i])

    def learn(self, base, reward):
        self.rewards[base].append(reward)
        root = math.sqrt(self.n(base))
        if self.mean(base) + self.c(base) + self.coefficients[base] / root < self.best_lower():
            self.coefficients[base] *= 2
        self.potentials[base] = self.coefficients[base] * root


class SlowED2RB(SlowD3RB):
    """Pacchiano, Dann and Gentile 2024, estimating."""

    def learn(self, base, reward):
        self.rewards[base].append(reward)
        root = math.sqrt(self.n(base))
        self.coefficients[base] = max(self.least, root * (self.best_lower() - self.mean(base) - self.c(base)))
        before = self.potentials[base]
        self.potentials[base] = min(max(self.coefficients[base] * root, before), 2 * before)


class SlowCorral:
    """Agarwal et al. 2017: log-barrier mirror descent by bisection, learning rates that grow."""

    def __init__(self, n_bases, *, horizon, eta, reward_range=(0.0, 1.0)):
        self.p = np.full(n_bases, 1.0 / n_bases)
        self.pbar = self.p.copy()
        self.rho = np.full(n_bases, 2.0 * n_bases)
        self.eta = np.full(n_bases, eta if eta is not None else math.sqrt(n_bases / horizon))
        self.gamma, self.beta = 1.0 / horizon, math.exp(1.0 / math.log(horizon))
        self.range, self.clipped = reward_range, 0

    def learn(self, base, reward, probability):
        """`probability` is that with which this base was drawn, at the time."""
        low, high = self.range
        loss = (high - reward) / (high - low)
        self.clipped += not 0.0 <= loss <= 1.0
        losses = np.zeros(self.p.size)
        losses[base] = min(max(loss, 0.0), 1.0) / probability
        # 1/(1/p + eta (l - lam)) grows in lam up to its first pole, before which the sum has passed 1.
        below, above = losses.min(), min(losses.max(), (1.0 / (self.p * self.eta) + losses).min())
        for _ in range(200):
            middle = 0.5 * (below + above)
            inverse = 1.0 / self.p + self.eta * (losses - middle)
            if (inverse > 0).all() and (1.0 / inverse).sum() <= 1.0:
                below = middle
            else:
                above = middle
        self.p = 1.0 / (1.0 / self.p + self.eta * (losses - below))
        self.pbar = (1 - self.gamma) * self.p + self.gamma / self.p.size
        for j in range(self.p.size):
            if 1.0 / self.pbar[j] > self.rho[j]:
                self.rho[j] = 2.0 / self.pbar[j]
                self.eta[j] *= self.beta


# ------------------------------------------------------------------------------------------------------- playing


def base_of(agent, decision, *, place=0):
    """Which base made a decision: a meta-policy's note to itself begins with it."""
    return int(agent._pending[decision.id][-1][place])


def fixed(levels):
    """Rewards that depend on the base alone, whatever it plays: a meta-policy cannot know the difference."""
    return lambda base, decision, t, rng: levels[base] + 0.1 * rng.standard_normal()


def linear(base, decision, t, rng):
    return 0.5 * decision.action[0] + 0.1 * rng.standard_normal()


def play(agent, reward, *, rounds=ROUNDS, late=0, seed=0):
    """Yield ("select", base, decision) and ("learn", base, decision, reward) as they happen; after them, look."""
    rng = np.random.default_rng(seed)
    waiting = []
    for t in range(rounds):
        X = rng.standard_normal((agent.n_arms, agent.dim))
        decision = agent.select(X)
        base = base_of(agent, decision)
        yield "select", base, decision, None
        waiting.append((base, decision, float(reward(base, decision, t, rng))))
        while len(waiting) > late:
            base, decision, gained = waiting.pop(int(rng.integers(len(waiting))))
            if late and rng.random() < 0.1:
                continue  # this one never comes
            agent.update(decision, gained)
            yield "learn", base, decision, gained


def same_counts(found, slow):
    plays = [slow.n(i) for i in range(len(slow.rewards))]
    assert found["base_plays"].tolist() == plays
    for i, n in enumerate(plays):
        if n:
            assert found["base_means"][i] == pytest.approx(slow.mean(i), rel=1e-9, abs=1e-12)


def check_base_states(found, plays):
    """Every base has learnt from its own plays alone."""
    assert [base["pulls"].sum() for base in found["bases"]] == list(plays)
    assert found["pulls"].sum() == sum(plays)


# ---------------------------------------------------------------------------------------------- regret balancing


LEVELS = {"close": [0.5, 0.45, 0.4, 0.5], "apart": [0.1, 0.9, 0.5, 0.2], "below zero": [-2.0, -1.0, -1.5, -3.0]}


@pytest.mark.parametrize("rule", ["balance", "eliminate", "dynamic"])
@pytest.mark.parametrize("late", [0, 10])
@pytest.mark.parametrize("levels", LEVELS)
def test_regret_balancing_plays_the_bases_of_its_transcription(rule, late, levels):
    given = {"rule": rule, "delta": 0.05, "width": 0.3}
    coefficients = (0.5, 1.0, 0.8, 2.0)
    agent = Agent(RegretBalancing(bases=BASES, coefficients=coefficients, **given), n_arms=N_ARMS, dim=DIM, seed=1)
    slow = SlowBalancing(coefficients, **given)
    for what, base, _, reward in play(agent, fixed(LEVELS[levels]), late=late):
        if what == "select":
            assert base == slow.choose()
        else:
            slow.learn(base, reward)
            found = agent.diagnostics()
            same_counts(found, slow)
            assert list(found["active"]) == slow.active
    check_base_states(found, found["base_plays"])
    assert (rule != "balance" and levels != "close") == (not all(slow.active))


def falling(base, decision, t, rng):
    """The second base is best at first and worst later."""
    best = 2.0 if t < 60 else -2.0
    return (best if base == 1 else 0.0) + 0.1 * rng.standard_normal()


@pytest.mark.parametrize("rule", ["eliminate", "dynamic"])
def test_a_base_that_was_dropped_comes_back_only_in_dynamic_balancing(rule):
    given = {"rule": rule, "delta": 0.05, "width": 0.2}
    coefficients = (0.5, 0.6, 0.7, 0.8)
    agent = Agent(RegretBalancing(bases=BASES, coefficients=coefficients, **given), n_arms=N_ARMS, dim=DIM, seed=1)
    slow = SlowBalancing(coefficients, **given)
    history = []
    for what, base, _, reward in play(agent, falling, rounds=600):
        if what == "select":
            assert base == slow.choose()
        else:
            slow.learn(base, reward)
            history.append(list(agent.diagnostics()["active"]))
            assert history[-1] == slow.active
    assert not all(history[59])
    came_back = any(after and not before for one, two in pairwise(history) for before, after in zip(one, two))
    assert came_back == (rule == "dynamic")


def test_left_out_a_bounds_coefficient_is_the_root_of_the_features_that_the_base_sees():
    bases = (LinUCB(), policies.FirstFeatures(policy=LinUCB(), dim=2))
    agent = Agent(RegretBalancing(bases=bases, rule="dynamic"), n_arms=N_ARMS, dim=8, seed=0)
    slow = SlowBalancing((math.sqrt(8), math.sqrt(2)), rule="dynamic")
    for what, base, _, reward in play(agent, fixed([0.5, 0.5]), rounds=200):
        if what == "select":
            assert base == slow.choose()
        else:
            slow.learn(base, reward)
    plays = agent.diagnostics()["base_plays"]
    assert plays[1] == pytest.approx(4 * plays[0], abs=4)  # equal bounds: 8 n_0 = 2 n_1


# --------------------------------------------------------------------------------------------- D3RB and ED2RB


@pytest.mark.parametrize(("policy", "transcription"), [(D3RB, SlowD3RB), (ED2RB, SlowED2RB)])
@pytest.mark.parametrize("late", [0, 10])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("least", [1.0, 0.3])
def test_d3rb_and_ed2rb_play_the_bases_of_their_transcriptions(policy, transcription, late, levels, least):
    given = {"delta": 0.05, "width": 0.3, "least": least}
    agent = Agent(policy(bases=BASES, **given), n_arms=N_ARMS, dim=DIM, seed=1)
    slow = transcription(M, **given)
    for what, base, _, reward in play(agent, fixed(LEVELS[levels]), late=late):
        if what == "select":
            assert base == slow.choose()
        else:
            slow.learn(base, reward)
            found = agent.diagnostics()
            same_counts(found, slow)
            assert found["coefficients"] == pytest.approx(slow.coefficients, rel=1e-9)
            assert found["potentials"] == pytest.approx(slow.potentials, rel=1e-9)
    check_base_states(found, found["base_plays"])
    if levels != "close":
        assert max(slow.coefficients) > least
        assert int(found["base_plays"].argmax()) == int(np.argmax(LEVELS[levels]))


# --------------------------------------------------------------------------------------------------------- Corral


@pytest.mark.parametrize("late", [0, 10])
@pytest.mark.parametrize(
    ("horizon", "eta", "reward_range"),
    [
        (ROUNDS, None, (0.0, 1.0)),
        (ROUNDS, 0.5, (-1.0, 2.0)),
        (30, 5.0, (0.0, 1.0)),  # a base of probability 1/120 that is drawn all the same: its loss is past the poles
        (10_000, 2.0, (0.3, 0.6)),  # most rewards are outside
    ],
)
def test_corral_has_the_probabilities_of_its_transcription(late, horizon, eta, reward_range):
    given = {"horizon": horizon, "eta": eta, "reward_range": reward_range}
    agent = Agent(Corral(bases=BASES, **given), n_arms=N_ARMS, dim=DIM, seed=1)
    slow = SlowCorral(M, **given)
    at_the_time, rates, plays = {}, agent.diagnostics()["learning_rates"], np.zeros(M)
    assert rates == pytest.approx([math.sqrt(M / horizon) if eta is None else eta] * M)
    for what, base, decision, reward in play(agent, fixed(LEVELS["apart"]), late=late):
        if what == "select":
            at_the_time[decision.id] = slow.pbar[base]
            continue
        slow.learn(base, reward, at_the_time[decision.id])
        plays[base] += 1
        found = agent.diagnostics()
        assert found["probabilities"] == pytest.approx(slow.pbar, rel=1e-6, abs=1e-12)
        assert found["learning_rates"] == pytest.approx(slow.eta, rel=1e-9)
        assert found["probabilities"].sum() == pytest.approx(1.0, abs=1e-9)
        assert (found["probabilities"] >= 1.0 / (horizon * M) * (1 - 1e-9)).all()
        assert (found["learning_rates"] >= rates).all()
        rates = found["learning_rates"]
    assert found["clipped"] == slow.clipped
    assert found["base_plays"].tolist() == plays.tolist()
    check_base_states(found, plays)


def test_corrals_learning_rates_never_fall_and_do_grow():
    agent = Agent(Corral(bases=BASES, horizon=2_000, eta=0.5), n_arms=N_ARMS, dim=DIM, seed=2)
    first = last = agent.diagnostics()["learning_rates"]
    for what, *_ in play(agent, fixed([0.0, 1.0, 0.0, 0.0]), rounds=2_000):
        if what == "learn":
            now = agent.diagnostics()["learning_rates"]
            assert (now >= last).all()
            last = now
    assert (last[[0, 2, 3]] > first[[0, 2, 3]]).all()  # of the bases whose probability fell
    growth = np.log(last / first) * math.log(2_000)  # every time by the factor exp(1 / ln T)
    assert growth == pytest.approx(np.round(growth), abs=1e-6)


def test_corral_draws_its_bases_with_the_probabilities_that_it_tells():
    agent = Agent(Corral(bases=BASES, horizon=500, eta=0.1), n_arms=N_ARMS, dim=DIM, seed=3)
    for _ in play(agent, fixed(LEVELS["apart"]), rounds=200):
        pass
    wanted = agent.diagnostics()["probabilities"]
    rng = np.random.default_rng(0)
    drawn = np.zeros(M)
    for _ in range(4_000):  # without rewards nothing changes
        drawn[base_of(agent, agent.select(rng.standard_normal((N_ARMS, DIM))))] += 1
    assert wanted.max() > 2 * wanted.min()
    assert np.abs(drawn / 4_000 - wanted).max() < 4 * np.sqrt(0.25 / 4_000)


@pytest.mark.parametrize("importance_weighting", [False, True])
def test_a_base_of_corral_learns_its_reward_plain_or_over_its_probability(importance_weighting):
    bases = (LinUCB(), UCB(sigma=0.3))
    policy = Corral(bases=bases, horizon=300, eta=0.2, importance_weighting=importance_weighting)
    agent = Agent(policy, n_arms=N_ARMS, dim=DIM, seed=4)
    rows, at_the_time = [], {}
    for what, base, decision, reward in play(agent, linear, rounds=300, late=5):
        if what == "select":
            at_the_time[decision.id] = agent.diagnostics()["probabilities"][base]
        elif base == 0:
            weight = 1.0 / at_the_time[decision.id] if importance_weighting else 1.0
            rows.append((decision.action, decision.arm, weight * reward))
    alone = Agent(bases[0], n_arms=N_ARMS, dim=DIM)
    alone.warm_start(*(np.array(part) for part in zip(*rows)))
    found = agent.diagnostics()["bases"][0]
    assert found["theta_hat"] == pytest.approx(alone.diagnostics()["theta_hat"], rel=1e-8, abs=1e-10)
    assert found["pulls"].tolist() == alone.diagnostics()["pulls"].tolist()


# ------------------------------------------------------------------------------------- what bases learn, and nesting


METAS = {
    "corral": lambda bases, **given: Corral(bases=bases, eta=0.5, reward_range=(-2.0, 4.0)),
    "balance": lambda bases, **given: RegretBalancing(bases=bases, **given),
    "d3rb": lambda bases, **given: D3RB(bases=bases, **given),
    "ed2rb": lambda bases, **given: ED2RB(bases=bases, **given),
}


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("name", ["balance", "d3rb", "ed2rb"])
def test_bases_learn_from_their_own_plays_or_from_all(name, share):
    agent = Agent(METAS[name](BASES, share=share), n_arms=N_ARMS, dim=DIM, seed=5)
    rows = [[] for _ in BASES]
    for what, base, decision, reward in play(agent, linear, rounds=200, late=3):
        if what == "learn":
            for i in range(M):
                if share or i == base:
                    rows[i].append((decision.action, decision.arm, reward))
    found = agent.diagnostics()
    assert found["base_plays"].sum() == found["pulls"].sum() < 200  # a shared reward is no play of the others
    for i, base in enumerate(BASES):
        alone = Agent(base, n_arms=N_ARMS, dim=DIM)
        alone.warm_start(*(np.array(part) for part in zip(*rows[i])))
        assert found["bases"][i]["pulls"].tolist() == alone.diagnostics()["pulls"].tolist()
        if "theta_hat" in found["bases"][i]:
            wanted = alone.diagnostics()["theta_hat"]
            assert found["bases"][i]["theta_hat"] == pytest.approx(wanted, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", ["balance", "d3rb", "ed2rb"])
def test_two_of_a_kind_that_share_play_as_one_would_by_itself(name):
    twins = (LinUCB(alpha=0.5, ties="first"), LinUCB(alpha=0.5, ties="first"))
    agent = Agent(METAS[name](twins, share=True), n_arms=N_ARMS, dim=DIM, seed=6)
    alone = Agent(twins[0], n_arms=N_ARMS, dim=DIM, seed=7)
    rng = np.random.default_rng(0)
    for _ in range(100):
        X = rng.standard_normal((N_ARMS, DIM))
        one, other = agent.select(X), alone.select(X)
        assert (one.arm, one.score, one.width) == (other.arm, other.score, other.width)
        reward = float(X[one.arm, 0] + 0.1 * rng.standard_normal())
        agent.update(one, reward)
        alone.update(other, reward)
    assert (agent.diagnostics()["base_plays"] > 0).all()


@pytest.mark.parametrize("late", [0, 10])
def test_a_meta_policy_may_hold_a_meta_policy(late):
    inside = Corral(bases=(LinUCB(), LinTS(sigma=0.3)), horizon=ROUNDS, eta=0.3, reward_range=(-2.0, 2.0))
    agent = Agent(ED2RB(bases=(inside, UCB(sigma=0.3))), n_arms=N_ARMS, dim=DIM, seed=8)
    outer, inner = SlowED2RB(2), SlowCorral(2, horizon=ROUNDS, eta=0.3, reward_range=(-2.0, 2.0))
    at_the_time, inner_plays = {}, np.zeros(2)
    for what, base, decision, reward in play(agent, linear, late=late):
        if what == "select":
            assert base == outer.choose()
            if base == 0:
                drawn = base_of(agent, decision, place=2)  # after the base and its probability, the base's own note
                at_the_time[decision.id] = drawn, inner.pbar[drawn]
            continue
        outer.learn(base, reward)
        if base == 0:
            drawn, probability = at_the_time[decision.id]
            inner.learn(drawn, reward, probability)
            inner_plays[drawn] += 1
    found = agent.diagnostics()
    same_counts(found, outer)
    assert found["bases"][0]["probabilities"] == pytest.approx(inner.pbar, rel=1e-6)
    assert found["bases"][0]["base_plays"].tolist() == inner_plays.tolist()
    assert found["bases"][0]["base_plays"].sum() == found["base_plays"][0]


def test_bases_of_all_kinds_may_be_mixed_and_repeated():
    bases = (
        policies.SupLinUCB(sigma=0.3, horizon=ROUNDS),
        policies.FirstFeatures(policy=LinTS(sigma=0.3), dim=1),
        policies.ALBDimFinite(dims=(1, 3), first_phase=20, sigma=0.3, inner="linucb"),
        Uniform(),
        Uniform(),
    )
    agent = Agent(ED2RB(bases=bases, width=0.3), n_arms=N_ARMS, dim=DIM, seed=9)
    slow = SlowED2RB(5, width=0.3)
    for what, base, _, reward in play(agent, linear, late=4):
        if what == "select":
            assert base == slow.choose()
        else:
            slow.learn(base, reward)
    found = agent.diagnostics()
    same_counts(found, slow)
    check_base_states(found, found["base_plays"])


# ----------------------------------------------------------------------------------------------- what it comes to


EASY = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)


def test_over_linucb_and_uniform_play_corral_and_ed2rb_pay_at_most_a_twentieth_of_the_bad_base():
    bases = (LinUCB(), Uniform())
    named = {
        "corral": Corral(bases=bases, eta=0.5, reward_range=(-2.0, 4.0)),
        "ed2rb": ED2RB(bases=bases),
        "bad": Uniform(),
    }
    runs = simulate(named, EASY, horizon=20_000, trials=8, record=[20_000])
    bad = runs["bad"].regret[:, -1]
    for name in ("corral", "ed2rb"):
        assert (runs[name].regret[:, -1] <= 0.05 * bad).all()
    for found in runs["corral"].diagnostics:
        assert found["clipped"] < 0.02 * 20_000


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", METAS)
def test_the_good_base_is_found_wherever_it_stands(name, order):
    bases = (LinUCB(), Uniform())[::order]
    run = simulate(METAS[name](bases), EASY, horizon=5_000, trials=4, record=[5_000])
    for found in run.diagnostics:
        assert int(np.argmax(found["base_plays"])) == (0 if order == 1 else 1)


# ------------------------------------------------------------------------------------------------------ bad input


EVERY = {"corral": partial(Corral, horizon=100), "balancing": RegretBalancing, "d3rb": D3RB, "ed2rb": ED2RB}


@pytest.mark.parametrize("policy", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    "wrong",
    [
        (),
        None,
        5,
        LinUCB(),
        (LinUCB(),),
        (LinUCB, UCB()),
        (LinUCB(), "ucb"),
        (LinUCB(), policies.BallOFUL()),
        (policies.ALBDim(), policies.BallOFUL()),
    ],
    ids=["none", "None", "number", "no tuple", "one", "class", "name", "arms and ball", "ball"],
)
def test_bases_that_are_no_policies_of_one_problem_are_refused_by_name(policy, wrong):
    with pytest.raises((ValueError, TypeError), match="bases"):
        Agent(policy(bases=wrong), n_arms=3, dim=4)


@pytest.mark.parametrize(
    ("policy", "name", "wrong"),
    [
        (Corral, "horizon", 0),
        (Corral, "eta", 0.0),
        (Corral, "eta", -1.0),
        (Corral, "reward_range", (1.0, 0.0)),
        (Corral, "reward_range", (1.0, 1.0)),
        (Corral, "reward_range", (0.0, np.inf)),
        (Corral, "reward_range", (0.0, 1.0, 2.0)),
        (Corral, "reward_range", 3.0),
        (Corral, "importance_weighting", "yes"),
        (RegretBalancing, "coefficients", (1.0,)),
        (RegretBalancing, "coefficients", (1.0, -1.0)),
        (RegretBalancing, "coefficients", (1.0, np.nan)),
        (RegretBalancing, "coefficients", "ab"),
        (RegretBalancing, "rule", "unbalance"),
        *((policy, "delta", wrong) for policy in (RegretBalancing, D3RB, ED2RB) for wrong in (0.0, 1.0, "small")),
        *((policy, "width", -1.0) for policy in (RegretBalancing, D3RB, ED2RB)),
        *((policy, "share", 2) for policy in (RegretBalancing, D3RB, ED2RB)),
        *((policy, "least", wrong) for policy in (D3RB, ED2RB) for wrong in (0.0, -1.0)),
    ],
)
def test_bad_arguments_are_refused_by_name(policy, name, wrong):
    with pytest.raises((ValueError, TypeError), match=name):
        policy(**{"bases": (LinUCB(), UCB()), name: wrong})


def test_what_a_base_refuses_is_refused():
    with pytest.raises(ValueError, match="horizon"):
        Agent(ED2RB(bases=(OSOM(), UCB())), n_arms=3, dim=2)
    with pytest.raises(ValueError, match="dims"):
        Agent(ED2RB(bases=(policies.ALBDimFinite(dims=(1, 5)), UCB())), n_arms=3, dim=2)


def test_corral_must_know_its_horizon():
    with pytest.raises(ValueError, match="horizon"):
        Agent(Corral(bases=(LinUCB(), UCB())), n_arms=3, dim=2)


@pytest.mark.parametrize("wrong", ["ab", (policies.LinUCB, policies.LinTS), (policies.UCB(), "lints"), 3])
def test_what_is_no_policy_cannot_be_a_base(wrong):
    with pytest.raises(ValueError, match="bases"):
        policies.ED2RB(bases=wrong)
    with pytest.raises(ValueError, match="policy"):
        policies.FirstFeatures(policy=wrong, dim=2)


def test_more_bases_than_can_be_compiled_in_reasonable_time_are_refused():
    pair = (LinUCB(), UCB())
    two_layers = ED2RB(bases=(Corral(bases=pair, horizon=10), UCB()))
    for bases in ((UCB(),) * 17, (D3RB(bases=(UCB(),) * 9), D3RB(bases=(UCB(),) * 8))):
        with pytest.raises(ValueError, match="bases must be at most 16 policies in all, not 17"):
            RegretBalancing(bases=bases)
    for deep in (two_layers, policies.FirstFeatures(policy=two_layers, dim=2)):
        with pytest.raises(ValueError, match="bases may have bases of their own, but those may not have any"):
            D3RB(bases=(deep, UCB()))
    with pytest.raises(ValueError, match="give the policy in it, with the smaller dim"):
        policies.FirstFeatures(policy=policies.FirstFeatures(policy=UCB(), dim=2), dim=2)
