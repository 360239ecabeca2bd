"""Users of a fleet by name, its arms by name, and logs that replay to the same states."""

from __future__ import annotations

import io
import pickle
import threading

import numpy as np
import pytest

from albatross import Agent, Choices, Fleet, Flock, policies, saving
from albatross.crowd import crowd as crowd_module
from albatross.crowd import recipe as recipe_module
from albatross.errors import UnknownDecision, UnreadableFile

pytestmark = pytest.mark.xdist_group("fleets")  # they compile the same code

D = 3
ARMS = ["sport", "politics", "art", "science", "travel", "food", "chess"]
LINTS_OF_ROWS = policies.LinTS(sigma=0.1, biases=False)
LINTS, LINUCB = policies.LinTS(sigma=0.1), policies.LinUCB()
ALB_NORM = policies.ALBNorm(norm_bound=3.0, sigma=0.1, epoch_length=20)


def new_fleet(policy=LINTS, **given):
    return Fleet(policy, **{"users": [], "arms": ARMS[:3], "dim": D, "horizon": 300, "seed": 0, **given})


def rows(fleet, users=None):
    return {user: fleet.row(user) for user in (fleet.users if users is None else users)}


def columns(choices):
    """The columns of choices that `record` takes by keyword."""
    return {name: getattr(choices, name) for name in ("scores", "widths", "propensities", "tags")}


def play(fleet, rng, batches, users=("anna", "bob", "anna", 7)):
    """Batches of events, rewarded at once; all arms that were played."""
    played = []
    for _ in range(batches):
        choices = fleet.select(list(users), rng.standard_normal((len(users), fleet.n_arms, fleet.dim)))
        fleet.update(choices, choices.actions.sum(axis=1) + 0.1 * rng.standard_normal(len(users)))
        played += choices.arms.tolist()
    return played


ONE = np.zeros((1, 3, D))


# ------------------------------------------------------------------------------------------------------ users by name


def test_a_name_of_numpy_is_a_user():
    fleet = new_fleet(users=["anna", 7])
    assert [name in fleet for name in (*np.array(["anna", "bob"]), *np.array([7, 8]))] == [True, False, True, False]


def test_numbered_arms_have_slots_too():
    fleet = Fleet(LINTS, users=["anna"], n_arms=3, dim=D, seed=0)
    assert fleet.slot_of(2) == 2
    with pytest.raises(ValueError, match="arm 3 is unknown"):
        fleet.slot_of(3)


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_a_column_of_a_data_frame_names_users(library):
    users = ["anna", "bob"]
    column = np.array(users) if library == "numpy" else pytest.importorskip(library).Series(users)
    fleet = Fleet(policies.LinUCB(), users=column[:1], arms=["a", "b"], dim=1, seed=0)
    assert fleet.select(column, np.zeros((2, 2, 1))).users.tolist() == fleet.users == users


@pytest.mark.parametrize(
    "wrong", [{"anna"}, {"anna": 1}, "anna", 3, None], ids=["set", "dict", "text", "number", "none"]
)
def test_what_has_no_order_or_is_one_thing_does_not_name_users(wrong):
    fleet = Fleet(policies.LinUCB(), users=[], arms=["a", "b"], dim=1, seed=0)
    with pytest.raises(ValueError, match="users must be a list of names, not"):
        fleet.select(wrong, np.zeros((1, 2, 1)))
    assert fleet.users == []


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_whole_data_frame_names_no_users_and_is_no_mask(library):
    """It would give the names of its columns, and its columns may be in another order than the arms."""
    frame = pytest.importorskip(library).DataFrame
    fleet, contexts = Fleet(policies.LinUCB(), users=[], arms=["b", "a"], dim=1, seed=0), np.zeros((1, 2, 1))
    with pytest.raises(ValueError, match="users must be a list of names, not"):
        fleet.select(frame({"user": ["anna"]}), contexts)
    with pytest.raises(ValueError, match="not a data frame: give its values, with the columns in the order of"):
        fleet.select(["anna"], contexts, frame({"a": [True], "b": [False]}))
    with pytest.raises(ValueError, match="eligible must be a list of arms or a mask of booleans, not"):
        Agent(policies.LinUCB(), arms=["a", "b"], dim=1).select(contexts[0], frame({"a": [True], "b": [False]}))
    with pytest.raises(ValueError, match="arms must be a list of names, not"):
        Agent(policies.LinUCB(), arms=frame({"arm": ["a", "b"]}), dim=1)
    assert fleet.users == []


def test_users_are_admitted_when_they_first_come():
    fleet = new_fleet(users=["anna"])
    choices = fleet.select(["bob", 10**30, "bob", "anna", -7], np.zeros((5, 3, D)))
    assert fleet.users == ["anna", "bob", 10**30, -7]
    assert choices.users.tolist() == ["bob", 10**30, "bob", "anna", -7]
    assert set(choices.arms.tolist()) <= set(ARMS[:3])
    fleet.update(choices.rows([0, 2]), [1.0, 2.0])
    found = fleet.diagnostics("bob")
    assert sum(found["pulls"].values()) == found["decisions"] == 2
    assert (fleet.diagnostics("anna")["pending"], fleet.n_users, "bob" in fleet, "1" in fleet) == (1, 4, True, False)
    assert fleet.select(np.array([3, 4]), np.zeros((2, 3, D))).users.tolist() == [3, 4]
    assert fleet.select(np.array(["eve"]), np.zeros((1, 3, D))).users.tolist() == ["eve"]


