"""The verbs carry what later policies will ask of them. The policies here are throw-away proofs of that."""

from __future__ import annotations

import sys
import textwrap
from typing import Any, NamedTuple

import numba
import numpy as np
import processes
import pytest
from numba.extending import overload

from albatross import Agent, Fleet, environments, policies, simulate
from albatross.evaluation import probabilities, replay
from albatross.picking import pick_best, pick_uniformly, row_to_retry, tie_priority, uniform_from_normal
from albatross.protocol import (
    Choice,
    Offer,
    diagnostics,
    hold,
    init,
    noise_size,
    on_ball,
    resolve,
    score,
    select,
    tag_size,
    update,
)

# ------------------------------------------------------- a policy in a user's own file: one class, three verbs


class Optimist(NamedTuple):
    bonus: float = 1.0


class OptimistState(NamedTuple):
    counts: np.ndarray  # (K,)
    sums: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


@init.register
def init_optimist(policy: Optimist, n_arms, dim, rng):
    return OptimistState(np.zeros(n_arms), np.zeros(n_arms), np.arange(n_arms))


@score.register
def score_optimist(policy: Optimist, state, offer, noise):
    widths = policy.bonus / np.sqrt(state.counts)  # +inf before the first play
    return state.sums / np.maximum(state.counts, 1.0) + widths, widths


@update.register
def update_optimist(policy: Optimist, state, choice, reward, n):
    state.counts[choice.arm] += n
    state.sums[choice.arm] += reward


def test_a_policy_of_ones_own_is_one_tuple_and_three_verbs():
    env = environments.Mixture(n_arms=4, dim=2, theta_norm=0.0, noise_sd=0.1)
    runs = simulate({"mine": Optimist(bonus=0.5), "uniform": policies.Uniform()}, env, horizon=400, trials=3)
    assert runs["mine"].regret[:, -1].mean() < 0.2 * runs["uniform"].regret[:, -1].mean()
    assert runs["mine"].diagnostics[0]["counts"].sum() == 400
    assert runs["mine"].diagnostics[0]["warnings"] == []
    agent = Agent(Optimist(), n_arms=4, dim=2)
    assert [agent.select(np.ones(2)).arm for _ in range(4)] == [0, 1, 2, 3]


def test_an_agent_with_a_policy_of_ones_own_is_saved_and_loaded_by_handing_the_policy_over(tmp_path):
    agent = Agent(Optimist(bonus=0.5), n_arms=4, dim=2)
    agent.update(agent.select(np.ones(2)), 1.0)
    agent.save(tmp_path / "mine")
    again = Agent.load(tmp_path / "mine", policy=Optimist(bonus=0.5))
    assert again.diagnostics()["sums"].tolist() == [1.0, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"Optimist is not part of this library: pass it, load\(path, policy="):
        Agent.load(tmp_path / "mine")
    with pytest.raises(ValueError, match="not Optimist"):
        Agent.load(tmp_path / "mine", policy=Optimist(bonus=0.7))


class Forgetter(Optimist):
    """An optimist who learns from nothing but the last reward of an arm."""


@update.register
def update_forgetter(policy: Forgetter, state, choice, reward, n):
    state.counts[choice.arm], state.sums[choice.arm] = 1.0, reward / n


class Scaler(Optimist):
    """An optimist who scales contexts in place."""


@score.register
def score_scaler(policy: Scaler, state, offer, noise):
    offer.contexts[:] = 0.0
    widths = policy.bonus / np.sqrt(state.counts)
    return state.sums / np.maximum(state.counts, 1.0) + widths, widths


def test_a_policy_that_writes_into_its_contexts_changes_no_numbers_of_others():
    env = environments.Mixture(n_arms=3, dim=2)
    alone = simulate({"greedy": policies.Greedy()}, env, horizon=30, seed=0)
    beside = simulate({"scaler": Scaler(), "greedy": policies.Greedy()}, env, horizon=30, seed=0)
    assert beside["greedy"].regret.tolist() == alone["greedy"].regret.tolist()


