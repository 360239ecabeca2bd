from __future__ import annotations

import gc
import json
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from stepping import same_state, state_of

from albatross import Agent, Decision, policies
from albatross import agent as agent_module
from albatross.errors import UnknownDecision, UnreadableFile
from albatross.protocol import resolve

K, D = 5, 3

LINTS = policies.LinTS(sigma=0.5)
GREEDY = policies.Greedy(ties="first")
UNIFORM = policies.Uniform()
OFUL_PLUS = policies.OFULPlus(norm_bound=2.0, horizon=1_000, sigma=0.5)
ALB_NORM = policies.ALBNorm(norm_bound=5.0, epoch_length=10, sigma=0.5)
ALB_START = policies.ALBNorm(epoch_length=10, sigma=0.5)  # knows no norm: begins with 2 tau = 12 plays of arm 0
OSOM = policies.OSOM(norm_bound=2.0, horizon=1_000, sigma=0.5)

SEVERAL = {
    "lints": LINTS,
    "uniform": UNIFORM,
    "oful-plus": OFUL_PLUS,
    "alb-norm": ALB_NORM,
    "alb-norm-start": ALB_START,
    "osom": OSOM,
}
several = pytest.mark.parametrize("policy", SEVERAL.values(), ids=SEVERAL)

CONTEXTS = np.random.default_rng(100).standard_normal((200, K, D))
REWARDS = np.random.default_rng(101).standard_normal(200)


def make(policy=LINTS, **options) -> Agent:
    return Agent(policy, n_arms=K, dim=D, **{"seed": 0, **options})


def experienced(policy=LINTS, rounds: int = 30, **options) -> Agent:
    """An agent that has had rewards and waits for three more."""
    agent = make(policy, **options)
    for t in range(rounds):
        agent.update(agent.select(CONTEXTS[t]), REWARDS[t])
    for t in range(3):
        agent.select(CONTEXTS[rounds + t])
    return agent


def everything(agent: Agent) -> dict:
    """A copy of all that may change in an agent."""
    return {
        "state": state_of(agent),
        "rng": agent._rng.bit_generator.state,
        "pending": [(name, *(np.copy(part) for part in choice)) for name, choice in agent._pending.kept.items()],
        "pending_of_arm": agent._pending.of_arm.copy(),
        "made": agent._pending.made,
        "forgotten": agent._pending.forgotten,
    }


def assert_same(one: dict, other: dict) -> None:
    np.testing.assert_equal(one, other)


def without_id(decision: Decision) -> list:
    return [*decision[1:2], decision.action.tolist(), *decision[3:]]


# -------------------------------------------------------------------------------------------------- a decision


def test_a_decision_says_what_was_chosen():
    decision = make(OFUL_PLUS).select(CONTEXTS[0])
    assert decision.arm == 0
    assert isinstance(decision.arm, int)
    assert isinstance(decision.id, str)
    assert decision.action.tolist() == CONTEXTS[0, 0].tolist()
    assert decision.score == decision.width == np.inf  # a first play that every arm gets
    assert decision.propensity == 1.0


def test_score_and_width_are_those_of_the_policy():
    agent = experienced(policies.LinTS(sigma=0.5, ties="first"))
    decision = agent.select(CONTEXTS[50])
    found = agent.diagnostics()
    mean = found["biases"][decision.arm] + CONTEXTS[50, decision.arm] @ found["theta_hat"]
    assert decision.score == pytest.approx(mean + decision.width, abs=1e-12)


def test_ids_are_unique_also_between_agents():
    agents = [make() for _ in range(3)]
    ids = [agent.select(CONTEXTS[t]).id for agent in agents for t in range(20)]
    assert len(set(ids)) == 60


def test_the_seed_fixes_the_decisions():
    def arms(seed):
        agent, chosen = make(seed=seed), []
        for t in range(50):
            decision = agent.select(CONTEXTS[t])
            agent.update(decision, REWARDS[t])
            chosen.append(decision.arm)
        return chosen

    assert arms(1) == arms(1)
    assert arms(1) != arms(2)


def test_one_context_is_shared_by_all_arms():
    shared, tiled = experienced(), experienced()
    one, other = shared.select(CONTEXTS[40, 0]), tiled.select(np.tile(CONTEXTS[40, 0], (K, 1)))
    assert without_id(one) == without_id(other)
    shared.update(one, 1.0)
    tiled.update(other, 1.0)
    assert same_state(state_of(shared), state_of(tiled))


def layouts(table: np.ndarray) -> dict:
    frozen = table.copy()
    frozen.flags.writeable = False
    wide = np.zeros((K, 2 * D))
    wide[:, ::2] = table
    return {
        "list": table.tolist(),
        "fortran": np.asfortranarray(table),
        "strided": wide[:, ::2],
        "read-only": frozen,
        "other byte order": table.astype(">f8"),
        "matrix of objects": table.astype(object),
    }


@pytest.mark.parametrize("layout", layouts(CONTEXTS[0]))
def test_contexts_are_taken_in_any_layout(layout):
    one, other = experienced(), experienced()
    given = layouts(CONTEXTS[40])[layout]
    assert without_id(one.select(given)) == without_id(other.select(CONTEXTS[40]))


def test_whole_numbers_and_single_precision_will_do_as_contexts():
    rounded = np.round(4 * CONTEXTS[40])
    expected = without_id(experienced().select(rounded))
    for dtype in (np.int64, np.int8, np.float32):
        assert without_id(experienced().select(rounded.astype(dtype))) == expected


def test_what_the_caller_does_to_the_contexts_afterwards_is_not_learnt():
    one, other = make(GREEDY), make(GREEDY)
    table = CONTEXTS[0].copy()
    decision = one.select(table)
    table[:] = 99.0
    one.update(decision, 1.0)
    other.update(other.select(CONTEXTS[0]), 1.0)
    assert same_state(state_of(one), state_of(other))


@several
def test_one_arm_with_one_feature_is_a_problem_too(policy):
    agent = Agent(policy, n_arms=1, dim=1, seed=0)
    for t in range(30):
        decision = agent.select([CONTEXTS[t, 0, 0]] if t % 2 else [[CONTEXTS[t, 0, 0]]])
        assert decision.arm == 0
        assert decision.action.tolist() == [CONTEXTS[t, 0, 0]]
        agent.update(decision, REWARDS[t])
    assert agent.diagnostics()["pulls"].tolist() == [30.0]