# ALB-Norm with a random start draws more than an order of the arms.
@pytest.mark.parametrize("policy", [LINTS, policies.ALBNorm(sigma=0.1, epoch_length=20, explore_arm="random")])
def test_a_user_does_not_depend_on_when_or_beside_whom_they_came(policy):
    alone, crowded = new_fleet(policy), new_fleet(policy, users=[f"user {i}" for i in range(40)])
    rng = np.random.default_rng(0)
    for t in range(60):
        if t == 30:
            crowded.release([f"user {i}" for i in range(40) if i % 3])
        contexts, rewards = rng.standard_normal((4, 3, D)), rng.standard_normal(4)
        one = alone.select(["anna", "anna"], contexts[[1, 3]])
        both = crowded.select([f"visitor {t}", "anna", "user 3", "anna"], contexts)
        np.testing.assert_array_equal(one.scores, both.scores[[1, 3]])
        assert one.arms.tolist() == both.arms[[1, 3]].tolist()
        alone.update(one, rewards[[1, 3]])
        crowded.update(both, rewards)
    assert alone.row("anna") == crowded.row("anna")
    assert len({crowded.row(f"visitor {t}")[-200:] for t in range(60)}) > 1


def test_another_seed_gives_another_order_of_equal_arms():
    def first_plays(seed):
        fleet = new_fleet(policies.Greedy(), seed=seed, arms=ARMS)
        return fleet.select([f"user {i}" for i in range(50)], np.zeros((50, len(ARMS), D))).arms.tolist()

    assert first_plays(1) == first_plays(1) != first_plays(2)
    assert set(first_plays(1)) == set(ARMS)


def test_a_released_user_who_is_put_back_was_never_away():
    here, away = new_fleet(), new_fleet()
    rng = np.random.default_rng(1)
    for t in range(12):
        contexts, rewards = rng.standard_normal((3, here.n_arms, D)), rng.standard_normal(3)
        kept = [fleet.select(["anna", "bob", "anna"], contexts) for fleet in (here, away)]
        if t == 6:
            row = away.release(["anna"], pending=True)[0]
            assert "anna" not in away
        for fleet in (here, away):
            if t == 6:
                for change, arm in (("retire_arm", "sport"), ("add_arm", "chess"), ("add_arm", "food")):
                    getattr(fleet, change)(arm)
                fleet.reset_arm("politics")
        if t == 6:
            play(away, np.random.default_rng(5), 3, users=["eve"])  # in the slot that was anna's
            away.put("anna", row)
        for fleet, choices in zip((here, away), kept, strict=True):
            fleet.update(choices, rewards)
        assert rows(here) == rows(away, here.users)
    assert here._crowd.n_slots == 6  # it was widened


def test_a_newcomer_equals_a_user_who_came_early_and_never_played():
    for policy in (LINTS, ALB_NORM):
        fleet, rng = new_fleet(policy, users=["early"]), np.random.default_rng(0)
        for change, arm in (
            *(("add_arm", "food"), ("retire_arm", "sport"), ("add_arm", "chess"), ("reset_arm", "art")),
            *(("add_arm", "sport"), ("retire_arm", "food"), ("add_arm", "science")),
        ):
            play(fleet, rng, 2)
            getattr(fleet, change)(arm)
        fresh = pickle.loads(pickle.dumps(fleet))
        early = fleet.row("early")
        fleet.release(["early"])
        fresh.release(["early"])
        for each in (fleet, fresh):
            each.admit(["early"])
            assert each.row("early") == early


def test_a_user_with_pending_decisions_is_released_only_with_them():
    fleet = new_fleet()
    choices = fleet.select(["anna", "bob"], np.zeros((2, 3, D)))
    fleet.update(choices.rows([1]), [1.0])
    before = pickle.dumps(fleet)
    with pytest.raises(ValueError, match="user 'anna' has 1 pending decisions: reward or drop them"):
        fleet.release(["bob", "anna"])
    assert pickle.dumps(fleet) == before
    (row,) = fleet.release(["anna"], pending=True)
    with pytest.raises(ValueError, match="user 'anna' is unknown"):
        fleet.update(choices.rows([0]), [1.0])
    fleet.admit(["anna"])  # a newcomer of the same name did not make that decision
    with pytest.raises(UnknownDecision, match="user 'anna' has no pending choice of arm"):
        fleet.update(choices.rows([0]), [1.0])
    fleet.put("anna", row)
    fleet.update(choices.rows([0]), [1.0])
    assert fleet.diagnostics("anna")["pending"] == 0


def test_slots_are_used_again_and_memory_stays_as_it_is():
    fleet = new_fleet(users=[f"user {i}" for i in range(100)])
    before = fleet.nbytes
    for day in range(20):
        fleet.release(fleet.users[:50])
        fleet.admit([f"day {day}, {i}" for i in range(50)])
    assert (fleet.nbytes, fleet.n_users) == (before, 100)


def test_numbered_users_take_named_arms_and_named_users_numbered_arms():
    numbered, named = new_fleet(users=None, n_users=3), new_fleet(arms=None, n_arms=3)
    assert play(numbered, np.random.default_rng(0), 5, users=[0, 2, 2])
    assert numbered.add_users(2).tolist() == [3, 4]
    numbered.add_arm("chess")
    assert numbered.add_users(1).tolist() == [5]
    contexts = np.zeros((6, 4, D))
    choices = numbered.select(range(6), contexts, eligible=[["chess"]] * 6)
    numbered.update(choices, np.ones(6))
    assert all(numbered.diagnostics(user)["pulls"]["chess"] == 1.0 for user in numbered.users)
    with pytest.raises(ValueError, match="users with numbers cannot be released"):
        numbered.release([0])
    with pytest.raises(ValueError, match="the users of this fleet have names"):
        named.add_users(1)
    assert set(play(named, np.random.default_rng(0), 20)) == {0, 1, 2}
    other = new_fleet(arms=None, n_arms=3)
    other.put("anna", named.row("anna"))
    assert other.row("anna") == named.row("anna")