def test_a_policy_that_derives_from_another_has_its_verbs_but_for_its_own():
    agents = [Agent(kind(bonus=2.0), n_arms=2, dim=1, seed=0) for kind in (Optimist, Forgetter)]
    for agent in agents:
        for reward in (1.0, 3.0):
            agent.update(agent.select(np.zeros((2, 1)), eligible=[0]), reward=reward)
    assert [agent.select(np.zeros((2, 1)), eligible=[0]).score for agent in agents] == [2.0 + 2.0 / 2**0.5, 3.0 + 2.0]
    env = environments.Mixture(n_arms=3, dim=2)
    runs = simulate({"all": Optimist(), "last": Forgetter()}, env, horizon=50, seed=0)  # compiled, both
    assert not np.array_equal(runs["all"].regret, runs["last"].regret)


def test_a_verb_says_which_type_it_lacks():
    class Nothing(NamedTuple):
        x: float = 0.0

    with pytest.raises(TypeError, match="init is not defined for Nothing"):
        Agent(Nothing(), n_arms=2, dim=1)
    with pytest.raises(TypeError, match="update is not defined for Nothing"):
        update(Nothing(), None, None, 0.0, 1)
    with pytest.raises(TypeError, match="annotate"):
        update.register(lambda policy, state, choice, reward, n: None)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("lints", r"^'lints' is not a policy but a text: give an object, such as albatross.policies.LinTS\(\)$"),
        (policies.LinTS, r"^LinTS is not a policy but a class: add parentheses, LinTS\(\)$"),
        (Optimist, r"^Optimist is not a policy but a class: add parentheses, Optimist\(\)$"),
        (3, "^3 is not a policy: take one from albatross.policies or register your own$"),
    ],
    ids=["text", "class", "class of numbers", "number"],
)
def test_what_is_no_policy_is_told_how_to_become_one(thing, message):
    with pytest.raises(TypeError, match=message):
        resolve(thing, 2, 1, None)


# ------------------------------------------- a meta-policy over bases of different types, nested, with delay


class Either(NamedTuple):
    bases: Any


class EitherState(NamedTuple):
    states: Any
    wins: np.ndarray  # (M,)


def select_from(i, bases, states, offer, noise):
    raise NotImplementedError


@overload(select_from)
def overload_select_from(i, bases, states, offer, noise):
    if len(bases) == 1:
        return lambda i, bases, states, offer, noise: select(bases[0], states[0], offer, noise)

    def implementation(i, bases, states, offer, noise):
        if i == 0:
            return select(bases[0], states[0], offer, noise)
        return select_from(i - 1, bases[1:], states[1:], offer, noise)

    return implementation


def update_one(i, bases, states, choice, reward, n):
    raise NotImplementedError


@overload(update_one)
def overload_update_one(i, bases, states, choice, reward, n):
    if len(bases) == 1:
        return lambda i, bases, states, choice, reward, n: update(bases[0], states[0], choice, reward, n)

    def implementation(i, bases, states, choice, reward, n):
        if i == 0:
            update(bases[0], states[0], choice, reward, n)
        else:
            update_one(i - 1, bases[1:], states[1:], choice, reward, n)

    return implementation


@init.register
def init_either(policy: Either, n_arms, dim, rng):
    states = tuple(init(base, n_arms, dim, rng) for base in policy.bases)
    return EitherState(states, np.zeros(len(states)))


@noise_size.register
def noise_size_either(policy: Either, n_arms, dim):
    return 1 + max(noise_size(base, n_arms, dim) for base in policy.bases)


@tag_size.register
def tag_size_either(policy: Either):
    return 2 + max(tag_size(base) for base in policy.bases)


@select.register
def select_either(policy: Either, state, offer, noise):
    n_bases = state.wins.size
    i = min(int(uniform_from_normal(noise[0]) * n_bases), n_bases - 1)
    choice = select_from(i, policy.bases, state.states, offer, noise[1:])
    tag = np.full(2 + choice.tag.size, 1.0 / n_bases)
    tag[0] = i
    tag[2:] = choice.tag
    return Choice(choice.arm, choice.action, choice.score, choice.width, np.nan, tag)


@update.register
def update_either(policy: Either, state, choice, reward, n):
    i = int(choice.tag[0])
    state.wins[i] += reward
    inner = Choice(choice.arm, choice.action, choice.score, choice.width, choice.propensity, choice.tag[2:])
    update_one(i, policy.bases, state.states, inner, reward, n)


@diagnostics.register
def diagnostics_either(policy: Either, state):
    return {"of_bases": [diagnostics(b, s) for b, s in zip(policy.bases, state.states)], "wins": state.wins.copy()}


def either(*bases, n_arms, dim):
    return Either(tuple(resolve(base, n_arms, dim, None) for base in bases))