@several
def test_select_writes_nothing_into_the_state(policy):
    agent = experienced(policy)
    before = state_of(agent)
    agent.select(CONTEXTS[50])
    assert same_state(before, state_of(agent))


# ---------------------------------------------------------------------------------------------------- eligibility


@several
def test_only_eligible_arms_are_chosen(policy):
    agent = make(policy)
    rng = np.random.default_rng(1)
    for t in range(60):
        allowed = rng.permutation(K)[: rng.integers(1, K)]
        decision = agent.select(CONTEXTS[t], eligible=allowed)
        assert decision.arm in allowed
        agent.update(decision, REWARDS[t])


def test_eligible_as_mask_and_as_list_are_the_same():
    mask = np.array([False, True, False, True, True])
    lists = [[1, 3, 4], (4, 3, 1), np.array([1, 3, 4]), np.array([4, 1, 3], np.uint8)]
    expected = [make(OFUL_PLUS).select(CONTEXTS[0], eligible=[arm]).arm for arm in (1, 3, 4)]
    assert expected == [1, 3, 4]
    for form in [mask, mask.tolist(), *lists]:
        agent = make(OFUL_PLUS)
        assert [agent.select(CONTEXTS[0], eligible=form).arm for _ in range(3)] == expected, form


def test_a_mask_that_is_every_second_entry_of_another_array_is_read_right():
    wide = np.ones(2 * K, bool)
    wide[::2] = [False, False, False, False, True]
    assert make(OFUL_PLUS).select(CONTEXTS[0], eligible=wide[::2]).arm == 4


def test_no_eligible_argument_means_all_arms():
    agent = make(UNIFORM)
    assert {agent.select(CONTEXTS[0]).arm for _ in range(200)} == set(range(K))


# ----------------------------------------------------------------------------------------------- rewards and delay


@several
def test_rewarding_by_id_is_rewarding_the_decision(policy):
    by_decision, by_id = make(policy), make(policy)
    for t in range(40):
        by_decision.update(by_decision.select(CONTEXTS[t]), REWARDS[t])
        by_id.update(by_id.select(CONTEXTS[t]).id, REWARDS[t])
    assert same_state(state_of(by_decision), state_of(by_id))


@pytest.mark.parametrize(
    "reward", [2, np.float32(2.0), np.int64(2), np.array(2.0)], ids=lambda reward: type(reward).__name__
)
def test_any_number_will_do_as_a_reward(reward):
    one, other = make(GREEDY), make(GREEDY)
    one.update(one.select(CONTEXTS[0]), reward)
    other.update(other.select(CONTEXTS[0]), 2.0)
    assert same_state(state_of(one), state_of(other))


def test_rewards_out_of_order_teach_the_same():
    in_order, shuffled = make(), make()
    first = [in_order.select(CONTEXTS[t], eligible=[t % K]) for t in range(40)]
    second = [shuffled.select(CONTEXTS[t], eligible=[t % K]) for t in range(40)]
    for t in range(40):
        in_order.update(first[t], REWARDS[t])
    for t in np.random.default_rng(2).permutation(40):
        shuffled.update(second[t], REWARDS[t])
    one, other = state_of(in_order), state_of(shuffled)
    for state in (one, other):
        state["inverse"] = state["fit.root"] @ state.pop("fit.root").T  # an inverse has many roots
    for key in one:
        np.testing.assert_allclose(one[key], other[key], rtol=1e-9, atol=1e-12, err_msg=key)
    assert shuffled.diagnostics()["pending"] == 0


@several
def test_late_rewards_are_credited_to_what_was_played(policy):
    agent = make(policy)
    decisions = [agent.select(CONTEXTS[t]) for t in range(20)]
    for t in reversed(range(20)):
        agent.update(decisions[t], REWARDS[t])
    arms = [decision.arm for decision in decisions]
    assert agent.diagnostics()["pulls"].tolist() == np.bincount(arms, minlength=K).tolist()


def test_decisions_that_are_never_rewarded_teach_nothing():
    patient, plain = make(GREEDY), make(GREEDY)
    for t in range(30):
        patient.select(CONTEXTS[100 + t])
        for agent in (patient, plain):
            agent.update(agent.select(CONTEXTS[t], eligible=[t % K]), REWARDS[t])
    assert same_state(state_of(patient), state_of(plain))
    assert patient.diagnostics()["pending"] == 30
    assert plain.diagnostics()["pending"] == 0


def test_diagnostics_count_decisions():
    found = experienced(rounds=30).diagnostics()
    assert (found["decisions"], found["pending"], found["forgotten"]) == (33, 3, 0)
    assert found["pulls"].sum() == 30


def test_diagnostics_of_alb_norm_tell_how_the_norm_was_learnt():
    agent = experienced(ALB_NORM, rounds=K + 10 + 20)  # forced plays and two whole epochs
    found = agent.diagnostics()
    assert found["epoch"] == 3
    assert found["norm_bounds"].shape == (3,)
    assert found["norm_bounds"][0] == 5.0
    assert found["norm_bounds"][2] == np.linalg.norm(found["theta_hat"]) + found["radii"][1]
    assert found["epoch_ends"].tolist() == [K + 10, K + 30]
    assert found["radius"] > 0.0
    assert found["pulls"].sum() == K + 30


@pytest.mark.parametrize("policy", [OFUL_PLUS, ALB_NORM, OSOM], ids=["oful-plus", "alb-norm", "osom"])
def test_a_burst_before_any_reward_plays_every_arm_once_in_order_and_then_again(policy):
    agent = make(policy)
    burst = [agent.select(CONTEXTS[t]).arm for t in range(2 * K)]
    assert burst == [*range(K), *range(K)]


def test_an_arm_that_waits_for_its_first_reward_is_left_alone_while_another_can_be_scored():
    agent = make(OFUL_PLUS)
    agent.update(agent.select(CONTEXTS[0]), 0.0)
    waiting = [agent.select(CONTEXTS[t]).arm for t in range(1, K)]
    assert waiting == [1, 2, 3, 4]
    assert [agent.select(CONTEXTS[t]).arm for t in range(K, K + 3)] == [0, 0, 0]