# ------------------------------------------------------------------------------------------- arms that come and go


@pytest.mark.parametrize(
    "policy", [LINTS, LINUCB, ALB_NORM, policies.Albatross()], ids=lambda each: type(each).__name__
)
def test_an_arm_that_is_added_equals_one_that_was_there_and_never_eligible(policy):
    policy = type(policy)(**{**vars(policy), "ties": "first"})
    grown, there = new_fleet(policy, arms=ARMS[:2]), new_fleet(policy, arms=ARMS)
    rng, waiting = np.random.default_rng(1), []
    joins = set(rng.choice(np.arange(5, 60), len(ARMS) - 2, replace=False).tolist())
    for t in range(70):
        if t in joins:
            grown.add_arm(ARMS[grown.n_arms])
        users = [f"user {i}" for i in rng.integers(4, size=5)]
        contexts = rng.standard_normal((5, len(ARMS), D))
        one = grown.select(users, contexts[:, : grown.n_arms])
        other = there.select(users, contexts, eligible=[grown.arms] * 5)
        assert one.arms.tolist() == other.arms.tolist(), t
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-9, atol=1e-12)
        waiting.append((one, other, one.actions.sum(axis=1) + 0.1 * rng.standard_normal(5)))
        while len(waiting) > 4:
            one, other, rewards = waiting.pop(int(rng.integers(len(waiting))))
            grown.update(one, rewards)
            there.update(other, rewards)
    assert grown.arms == ARMS
    for user in grown.users:
        assert grown.diagnostics(user)["pulls"] == there.diagnostics(user)["pulls"]