def test_a_meta_policy_holds_bases_of_different_types_and_rewards_find_their_base_however_late():
    osom = policies.OSOM(sigma=0.1, horizon=1000)
    policy = either(policies.LinTS(sigma=0.1), policies.UCB(sigma=0.1), osom, n_arms=4, dim=2)
    agent = Agent(policy, n_arms=4, dim=2, seed=0)
    rng = np.random.default_rng(0)
    decisions = [agent.select(rng.standard_normal((4, 2))) for _ in range(90)]
    chosen = [int(agent._pending[decision.id][-1][0]) for decision in decisions]
    for k in rng.permutation(90):
        agent.update(decisions[k], 1.0)
    found = agent.diagnostics()
    assert found["wins"].tolist() == [chosen.count(i) for i in range(3)]
    assert [base["pulls"].sum() for base in found["of_bases"]] == found["wins"].tolist()


def test_a_meta_policy_runs_in_the_compiled_loop_and_may_hold_another():
    inner = either(policies.LinTS(sigma=0.1), policies.Greedy(), n_arms=4, dim=2)
    policy = Either((inner, resolve(policies.UCB(sigma=0.1), 4, 2, None)))
    env = environments.Mixture(n_arms=4, dim=2, noise_sd=0.1)
    run = simulate(policy, env, horizon=200, trials=2)
    uniform = simulate(policies.Uniform(), env, horizon=200, trials=2)
    assert run.regret[:, -1].mean() < 0.8 * uniform.regret[:, -1].mean()


# -------------------------------------------------------------------- vector actions, held for whole blocks


class Compass(NamedTuple):
    """Plays unit vectors and keeps each until its count has grown by half."""

    growth: float = 0.5


class CompassState(NamedTuple):
    moment: np.ndarray  # (d,)
    plays: np.ndarray  # (1,)


@init.register
def init_compass(policy: Compass, n_arms, dim, rng):
    return CompassState(np.eye(dim)[0], np.zeros(1))


@select.register
def select_compass(policy: Compass, state, offer, noise):
    action = state.moment / np.sqrt(np.dot(state.moment, state.moment))
    return Choice(-1, action, 0.0, 0.0, 1.0, np.empty(0))


@hold.register
def hold_compass(policy: Compass, state, choice):
    return max(1, int(policy.growth * state.plays[0]))


@update.register
def update_compass(policy: Compass, state, choice, reward, n):
    state.moment[:] += reward * choice.action
    state.plays[0] += n


@on_ball.register
def on_ball_compass(policy: Compass):
    return True


def test_vector_actions_are_played_in_blocks_and_rewarded_by_theta_times_action():
    env = environments.Ball(dim=3, theta=[0.6, 0.8, 0.0], noise_sd=1.0)
    run = simulate(Compass(), env, horizon=10**9, record=[10**9])
    assert run.diagnostics[0]["plays"] == 10**9
    assert run.diagnostics[0]["moment"][0] == pytest.approx(0.6e9, rel=1e-3)  # it stays on the axis it begins with
    assert run.regret[0, -1] == pytest.approx(0.4e9)


def test_a_choice_stays_for_one_round_unless_the_policy_says_otherwise():
    assert hold(Optimist(), None, None) == 1


# ------------------------------------------------------------------------------------- the shared choosing


def offer(eligible, pending=None, retry=-1):
    eligible = np.array(eligible, bool)
    waiting = np.zeros(eligible.size, np.int64) if pending is None else np.array(pending, np.int64)
    return Offer(np.zeros((eligible.size, 1)), eligible, waiting, retry, np.arange(eligible.size))


def test_the_best_eligible_arm_is_picked_and_ties_go_by_priority():
    order = np.array([2, 0, 1])
    assert pick_best(np.array([1.0, 1.0, 1.0]), offer([1, 1, 1]), order) == 1
    assert pick_best(np.array([1.0, 1.0, 1.0]), offer([1, 0, 1]), order) == 2
    assert pick_best(np.array([1.0, 5.0, 2.0]), offer([1, 0, 1]), order) == 2