def test_forced_plays_pass_over_arms_that_are_not_eligible_and_come_back_to_them():
    agent = make(OFUL_PLUS)
    first = [agent.select(CONTEXTS[t], eligible=[0, 2, 4]).arm for t in range(3)]
    assert first == [0, 2, 4]
    assert [agent.select(CONTEXTS[t]).arm for t in range(3, 5)] == [1, 3]


def test_the_two_tau_start_plays_its_arm_until_the_rewards_are_in_and_then_knows_a_norm():
    agent = make(ALB_START)
    pairs = 2 * D
    assert agent.diagnostics()["norm_bounds"].size == 0
    for t in range(2 * pairs):
        decision = agent.select(CONTEXTS[t])
        assert decision.arm == 0
        agent.update(decision, REWARDS[t])
    found = agent.diagnostics()
    differences = CONTEXTS[: 2 * pairs, 0].reshape(pairs, 2, D)
    rewards = REWARDS[: 2 * pairs].reshape(pairs, 2)
    estimate = np.linalg.lstsq(differences[:, 0] - differences[:, 1], rewards[:, 0] - rewards[:, 1], rcond=None)[0]
    slack = np.sqrt(2.0) * 0.5 * np.sqrt(D / pairs * np.log(10.0))
    assert found["norm_bounds"].tolist() == pytest.approx([max(np.linalg.norm(estimate) + slack, 1.0)], rel=1e-7)
    assert [agent.select(CONTEXTS[20 + t]).arm for t in range(K)] == list(range(K))


@pytest.mark.parametrize("policy", [policies.UCB(sigma=0.1), OFUL_PLUS, ALB_NORM], ids=["ucb", "oful-plus", "alb-norm"])
def test_a_first_play_that_is_never_rewarded_does_not_starve_its_arm(policy):
    agent = make(policy)
    lost = agent.select(CONTEXTS[0])
    for t in range(1, 600):
        decision = agent.select(CONTEXTS[t % len(CONTEXTS)])
        agent.update(decision, 5.0 if decision.arm == lost.arm else 0.0)
    assert agent.diagnostics()["pulls"][lost.arm] > 300
    agent.update(lost, 5.0)  # late, but not too late


def test_an_arm_that_is_eligible_in_step_with_the_decisions_is_not_starved():
    agent, lost = make(policies.UCB(sigma=0.1)), False
    for t in range(3_000):
        decision = agent.select(CONTEXTS[0], eligible=[0, 1] if t % 10 == 9 else [0, 1, 2])
        if decision.arm == 2 and not lost:
            lost = True
        else:
            agent.update(decision, 2.0 * (decision.arm == 2))
    assert agent.diagnostics()["pulls"][2] > 1_500


def test_a_dropped_decision_is_no_longer_waited_for_and_teaches_nothing():
    agent = make(OFUL_PLUS)
    one, two = agent.select(CONTEXTS[0]), agent.select(CONTEXTS[1])
    assert (one.arm, two.arm) == (0, 1)
    agent.drop(one)
    agent.drop(two.id)
    assert agent.diagnostics()["pending"] == agent.diagnostics()["forgotten"] == 0
    assert agent.select(CONTEXTS[2]).arm == 0
    for settled in (one, two.id):
        with pytest.raises(UnknownDecision, match="is not pending"):
            agent.drop(settled)
    assert agent.diagnostics()["pulls"].sum() == 0


# ------------------------------------------------------------------------------------------------------ forgetting


def test_past_the_limit_the_oldest_decision_is_forgotten_and_counted():
    agent = make(max_pending=4)
    decisions = [agent.select(CONTEXTS[t]) for t in range(7)]
    found = agent.diagnostics()
    assert (found["pending"], found["forgotten"], found["decisions"]) == (4, 3, 7)
    for late in decisions[:3]:
        with pytest.raises(UnknownDecision, match="forgotten"):
            agent.update(late, 1.0)
    for t, decision in enumerate(decisions[3:]):
        agent.update(decision, REWARDS[t])
    assert agent.diagnostics()["pending"] == 0
    assert agent.diagnostics()["pulls"].sum() == 4


def test_rewarded_decisions_make_room():
    agent = make(max_pending=1)
    for t in range(20):
        agent.update(agent.select(CONTEXTS[t]), REWARDS[t])
    assert agent.diagnostics()["forgotten"] == 0


def test_an_arm_whose_first_decision_was_forgotten_is_forced_again():
    agent = make(OFUL_PLUS, max_pending=K - 1)
    assert [agent.select(CONTEXTS[t]).arm for t in range(K)] == list(range(K))  # the first is forgotten with the last
    assert agent.select(CONTEXTS[K]).arm == 0


# ----------------------------------------------------------------------------------------------------- propensities


@pytest.mark.parametrize("policy", [GREEDY, OFUL_PLUS, ALB_NORM, OSOM], ids=["greedy", "oful-plus", "alb-norm", "osom"])
def test_propensity_is_one_where_nothing_is_drawn(policy):
    agent = make(policy)
    for t in range(20):
        decision = agent.select(CONTEXTS[t])
        assert decision.propensity == 1.0
        agent.update(decision, REWARDS[t])


def test_propensity_is_exact_where_the_policy_is_uniform():
    agent = make(UNIFORM)
    assert agent.select(CONTEXTS[0]).propensity == 1.0 / K
    assert agent.select(CONTEXTS[0], eligible=[1, 4]).propensity == 1.0 / 2
    assert agent.select(CONTEXTS[0], eligible=[2]).propensity == 1.0


def test_propensity_is_exact_where_the_start_cannot_play_its_arm():
    agent = make(ALB_START)
    assert agent.select(CONTEXTS[0]).propensity == 1.0
    assert agent.select(CONTEXTS[0], eligible=[1, 2, 4]).propensity == 1.0 / 3


def test_propensity_is_none_where_it_is_not_known():
    assert make(LINTS).select(CONTEXTS[0]).propensity is None