def test_a_slot_is_used_again_when_no_user_has_a_pending_choice_of_it():
    fleet = new_fleet(LINUCB, arms=["a", "b"])
    contexts = np.zeros((1, 2, D))
    late = [fleet.select([user], contexts, [["a"]]) for user in ("anna", "bob")]
    fleet.retire_arm("a")
    fleet.add_arm("c")
    assert fleet._crowd.n_slots == 4
    fleet.update(late[0], [5.0])
    fleet.add_arm("d")
    assert fleet._crowd.n_slots == 4
    fleet.drop(late[1])
    fleet.add_arm("e")
    assert fleet._crowd.arms.slot("e") == 0
    assert fleet.diagnostics("anna")["pulls"] == {"b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0}
    assert fleet.diagnostics("anna")["biases"]["e"] == 0.0
    with pytest.raises(ValueError, match="the slot of arm 'a' was taken by 'e'"):
        fleet.update(late[1], [1.0])


def test_rewards_of_a_retired_and_a_reset_arm_are_learnt():
    fleet = new_fleet(LINUCB, arms=["a", "b"])
    first, second = (fleet.select(["anna"], np.ones((1, 2, D)), [[arm]]) for arm in ("a", "b"))
    fleet.retire_arm("a")
    fleet.reset_arm("b")
    fleet.add_arm("a")
    for choices in (first, second):
        fleet.update(choices, [3.0])
    found = fleet.diagnostics("anna")
    assert found["pulls"] == {"b": 0.0, "a": 0.0}  # these are new
    assert found["theta_hat"].sum() > 0.5


@pytest.mark.parametrize(
    ("change", "module", "lacking"),
    [
        ("add_arm", recipe_module, "widened"),
        ("add_arm", crowd_module, "RowBytes"),
        ("reset_arm", recipe_module, "clear_arm"),
        ("reset_arm", recipe_module, "fold_arm"),
    ],
)
def test_an_arm_that_memory_is_lacking_for_changes_nothing(monkeypatch, change, module, lacking):
    fleet = new_fleet(LINUCB, arms=["a", "b"])
    play(fleet, np.random.default_rng(0), 5)
    if change == "reset_arm":
        fleet.add_arm("c")
        fleet.retire_arm("c")  # its slot is free
    before = pickle.dumps(fleet)

    def out_of_memory(*_):
        raise MemoryError

    out_of_memory.dispatch = lambda _: object()  # as a verb that is registered for the policy
    with monkeypatch.context() as patch:
        patch.setattr(module, lacking, out_of_memory)
        with pytest.raises(MemoryError):
            getattr(fleet, change)("c" if change == "add_arm" else "a")
    assert pickle.dumps(fleet) == before
    play(fleet, np.random.default_rng(0), 5)


# --------------------------------------------------------------------------------- logs, and numbers from outside


@pytest.mark.parametrize("policy", [LINTS, policies.Albatross()], ids=["lints", "albatross"])
def test_a_log_of_decisions_and_rewards_replays_to_the_same_states(policy):
    live, log, rng, waiting = new_fleet(policy, arms=ARMS[:2], floor=0.2), [], np.random.default_rng(3), []

    def note(call, *args, **columns):
        log.append((call, args, columns))
        return len(log) - 1

    def change(call, arm):
        getattr(live, call)(arm)
        note(call, arm)

    for t in range(120):
        if t % 15 == 5:
            change("add_arm", f"arm {t}")
        if t % 15 == 12:
            change("retire_arm", live.arms[int(rng.integers(live.n_arms))])
        if t % 40 == 20:
            change("reset_arm", live.arms[0])
        users = [f"user {i}" for i in rng.integers(6, size=5)]  # mostly some of them twice
        eligible = rng.random((5, live.n_arms)) < 0.7
        eligible[:, 0] |= ~eligible.any(axis=1)
        made = live.select(users, rng.standard_normal((5, live.n_arms, D)), eligible)
        waiting.append((made, note("record", made.users, made.arms, made.actions, **columns(made))))
        while len(waiting) > 3:
            made, number = waiting.pop(int(rng.integers(len(waiting))))
            lost = rng.random(5) < 0.2
            rewards = rng.standard_normal(5)
            live.drop(made.rows(lost))
            live.update(made.rows(~lost), rewards[~lost])
            note("rewards", number, lost, rewards)
    fresh, recorded = new_fleet(policy, arms=ARMS[:2], floor=0.2), {}
    for number, (call, args, given) in enumerate(log):
        if call == "rewards":
            record, lost, rewards = args
            fresh.drop(recorded[record].rows(lost))
            fresh.update(recorded[record].rows(~lost), rewards[~lost])
        else:
            recorded[number] = getattr(fresh, call)(*args, **given)
    assert rows(fresh) == rows(live)
    contexts = rng.standard_normal((6, live.n_arms, D))
    assert fresh.select(live.users, contexts).arms.tolist() == live.select(live.users, contexts).arms.tolist()


def test_choices_of_others_are_pending_and_learnt_as_such():
    fleet = new_fleet(policies.Albatross())
    choices = fleet.record(["anna", "anna"], ["art", "sport"], np.eye(2, D))
    assert np.isnan(choices.tags).all()
    assert fleet.diagnostics("anna")["pending"] == 2
    fleet.update(choices, [1.0, 2.0])
    assert fleet.diagnostics("anna")["pulls"] == {"sport": 1.0, "politics": 0.0, "art": 1.0}
    with pytest.raises(UnknownDecision):
        fleet.update(choices, [1.0, 2.0])


def test_choices_that_are_built_from_a_log_are_those_of_the_active_arms():
    fleet = new_fleet()
    made = fleet.select(["anna"], np.ones((1, 3, D)))
    stored = Choices(["anna"], made.arms.tolist(), made.actions.tolist(), [0.0], [0.0], [1.0], np.empty((1, 0)))
    fleet.update(stored, [1.0])
    assert fleet.diagnostics("anna")["pending"] == 0


def test_random_numbers_and_pending_counts_from_outside_decide():
    one, other = new_fleet(seed=1, floor=0.3), new_fleet(seed=1, floor=0.3)
    rng = np.random.default_rng(0)
    assert one.noise_size == 2 + D + 3
    for _ in range(5):  # the counts of the other fleet differ
        other.select(["anna"], np.zeros((1, 3, D)))
    contexts, noise = rng.standard_normal((30, 3, D)), rng.standard_normal((30, one.noise_size))
    counts = np.zeros((30, 3), int)
    made = [each.select(["anna"] * 30, contexts, noise=noise, pending=counts) for each in (one, other)]
    assert made[0].arms.tolist() == made[1].arms.tolist()
    np.testing.assert_array_equal(made[0].scores, made[1].scores)
    assert made[0].arms.tolist() != one.select(["bob"] * 30, contexts).arms.tolist()
    # Albatross explores an arm less while decisions for it are pending.
    fleet = new_fleet(policies.Albatross(ties="first"))
    widths = [fleet.select(["anna"], np.ones((1, 3, D)), [["art"]], pending=[[0, 0, n]]).widths[0] for n in (0, 9)]
    assert widths[0] > 2.0 * widths[1]


def test_propensities_with_a_floor_are_the_frequencies():
    fleet = new_fleet(policies.Greedy(ties="first"), floor=0.3, arms=ARMS[:4])
    n = 20_000
    choices = fleet.select(
        [f"user {i}" for i in range(n)],
        np.zeros((n, 4, D)),
        eligible=[False, True, True, True],
        pending=np.zeros((n, 4)),
    )
    stated = {"politics": 0.8, "art": 0.1, "science": 0.1}
    for arm, propensity in stated.items():
        mine = choices.arms == arm
        np.testing.assert_allclose(choices.propensities[mine], propensity)
        assert mine.mean() == pytest.approx(propensity, abs=4 * np.sqrt(propensity / n))


def test_a_play_of_the_floor_is_learnt_as_somebody_elses():
    fleet = new_fleet(policies.Albatross(ties="first"), floor=0.5)
    users = [f"user {i}" for i in range(200)]
    choices = fleet.select(users, np.ones((200, 3, D)))
    random = choices.arms != "sport"
    assert 30 < random.sum() < 100
    assert np.isnan(choices.tags[random]).all()
    assert not np.isnan(choices.tags[~random]).any()
    np.testing.assert_allclose(choices.propensities, np.where(random, 0.5 / 3, 0.5 + 0.5 / 3))
    fleet.update(choices, np.ones(200))


# ------------------------------------------------------------------------------------------------------- rows as bytes


def test_a_row_with_fewer_arms_is_widened():
    small, large = new_fleet(arms=ARMS[:2]), new_fleet(arms=ARMS[:5])
    play(small, np.random.default_rng(0), 10)
    large.put("anna", small.row("anna"))
    found = large.diagnostics("anna")
    assert {**small.diagnostics("anna")["pulls"], "art": 0.0, "science": 0.0, "travel": 0.0} == found["pulls"]
    play(large, np.random.default_rng(0), 10)
    for _ in range(3):
        small.add_arm(ARMS[small.n_arms])
    small.put("bob", small.row("bob"))
    with pytest.raises(ValueError, match="fleet with other arms, or with more of them"):
        new_fleet(arms=ARMS[:2]).put("anna", large.row("anna"))


def test_rows_of_other_fleets_are_refused_with_a_sentence():
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 3)
    row = fleet.row("anna")
    wrong = [
        (new_fleet(LINUCB), "another fleet: it is for policy 'LinTS', not 'LinUCB'"),
        (new_fleet(policies.LinTS(sigma=0.2)), "other settings of the same policy"),
        (new_fleet(dim=2), "it is for dim 3, not 2"),
        (new_fleet(arms=["a", "b", "c"]), "fleet with other arms"),
    ]
    for other, message in wrong:
        before = pickle.dumps(other)
        with pytest.raises(ValueError, match=message):
            other.put("anna", row)
        assert pickle.dumps(other) == before
    before = pickle.dumps(fleet)
    for data, message in (
        (b"", "its header is missing"),
        (row[:-9], "its checksum is wrong"),
        (row[:40] + b"\x01" + row[41:], "its checksum is wrong"),
        (with_checksum(row[:-12] + row[-4:]), "it has"),
        (with_checksum(b"albatross row 1\n{}\n0000"), "its header cannot be read"),
        ("a text", "a row must be bytes, not str"),
    ):
        with pytest.raises(ValueError, match=message):
            fleet.put("anna", data)
    assert pickle.dumps(fleet) == before
    fleet.put("anna", memoryview(row))