def test_first_plays_go_to_the_lowest_arm_that_is_not_pending():
    inf, order = np.inf, np.array([2, 1, 0])
    assert pick_best(np.array([9.0, inf, inf]), offer([1, 1, 1]), order) == 1
    assert pick_best(np.array([9.0, inf, inf]), offer([1, 1, 1], [0, 1, 0]), order) == 2
    assert pick_best(np.array([9.0, inf, inf]), offer([1, 1, 1], [0, 1, 1]), order) == 0
    assert pick_best(np.array([9.0, inf, inf]), offer([0, 1, 1], [0, 3, 2]), order) == 2


def test_an_arm_whose_turn_it_is_gets_another_first_play_although_one_is_pending():
    inf, order = np.inf, np.array([2, 1, 0])
    assert pick_best(np.array([9.0, inf, inf]), offer([1, 1, 1], [0, 1, 1], retry=2), order) == 2
    assert pick_best(np.array([9.0, inf, inf]), offer([1, 1, 0], [0, 1, 1], retry=2), order) == 0
    assert pick_best(np.array([9.0, 1.0, inf]), offer([1, 1, 1], [0, 1, 1], retry=1), order) == 0
    assert pick_best(np.array([inf, inf, inf]), offer([1, 1, 1], [1, 2, 3], retry=2), order) == 0


def test_turns_come_for_every_arm_and_in_step_with_nothing():
    turns = np.array([row_to_retry(decision, np.ones(3, bool)) for decision in range(30_000)])
    for period in (1, 2, 3, 7, 10, 16, 30, 64):
        for phase in range(period):
            part = turns[phase::period]
            shares = np.bincount(part[part >= 0], minlength=3) / part.size
            assert np.abs(shares - 1 / 30).max() < 5 * np.sqrt(1 / 30 / part.size)
    assert row_to_retry(2**53, np.ones(3, bool)) in (-1, 0, 1, 2)


# -------------------------------------------------------------------------------- a policy that cannot be followed


class Careless(NamedTuple):
    fault: int  # 0: too few scores, 1: too many, 2: too few widths, 3: a score of NaN


@init.register
def init_careless(policy: Careless, n_arms, dim, rng):
    return OptimistState(np.zeros(n_arms), np.zeros(n_arms), np.arange(n_arms))


@score.register
def score_careless(policy: Careless, state, offer, noise):
    n_arms = offer.eligible.size
    scores = np.zeros(2 if policy.fault == 0 else 7 if policy.fault == 1 else n_arms)
    widths = np.zeros(1 if policy.fault == 2 else scores.size)
    if policy.fault == 3 and np.sum(state.counts) >= 2.0:
        scores[3] = np.nan
    return scores, widths


@update.register
def update_careless(policy: Careless, state, choice, reward, n):
    state.counts[choice.arm] += n


class Reckless(NamedTuple):
    arm: int
    score: float
    propensity: float = 1.0
    extra: int = 0  # features and tags that there should not be
    missing: int = 0  # features that there should be
    feature: float = 1.0  # of the action


@init.register
def init_reckless(policy: Reckless, n_arms, dim, rng):
    return OptimistState(np.zeros(n_arms), np.zeros(n_arms), np.arange(n_arms))


@select.register
def select_reckless(policy: Reckless, state, offer, noise):
    action = np.full(offer.contexts.shape[1] + policy.extra - policy.missing, policy.feature)
    return Choice(policy.arm, action, policy.score, 0.0, policy.propensity, np.ones(policy.extra))