def test_estimated_propensity_is_how_often_a_sampling_policy_chooses_each_arm():
    agent = experienced(LINTS, rounds=8, max_pending=10)
    eligible = [0, 1, 2, 4]
    estimate = agent.propensity(CONTEXTS[60], eligible, draws=20_000)
    n = 5_000
    chosen = np.bincount([agent.select(CONTEXTS[60], eligible).arm for _ in range(n)], minlength=K) / n
    assert estimate.shape == (K,)
    assert estimate.sum() == pytest.approx(1.0)
    assert estimate[3] == chosen[3] == 0.0
    assert np.sort(estimate)[-2] > 0.05  # there is something to be estimated
    assert np.abs(estimate - chosen).max() < 4.0 * 0.5 * np.sqrt(1 / n + 1 / 20_000)


def test_estimated_propensity_of_uniform_play_is_uniform_over_eligible_arms():
    estimate = make(UNIFORM).propensity(CONTEXTS[0], eligible=[0, 3], draws=10_000)
    assert estimate[[1, 2, 4]].tolist() == [0.0, 0.0, 0.0]
    assert np.abs(estimate[[0, 3]] - 0.5).max() < 0.02


def test_estimated_propensity_of_a_policy_that_draws_nothing_is_certain():
    agent = experienced(OFUL_PLUS)
    estimate = agent.propensity(CONTEXTS[60])
    assert estimate.tolist() == np.eye(K)[agent.select(CONTEXTS[60]).arm].tolist()


def test_estimated_propensity_knows_of_pending_decisions():
    agent = make(OFUL_PLUS)
    agent.select(CONTEXTS[0])
    assert agent.propensity(CONTEXTS[0]).tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_estimated_propensity_is_the_same_for_the_same_seed():
    agent = experienced()
    assert agent.propensity(CONTEXTS[60], seed=1).tolist() == agent.propensity(CONTEXTS[60], seed=1).tolist()
    assert agent.propensity(CONTEXTS[60], seed=1).tolist() != agent.propensity(CONTEXTS[60], seed=2).tolist()


@pytest.mark.parametrize("policy", [LINTS, UNIFORM, OFUL_PLUS], ids=["lints", "uniform", "oful-plus"])
def test_estimating_a_propensity_leaves_the_agent_as_it_was(policy):
    agent = experienced(policy)
    before = everything(agent)
    agent.propensity(CONTEXTS[60], eligible=[0, 1], draws=50)
    assert_same(everything(agent), before)


# ------------------------------------------------------------------------------------------------------ warm start


@pytest.mark.parametrize("policy", [LINTS, ALB_START], ids=["lints", "alb-norm-start"])
def test_warm_start_is_learning_the_log_step_by_step(policy):
    n = 60
    arms = np.random.default_rng(3).integers(0, K, n)
    stepped, of_arms, of_tables = make(policy), make(policy), make(policy)
    for t in range(n):
        stepped.update(stepped.select(CONTEXTS[t], eligible=[arms[t]]), REWARDS[t])
    of_arms.warm_start(CONTEXTS[np.arange(n), arms], arms, REWARDS[:n])
    of_tables.warm_start(CONTEXTS[:n].tolist(), arms.tolist(), REWARDS[:n].tolist())
    assert same_state(state_of(of_arms), state_of(stepped))
    assert same_state(state_of(of_tables), state_of(stepped))
    assert of_arms.diagnostics()["pulls"].tolist() == np.bincount(arms, minlength=K).tolist()
    assert of_arms.diagnostics()["pending"] == 0


def test_warm_start_leaves_pending_decisions_and_random_numbers_alone():
    agent = experienced()
    before = everything(agent)
    agent.warm_start(CONTEXTS[:5, 0], [0] * 5, REWARDS[:5])
    after = everything(agent)
    assert not same_state(after.pop("state"), before.pop("state"))
    assert_same(after, before)


def test_warm_start_with_an_empty_log_teaches_nothing():
    agent = make()
    before = everything(agent)
    agent.warm_start(np.empty((0, D)), [], [])
    agent.warm_start(np.empty((0, K, D)), [], [])
    assert_same(everything(agent), before)


def test_a_warm_agent_forces_only_the_arms_that_the_log_did_not_have():
    agent = make(OFUL_PLUS)
    agent.warm_start(CONTEXTS[:3, 0], [0, 2, 4], REWARDS[:3])
    assert [agent.select(CONTEXTS[t]).arm for t in range(2)] == [1, 3]


# ---------------------------------------------------------------------------------------------------- save and load


@several
@pytest.mark.parametrize("rounds", [4, 45])
def test_a_loaded_agent_goes_on_bit_for_bit(policy, rounds, tmp_path):
    agent = make(policy, max_pending=3)
    waiting = []
    for t in range(rounds):
        waiting.append(agent.select(CONTEXTS[t], eligible=None if t % 3 else [0, 1, 3]))
        if t % 2:
            agent.update(waiting.pop(), REWARDS[t])
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    assert_same(everything(loaded), everything(agent))
    assert (loaded.policy, loaded.n_arms, loaded.dim, loaded.max_pending) == (policy, K, D, 3)

    known = [(decision.id, decision.id) for decision in waiting][-2:]  # ids from before the save are known to both
    for t in range(rounds, rounds + 60):
        one, other = agent.select(CONTEXTS[t]), loaded.select(CONTEXTS[t])
        assert one.id != other.id
        assert without_id(one) == without_id(other)
        known.append((one.id, other.id))
        name, theirs = known.pop(0) if t % 2 else known.pop()
        if name in agent._pending.kept:
            agent.update(name, REWARDS[t])
            loaded.update(theirs, REWARDS[t])
    assert same_state(state_of(loaded), state_of(agent))
    np.testing.assert_equal(loaded.diagnostics(), agent.diagnostics())


def test_saving_changes_nothing(tmp_path):
    agent = experienced()
    before = everything(agent)
    agent.save(tmp_path / "agent")
    assert_same(everything(agent), before)


def test_a_decision_from_before_a_restart_is_rewarded_once(tmp_path):
    agent = make()
    decision = agent.select(CONTEXTS[0])
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    loaded.update(decision.id, 1.0)
    with pytest.raises(UnknownDecision, match="rewarded before"):
        loaded.update(decision, 1.0)
    assert loaded.diagnostics()["pulls"].sum() == 1


