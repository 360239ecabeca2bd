"""A fleet is as many agents as it has users."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from variants import VARIANTS

from albatross import Agent, Fleet, policies
from albatross.errors import UnknownDecision, UnreadableFile
from albatross.protocol import init, noise_size

pytestmark = pytest.mark.xdist_group("fleets")  # they compile the same code

USERS, K, D, HORIZON = 4, 5, 3, 300
ALB_NORM = policies.ALBNorm(norm_bound=3.0, sigma=0.1, epoch_length=20)


def new_fleet(policy=ALB_NORM, **sizes):
    return Fleet(policy, **{"n_users": USERS, "n_arms": K, "dim": D, "horizon": HORIZON, "seed": 0, **sizes})


def learnt(fleet):
    """What the policy knows of every user, without the counts of decisions."""
    counted = {"pending", "decisions"}
    every = (fleet.diagnostics(user) for user in range(fleet.n_users))
    return [{key: value for key, value in found.items() if key not in counted} for found in every]


def play(fleet, rng, batches, size=6):
    """Batches of events in which users may come several times, rewarded at once; all arms that were played."""
    arms = []
    for _ in range(batches):
        users = rng.integers(fleet.n_users, size=size)
        choices = fleet.select(users, rng.standard_normal((size, fleet.n_arms, fleet.dim)))
        fleet.update(choices, choices.actions.sum(axis=1) + 0.3 * choices.arms + 0.1 * rng.standard_normal(size))
        arms += choices.arms.tolist()
    return arms


# States of every make: nested, with empty arrays, with tags, with noise, with a tuple of states of different types.
@pytest.mark.parametrize("name", ["alb-norm-start", "osom", "lints", "ucb", "d3rb", "alb-dim-finite-no-biases"])
def test_every_user_is_an_agent_of_their_own_bit_for_bit(name):
    policy = VARIANTS[name]
    fleet = new_fleet(policy)
    drawn = np.random.Generator(np.random.SFC64(0))
    agents = []
    for _ in range(USERS):
        agent = Agent(policy, n_arms=K, dim=D)
        agent._state = init(agent._parameters, K, D, drawn)
        agents.append(agent)
    rng = np.random.default_rng(3)
    size = noise_size(fleet._parameters, K, D)
    for _ in range(30):
        users, contexts = rng.permutation(USERS)[:3], rng.standard_normal((3, K, D))
        rewards = rng.standard_normal(3)
        choices = fleet.select(users, contexts)
        noise = iter(drawn.standard_normal((3, size)))
        decisions = []
        for user, table in zip(users, contexts, strict=True):
            row = next(noise)
            agents[user]._rng = type("Drawn", (), {"standard_normal": lambda _, n, row=row: row})()
            agents[user]._rng.bit_generator = np.random.SFC64(0)
            decisions.append(agents[user].select(table))
        assert [decision.arm for decision in decisions] == choices.arms.tolist()
        np.testing.assert_array_equal([decision.score for decision in decisions], choices.scores)
        for user, decision, reward in zip(users, decisions, rewards, strict=True):
            agents[user].update(decision, reward)
        fleet.update(choices, rewards)
    for user, agent in enumerate(agents):
        expected, found = agent.diagnostics(), fleet.diagnostics(user)
        assert isinstance(found["warnings"], list)
        for key in found:
            np.testing.assert_equal(found[key], expected[key], err_msg=key)


def test_users_learn_nothing_from_one_another():
    fleet = new_fleet()
    before = learnt(fleet)[1:]
    for _ in range(20):
        choices = fleet.select([0], np.ones((1, K, D)))
        fleet.update(choices, [1.0])
    np.testing.assert_equal(learnt(fleet)[1:], before)
    assert fleet.diagnostics(0)["pulls"].sum() == 20


def test_ten_thousand_users_take_at_most_four_kilobytes_each():
    fleet = Fleet(policies.ALBNorm(norm_bound=3.0), n_users=10_000, n_arms=10, dim=16, horizon=1_000)
    assert fleet.nbytes <= 4_000 * 10_000


def test_a_user_who_comes_several_times_in_a_batch_is_not_shown_one_arm_for_a_first_play_twice():
    choices = new_fleet().select(np.zeros(K, int), np.zeros((K, K, D)))
    assert sorted(choices.arms.tolist()) == list(range(K))


def test_a_dropped_choice_is_no_longer_waited_for():
    fleet = new_fleet()
    contexts = np.zeros((1, K, D))
    first = fleet.select([2], contexts)
    assert fleet.select([2], contexts).arms != first.arms
    fleet.drop(first)
    assert fleet.select([2], contexts).arms == first.arms


def test_rewards_may_come_in_parts_and_in_any_order():
    one, other = new_fleet(), new_fleet()
    rng = np.random.default_rng(0)
    for _ in range(40):
        contexts, rewards = rng.standard_normal((USERS, K, D)), rng.standard_normal(USERS)
        choices = one.select(np.arange(USERS), contexts)
        one.update(choices, rewards)
        choices = other.select(np.arange(USERS), contexts)
        late = np.array([True, False, True, False])
        other.update(choices.rows(~late), rewards[~late])
        other.update(choices.rows([2, 0]), rewards[[2, 0]])
    np.testing.assert_equal(learnt(one), learnt(other))


def test_only_eligible_arms_are_chosen():
    fleet, rng = new_fleet(), np.random.default_rng(0)
    for _ in range(30):
        mask = rng.random((USERS, K)) < 0.5
        mask[:, 1] |= ~mask.any(axis=1)
        choices = fleet.select(np.arange(USERS), rng.standard_normal((USERS, K, D)), eligible=mask)
        assert mask[np.arange(USERS), choices.arms].all()
        fleet.update(choices, rng.standard_normal(USERS))
    shared = fleet.select([0, 1], np.zeros((2, K, D)), eligible=[False, False, True, False, False])
    assert shared.arms.tolist() == [2, 2]
    listed = fleet.select([0, 1], np.zeros((2, K, D)), eligible=[[3], (4,)])
    assert listed.arms.tolist() == [3, 4]


def test_the_seed_fixes_everything():
    first, again, other = (play(new_fleet(policies.LinTS(), seed=s), np.random.default_rng(0), 30) for s in (1, 1, 2))
    assert first == again != other


def test_new_users_join_with_nothing_known_of_them():
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 20)
    before = learnt(fleet)
    assert fleet.add_users(2).tolist() == [USERS, USERS + 1]
    assert fleet.n_users == USERS + 2
    np.testing.assert_equal(learnt(fleet)[:USERS], before)
    assert fleet.diagnostics(USERS)["pulls"].sum() == 0
    play(fleet, np.random.default_rng(0), 20)


@pytest.mark.parametrize("interrupted", range(1, 7))
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_users_who_could_not_join_leave_nothing_behind(error, interrupted, monkeypatch):
    fleet = new_fleet(policies.UCB())
    play(fleet, np.random.default_rng(0), 20)
    saved, concatenate, calls = pickle.dumps(fleet), np.concatenate, 0

    def concatenate_until_interrupted(arrays):
        nonlocal calls
        calls += 1
        if calls == interrupted:
            raise error
        return concatenate(arrays)

    monkeypatch.setattr(np, "concatenate", concatenate_until_interrupted)
    try:
        fleet.add_users(2)
    except error:
        assert pickle.dumps(fleet) == saved
    else:
        assert calls < interrupted
        assert fleet.n_users == USERS + 2


def test_too_many_new_users_change_no_random_number():
    fleet = new_fleet()
    saved = pickle.dumps(fleet)
    with pytest.raises(ValueError, match="GB of memory"):
        fleet.add_users(10**12)
    assert pickle.dumps(fleet) == saved


def test_a_saved_fleet_goes_on_bit_for_bit(tmp_path):
    fleet = new_fleet(policies.LinTS(sigma=0.1), horizon=np.int64(HORIZON))
    play(fleet, np.random.default_rng(0), 20)
    pending = fleet.select([1, 3], np.ones((2, K, D)))
    fleet.save(tmp_path / "fleet.npz")
    loaded = Fleet.load(tmp_path / "fleet.npz")
    for each in (fleet, loaded):
        each.update(pending, [1.0, 2.0])
    assert play(fleet, np.random.default_rng(1), 20) == play(loaded, np.random.default_rng(1), 20)
    np.testing.assert_equal(learnt(fleet), learnt(loaded))
    assert repr(loaded) == repr(fleet)


def test_an_agents_file_is_not_a_fleets(tmp_path):
    Agent(ALB_NORM, n_arms=K, dim=D).save(tmp_path / "agent.npz")
    with pytest.raises(UnreadableFile, match=r"agent.npz is a saved agent: use Agent.load$"):
        Fleet.load(tmp_path / "agent.npz")
    new_fleet().save(tmp_path / "fleet.npz")
    with pytest.raises(UnreadableFile, match=r"fleet.npz is a saved fleet: use Fleet.load$"):
        Agent.load(tmp_path / "fleet.npz")
    whole = (tmp_path / "fleet.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFile, match="is truncated"):
        Fleet.load(tmp_path / "cut.npz")


def test_threads_take_turns():
    fleet = new_fleet()
    fleet.update(fleet.select([0], np.ones((1, K, D))), [0.0])

    def work(user):
        rng = np.random.default_rng(user)
        for _ in range(50):
            fleet.update(fleet.select([user], rng.standard_normal((1, K, D))), rng.standard_normal(1))

    threads = [threading.Thread(target=work, args=(user,)) for user in range(USERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found["pulls"].sum() for found in learnt(fleet)) == 50 * USERS + 1
    assert not fleet._crowd.rows.pending.any()


def test_users_may_join_while_others_play():
    fleet = new_fleet()
    done = threading.Event()

    def join():
        while not done.is_set():
            fleet.add_users(1)

    thread = threading.Thread(target=join)
    thread.start()
    try:
        for _ in range(60):
            fleet.update(fleet.select([0, 1], np.ones((2, K, D))), [0.0, 1.0])
    finally:
        done.set()
        thread.join()
    assert fleet.diagnostics(0)["pulls"].sum() == fleet.diagnostics(1)["pulls"].sum() == 60
    assert not fleet._crowd.rows.pending.any()


def test_choices_outlive_the_callers_arrays():
    fleet, users = new_fleet(), np.array([0, 1])
    choices = fleet.select(users, np.zeros((2, K, D)))
    users[:] = 3
    assert choices.users.tolist() == [0, 1]


def test_choices_of_another_policy_are_refused_before_compiled_code_reads_them():
    ucb, osom = new_fleet(policies.UCB()), new_fleet(policies.OSOM(sigma=0.1))
    made, own = (each.select([0], np.zeros((1, K, D))) for each in (ucb, osom))
    for wrong in (
        made._replace(arms=own.arms),
        own._replace(scores=own.scores[:0]),
        own._replace(arms=own.arms - 9),
        own._replace(arms=own.arms + 0.5),
        own._replace(actions=np.full((1, D), np.nan)),
        own._replace(actions=np.full((1, D), "much")),
        own._replace(actions=np.ma.masked_array(own.actions, mask=True)),
        own._replace(tags=own.tags.astype(str)),
        own._replace(users=own.users - 1),
    ):
        with pytest.raises(ValueError, match=r"result of this fleet's select|is unknown"):
            osom.update(wrong, [1.0])
        with pytest.raises(ValueError, match=r"result of this fleet's select|is unknown"):
            osom.drop(wrong)
    osom.update(own, [1.0])
    assert osom.diagnostics(0)["pulls"].sum() == 1


def test_tags_that_lead_outside_of_the_bases_are_refused_and_the_choice_stays_pending():
    fleet = new_fleet(VARIANTS["d3rb"])
    choices = fleet.select([0], np.zeros((1, K, D)))
    for base in (1e9, 3.0, -1.0, 0.5):
        tags = choices.tags.copy()
        tags[0, 0] = base
        with pytest.raises(ValueError, match="tag holds"):
            fleet.update(choices._replace(tags=tags), [1.0])
    fleet.update(choices, [1.0])


def test_a_first_play_that_is_never_rewarded_does_not_keep_its_arm_from_its_user():
    fleet = new_fleet(policies.UCB(sigma=0.1))
    for t in range(40 * K):
        choices = fleet.select([1], np.zeros((1, K, D)))
        if t:  # the reward of the first choice, of arm 0, is lost
            fleet.update(choices, [1.0 if choices.arms[0] == 0 else 0.0])
    assert fleet.diagnostics(1)["pulls"][0] > 20 * K


CONTEXTS = np.zeros((1, K, D))
BAD = {
    "an unknown user": (lambda f: f.select([USERS], CONTEXTS), "user 4 is unknown: this fleet has users 0 to 3"),
    "a negative user": (lambda f: f.select([-1], CONTEXTS), "user -1 is unknown"),
    "a user in halves": (lambda f: f.select([0.5], CONTEXTS), "users must be a list of whole numbers"),
    "one table for two events": (lambda f: f.select([0, 1], CONTEXTS), r"contexts must have shape \(2, 5, 3\)"),
    "NaN": (lambda f: f.select([0], np.full((1, K, D), np.nan)), r"finite, but holds nan at \(0, 0, 0\)"),
    "no eligible arm": (lambda f: f.select([0], CONTEXTS, np.zeros((1, K), bool)), "at least one arm must be eligible"),
    "a mask of numbers": (lambda f: f.select([0], CONTEXTS, [1, 1, 1, 1, 1]), "mask of booleans"),
    "lists of arms for another number of events": (
        lambda f: f.select([0, 1], np.zeros((2, K, D)), [[0, 1], [2], [3]]),
        "eligible must list the arms of 2 events, got 3 lists",
    ),
    "an unknown arm in a list": (lambda f: f.select([0], CONTEXTS, [[0, 9]]), "arm 9 in eligible is unknown"),
    "a list of nothing": (lambda f: f.select([0], CONTEXTS, [[]]), "at least one arm must be eligible"),
    "eligible words": (
        lambda f: f.select([0], CONTEXTS, "all"),
        r"mask of booleans of shape \(1, 5\) or \(5,\), or lists",
    ),
    "a reward too many": (lambda f: f.update(f.select([0], CONTEXTS), [1.0, 2.0]), r"rewards must have shape \(1,\)"),
    "an infinite reward": (lambda f: f.update(f.select([0], CONTEXTS), [np.inf]), "rewards must be finite"),
    "no choices": (lambda f: f.update([0], [1.0]), "choices must be the result of select"),
    "no such user": (lambda f: f.diagnostics(9), "user 9 is unknown"),
    "no users": (lambda f: new_fleet(n_users=0), "n_users must be"),
    "the ball": (lambda f: new_fleet(policies.BallOFUL()), "plays on the unit ball"),
    "nobody new": (lambda f: f.add_users(0), "n_users must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_nothing_is_learnt(case):
    call, message = BAD[case]
    fleet = new_fleet()
    before = learnt(fleet)
    with pytest.raises(ValueError, match=message):
        call(fleet)
    np.testing.assert_equal(learnt(fleet), before)


def test_a_choice_is_rewarded_once_and_by_its_own_fleet():
    fleet = new_fleet()
    choices = fleet.select([0, 1], np.zeros((2, K, D)))
    fleet.update(choices.rows([0]), [1.0])
    before = learnt(fleet)
    with pytest.raises(UnknownDecision, match="user 0 has no pending choice of arm"):
        fleet.update(choices, [1.0, 1.0])
    np.testing.assert_equal(learnt(fleet), before)
    fleet.update(choices.rows([1]), [1.0])  # what was refused above took nothing away
    with pytest.raises(ValueError, match="unchanged result of this fleet's select"):
        fleet.update(new_fleet(dim=2).select([0], np.zeros((1, K, 2))), [1.0])


def test_an_empty_batch_is_no_event():
    fleet = new_fleet()
    choices = fleet.select([], np.zeros((0, K, D)))
    fleet.update(choices, [])
    assert choices.arms.size == 0