@update.register
def update_reckless(policy: Reckless, state, choice, reward, n):
    state.counts[0] += n


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Careless(0), "Careless gave 2 scores and 2 widths for 5 arms"),
        (Careless(1), "Careless gave 7 scores and 7 widths for 5 arms"),
        (Careless(2), "Careless gave 5 scores and 1 widths for 5 arms"),
        (Careless(3), "Careless gave arm 3 the score nan"),
        (Reckless(-1, 0.0), "Reckless chose arm -1 with score 0.0, .* needed are one of the eligible arms"),
        (Reckless(5, 0.0), "Reckless chose arm 5"),
        (Reckless(1, np.nan), "Reckless chose arm 1 with score nan"),
        (Reckless(1, 0.0, propensity=5.0), "Reckless chose arm 1 with score 0.0, propensity 5.0"),
        (Reckless(1, 0.0, propensity=-1.0), "Reckless chose arm 1 with score 0.0, propensity -1.0"),
        (Reckless(1, 0.0, missing=1), "1 features and a tag of 0: needed are .* 2 finite features"),
        (Reckless(1, 0.0, feature=np.nan), "2 features, not all finite, and a tag of 0: needed are .* 2 finite"),
        (Reckless(1, 0.0, feature=-np.inf), "2 features, not all finite, and a tag of 0"),
    ],
    ids=str,
)
def test_a_policy_whose_choice_cannot_be_played_is_named_and_nothing_changes(policy, message):
    contexts = np.ones((5, 2))
    agent, fleet = Agent(policy, n_arms=5, dim=2), Fleet(policy, n_users=1, n_arms=5, dim=2)
    if policy == Careless(3):  # two rewards later
        for _ in range(2):
            agent.update(agent.select(contexts), 1.0)
            fleet.update(fleet.select([0], contexts[None]), [1.0])
    made = agent.diagnostics()["decisions"]
    with pytest.raises(ValueError, match=message):
        agent.select(contexts)
    with pytest.raises(ValueError, match=message):
        agent.propensity(contexts)
    assert agent.diagnostics()["decisions"] == made
    with pytest.raises(ValueError, match=message):
        fleet.select([0, 0], np.ones((2, 5, 2)))
    assert not fleet._crowd.rows.pending.any()
    with pytest.raises(ValueError, match=message):
        simulate(policy, environments.Mixture(n_arms=5, dim=2), horizon=50)
    log = environments.Logged(contexts=np.ones((9, 5, 2)), actions=[0] * 9, rewards=[1] * 9, propensities=[0.2] * 9)
    with pytest.raises(ValueError, match=message):
        replay(policy, log)
    with pytest.raises(ValueError, match=message):
        probabilities(policy, log, trained_on=slice(5), rows=slice(5, 9))


@numba.njit
def refuse_negative(reward):
    if reward < 0.0:
        raise ValueError("no debts")


class Proud(Optimist):
    """An optimist whose update raises."""


@update.register
def update_proud(policy: Proud, state, choice, reward, n):
    refuse_negative(reward)
    state.counts[choice.arm] += n


def test_a_decision_stays_pending_where_the_policy_raises():
    agent = Agent(Proud(), n_arms=2, dim=1)
    decision = agent.select(np.ones((2, 1)))
    with pytest.raises(ValueError, match="no debts"):
        agent.update(decision, -1.0)
    assert agent.diagnostics()["pending"] == 1
    agent.update(decision, 1.0)
    assert agent.diagnostics()["counts"].sum() == 1.0


def test_an_action_or_a_tag_of_the_wrong_length_is_refused():
    policy, message = (
        Reckless(1, 0.0, extra=4_000),
        "4002 features and a tag of 4000: needed .* 2 finite features and a tag of at most 0",
    )
    agent, fleet = Agent(policy, n_arms=5, dim=2), Fleet(policy, n_users=1, n_arms=5, dim=2)
    with pytest.raises(ValueError, match=message):
        agent.select(np.ones((5, 2)))
    with pytest.raises(ValueError, match=message):
        fleet.select([0], np.ones((1, 5, 2)))


def test_a_reward_that_was_learnt_is_learnt_once_although_ctrl_c_came():
    agent = Agent(Optimist(), n_arms=2, dim=1)
    decision = agent.select(np.ones((2, 1)))
    learn = agent._learn

    def interrupted(*args):
        learn(*args)
        raise KeyboardInterrupt

    agent._learn = interrupted
    with pytest.raises(KeyboardInterrupt):
        agent.update(decision, 1.0)
    assert (agent.diagnostics()["pending"], agent.diagnostics()["counts"].sum()) == (0, 1.0)


class Terse(Optimist):
    """An optimist whose tags may be shorter than it says."""


@tag_size.register
def tag_size_terse(policy: Terse):
    return 2


def test_a_short_tag_is_filled_up_and_saved(tmp_path):
    agent = Agent(Terse(), n_arms=2, dim=1)
    decision = agent.select(np.ones((2, 1)))
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent", Terse())
    loaded.save(tmp_path / "agent")
    loaded.update(decision.id, 1.0)
    assert loaded.diagnostics()["counts"].sum() == 1.0


def test_a_fleet_keeps_what_its_policy_could_not_learn():
    fleet = Fleet(Proud(), n_users=1, n_arms=3, dim=1)
    choices = fleet.select([0, 0, 0], np.ones((3, 3, 1)))
    with pytest.raises(ValueError, match="no debts"):
        fleet.update(choices, [1.0, -1.0, 1.0])
    assert fleet.diagnostics(0)["counts"].sum() == 1.0
    fleet.update(choices.rows([1, 2]), [1.0, 1.0])
    assert fleet.diagnostics(0)["counts"].sum() == 3.0