def test_a_saved_agent_is_one_file_of_arrays_and_json_without_pickle(tmp_path):
    experienced().save(tmp_path / "agent")
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]
    with np.load(tmp_path / "agent", allow_pickle=False) as file:
        assert all(file[key].dtype != object for key in file.files)
        header = json.loads(file["header"].tobytes())
    assert header["albatross-agent"] == 1
    assert header["policy"] == {
        "name": "LinTS",
        "parameters": {"sigma": 0.5, "ridge": 1.0, "biases": True, "ties": "random"},
    }


def test_saving_again_replaces_the_file(tmp_path):
    agent = experienced()
    agent.save(str(tmp_path / "agent"))
    agent.update(agent.select(CONTEXTS[60]), 5.0)
    agent.save(str(tmp_path / "agent"))
    assert_same(everything(Agent.load(tmp_path / "agent")), everything(agent))


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    agent = experienced()
    agent.save(tmp_path / "agent")
    before = (tmp_path / "agent").read_bytes()

    def full_disk(file, **arrays):
        file.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(agent_module.np, "savez", full_disk)
    with pytest.raises(OSError, match="no space left"):
        agent.save(tmp_path / "agent")
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]
    assert (tmp_path / "agent").read_bytes() == before


@pytest.mark.parametrize(
    "policy",
    [
        policies.ALBNorm(norm_bound=5, epoch_length=np.int64(10), sigma=np.float32(0.5)),
        policies.LinTS(sigma=np.float64(0.5), biases=np.bool_(True)),
    ],
    ids=["alb-norm", "lints"],
)
def test_policies_with_numpys_numbers_are_saved_as_well(policy, tmp_path):
    agent = experienced(policy)
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    assert loaded.policy == policy
    assert_same(everything(loaded), everything(agent))


@pytest.mark.parametrize("policy", [GREEDY, OFUL_PLUS], ids=["flat", "nested"])
def test_a_policy_that_is_not_in_the_catalogue_is_given_again_at_loading(policy, tmp_path):
    own = resolve(policy, K, D, 1_000)  # a NamedTuple of numbers is a policy, as one in a user's own file is
    agent = experienced(own)
    agent.save(tmp_path / "agent")
    with pytest.raises(UnreadableFile, match=r"not part of this library: pass it, load\(path, policy=...\)"):
        Agent.load(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent", policy=own)
    assert_same(everything(loaded), everything(agent))
    with pytest.raises(UnreadableFile, match=type(own).__name__):
        Agent.load(tmp_path / "agent", policy=own._replace(ties=1 - own.ties))


def test_another_policy_than_the_saved_one_is_refused(tmp_path):
    experienced().save(tmp_path / "agent")
    with pytest.raises(UnreadableFile, match="LinTS"):
        Agent.load(tmp_path / "agent", policy=policies.LinTS(sigma=0.6))
    assert Agent.load(tmp_path / "agent", policy=LINTS).policy == LINTS


@pytest.fixture
def files_closed():
    """A file that was refused and left open is told of by its own test, not by a later one."""
    yield
    gc.collect()


@pytest.fixture
def saved(tmp_path, files_closed) -> bytes:
    experienced().save(tmp_path / "good")
    return (tmp_path / "good").read_bytes()


def refused(tmp_path, content: bytes) -> str:
    """Write, expect to be refused, and return the message."""
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        Agent.load(tmp_path / "bad")
    assert isinstance(caught.value, ValueError)
    assert str(tmp_path / "bad") in str(caught.value)
    return str(caught.value)


def test_a_cut_file_is_refused_wherever_it_is_cut(saved, tmp_path):
    for length in [0, 1, 2, 3, 4, 5, *range(10, len(saved), 61), len(saved) - 1]:
        assert "truncated, or is not a saved agent" in refused(tmp_path, saved[:length])


def rewritten(saved: bytes, tmp_path, **changes) -> bytes:
    """The saved file with some arrays or entries of its header replaced; None takes one out."""
    (tmp_path / "was").write_bytes(saved)
    with np.load(tmp_path / "was") as file:
        arrays = {key: file[key] for key in file.files}
    header = json.loads(arrays["header"].tobytes())
    for key, value in changes.items():
        (arrays if key in arrays else header)[key] = value
    header = {key: value for key, value in header.items() if value is not None}
    if changes.get("header", arrays["header"]) is arrays["header"]:
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays = {key: value for key, value in arrays.items() if value is not None}
    with (tmp_path / "now").open("wb") as file:
        np.savez(file, **arrays)
    return (tmp_path / "now").read_bytes()


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused_by_its_number(saved, version, tmp_path):
    message = refused(tmp_path, rewritten(saved, tmp_path, **{"albatross-agent": version}))
    if version is not None:
        assert f"has format {version}" in message
        assert "reads format 1" in message


def test_rewriting_alone_is_not_what_is_refused(saved, tmp_path):
    (tmp_path / "same").write_bytes(rewritten(saved, tmp_path))
    assert_same(everything(Agent.load(tmp_path / "same")), everything(Agent.load(tmp_path / "good")))


@pytest.mark.parametrize(
    "content",
    [
        b"\x93NUMPY but not really",
        b"PK\x03\x04 but not really",
        b"{}",
        b"user,arm\n1,2\n",
        np.random.default_rng(0).bytes(5_000),
    ],
    ids=["npy", "zip", "json", "text", "random"],
)
@pytest.mark.usefixtures("files_closed")
def test_a_file_that_is_something_else_is_refused_without_numpys_advice_to_trust_it(content, tmp_path):
    assert refused(tmp_path, content).endswith("is truncated, or is not a saved agent")
    with pytest.raises(UnreadableFile) as caught:
        Agent.load(tmp_path / "bad")
    assert "pickle" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("files_closed")
def test_arrays_that_are_not_an_agent_are_refused(tmp_path):
    np.save(tmp_path / "one.npy", np.zeros(3))
    refused(tmp_path, (tmp_path / "one.npy").read_bytes())
    np.savez(tmp_path / "some.npz", a=np.zeros(3), header=np.zeros(3))
    refused(tmp_path, (tmp_path / "some.npz").read_bytes())
    np.savez(tmp_path / "objects.npz", header=np.array([{"albatross-agent": 1}], dtype=object))
    refused(tmp_path, (tmp_path / "objects.npz").read_bytes())


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": None},
        {"policy": {"name": "LinTS", "parameters": {"colour": "red"}}},
        {"rng": None},
        {"n_arms": 6},
        {"dim": None},
        {"state/fit.root": None},
        {"state/fit.theta": np.zeros(D + 1)},
        {"state/pulls": np.zeros(K, np.float32)},
        {"pending/arm": None},
        {"pending/arm": np.array([0])},
        {"pending/arm": np.array([0, 1, 99])},
    ],
    ids=str,
)
def test_a_file_with_a_part_missing_or_wrong_is_refused(saved, changes, tmp_path):
    refused(tmp_path, rewritten(saved, tmp_path, **changes))