def with_checksum(row):
    import zlib

    return row[:-4] + zlib.crc32(row[:-4]).to_bytes(4, "little")


@pytest.mark.parametrize("policy", [ALB_NORM, LINUCB], ids=["alb-norm", "linucb"])
def test_a_malicious_row_is_refused_or_harmless(policy):
    fleet, rng = new_fleet(policy), np.random.default_rng(0)
    play(fleet, rng, 10)
    row = fleet.row("anna")
    start, refused = row.index(b"}\n") + 2, []
    for _ in range(300):
        changed = bytearray(row)
        place = start + 8 * int(rng.integers((len(row) - 4 - start) // 8))
        value = rng.choice([np.inf, -np.inf, np.nan, 1e300, -1.0, 0.5, 2.0**40])
        changed[place : place + 8] = np.array(value).tobytes()
        try:
            fleet.put("anna", with_checksum(bytes(changed)))
        except ValueError as error:
            refused.append(str(error))
            continue
        try:
            with np.errstate(all="ignore"):
                play(fleet, rng, 1, users=["anna"])
        except ValueError:  # a score of NaN, which is refused before anything is played
            pass
    assert len(refused) > 60
    assert all("the row is damaged" in message for message in refused)
    fleet.put("anna", row)
    assert fleet.row("anna") == row


@pytest.mark.parametrize(
    ("policy", "changed", "value", "infinite"),
    [(policies.Greedy(), "root", 1e300, "log_det"), (policies.LinUCB(memory=500), "constants", -800.0, "counts")],
    ids=["a number", "a count"],
)
def test_a_row_cannot_spoil_the_file_of_all_users(policy, changed, value, infinite):
    """Numbers below infinity, which a play makes infinite."""
    fleet, rng = new_fleet(policy), np.random.default_rng(0)
    play(fleet, rng, 10)
    crowd = fleet._crowd
    (slot,) = crowd.users.slots(["anna"])
    getattr(crowd.rows.states.fit, changed)[slot] = value
    row = crowd.row("anna")
    fleet.release(["anna"], pending=True)
    fleet.put("anna", row)
    with np.errstate(all="ignore"):
        play(fleet, rng, 1, users=["anna"])
    assert np.isinf(getattr(fleet._crowd.rows.states.fit, infinite)).any()
    loaded, contexts = pickle.loads(pickle.dumps(fleet)), np.ones((1, 3, D))
    assert loaded.select(["bob"], contexts).scores.tolist() == fleet.select(["bob"], contexts).scores.tolist()


def test_counts_that_would_run_over_are_refused_and_the_file_of_all_users_stays_readable():
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 3)
    row, before = fleet.row("anna"), pickle.dumps(fleet)
    at = len(row) - 4 - fleet._crowd.layout.n_bytes + fleet._crowd.layout._decisions.start

    def counting(number):
        return with_checksum(row[:at] + number.to_bytes(4, "little") + row[at + 4 :])

    for number in (2**31 - 1, 2**31 - 2**24):
        with pytest.raises(ValueError, match="numbers of decisions"):
            fleet.put("anna", counting(number))
    assert pickle.dumps(fleet) == before
    fleet.put("anna", counting(2**30 - 2**23))
    fleet.record(["anna"] * len(fleet.arms), fleet.arms, np.ones((len(fleet.arms), D)))
    assert pickle.loads(pickle.dumps(fleet)).users == fleet.users


@pytest.mark.parametrize(
    ("column", "value"),
    [("arms", None), ("arms", 5), ("arms", {"art": 1}), ("slots", np.ma.array([0], mask=[True])), ("slots", [0.5])],
)
def test_choices_of_another_form_are_refused_with_a_sentence(column, value):
    fleet = new_fleet()
    choices = fleet.select(["anna"], np.ones((1, 3, D)))
    with pytest.raises(ValueError, match=f"unchanged result of this fleet's select: {column}"):
        fleet.update(choices._replace(**{column: value}), [1.0])
    fleet.update(choices, [1.0])


# ----------------------------------------------------------------------------------- saving, forks, threads, failures


def test_a_saved_fleet_keeps_its_names_and_goes_on_bit_for_bit(tmp_path):
    fleet = new_fleet(floor=0.1)
    play(fleet, np.random.default_rng(0), 10)
    fleet.add_arm("chess")
    fleet.retire_arm("art")
    fleet.release(["bob"])
    pending = fleet.select(["anna", "zoe"], np.ones((2, 3, D)))
    fleet.save(tmp_path / "fleet")
    loaded = Fleet.load(tmp_path / "fleet")
    assert (loaded.users, loaded.arms, loaded.floor) == (fleet.users, fleet.arms, 0.1)
    assert repr(loaded) == repr(fleet)
    away = fleet.row("anna")
    for each in (fleet, loaded):
        each.update(pending, [1.0, 2.0])
        each.add_arm("food")
        each.put("eve", away)
    assert play(fleet, np.random.default_rng(1), 20) == play(loaded, np.random.default_rng(1), 20)
    assert rows(fleet) == rows(loaded)


def test_an_empty_fleet_can_be_saved():
    fleet = new_fleet()
    loaded = pickle.loads(pickle.dumps(fleet))
    assert loaded.users == []
    assert play(fleet, np.random.default_rng(1), 3) == play(loaded, np.random.default_rng(1), 3)
    assert fleet.select([], np.zeros((0, 3, D))).arms.size == 0
    large = new_fleet(arms=None, n_arms=40, dim=50)  # a state is larger than the file
    assert pickle.loads(pickle.dumps(large)).dim == 50


def saved_members(fleet):
    file = saving.in_memory(fleet)
    with saving.reading(file, kind="fleet") as saved:
        arrays = {name.removesuffix(".npy"): np.load(saved._archive.open(name)) for name in saved._names}
        return {key: value for key, value in saved.header.items() if key != "albatross-fleet"}, arrays


def test_a_fleet_of_numbers_that_an_older_version_saved_is_read():
    fleet = new_fleet(users=None, n_users=4, arms=None, n_arms=3)
    play(fleet, np.random.default_rng(0), 10, users=[0, 1, 1, 3])
    header, arrays = saved_members(fleet)
    old = {name: header[name] for name in ("policy", "n_users", "n_arms", "dim", "horizon", "rng")}
    file = io.BytesIO()
    saving.write(
        file, kind="fleet", header=old, arrays={key: value for key, value in arrays.items() if key != "header"}
    )
    file.seek(0)
    loaded = Fleet.load(file)
    assert rows(loaded) == rows(fleet)
    assert play(loaded, np.random.default_rng(2), 10, users=[2, 2]) == play(
        fleet, np.random.default_rng(2), 10, users=[2, 2]
    )


def test_a_damaged_file_of_names_is_refused():
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 3)
    fleet.add_arm("chess")
    header, arrays = saved_members(fleet)
    arrays.pop("header")
    arms = header["arms"]
    for change in (
        {"users": ["anna", "anna", 7]},
        {"users": ["anna", "bob", ""]},
        {"users": ["anna", "bob", 1.5]},
        {"users": ["anna", "bob"]},
        {"key": None},
        {"key": "xyz"},
        {"key": "00"},
        {"noise_key": None},
        {"noise_key": [1, -1]},
        {"noise_key": [1, 2**64]},
        {"floor": 7.0},
        {"arms": None, "users": None},
        {"arms": {**arms, "first": 0}},
        {"arms": {**arms, "taken": [["sport", 10**9]]}},
        {"arms": {**arms, "taken": []}},
        {"n_users": 0},
    ):
        file = io.BytesIO()
        saving.write(file, kind="fleet", header={**header, **change}, arrays=arrays)
        file.seek(0)
        with pytest.raises(UnreadableFile):
            Fleet.load(file)