def test_an_arm_that_is_not_eligible_cannot_be_chosen():
    agent = Agent(Reckless(1, 0.0), n_arms=5, dim=2)
    agent.select(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"chose arm 1 with score 0.0, .* eligible arms \[0, 2\]"):
        agent.select(np.ones((5, 2)), eligible=[0, 2])


def test_uniform_picks_take_every_eligible_arm_alike():
    z = np.random.default_rng(0).standard_normal(30_000)
    eligible = np.array([True, False, True, True])
    picks = [pick_uniformly(eligible, value) for value in z]
    shares = np.bincount([arm for arm, _ in picks], minlength=4) / len(z)
    assert np.abs(shares - np.array([1, 0, 1, 1]) / 3).max() < 0.01
    assert {propensity for _, propensity in picks} == {1 / 3}
    assert pick_uniformly(eligible, np.inf)[0] == 3
    assert pick_uniformly(eligible, -np.inf)[0] == 0


def test_ties_are_random_once_or_never():
    rng = np.random.default_rng(0)
    assert tie_priority(5, 0, rng).tolist() == [0, 1, 2, 3, 4]
    assert sorted(tie_priority(5, 1, rng)) == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------------------------------- compiled code


def test_users_own_numba_cache_stays_where_it_is():
    script = (
        "import numba; before = numba.config.CACHE_DIR; import albatross.protocol;"
        "print(before == numba.config.CACHE_DIR)"
    )
    done = processes.run([sys.executable, "-c", script], check=True)
    assert done.stdout.strip() == "True"
    assert numba.config.CACHE_DIR == ""


def test_an_edited_policy_of_ones_own_is_not_served_from_a_stale_cache(tmp_path):
    body = textwrap.dedent("""
        from typing import NamedTuple
        import numpy as np
        from albatross import environments, simulate
        from albatross.protocol import Choice, init, select, update

        class Fixed(NamedTuple):
            x: float = 0.0

        class State(NamedTuple):
            pulls: np.ndarray

        @init.register
        def init_fixed(policy: Fixed, n_arms, dim, rng):
            return State(np.zeros(n_arms))

        @select.register
        def select_fixed(policy: Fixed, state, offer, noise):
            return Choice(ARM, offer.contexts[ARM], 0.0, 0.0, 1.0, np.empty(0))

        @update.register
        def update_fixed(policy: Fixed, state, choice, reward, n):
            state.pulls[choice.arm] += n
    """)
    run = (
        "import mine; from albatross import environments, simulate;"
        "env = environments.Mixture(n_arms=3, dim=2);"
        "print(simulate(mine.Fixed(), env, horizon=9).diagnostics[0]['pulls'].tolist())"
    )
    seen = []
    for arm in ("0", "2"):
        (tmp_path / "mine.py").write_text(body.replace("ARM", arm))
        done = processes.run([sys.executable, "-c", run], cwd=tmp_path, check=True)
        seen.append(done.stdout.strip())
    assert seen == ["[9.0, 0.0, 0.0]", "[0.0, 0.0, 9.0]"]


class Unfinished(NamedTuple):
    pass


class Empty(NamedTuple):
    pulls: np.ndarray


def test_what_a_policy_of_ones_own_lacks_is_told_in_a_sentence():
    answers = {"state": 3.0}

    @init.register
    def init_unfinished(policy: Unfinished, n_arms, dim, rng):
        return answers["state"]

    def refused(match):
        with pytest.raises(TypeError, match=match):
            Agent(Unfinished(), n_arms=2, dim=1)

    refused("init of Unfinished must return a NamedTuple of arrays, not 3.0")
    answers["state"] = Empty(0)
    refused("the state of Unfinished holds pulls=0: it must be an array")
    answers["state"] = Empty(np.zeros(2))
    refused("update is not defined for Unfinished")

    @update.register
    def update_unfinished(policy: Unfinished, state, choice, reward, n):
        state.pulls[choice.arm] += n

    refused("neither score nor select is defined for Unfinished")

    @score.register
    def score_unfinished(policy: Unfinished, state, offer, noise):
        return state.pulls, state.pulls

    refused("Unfinished has a score, so its state needs the order of equal arms: priority=tie_priority")