def test_a_damaged_byte_is_noticed_or_does_no_harm(saved, tmp_path):
    good = everything(Agent.load(tmp_path / "good"))
    directory = saved.index(b"PK\x01\x02")  # of the archive, in which a byte can mean anything
    for place in [*range(0, directory, 97), *range(directory, len(saved), 3)]:
        damaged = bytearray(saved)
        damaged[place] ^= 0xFF
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            found = Agent.load(tmp_path / "damaged")
        except UnreadableFile:
            continue
        assert_same(everything(found), good)


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="not a saved agent: Is a directory"):
        Agent.load(tmp_path)


def test_a_missing_file_is_reported_as_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Agent.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        make().save(tmp_path / "no" / "such" / "folder")


# -------------------------------------------------------------------------------------------------------- bad input


def nan_at(arm: int, value: float = np.nan) -> np.ndarray:
    table = CONTEXTS[0].copy()
    table[arm, 1] = value
    return table


BAD_CONTEXTS = {
    "too many features": (np.zeros((K, D + 1)), "contexts have 4 features per arm, but this agent has dim=3"),
    "too few features": (np.zeros((K, D - 1)), "contexts have 2 features per arm, but this agent has dim=3"),
    "too many arms": (np.zeros((K + 1, D)), "contexts have 6 rows, but this agent has n_arms=5"),
    "transposed": (np.zeros((D, K)), r"shape \(5, 3\).*got \(3, 5\)"),
    "one context of another length": (np.zeros(D + 1), r"\(3,\) shared by all arms, got \(4,\)"),
    "a number": (1.0, r"got \(\)"),
    "many rounds": (np.zeros((2, K, D)), r"got \(2, 5, 3\)"),
    "nothing": (None, "contexts must"),
    "ragged": ([[1.0, 2.0], [3.0]], "contexts must be an array of numbers"),
    "words": ([["a", "b", "c"]] * K, "contexts must be an array of numbers, got text$"),
    "one word": ("arms", "contexts must be an array of numbers, got text$"),
    "words that are numbers": (np.array([["1_0"] * D] * K, object), "contexts must be an array of numbers, got text$"),
    "bytes": (np.full((K, D), b"a"), "contexts must be an array of numbers, got text$"),
    "a dict": ({"x": 1.0}, "contexts must be an array of numbers"),
    "complex numbers": (np.full((K, D), 1.0 + 2.0j), "contexts must be an array of numbers"),
    "nan": (nan_at(2), r"contexts must be finite, but holds nan at \(2, 1\)"),
    "inf": (nan_at(0, np.inf), r"contexts must be finite, but holds inf at \(0, 1\)"),
    "-inf": (nan_at(4, -np.inf), r"contexts must be finite, but holds -inf at \(4, 1\)"),
    "missing value": ([[None, 1.0, 2.0]] * K, "contexts must be finite"),
    "nan in a shared context": (np.array([0.0, np.nan, 0.0]), "contexts must be finite"),
}

BAD_ELIGIBLE = {
    "empty list": ([], "eligible is empty"),
    "empty mask": (np.zeros(0, bool), "eligible is empty"),
    "mask of nothing": (np.zeros(K, bool), "eligible is False for every arm"),
    "short mask": ([True] * (K - 1), r"eligible must have shape \(5,\) as a mask, got \(4,\)"),
    "unknown arm": ([1, K], "arm 5 in eligible is unknown: this agent has arms 0 to 4"),
    "negative arm": ([0, -1], "arm -1 in eligible is unknown"),
    "fractions": ([0.0, 1.0], "eligible must be a mask of 5 booleans or a list of arms"),
    "one arm": (2, "eligible must be a mask"),
    "a table": ([[0, 1]], "eligible must be a mask"),
    "names": (["a"], "eligible must be a mask"),
    "a set": ({0, 1}, "eligible must be a mask"),
}

BAD_REWARDS = {
    "nan": (np.nan, "reward must be finite, not nan"),
    "inf": (np.inf, "reward must be finite, not inf"),
    "-inf": (-np.inf, "reward must be finite, not -inf"),
    "numpy's nan": (np.float32(np.nan), "reward must be finite, not nan"),
    "nothing": (None, "reward must be a number, not None"),
    "a word": ("a lot", "reward must be a number, not 'a lot'"),
    "two": ([1.0, 2.0], "reward must be a number"),
    "an array": (np.array([1.0, 2.0]), "reward must be a number"),
    "complex": (1j, "reward must be a number"),
    "a text in an array": (np.array("1.5"), "reward must be a number"),
    "memory": (memoryview(b"12"), "reward must be a number"),
    "numpy's complex": (np.complex64(1j), "reward must be a number"),
    "bytes": (bytearray(b"12"), "reward must be a number"),
}


@pytest.mark.parametrize("policy", [LINTS, ALB_START], ids=["lints", "alb-norm-start"])
@pytest.mark.parametrize("case", BAD_CONTEXTS)
def test_bad_contexts_are_refused_and_change_nothing(policy, case):
    contexts, message = BAD_CONTEXTS[case]
    agent = experienced(policy, rounds=5, max_pending=3)  # a further decision would make it forget one
    before = everything(agent)
    for ask in (agent.select, agent.propensity):
        with pytest.raises(ValueError, match=message):
            ask(contexts)
        assert_same(everything(agent), before)
    agent.select(CONTEXTS[60])


