"""Arms with names: added and retired while decisions are pending, several rows per arm, and what is refused."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from stepping import same_state, state_of
from variants import DIM, ON_THE_BALL, SIGMA, VARIANTS

from albatross import Agent, Fleet, Flock, policies
from albatross.crowd import recipe as recipe_module
from albatross.protocol import fold_arm, init, open_arm, resolve, score, update
from albatross.states import leaves

NAMES = ["sport", "politics", "art", "science", "travel", "food", "chess"]
# An arm that is there, though never eligible, enters these by definition.
COUNTS_ALL_ARMS = {
    "eb-ucb": "its bound covers the biases of all arms",
    "na-oful": "its ridge counts the parameters",
    "oful-plus": "T~ is the horizon less the number of arms",
    "oful-plus-appendix": "T~ is the horizon less the number of arms",
    "osom": "T~ is the horizon less the number of arms",
    "osom-norm": "T~ is the horizon less the number of arms",
    "exp4-ix-no-biases": "its rates are set for the number of arms",
    "alb-norm-start": "it draws the arm of its start among all",
    "albatross-safeguard": "an arm that was never played is not identified",
    "corral": "OSOM is a base",
    "regret-balancing": "OSOM is a base",
    "d3rb": "OSOM is a base",
    "ed2rb": "OSOM is a base",
}
NAMED = [name for name in VARIANTS if name not in ON_THE_BALL]
CHANGING = [name for name in NAMED if name != "successive-rejects"]  # which refuses to change its arms


def fixed_width(name):
    """Whether the widths are made for a given number of arms."""
    return name.startswith(("sup-lin", "alb-dim-finite", "mod-cb"))


@pytest.mark.parametrize("name", [name for name in CHANGING if name not in COUNTS_ALL_ARMS and not fixed_width(name)])
def test_an_arm_that_is_added_equals_one_that_was_there_and_never_eligible(name):
    policy = VARIANTS[name]
    if hasattr(policy, "ties"):
        policy = type(policy)(**{**vars(policy), "ties": "first"})
    grown = Agent(policy, arms=NAMES[:2], dim=DIM, seed=5)
    there = Agent(policy, arms=NAMES, dim=DIM, seed=5)
    rng = np.random.default_rng(1)
    joins = set(rng.choice(np.arange(20, 180), len(NAMES) - 2, replace=False).tolist())
    waiting = []
    for t in range(200):
        if t in joins:
            grown.add_arm(NAMES[grown.n_arms])
        contexts = rng.standard_normal((len(NAMES), DIM))
        one = grown.select(contexts[: grown.n_arms])
        other = there.select(contexts, eligible=grown.arms)
        assert one.arm == other.arm, t
        assert one.score == pytest.approx(other.score, rel=1e-9, abs=1e-12)
        waiting.append((one, other, float(contexts[one.row].sum() + 0.3 * one.row + SIGMA * rng.standard_normal())))
        while len(waiting) > 8:
            late = waiting.pop(int(rng.integers(len(waiting))))
            grown.update(late[0], late[2])
            there.update(late[1], late[2])
    assert grown.arms == NAMES
    assert grown.diagnostics()["pulls"] == there.diagnostics()["pulls"]


@pytest.mark.parametrize("name", CHANGING)
def test_every_policy_plays_on_while_arms_come_and_go(name, tmp_path):
    if name.startswith(("sup-lin", "alb-dim-finite")):
        pytest.skip("its horizon is short")
    agent, rng, waiting = Agent(VARIANTS[name], arms=["a", "b"], dim=DIM, seed=1), np.random.default_rng(2), []
    born = 2
    for t in range(150):
        if t % 10 == 5:
            agent.add_arm(f"arm {born}")
            born += 1
        if t % 10 == 9 and agent.n_arms > 2:
            agent.retire_arm(agent.arms[int(rng.integers(agent.n_arms))])
        if t == 75:
            agent.save(tmp_path / "agent")
            agent = Agent.load(tmp_path / "agent")
        decision = agent.select(rng.standard_normal((agent.n_arms, DIM)))
        assert decision.arm == agent.arms[decision.row]
        waiting.append((decision.id, float(decision.action.sum() + SIGMA * rng.standard_normal())))
        while len(waiting) > 5:
            agent.update(*waiting.pop(int(rng.integers(len(waiting)))))
    assert all(np.isfinite(array).all() for array in state_of(agent).values())
    assert set(agent.diagnostics()["pulls"]) == set(agent.arms)


def test_a_slot_is_not_an_arm():
    """A new arm in the slot of a bad one must not inherit its bias."""
    for policy in (policies.Albatross(), policies.LinTS(sigma=0.1), policies.LinUCB(), policies.ALBNorm(sigma=0.1)):
        agent, rng = Agent(policy, arms=["good", "bad"], dim=2, seed=0), np.random.default_rng(0)

        def play(rounds, agent=agent, rng=rng):
            means, chosen = {"good": 0.0, "bad": -3.0, "best": 1.0}, []
            for _ in range(rounds):
                decision = agent.select(rng.standard_normal((agent.n_arms, 2)))
                reward = means[decision.arm] + decision.action @ [0.1, -0.1] + 0.1 * rng.standard_normal()
                agent.update(decision, float(reward))
                chosen.append(decision.arm)
            return chosen

        play(200)
        agent.retire_arm("bad")
        agent.add_arm("best")
        assert play(200)[-100:].count("best") > 90, policy
        agent.reset_arm("best")
        assert agent.arms == ["good", "best"]
        assert agent.diagnostics()["pulls"]["best"] == 0.0
        assert play(200)[-100:].count("best") > 90, policy


def test_what_a_retired_arm_taught_of_theta_stays_when_its_slot_is_used_again():
    theta = np.array([0.6, -0.8])
    for policy in (
        policies.Albatross(),
        policies.LinTS(sigma=0.1),
        policies.NAOFUL(sigma=0.1),
        policies.SALasso(sigma=0.1),
    ):
        agent, rng = Agent(policy, arms=["a", "b"], dim=2, seed=0), np.random.default_rng(0)
        for _ in range(400):
            decision = agent.select(rng.standard_normal((2, 2)))
            bias = {"a": 2.0, "b": 2.1}[decision.arm]
            agent.update(decision, float(bias + decision.action @ theta + 0.1 * rng.standard_normal()))
        before = agent.diagnostics()["theta_hat"]
        agent.retire_arm("a")
        agent.add_arm("c")  # in the slot of a
        for _ in range(60):  # Albatross looks at its variances again, from the folded sums
            decision = agent.select(rng.standard_normal((2, 2)))
            bias = {"b": 2.1, "c": -1.0}[decision.arm]
            agent.update(decision, float(bias + decision.action @ theta + 0.1 * rng.standard_normal()))
        np.testing.assert_allclose(before, theta, atol=0.1)
        np.testing.assert_allclose(agent.diagnostics()["theta_hat"], theta, atol=0.1, err_msg=str(policy))


def test_rewards_of_a_retired_arm_are_still_learnt_and_hold_its_slot():
    agent, rng = Agent(policies.LinUCB(), arms=["a", "b"], dim=2, seed=0), np.random.default_rng(0)
    late = [agent.select(rng.standard_normal((2, 2)), eligible=["a"]) for _ in range(3)]
    agent.retire_arm("a")
    agent.add_arm("c")
    assert len(agent._pending.of_arm) == 4  # the slot of a is not free yet
    for decision in late:
        agent.update(decision, 1.0)
    assert agent.diagnostics()["pulls"] == {"b": 0.0, "c": 0.0}
    agent.retire_arm("b")
    agent.add_arm("d")
    assert agent._arms.slot("d") == 0


@pytest.mark.parametrize(
    "over",
    [
        lambda *bases: policies.Corral(bases=bases, horizon=100),
        lambda base, _: policies.FirstFeatures(policy=base, dim=2),
    ],
)
def test_a_policy_over_others_folds_and_opens_their_arms(over):
    """Otherwise the bias of a retired arm stays in sums of the base, and a new arm has a weight that no arm has."""
    base = policies.NAOFUL(sigma=0.1)
    alone, above = (resolve(each, 3, 2, None) for each in (base, over(base, policies.LinUCB())))
    states = [init(each, 3, 2, np.random.default_rng(0)) for each in (alone, above)]
    inner = states[1].inner if hasattr(states[1], "inner") else states[1].record.states[0]
    for state in (states[0], inner):
        state.fit.weight[1], state.sums.pulls[1] = 7.0, 7.0
    for parameters, state in zip((alone, above), states, strict=True):
        fold_arm(parameters, state, 1)
        open_arm(parameters, state, 1)
    assert states[0].fit.log_det[0] != 0.0
    assert states[0].fit.weight[1] != 7.0
    for (name, wanted), (_, found) in zip(leaves(states[0]), leaves(inner), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.parametrize(
    "policy",
    [
        policies.SuccessiveRejects(horizon=60),
        policies.FirstFeatures(policy=policies.SuccessiveRejects(horizon=60), dim=1),
        policies.Corral(bases=(policies.LinUCB(), policies.SuccessiveRejects(horizon=60)), horizon=60),
    ],
)
def test_arms_of_a_policy_for_a_fixed_set_are_not_changed(policy):
    agent = Agent(policy, arms=["a", "b", "c"], dim=1, seed=0)
    before = state_of(agent)
    for change, name in ((agent.add_arm, "d"), (agent.retire_arm, "a"), (agent.reset_arm, "a")):
        with pytest.raises(ValueError, match="SuccessiveRejects is for a fixed set of arms: make a new agent"):
            change(name)
    assert agent.arms == ["a", "b", "c"]
    assert same_state(before, state_of(agent))


def test_arms_of_a_fleet_are_not_changed_either():
    fleet = Fleet(policies.SuccessiveRejects(), users=["anna"], arms=["a", "b", "c"], dim=1, horizon=60, seed=0)
    for change, name in ((fleet.add_arm, "d"), (fleet.retire_arm, "a"), (fleet.reset_arm, "a")):
        with pytest.raises(ValueError, match="fixed set of arms: make a new agent or fleet for other arms"):
            change(name)
    assert fleet.arms == ["a", "b", "c"]


# ------------------------------------------------------------------------------------------------- rows of several arms


@pytest.mark.parametrize("name", NAMED)
def test_rows_in_the_order_of_the_arms_are_the_usual_offer(name):
    usual, rows = (Agent(VARIANTS[name], n_arms=5, dim=DIM, seed=3) for _ in range(2))
    rng = np.random.default_rng(4)
    for _ in range(60):
        contexts, order = rng.standard_normal((5, DIM)), rng.permutation(5)
        one = usual.select(contexts)
        other = rows.select(contexts[order], arms=order.tolist())
        if name not in ("uniform", "albatross-learnt", *ORDER_MATTERS) and np.isfinite(one.score):
            assert (one.arm, one.score) == (other.arm, pytest.approx(other.score, rel=1e-9))
        assert other.arm == order[other.row]
        reward = float(rng.standard_normal())
        usual.update(one, reward)
        rows.update(other, reward) if other.arm == one.arm else rows.drop(other)
        if other.arm != one.arm:
            break


# uniform and albatross-learnt draw a row, going through rows in the order in which they stand.
ORDER_MATTERS = {name for name in NAMED if name.startswith(("sup-lin", "alb-dim", "mod-cb", "exp4", "corral"))}


def test_several_rows_of_one_arm_share_its_bias():
    agent, rng = Agent(policies.LinUCB(alpha=0.1), arms=["left", "right"], dim=1, seed=0), np.random.default_rng(0)
    for _ in range(300):
        arms = [("left", "right")[i] for i in rng.integers(2, size=int(rng.integers(1, 6)))]
        decision = agent.select(rng.standard_normal((len(arms), 1)), arms=arms)
        assert decision.arm == arms[decision.row]
        agent.update(decision, float((2.0 if decision.arm == "left" else 0.0) + decision.action[0]))
    biases = agent.diagnostics()["biases"]
    assert biases["left"] - biases["right"] == pytest.approx(2.0, abs=0.2)
    decision = agent.select([[0.0], [1.0], [1.5]], arms=["left", "left", "right"])
    assert (decision.arm, decision.row) == ("left", 1)


def test_ranking_gives_a_decision_for_every_place():
    agent, rng = Agent(policies.LinUCB(), arms=NAMES, dim=2, seed=0), np.random.default_rng(0)
    ranked = agent.rank(rng.standard_normal((7, 2)), k=3)
    assert len({decision.arm for decision in ranked}) == len({decision.id for decision in ranked}) == 3
    for decision in ranked:
        agent.update(decision, 1.0)
    with pytest.raises(ValueError, match="k must be at most the 2 eligible rows, not 3"):
        agent.rank(rng.standard_normal((7, 2)), k=3, eligible=["art", "food"])


@pytest.mark.parametrize("policy", [policies.LinUCB(biases=False), policies.Albatross(biases=False)])
def test_rows_that_pass_need_no_arms(policy, tmp_path):
    agent, rng, theta = Agent(policy, arms="passing", dim=2, seed=0), np.random.default_rng(0), np.array([1.0, -1.0])
    agent.warm_start(rng.standard_normal((5, 2)), None, rng.standard_normal(5))
    for t in range(200):
        contexts = rng.standard_normal((int(rng.integers(1, 6)), 2))
        decision = agent.select(contexts)
        assert decision.arm is None
        np.testing.assert_array_equal(decision.action, contexts[decision.row])
        agent.update(decision, float(decision.action @ theta + 0.1 * rng.standard_normal()))
        if t == 100:
            agent.save(tmp_path / "agent")
            agent = Agent.load(tmp_path / "agent")
    np.testing.assert_allclose(agent.diagnostics()["theta_hat"], theta, atol=0.1)
    contexts = np.array([[0.0, 0.0], [1.0, -1.0], [3.0, -3.0]])
    assert [decision.row for decision in agent.rank(contexts, 2, eligible=[0, 1])] == [1, 0]
    assert agent.explain(contexts).arms == [0, 1, 2]
    assert (agent.arms, agent.propensity(contexts).tolist()) == ([], [0.0, 0.0, 1.0])
    for call, message in (
        (
            lambda: Agent(policies.LinUCB(), arms="passing", dim=2),
            "give a policy like LinUCB.biases=False., not LinUCB",
        ),
        (lambda: Agent(policies.UCB(), arms="passing", dim=2), "give a policy like LinUCB.biases=False., not UCB"),
        (lambda: agent.select(contexts, arms=[0, 0, 0]), "belong to no arms"),
        (lambda: agent.select(contexts[0]), r"contexts must have shape .any, 2."),
        (lambda: agent.select(contexts[:0]), "one row at least"),
        (lambda: agent.select(contexts[:, :1]), "1 features per arm, but this agent has dim=2"),
        (lambda: agent.add_arm("a"), "have no names"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_pending_decisions_for_rows_that_passed_say_nothing_about_others():
    burst, single = (Agent(policies.Albatross(biases=False), arms="passing", dim=2, seed=0) for _ in range(2))
    contexts = np.random.default_rng(0).standard_normal((4, 2))
    for _ in range(3):
        burst.select(contexts[:2])
    assert burst.select(contexts[2:]).width == single.select(contexts[2:]).width


# ---------------------------------------------------------------------------------------------- floor and explanations


def test_propensities_with_a_floor_are_the_frequencies():
    contexts = np.array([[0.0], [0.5], [1.0], [2.0]])
    agent = Agent(policies.Greedy(), arms=["a", "b", "c", "d"], dim=1, floor=0.2, seed=1)
    agent.warm_start(np.array([[1.0], [-1.0]] * 50), ["a", "b"] * 50, [1.0, -1.0] * 50)
    counts, stated = dict.fromkeys(agent.arms, 0), {}
    for _ in range(20_000):
        decision = agent.select(contexts, eligible=["a", "b", "d"])
        counts[decision.arm] += 1
        stated[decision.arm] = decision.propensity
        agent.drop(decision)
    assert stated == pytest.approx({"a": 0.2 / 3, "b": 0.2 / 3, "d": 0.8 + 0.2 / 3})
    for arm, propensity in stated.items():
        assert counts[arm] / 20_000 == pytest.approx(propensity, abs=4 * np.sqrt(propensity / 20_000))
    assert counts["c"] == 0
    np.testing.assert_allclose(
        agent.propensity(contexts, eligible=["a", "b", "d"]), [0.2 / 3, 0.2 / 3, 0, 0.8 + 0.2 / 3]
    )


def test_an_explanation_adds_up_and_names_features():
    from albatross.features import Category, Features, Number

    schema = Features({"topic": Category(values=["sport", "art"]), "age": Number(mean=10, sd=5)})
    for policy in (policies.LinUCB(), policies.Albatross(), policies.ALBNorm(norm_bound=2.0), policies.LinTS()):
        agent, rng = Agent(policy, arms=["one", "two", "three"], features=schema, seed=0), np.random.default_rng(0)
        for _ in range(200):
            records = [{"topic": ("sport", "art")[rng.integers(2)], "age": 20 * rng.random()} for _ in range(3)]
            decision = agent.select(schema.encode(None, records))
            agent.update(decision, float(decision.action @ [1.0, 0.0, -0.5] + 0.1 * rng.standard_normal()))
        contexts = schema.encode(
            None, [{"topic": "art", "age": 10}, {"topic": "sport", "age": 5}, {"topic": "art", "age": 5}]
        )
        found = agent.explain(contexts)
        assert found.arms == ["one", "two", "three"]
        assert found.best == 1
        assert found.contributions[0][0] in ("topic=sport", "topic=art")
        difference = found.means[found.best] - found.means[found.runner_up]
        assert sum(value for _, value in found.contributions) == pytest.approx(difference, abs=1e-9), policy
        assert set(agent.diagnostics()["theta_hat"]) == set(schema.names)
        assert "topic=sport" in str(found)
    with pytest.raises(ValueError, match="Uniform has no score"):
        Agent(policies.Uniform(), n_arms=2, dim=1).explain([[1.0], [2.0]])


@pytest.mark.parametrize("seed", range(5))
def test_of_equal_arms_the_one_that_would_be_chosen_is_explained(seed):
    arms, contexts = ["a", "b", "c", "d", "e"], np.zeros((5, 2))
    agent = Agent(policies.Greedy(), arms=arms, dim=2, seed=seed)
    agent.warm_start(contexts, arms, np.ones(5))
    found = agent.explain(contexts)
    assert found.arms[found.best] == agent.select(contexts).arm
    for crowd in (
        Fleet(policies.Greedy(biases=False), users=["ann"], arms=arms, dim=2, seed=seed),
        Flock(users=["ann"], arms=arms, dim=2, seed=seed),
    ):
        found = crowd.explain("ann", contexts)
        assert found.arms[found.best] == crowd.select(["ann"], contexts[None]).arms[0]


class Flat(NamedTuple):
    scale: float = 1.0


class FlatState(NamedTuple):
    sums: np.ndarray  # (d K,)
    priority: np.ndarray  # (K,)


@init.register
def init_flat(policy: Flat, n_arms, dim, rng):
    return FlatState(np.zeros(n_arms * dim), np.arange(n_arms))


@score.register
def score_flat(policy: Flat, state, offer, noise):
    return np.zeros(offer.arms.size), np.zeros(offer.arms.size)


@update.register
def update_flat(policy: Flat, state, choice, reward, n):
    state.sums[choice.arm] += reward


def test_a_state_without_an_axis_of_arms_takes_no_new_ones():
    """Its entries would change places in silence."""
    agent = Agent(Flat(), arms=["a", "b", "c"], dim=2, seed=0)
    fleet = Fleet(Flat(), users=["ann"], arms=["a", "b", "c"], dim=2, seed=0)
    message = "Flat can take no new arms: the array 'sums' of its state needs an axis with one entry per arm"
    for bandit in (agent, fleet):
        for retired in ("b", "c"):
            with pytest.raises(ValueError, match=message):
                bandit.add_arm("d")
            bandit.retire_arm(retired)  # its slot is free now
        assert bandit.arms == ["a"]


def test_many_new_arms_do_not_shrink_the_confidence_set_of_naoful():
    agent, rng = Agent(policies.NAOFUL(sigma=0.5), arms=["a", "b"], dim=2, seed=0), np.random.default_rng(0)
    for _ in range(30):
        decision = agent.select(rng.standard_normal((2, 2)))
        agent.update(decision, rng.standard_normal())
    before = agent._state.fit.log_det[0]
    for number in range(20):
        agent.add_arm(f"arm {number}")
    assert agent._state.fit.log_det[0] == before
    assert np.isfinite(agent.select(rng.standard_normal((22, 2))).width)


def test_a_decision_is_explained_by_its_own_row():
    agent = Agent(policies.LinUCB(), arms=["a", "b"], dim=2, seed=0)
    decision = agent.select([[1.0, 2.0], [3.0, 4.0]])
    agent.update(decision, 1.0)
    found = agent.explain(decision)
    assert (found.arms, found.runner_up) == ([decision.arm], None)
    assert found.means[0] == agent.explain(decision.action[None], arms=[decision.arm]).means[0]
    with pytest.raises(ValueError, match="has its arm"):
        agent.explain(decision, eligible=["a"])


@pytest.mark.parametrize(
    "policy", [policies.UCB(sigma=0.1), policies.UCB1(), policies.SuccessiveRejects(horizon=60)], ids=str
)
def test_policies_that_ignore_contexts_are_explained_by_the_means_of_the_arms(policy):
    agent = Agent(policy, arms=["a", "b", "c", "d"], dim=1, seed=0)
    agent.warm_start(np.zeros((6, 1)), ["a", "b", "c"] * 2, [1.0, 2.0, 4.0] * 2)
    found = agent.explain(np.zeros((3, 1)), arms=["c", "a", "b"])
    assert found.means.tolist() == [4.0, 1.0, 2.0]
    difference = found.means[found.best] - found.means[found.runner_up]
    assert found.contributions == [("bias", difference)]
    assert np.isnan(agent.explain(np.zeros((4, 1))).means[3])


def test_an_arm_that_comes_while_propensities_are_estimated_waits(monkeypatch):
    agent = Agent(policies.LinTS(), arms=["a", "b"], dim=2, seed=0)
    adding = threading.Thread(target=lambda: [agent.add_arm(name) for name in NAMES])
    drawn_by = np.random.default_rng

    class Drawing:
        def standard_normal(self, size):
            monkeypatch.undo()
            adding.start()
            adding.join(0.3)
            return drawn_by(0).standard_normal(size)

    monkeypatch.setattr(np.random, "default_rng", lambda *_: Drawing())
    assert agent.propensity(np.zeros(2), draws=20).size == 2
    adding.join(60.0)
    assert agent.n_arms == 2 + len(NAMES)
    assert agent.propensity(np.zeros(2), draws=20).size == agent.n_arms


@pytest.mark.parametrize(
    ("change", "lacking"), [("add_arm", "widened"), ("add_arm", "open_arm"), ("reset_arm", "clear_arm")]
)
def test_an_arm_that_memory_is_lacking_for_changes_nothing(monkeypatch, change, lacking):
    agent = Agent(policies.LinUCB(), arms=["a", "b"], dim=2, seed=0)
    contexts = np.eye(2)
    agent.update(agent.select(contexts), 1.0)
    if change == "reset_arm":
        agent.add_arm("c")
        agent.retire_arm("c")  # its slot is free

    def out_of_memory(*_):
        raise MemoryError

    out_of_memory.dispatch = lambda _: object()  # as a verb that is registered for the policy
    before = state_of(agent)
    with monkeypatch.context() as patch:
        patch.setattr(recipe_module, lacking, out_of_memory)
        with pytest.raises(MemoryError):
            getattr(agent, change)("c" if change == "add_arm" else "a")
    assert same_state(before, state_of(agent))
    assert agent.arms == ["a", "b"]
    agent.update(agent.select(contexts), 1.0)


# ------------------------------------------------------------------------------------------------------------ bad input


def test_wrong_names_are_refused_and_change_nothing(tmp_path):
    agent = Agent(policies.LinUCB(), arms=["a", "b", 3], dim=2, seed=0)
    contexts = np.zeros((3, 2))
    wrong = [
        (lambda: Agent(arms=["a", "a"], dim=2), "there is an arm 'a' already"),
        (lambda: Agent(arms=[], dim=2), "at least one arm"),
        (lambda: Agent(arms="ab", dim=2), "arms must be a list of names, not 'ab'"),
        (lambda: Agent(arms={"a", "b"}, dim=2), "arms must be a list of names, not {"),
        (lambda: agent.select(contexts, eligible={"a": 1}), "eligible must be a list of arms"),
        (lambda: agent.select(contexts, arms={"a": 1, "b": 2, 3: 3}), "arms must be a list of names"),
        (lambda: Agent(arms=[1.5], dim=2), "must be a text or a whole number, not 1.5"),
        (lambda: Agent(arms=["a"], n_arms=2, dim=2), "but not both"),
        (lambda: Agent(arms=["a"]), "dim must be a whole number"),
        (lambda: Agent(n_arms=2, dim=2).add_arm("a"), "the arms of this agent have no names"),
        (lambda: Agent(arms=["a"], dim=2, floor=1.0), "floor must be 0 or a number strictly between 0 and 1"),
        (lambda: agent.add_arm("a"), "there is an arm 'a' already"),
        (lambda: agent.add_arm(True), "must be a text or a whole number, not True"),
        (lambda: agent.retire_arm("c"), "there is no arm 'c': the arms are 'a', 'b', 3"),
        (lambda: agent.reset_arm("c"), "there is no arm 'c'"),
        (lambda: agent.select(contexts, eligible=["a", "c"]), "there is no arm 'c'"),
        (lambda: agent.select(contexts, eligible=["a", "a"]), "lists an arm twice"),
        (lambda: agent.select(contexts, eligible=[]), "at least one arm must be eligible"),
        (lambda: agent.select(contexts, eligible="a"), "eligible must be a list of arms"),
        (lambda: agent.select(contexts, eligible=np.array("a")), "eligible must be a list of arms"),
        (lambda: agent.select(contexts, arms=np.array("a")), "arms must be a list of names"),
        (lambda: agent.select(contexts, arms=["a", "b", "c"]), "there is no arm 'c'"),
        (lambda: agent.select(contexts, arms=["a", "b"]), "contexts have 3 rows, but arms names 2: give the arm"),
        (lambda: agent.select(contexts, arms=[]), "arms is empty"),
        (lambda: agent.select(contexts, arms=["a", "b", 3], eligible=["a"]), "give only the eligible rows"),
        (lambda: agent.warm_start(contexts[:1], ["z"], [1.0]), "there is no arm 'z'"),
    ]
    before = state_of(agent)
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    agent.retire_arm("b")
    with pytest.raises(ValueError, match="arm 'b' is retired: add it again with add_arm"):
        agent.retire_arm("b")
    with pytest.raises(ValueError, match="there is no arm <NA>"):
        agent.retire_arm(pd.NA)
    agent.retire_arm("a")
    with pytest.raises(ValueError, match="3 is the last arm"):
        agent.retire_arm(3)
    assert all(np.array_equal(array, before[key]) for key, array in state_of(agent).items())
    agent.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").arms == [3]


def test_a_truth_value_is_not_the_arm_1():
    agent = Agent(policies.LinUCB(), arms=[0, 1, "a"], dim=1, seed=0)
    with pytest.raises(ValueError, match="there is no arm True: the arms are 0, 1, 'a'"):
        agent.select(np.zeros((3, 1)), eligible=["a", True])
    with pytest.raises(ValueError, match=r"there is no arm (np\.)?False_?"):
        agent.retire_arm(np.False_)
    assert agent.select(np.zeros((3, 1)), eligible=[False, True, False]).arm == 1


@pytest.mark.parametrize("alone", [False, True], ids=["fleet", "agent"])
def test_arms_that_were_never_played_are_counted_without_retired_ones_and_spare_slots(alone):
    if alone:
        bandits = Agent(arms=["a", "b"], dim=1, seed=0)
        bandits.update(bandits.select(np.zeros((2, 1)), eligible=["a"]), 1.0)
    else:
        bandits = Fleet(users=[], arms=["a", "b"], dim=1, seed=0)
        bandits.update(bandits.select(["anna"], np.zeros((1, 2, 1)), eligible=[["a"]]), [1.0])
    bandits.add_arm("c")  # there is room for four now
    bandits.retire_arm("b")
    found = bandits.diagnostics() if alone else bandits.diagnostics("anna")
    assert found["warnings"][0] == "1 of 2 arms were never played."


@pytest.mark.parametrize(
    ("names", "given"),
    [([1, 2, 3], np.int64(2)), ([1, 2, 3], 2.0), (["a", "b", "c"], np.str_("b"))],
    ids=["a number of NumPy", "a float", "a text of NumPy"],
)
@pytest.mark.parametrize("change", ["retire_arm", "reset_arm"])
@pytest.mark.parametrize("make", [Agent, Fleet, Flock], ids=lambda kind: kind.__name__)
def test_an_arm_keeps_its_name_if_it_is_called_by_an_equal_one(make, change, names, given, tmp_path):
    policy = {} if make is Flock else {"policy": policies.LinUCB()}
    users = {} if make is Agent else {"users": ["u"]}
    one, other = (make(**policy, **users, arms=names, dim=2, seed=0) for _ in range(2))
    getattr(one, change)(given)
    getattr(other, change)(names[1])
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    if users:
        (row,) = one.release(["u"])
        other.release(["u"])
        other.put("u", row)


def test_names_of_numpy_and_columns_of_data_frames_are_names():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    numbered = Agent(policies.LinUCB(), arms=np.arange(2), dim=1, seed=0)
    numbered.add_arm(np.int64(7))
    assert [type(arm) for arm in numbered.arms] == [int, int, int]
    named = Agent(policies.LinUCB(), arms=np.array(["a", "b"]), dim=1, seed=0)
    named.add_arm(np.str_("c"))
    assert [type(arm) for arm in named.arms] == [str, str, str]
    for column in (pandas.Series(["c", "b"]), polars.Series(["c", "b"]), np.array(["c", "b"])):
        assert named.select(np.zeros((3, 1)), eligible=column).arm in ("b", "c")
        assert named.select(np.ones((2, 1)), arms=column).arm in ("b", "c")
    assert named.select(np.zeros((3, 1)), eligible=pandas.Series([False, False, True])).arm == "c"
    assert numbered.select(np.zeros((3, 1)), eligible=pandas.Series([7])).arm == 7