def test_after_a_fork_random_numbers_differ_and_orders_of_arms_do_not():
    fleet = new_fleet(policies.Uniform(), arms=list(range(500)))
    other, contexts = pickle.loads(pickle.dumps(fleet)), np.zeros((20, 500, D))
    other._after_fork()
    users = [f"user {i}" for i in range(20)]
    assert fleet.select(users, contexts).arms.tolist() != other.select(users, contexts).arms.tolist()
    greedy = new_fleet(policies.Greedy())
    forked = pickle.loads(pickle.dumps(greedy))
    forked._after_fork()
    for each in (greedy, forked):
        each.admit(users)
    assert rows(greedy) == rows(forked)


def test_threads_take_turns_while_users_come():
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 1)

    def work(thread):
        rng = np.random.default_rng(thread)
        for t in range(40):
            users = [f"{thread} {t % 10}", "all"]
            fleet.update(fleet.select(users, rng.standard_normal((2, 3, D))), rng.standard_normal(2))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fleet.n_users == 3 + 40 + 1
    assert sum(fleet.diagnostics("all")["pulls"].values()) == 160


def test_newcomers_of_a_call_that_fails_are_not_admitted(monkeypatch):
    fleet = new_fleet()
    play(fleet, np.random.default_rng(0), 3)
    before = pickle.dumps(fleet)

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fleet, "_draw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fleet.select(["new", "anna"], np.zeros((2, 3, D)))
    assert pickle.dumps(fleet) == before


# ------------------------------------------------------------------------------------------------------- rows that pass

PASSING_POLICIES = {"linucb": policies.LinUCB(biases=False), "albatross": policies.Albatross(biases=False)}


def passing(policy=PASSING_POLICIES["linucb"], **given):
    return new_fleet(policy, arms="passing", **given)