@pytest.mark.parametrize("policy", [LINTS, ALB_START], ids=["lints", "alb-norm-start"])
@pytest.mark.parametrize("case", BAD_ELIGIBLE)
def test_bad_eligible_is_refused_and_changes_nothing(policy, case):
    eligible, message = BAD_ELIGIBLE[case]
    agent = experienced(policy, rounds=5, max_pending=3)
    before = everything(agent)
    for ask in (agent.select, agent.propensity):
        with pytest.raises(ValueError, match=message):
            ask(CONTEXTS[60], eligible)
        assert_same(everything(agent), before)


@several
@pytest.mark.parametrize("case", BAD_REWARDS)
def test_bad_rewards_are_refused_and_change_nothing(policy, case):
    reward, message = BAD_REWARDS[case]
    agent = experienced(policy, rounds=5)
    decision = agent.select(CONTEXTS[60])
    before = everything(agent)
    for way in (decision, decision.id):
        with pytest.raises(ValueError, match=message):
            agent.update(way, reward)
        assert_same(everything(agent), before)
    agent.update(decision, 1.0)  # it is still waiting


@several
def test_a_decision_rewarded_twice_is_refused_and_changes_nothing(policy):
    agent = experienced(policy, rounds=5)
    decision = agent.select(CONTEXTS[60])
    agent.update(decision, 1.0)
    before = everything(agent)
    for way in (decision, decision.id):
        with pytest.raises(UnknownDecision, match=f"decision {decision.id} is not pending: it was rewarded before"):
            agent.update(way, 1.0)
        assert_same(everything(agent), before)


def test_a_decision_of_another_agent_is_refused_and_changes_nothing():
    agent, other = experienced(), experienced()
    stranger = other.select(CONTEXTS[60])
    before = everything(agent)
    for way in (stranger, stranger.id):
        with pytest.raises(UnknownDecision, match="belongs to another agent"):
            agent.update(way, 1.0)
        assert_same(everything(agent), before)


@pytest.mark.parametrize("name", ["", "0", "nonsense", "-", "a-b", 7, None, 1.5, ("x", 0), ["x"], b"x-1"], ids=repr)
def test_what_is_no_decision_is_refused_and_changes_nothing(name):
    agent = experienced()
    before = everything(agent)
    with pytest.raises(UnknownDecision, match="is not a decision"):
        agent.update(name, 1.0)
    assert_same(everything(agent), before)


@pytest.mark.parametrize("number", [0, 34, 10**30])
def test_a_decision_that_was_never_made_is_refused_and_changes_nothing(number):
    agent = experienced(rounds=30)  # 33 decisions
    before = everything(agent)
    with pytest.raises(UnknownDecision, match=f"-{number} was never made"):
        agent.update(f"{agent._pending._prefix}-{number}", 1.0)
    assert_same(everything(agent), before)


def test_unknown_decisions_are_value_errors():
    assert issubclass(UnknownDecision, ValueError)
    assert issubclass(UnreadableFile, ValueError)


BAD_LOGS = {
    "unknown arm": ({"arms": [0, 1, K]}, "arm 5 is unknown: this agent has arms 0 to 4"),
    "negative arm": ({"arms": [0, -1, 1]}, "arm -1 is unknown"),
    "fractions": ({"arms": [0.0, 1.0, 2.0]}, "arms must be 3 whole numbers"),
    "too few arms": ({"arms": [0, 1]}, r"arms must be 3 whole numbers, one for each reward, got shape \(2,\)"),
    "a table of arms": ({"arms": [[0, 1, 2]]}, "arms must be 3 whole numbers"),
    "nan in rewards": ({"rewards": [0.0, np.nan, 1.0]}, r"rewards must be finite, but holds nan at \(1,\)"),
    "too many rewards": ({"rewards": [0.0] * 4}, "arms must be 4 whole numbers"),
    "rewards in words": ({"rewards": ["a", "b", "c"]}, "rewards must be an array of numbers"),
    "inf in contexts": ({"contexts": np.full((3, D), np.inf)}, "contexts must be finite"),
    "nan in all contexts": ({"contexts": np.full((3, K, D), np.nan)}, "contexts must be finite"),
    "too many features": ({"contexts": np.zeros((3, D + 1))}, r"contexts must have shape \(3, 3\), got \(3, 4\)"),
    "too few rows": ({"contexts": np.zeros((2, D))}, r"contexts must have shape \(3, 3\), got \(2, 3\)"),
    "too many arms": ({"contexts": np.zeros((3, K + 1, D))}, r"contexts must have shape \(3, 5, 3\)"),
    "one context": ({"contexts": np.zeros(D)}, r"contexts must have shape \(3, 3\)"),
    "ragged contexts": ({"contexts": [[1.0], [1.0, 2.0], []]}, "contexts must be an array of numbers"),
    "ragged arms": ({"arms": [[0], [1, 2], []]}, "arms must be an array of numbers"),
}


@pytest.mark.parametrize("case", BAD_LOGS)
def test_bad_logs_are_refused_and_change_nothing(case):
    changes, message = BAD_LOGS[case]
    log = {"contexts": CONTEXTS[:3, 0], "arms": [0, 1, 2], "rewards": [1.0, 2.0, 3.0], **changes}
    agent = experienced()
    before = everything(agent)
    with pytest.raises(ValueError, match=message):
        agent.warm_start(**log)
    assert_same(everything(agent), before)


def test_on_the_ball_no_propensity_is_defined():
    with pytest.raises(ValueError, match="propensities are undefined on the unit ball"):
        Agent(policies.BallOFUL(), dim=D).propensity()


@pytest.mark.parametrize("draws", [0, -5, 1.5, "many"])
def test_a_number_of_draws_that_is_none_is_refused(draws):
    with pytest.raises(ValueError, match="draws must be a whole number >= 1"):
        make().propensity(CONTEXTS[0], draws=draws)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_arms", 0),
        ("n_arms", 2.0),
        ("dim", 0),
        ("dim", None),
        ("seed", -1),
        ("seed", 1.5),
        ("max_pending", 0),
        ("max_pending", "all"),
    ],
)
def test_bad_arguments_of_an_agent_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Agent(LINTS, **{"n_arms": K, "dim": D, name: value})


@pytest.mark.parametrize("delta", [-0.1, 0.0, 1.0, 2.0, np.nan, "0.1"])
@pytest.mark.parametrize("policy", [policies.ALBNorm, policies.OFULPlus, policies.OFUL, policies.UCB, policies.OSOM])
def test_a_delta_that_is_no_probability_is_refused(policy, delta):
    with pytest.raises(ValueError, match=r"^delta must be a number strictly between 0 and 1"):
        policy(delta=delta)


@pytest.mark.parametrize("explore", [1, D - 1, D])
def test_a_start_with_no_more_pairs_than_features_is_refused(explore):
    with pytest.raises(ValueError, match=f"explore={explore} pairs cannot estimate {D} coordinates"):
        make(policies.ALBNorm(explore=explore))
    make(policies.ALBNorm(explore=explore, norm_bound=1.0))  # where b_1 is given there is no start


def test_a_policy_that_must_know_the_horizon_asks_an_agent_for_it():
    for policy in (policies.OFULPlus(), policies.OSOM()):
        with pytest.raises(ValueError, match=r"give (OFULPlus|OSOM)\(horizon=...\)"):
            make(policy)


def test_a_policy_for_arms_asks_how_many_there_are():
    with pytest.raises(ValueError, match=r"^LinTS plays finitely many arms: give arms or n_arms$"):
        Agent(LINTS, dim=D)


@pytest.mark.parametrize("n_arms", [K, None])
@pytest.mark.parametrize("thing", ["lints", 3, policies.LinTS, policies.BallOFUL], ids=str)
def test_what_is_no_policy_is_refused(thing, n_arms):
    with pytest.raises(TypeError, match="not a policy"):
        Agent(thing, n_arms=n_arms, dim=D)


def test_repr_says_what_it_is():
    assert repr(make(UNIFORM)) == "Agent(Uniform(), n_arms=5, dim=3)"


# ----------------------------------------------------------------------------------------------------------- threads


def test_several_threads_may_use_one_agent(tmp_path):
    agent, start = make(max_pending=100), threading.Barrier(4)
    each, ids = 300, []

    def work(worker):
        rng = np.random.default_rng(worker)
        start.wait()
        for t in range(each):
            decision = agent.select(rng.standard_normal((K, D)))
            ids.append(decision.id)
            agent.update(decision, float(rng.standard_normal()))
            if t % 50 == 0:
                agent.save(tmp_path / f"{worker}")
                agent.propensity(CONTEXTS[0], draws=10)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    found = agent.diagnostics()
    assert (found["decisions"], found["pending"], found["forgotten"]) == (4 * each, 0, 0)
    assert found["pulls"].sum() == 4 * each
    assert len(set(ids)) == 4 * each
    assert agent._pending.of_arm.tolist() == [0] * K
    for worker in range(4):
        assert Agent.load(tmp_path / f"{worker}").policy == LINTS


CALLS = {
    "select": lambda agent, _: agent.select(CONTEXTS[60]),
    "update": lambda agent, _: agent.update(next(iter(agent._pending.kept)), 1.0),
    "warm_start": lambda agent, _: agent.warm_start(CONTEXTS[:1, 0], [0], [1.0]),
    "propensity": lambda agent, _: agent.propensity(CONTEXTS[60], draws=1),
    "diagnostics": lambda agent, _: agent.diagnostics(),
    "save": lambda agent, path: agent.save(path),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_waits_until_that_of_another_thread_is_done(name, tmp_path):
    agent = experienced()
    with ThreadPoolExecutor(1) as pool:
        with agent._lock:  # as if another call were under way
            call = pool.submit(CALLS[name], agent, tmp_path / "agent")
            assert not wait([call], timeout=0.2).done
        call.result(timeout=60)


def test_the_action_of_a_decision_cannot_be_changed_before_it_is_learnt_from():
    decision = make(OFUL_PLUS).select(CONTEXTS[0])
    with pytest.raises(ValueError, match="read-only"):
        decision.action[0] = 7.0


def test_a_mask_of_zeros_and_ones_is_not_taken_for_a_list_of_arms():
    with pytest.raises(ValueError, match="eligible lists an arm twice: list each arm once, or give a mask of booleans"):
        make(OFUL_PLUS).select(CONTEXTS[0], eligible=np.array([0, 1, 0, 1, 1]))


@pytest.mark.parametrize("reward", [1e101, "0.5", b"1", 10**400])
def test_a_reward_that_no_sum_of_squares_can_hold_or_that_is_a_word_is_refused(reward):
    agent = make(OFUL_PLUS)
    with pytest.raises(ValueError, match="reward must be"):
        agent.update(agent.select(CONTEXTS[0]), reward)


def test_contexts_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match=r"contexts must be finite, but holds 1e\+200 at \(0, 0\) \(at most 1e\+100"):
        make(OFUL_PLUS).select(np.full((K, D), 1e200))


def test_a_decision_made_after_saving_is_not_mistaken_for_one_made_after_loading(tmp_path):
    agent = make(OFUL_PLUS)
    pending = agent.select(CONTEXTS[0])
    agent.save(tmp_path / "saved")
    lost = agent.select(CONTEXTS[0], eligible=[3])
    again = Agent.load(tmp_path / "saved")
    again.select(CONTEXTS[0], eligible=[2])
    with pytest.raises(ValueError, match="belongs to another agent, or was rewarded before this agent was loaded"):
        again.update(lost.id, 5.0)
    again.update(pending.id, 1.0)
    assert again.diagnostics()["pulls"].sum() == 1
    assert again.diagnostics()["decisions"] == 2


def test_without_a_policy_it_is_albatross():
    agent = Agent(n_arms=K, dim=3, seed=0)
    assert agent.policy == policies.Albatross()
    rng = np.random.default_rng(0)
    for _ in range(40):
        decision = agent.select(rng.standard_normal((K, 3)))
        agent.update(decision, float(decision.action.sum()))
    assert agent.diagnostics()["theta_hat"] == pytest.approx(np.ones(3), abs=0.1)
    on_the_ball = Agent(dim=3, seed=0)
    assert on_the_ball.policy == policies.AlbatrossDim()
    assert np.linalg.norm(on_the_ball.select().action) == pytest.approx(1.0)