@pytest.mark.parametrize("policy", PASSING_POLICIES.values(), ids=PASSING_POLICIES)
def test_users_who_are_offered_rows_that_pass_are_agents_of_their_own(policy):
    fleet, agents, rng = (
        passing(policy),
        {name: Agent(policy, arms="passing", dim=D) for name in ("anna", 7)},
        np.random.default_rng(0),
    )
    users, waiting = ["anna", 7, "anna"], []
    for t in range(60):
        contexts = rng.standard_normal((3, int(rng.integers(1, 6)), D))
        eligible = rng.random(contexts.shape[:2]) < 0.7
        eligible[:, 0] |= ~eligible.any(axis=1)
        choices = fleet.select(users, contexts, eligible)
        decisions = [agents[user].select(*each) for user, *each in zip(users, contexts, eligible, strict=True)]
        assert choices.arms.tolist() == [decision.row for decision in decisions]
        np.testing.assert_array_equal(choices.actions, contexts[range(3), choices.arms])
        assert choices.widths.tolist() == [decision.width for decision in decisions]
        waiting.append((choices, decisions, choices.actions @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(3)))
        if len(waiting) > 2:
            made, decided, rewards = waiting.pop(int(rng.integers(3)))
            fleet.update(made, rewards)
            for decision, user, reward in zip(decided, users, rewards.tolist(), strict=True):
                agents[user].update(decision, reward)
        if t == 30:
            fleet = pickle.loads(pickle.dumps(fleet))
    np.testing.assert_allclose(fleet.diagnostics("anna")["theta_hat"], [1.0, -1.0, 0.5], atol=0.1)
    assert (fleet.arms, fleet.diagnostics("anna")["pending"]) == ([], 4)
    contexts = np.array([[0.0, 0, 0], [1.0, -1, 0], [3.0, -3, 0]])
    assert fleet.propensity(["anna"], contexts[None], [[0, 1]]).tolist() == [[0.0, 1.0, 0.0]]
    assert (fleet.explain("anna", contexts).arms, fleet.explain("anna", contexts).best) == ([0, 1, 2], 2)
    assert "arms='passing'" in repr(fleet)


def test_rows_that_pass_replay_from_a_log_and_users_come_back():
    live, fresh, rng = passing(LINTS_OF_ROWS, floor=0.3), passing(LINTS_OF_ROWS, floor=0.3), np.random.default_rng(1)
    for t in range(40):
        made = live.select(["anna", "bob"], rng.standard_normal((2, 1 + t % 4, D)))
        known = fresh.record(made.users, None, made.actions, **columns(made))
        assert known.arms.tolist() == [-1, -1]  # which row of its offer it was is not in the log
        rewards = rng.standard_normal(2)
        for fleet, choices in ((live, made), (fresh, known)):
            fleet.update(choices.rows([0]), rewards[:1])
            fleet.drop(choices.rows([1]))
        if t == 20:
            (row,) = live.release(["anna"])
            live.put("anna", row)
    assert rows(fresh) == rows(live)
    contexts = rng.standard_normal((2, 9, D))
    assert live.select(["anna", "bob"], contexts).arms.tolist() == fresh.select(["anna", "bob"], contexts).arms.tolist()


def test_propensities_of_rows_that_pass_are_the_frequencies():
    fleet, n = passing(policies.Greedy(biases=False, ties="first"), floor=0.3), 20_000
    users = [f"user {i}" for i in range(n)]
    for rows_, stated in ((4, {1: 0.8, 2: 0.1, 3: 0.1}), (2, {1: 1.0})):
        choices = fleet.select(users, np.zeros((n, rows_, D)), np.arange(rows_) > 0)
        for row, propensity in stated.items():
            mine = choices.arms == row
            np.testing.assert_allclose(choices.propensities[mine], propensity)
            assert mine.mean() == pytest.approx(propensity, abs=4 * np.sqrt(propensity / n))


BAD_ROWS = {
    "a policy with biases": (
        lambda f: passing(policies.LinUCB()),
        "give a policy like LinUCB.biases=False., not LinUCB",
    ),
    "a policy of arms": (lambda f: passing(policies.UCB()), "give a policy like LinUCB.biases=False., not UCB"),
    "a flock": (lambda f: Flock(users=[], arms="passing", dim=D), "arms must be a list of names, not 'passing'"),
    "one table for all": (lambda f: f.select(["eve"], np.zeros((3, D))), r"contexts must have shape \(events, any"),
    "no rows": (lambda f: f.select(["eve"], np.zeros((1, 0, D))), "one row at least"),
    "too few features": (lambda f: f.select(["eve"], np.zeros((1, 4, 2))), r"contexts must have shape \(1, 4, 3\)"),
    "a mask of other rows": (lambda f: f.select(["eve"], ONE, [[True] * 4]), r"a mask of booleans of shape \(1, 3\)"),
    "no eligible row": (lambda f: f.select(["eve"], ONE, [False] * 3), "at least one arm must be eligible"),
    "arms in a record": (
        lambda f: f.record(["eve"], [0], np.zeros((1, D))),
        "rows that pass belong to no arms: give None",
    ),
    "a new arm": (lambda f: f.add_arm("a"), "the arms of this fleet have no names"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused_and_change_nothing(case):
    call, message = BAD_ROWS[case]
    fleet = passing(users=["anna"])
    fleet.select(["anna"], ONE)
    before = pickle.dumps(fleet)
    with pytest.raises(ValueError, match=message):
        call(fleet)
    assert pickle.dumps(fleet) == before


# ------------------------------------------------------------------------------------------------------------ bad input


BAD = {
    "both kinds of users": (lambda f: new_fleet(n_users=3), "give users, a list of names, or n_users"),
    "neither arms nor their number": (lambda f: new_fleet(arms=None), "give arms, a list of names, or n_arms"),
    "neither dim nor features": (lambda f: new_fleet(dim=None), "dim must be a whole number"),
    "a text for users": (lambda f: new_fleet(users="anna"), "users must be a list of names, not 'anna'"),
    "an empty name": (lambda f: f.select([""], ONE), "the name of a user must be a text or a whole number, not ''"),
    "a user of True": (
        lambda f: f.select([True], ONE),
        "the name of a user must be a text or a whole number, not True",
    ),
    "a user in halves": (lambda f: f.select([0.5], ONE), "must be a text or a whole number, not 0.5"),
    "a user of 2,000 digits": (lambda f: f.select([10**2000], ONE), "at most 1,200 digits"),
    "nobody": (lambda f: f.select(None, ONE), "users must be a list of names, not None"),
    "a list of lists": (lambda f: f.select([["anna"]], ONE), "must be a text or a whole number"),
    "one row of contexts too few": (lambda f: f.select(["eve"], ONE[:, :2]), r"contexts must have shape \(1, 3, 3\)"),
    "NaN of a newcomer": (lambda f: f.select(["eve"], ONE * np.nan), "contexts must be finite"),
    "an unknown arm": (lambda f: f.select(["eve"], ONE, [["tennis"]]), "there is no arm 'tennis'"),
    "an arm twice": (lambda f: f.select(["eve"], ONE, [["art", "art"]]), "eligible lists an arm twice"),
    "no arm": (lambda f: f.select(["eve"], ONE, [[]]), "at least one arm must be eligible"),
    "one list for two": (lambda f: f.select(["eve", 1], np.zeros((2, 3, D)), [["art"]]), "list the arms of 2 events"),
    "noise of another size": (
        lambda f: f.select(["eve"], ONE, noise=np.zeros((1, 2))),
        r"noise must have shape \(1, 7\)",
    ),
    "counts of another size": (lambda f: f.select(["eve"], ONE, pending=[[0]]), r"pending must have shape \(1, 3\)"),
    "counts below 0": (
        lambda f: f.select(["eve"], ONE, pending=[[0, -1, 0]]),
        "pending must hold numbers of decisions",
    ),
    "an unknown user's row": (lambda f: f.row("eve"), "user 'eve' is unknown: never admitted, or released"),
    "an unknown user's release": (lambda f: f.release(["anna", "eve"]), "user 'eve' is unknown"),
    "a release twice": (lambda f: f.release(["anna", "anna"]), "users lists somebody twice"),
    "an unknown user's diagnostics": (lambda f: f.diagnostics("eve"), "user 'eve' is unknown"),
    "a known arm": (lambda f: f.add_arm("art"), "there is an arm 'art' already"),
    "an unknown arm to retire": (lambda f: f.retire_arm("tennis"), "there is no arm 'tennis'"),
    "a retired arm": (lambda f: f.retire_arm("food"), "arm 'food' is retired"),
    "a retired arm in a record": (lambda f: f.record(["eve"], ["food"], np.zeros((1, D))), "arm 'food' is retired"),
    "an arm too many in a record": (lambda f: f.record(["eve"], ["art"] * 2, np.zeros((1, D))), "arms must be 1 names"),
    "an infinite action": (lambda f: f.record(["eve"], ["art"], np.full((1, D), np.inf)), "actions must be finite"),
    "a propensity of 2": (
        lambda f: f.record(["eve"], ["art"], np.zeros((1, D)), propensities=[2.0]),
        "propensities must be above 0 and at most 1",
    ),
    "tags of another policy": (
        lambda f: f.record(["eve"], ["art"], np.zeros((1, D)), tags=[[1.0]]),
        r"tags must have shape \(1, 0\)",
    ),
    "a floor of 1": (lambda f: new_fleet(floor=1.0), "floor must be 0 or a number strictly between 0 and 1"),
    "numbers have no names": (
        lambda f: new_fleet(arms=None, n_arms=2).add_arm("a"),
        "the arms of this fleet have no names",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_and_changes_nothing(case):
    call, message = BAD[case]
    fleet = new_fleet(users=["anna", "bob"], arms=[*ARMS[:3], "food"])
    fleet.retire_arm("food")
    before = pickle.dumps(fleet)
    with pytest.raises(ValueError, match=message):
        call(fleet)
    assert pickle.dumps(fleet) == before


def test_diagnostics_and_tables_carry_names():
    from albatross.features import Features, Number

    schema = Features({"age": Number(mean=10, sd=5), "length": Number(mean=1, sd=1)})
    fleet = new_fleet(features=schema, dim=None)
    fleet.update(fleet.select(["anna"], schema.encode(None, [{"age": 5, "length": 1}] * 3)[None]), [1.0])
    found = fleet.diagnostics("anna")
    assert set(found["theta_hat"]) == {"age", "length"}
    assert set(found["pulls"]) == set(found["biases"]) == set(ARMS[:3])
    assert "<td>users</td><td>1</td>" in fleet._repr_html_()
    assert "users=[1 names], arms=['sport'" in repr(fleet)
    assert pickle.loads(pickle.dumps(fleet)).features.names == schema.names


def test_too_many_numbered_users_are_refused_before_memory_is_taken():
    with pytest.raises(ValueError, match="would take"):
        Fleet(policies.LinTS(), n_users=10**10, arms=["a", "b"], dim=2)
