"""The flock: golden cases, shards, replay, users as bytes, arms that come and go."""

import copy
import io
import json
import multiprocessing
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from slow_population import SlowFlock

from albatross import Choices, Flock
from albatross.errors import UnknownDecision, UnreadableFile
from albatross.flocking import population as population_module
from albatross.flocking.population import in_pairs
from albatross.flocking.rows import Header, in_bytes
from albatross.models.population import Data, Posterior, Prior, first_population, look, prior_for_users, with_arm
from albatross.models.population_looks import estimated_mean
from albatross.models.user_rows import LIST

GOLDEN = Path(__file__).parent / "golden" / "population"
DIM, ARMS = 2, ["sport", "politics", "art"]


def as_golden_row(population, dim):
    """A population in the order of the golden cases: biases before theta."""
    order = np.roll(np.arange(len(population.mean)), -dim)
    matrices = (each[np.ix_(order, order)].ravel() for each in (population.spread, population.doubt))
    spread, doubt = matrices
    return np.concatenate([population.mean[order], spread, population.noise, np.log(population.shares), doubt])


def two_steps(flock, rewards, patient):
    """A look as the golden cases have it: two steps, and of the mean alone before there are 2 p rewards."""
    population = flock.shared
    for _ in range(2):
        if patient and rewards < 2 * len(population.mean):
            sums = in_pairs(flock._common.heard(population, flock._crowd.audience()))
            power = np.sum(population.mean[: flock.dim] ** 2)
            doubt, mean = estimated_mean(power, population.spread, population.noise, flock.dim, sums)
            population = population._replace(mean=mean, doubt=doubt)
        else:
            population = flock.renew(population, flock.hear(population))
    flock.take_up(population)


@pytest.mark.parametrize("name", ["small", "late", "patient"])
def test_golden_cases_are_played_arm_for_arm(name):
    """They learn variances from 2 p rewards on only. `hear`, `renew` and `take_up` make such looks."""
    case = np.load(GOLDEN / f"{name}.npz")
    n_users, n_arms, dim = (int(size) for size in case["sizes"])
    flock, batches, populations = Flock(n_users=n_users, n_arms=n_arms, dim=dim, looks=False, seed=0), [], []
    first = case["contexts"][0, 0][case["eligible"][0, 0]]
    flock.fix(
        unit=np.sqrt((first**2).sum(axis=1).mean()), level=case["rewards"][case["order"][case["order"] >= 0][0], 0]
    )
    rewards, due = 0, 16.0
    for users, contexts, eligible, order in zip(case["users"], case["contexts"], case["eligible"], case["order"]):
        batches.append(flock.select(users, contexts, eligible))
        if order >= 0:
            flock.update(batches[order], case["rewards"][order])
            rewards += len(users)
            if rewards >= due:
                two_steps(flock, rewards, patient=True)
                populations.append(as_golden_row(flock.shared, dim))
            while due <= rewards:
                due = max(2**0.5 * due, due + 1.0)
    np.testing.assert_array_equal([choices.arms for choices in batches], case["arms"])
    np.testing.assert_allclose(populations, case["populations"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["small", "late"])
def test_a_flock_of_few_parameters_plays_the_golden_cases_with_looks_of_its_own(name):
    case = np.load(GOLDEN / f"{name}.npz")
    n_users, n_arms, dim = (int(size) for size in case["sizes"])
    flock, batches = Flock(n_users=n_users, n_arms=n_arms, dim=dim, seed=0), []
    for users, contexts, eligible, order in zip(case["users"], case["contexts"], case["eligible"], case["order"]):
        batches.append(flock.select(users, contexts, eligible))
        if order >= 0:
            flock.update(batches[order], case["rewards"][order])
    np.testing.assert_array_equal([choices.arms for choices in batches], case["arms"])
    np.testing.assert_allclose(as_golden_row(flock.shared, dim), case["populations"][-1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("biases", ["joint", "independent"])
@pytest.mark.parametrize("name", ["small", "late", "patient"])
def test_a_flock_plays_as_its_dense_transcription(name, biases):
    """On the events of the golden cases, with the rewards that they have for whatever arm."""
    case = np.load(GOLDEN / f"{name}.npz")
    n_users, n_arms, dim = (int(size) for size in case["sizes"])
    flock, slow = (
        Flock(n_users=n_users, n_arms=n_arms, dim=dim, biases=biases, seed=0),
        SlowFlock(n_users, n_arms, dim, case["priority"], independent=biases == "independent"),
    )
    batches, populations = [], []
    for users, contexts, eligible, order in zip(case["users"], case["contexts"], case["eligible"], case["order"]):
        batches.append(flock.select(users, contexts, eligible))
        arms, _ = slow.select(users, contexts, eligible)
        assert batches[-1].arms.tolist() == arms.tolist()
        if order >= 0:
            before, made = flock.shared, batches[order]
            flock.update(made, case["rewards"][order])
            slow.update(made.users, made.arms, made.actions, case["rewards"][order])
            if flock.shared is not before:
                populations.append(as_golden_row(flock.shared, dim))
    assert len(populations) >= 4
    np.testing.assert_allclose(populations, slow.history, rtol=1e-5, atol=1e-6)


def played_in_unit(unit, *, n_arms, dim):
    """Arms, noise over the unit, and kinds, of users whose rewards somebody measures in another unit."""
    flock, rng = Flock(n_users=20, n_arms=n_arms, dim=dim, seed=0), np.random.default_rng(0)
    thetas, levels, arms = 1.0 + rng.standard_normal((20, dim)), rng.standard_normal(n_arms), []
    for visit in range(40):
        users = np.arange(20) if visit == 0 else rng.integers(20, size=10)
        choices = flock.select(users, rng.standard_normal((len(users), n_arms, dim)))
        rewards = levels[choices.arms] + np.sum(choices.actions * thetas[users], axis=1)
        flock.update(choices, unit * (rewards + 0.7 * rng.standard_normal(len(users))))
        arms.append(choices.arms.tolist())
    return arms, flock.population().noise_sd / unit, flock.shared.shares


@pytest.mark.parametrize("unit", [1e-40, 1e-6, 0.1, 10.0, 1e6, 1e40])
def test_the_unit_of_rewards_does_not_matter(unit):
    arms, noise_sd, shares = played_in_unit(unit, n_arms=6, dim=4)
    own_arms, own_noise_sd, own_shares = played_in_unit(1.0, n_arms=6, dim=4)
    assert arms == own_arms
    assert noise_sd == pytest.approx(own_noise_sd, rel=1e-6)
    np.testing.assert_allclose(shares, own_shares, rtol=1e-6)
    assert 0.6 < own_noise_sd < 0.8


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_flock_of_few_parameters_finds_the_noise_in_any_unit(unit):
    """Its noise begins at 1, as in the golden cases, only where this is not far off."""
    assert 0.6 < played_in_unit(unit, n_arms=3, dim=2)[1] < 0.8


def test_users_without_a_click_do_not_make_rare_clicks_look_certain():
    flock, rng = Flock(n_users=300, n_arms=4, dim=3, seed=0), np.random.default_rng(0)
    for _ in range(20):
        arms, contexts = rng.integers(4, size=300), rng.standard_normal((300, 3))
        flock.update(flock.record(np.arange(300), arms, contexts), (rng.random(300) < 0.02).astype(float))
    assert flock.population().noise_sd >= 0.1 * np.sqrt(0.02 * 0.98) * 0.9


def test_from_50_arms_on_biases_are_independent_as_in_the_transcription():
    n_arms, rng = 50, np.random.default_rng(0)
    flock = Flock(n_users=5, n_arms=n_arms, dim=DIM, seed=0)
    slow = SlowFlock(5, n_arms, DIM, np.zeros((5, n_arms)), independent=True)
    levels, everybody, everything = rng.standard_normal(n_arms), np.arange(5), np.ones((5, n_arms), bool)
    for _ in range(12):
        contexts, noise = rng.standard_normal((5, n_arms, DIM)), rng.standard_normal(5)
        made = flock.select(everybody, contexts)
        arms, scores = slow.select(everybody, contexts, everything)
        assert made.arms.tolist() == arms.tolist()
        np.testing.assert_allclose(made.scores, scores + (slow.origin or 0.0), rtol=1e-6)
        rewards = 3.0 + levels[made.arms] + made.actions[:, 0] + noise
        flock.update(made, rewards)
        slow.update(everybody, made.arms, made.actions, rewards)
    assert (Flock(n_users=5, n_arms=49, dim=DIM).biases, flock.biases) == ("joint", "independent")
    np.testing.assert_allclose(as_golden_row(flock.shared, DIM), slow.history[-1], rtol=1e-5, atol=1e-6)
    block = flock.shared.spread[DIM:]
    assert np.count_nonzero(block) == n_arms  # the variance of each bias, and nothing between them or with theta
    assert Flock.load(_saved(flock)).biases == "independent"


@pytest.mark.parametrize("biases", ["joint", "independent"])
def test_a_flock_whose_arms_come_and_go_plays_as_its_dense_transcription(biases):
    """Arms are eligible at random, rewards come late and in any order, and slots are used again or are new."""
    n_users, rng, next_slot = 6, np.random.default_rng(0), 4
    flock = Flock(n_users=n_users, arms=["arm 0", "arm 1", "arm 2", "arm 3"], dim=DIM, biases=biases, seed=0)
    slow = SlowFlock(n_users, 4, DIM, np.zeros((n_users, 9)), independent=biases == "independent")
    thetas, levels, waiting = rng.standard_normal((n_users, DIM)), 2.0 * rng.standard_normal(9), []

    def reward(*made):
        events = [np.concatenate(columns) for columns in zip(*made, strict=True)]
        choices = Choices(*events)
        rewards = levels[choices.slots] + np.sum(choices.actions * thetas[choices.users], axis=1)
        rewards += 0.3 * rng.standard_normal(len(made))
        flock.update(choices, rewards)
        slow.update(choices.users, choices.slots, choices.actions, rewards)

    for batch in range(150):
        slots = [flock.slot_of(arm) for arm in flock.arms]
        users, mask = rng.integers(n_users, size=3), rng.random((3, len(slots))) < 0.6
        mask[~mask.any(axis=1)] = True
        contexts, everywhere = rng.standard_normal((3, len(slots), DIM)), np.zeros((3, slow.n_arms, DIM))
        eligible = np.zeros((3, slow.n_arms), bool)
        everywhere[:, slots], eligible[:, slots] = contexts, mask
        made = flock.select(users, contexts, mask)
        slow.unit = flock.unit  # that of the first offer, in the order of the arms
        arms, scores = slow.select(users, everywhere, eligible)
        assert made.slots.tolist() == arms.tolist()
        np.testing.assert_allclose(made.scores - (slow.origin or 0.0), scores, rtol=1e-6, atol=1e-6)
        waiting += [made.rows([event]) for event in range(3)]
        late = rng.permutation(len(waiting))[: rng.integers(7) if batch > 4 else 0]
        if len(late):
            reward(*(waiting[event] for event in late))
            waiting = [each for event, each in enumerate(waiting) if event not in late]
        if batch % 25 == 24:
            leaver = flock.arms[rng.integers(len(slots))]
            flock.retire_arm(leaver)
            if batch % 50 == 49:  # none of its decisions is pending: the next arm takes its slot
                for each in [each for each in waiting if each.arms[0] == leaver]:
                    reward(each)
                waiting = [each for each in waiting if each.arms[0] != leaver]
            flock.add_arm(f"arm {next_slot}")
            slow.add_arm(flock.slot_of(f"arm {next_slot}"))
            next_slot += 1
    assert flock.n_slots < next_slot  # some slots were used again
    assert len(slow.history) >= 8
    np.testing.assert_allclose(as_golden_row(flock.shared, DIM), slow.population.row(), rtol=1e-5, atol=1e-6)


def play(flock, n_batches, *, seed=0, users=7, late=3, log=None):
    """Batches of three events, whose rewards come some batches later; all that happens goes to the log."""
    rng, waiting = np.random.default_rng(seed), []
    for batch in range(n_batches):
        names = [f"user {user}" for user in rng.integers(users, size=3)]
        choices = flock.select(names, rng.standard_normal((3, flock.n_arms, DIM)))
        waiting.append((choices, choices.actions[:, 0] + rng.standard_normal(3)))
        if log is not None:
            log.append(("select", choices))
        if batch >= late:
            choices, rewards = waiting.pop(int(rng.integers(late)))
            flock.update(choices, rewards)
            if log is not None:
                log.append(("update", choices, rewards))
    return flock


def new_flock(**options):
    return Flock(**{"users": [], "arms": ARMS, "dim": DIM, "seed": 0} | options)


@pytest.fixture(scope="module")
def played():
    return play(new_flock(floor=0.1, unit=1.5), 70)


def test_a_log_replays_to_the_same_users_and_the_same_population():
    log = []
    flock = play(new_flock(floor=0.1, unit=1.5), 70, log=log)
    again = new_flock(floor=0.1, unit=1.5)
    for event, choices, *rewards in log:
        if event == "select":
            again.record(choices.users, choices.arms, choices.actions, propensities=choices.propensities)
        else:
            again.update(choices, *rewards)
    assert [again.row(user) for user in flock.users] == [flock.row(user) for user in flock.users]
    assert all(np.array_equal(one, other) for one, other in zip(flock.shared, again.shared, strict=True))
    assert max(flock.user(user).rewards for user in flock.users) > LIST  # a triangle took part


def test_a_saved_flock_goes_on_where_it_stopped(played):
    file = io.BytesIO()
    played.save(file)
    file.seek(0)
    loaded = Flock.load(file)
    assert [loaded.row(user) for user in played.users] == [played.row(user) for user in played.users]
    contexts = np.random.default_rng(5).standard_normal((2, 3, DIM))
    one, other = (flock.select(["user 1", "newcomer"], contexts) for flock in (loaded, Flock.load(_saved(played))))
    assert one.arms.tolist() == other.arms.tolist()
    assert np.array_equal(one.scores, other.scores)


def _saved(flock):
    file = io.BytesIO()
    flock.save(file)
    file.seek(0)
    return file


def test_a_flock_that_took_up_a_population_goes_on_where_it_stopped():
    flock, rng = new_flock(arms=list("abcdef"), dim=6), np.random.default_rng(1)

    def step(flock, number, contexts, rewards):
        choices = flock.select([f"u{number % 7}", f"v{number % 3}"], contexts)
        flock.update(choices, rewards)
        return choices

    events = [(number, rng.standard_normal((2, 6, 6)), rng.standard_normal(2)) for number in range(40)]
    for event in events[:23]:
        step(flock, *event)
    flock.take_up(flock.shared._replace(mean=flock.shared.mean + 0.01), users=50, rewards=np.int64(1_000))
    again = copy.deepcopy(flock)
    for event in events[23:]:
        np.testing.assert_array_equal(step(flock, *event).scores, step(again, *event).scores)


def test_a_damaged_file_is_refused(played):
    file = _saved(played)
    with pytest.raises(UnreadableFile):
        Flock.load(io.BytesIO(file.getvalue()[: len(file.getvalue()) // 2]))


def test_a_user_who_was_away_goes_on_as_if_they_had_been_here(played):
    stayed, left = Flock.load(_saved(played)), Flock.load(_saved(played))
    (row,) = left.release(["user 1"], pending=True)
    assert "user 1" not in left
    left.put("user 1", row)
    contexts = np.random.default_rng(5).standard_normal((1, 3, DIM))
    assert np.array_equal(stayed.select(["user 1"], contexts).scores, left.select(["user 1"], contexts).scores)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda row: row[:-1], "checksum"),
        (lambda row: b"x" + row[1:], "not a row of a flock"),
        (lambda row: "text", "must be bytes"),
    ],
)
def test_a_damaged_row_is_refused_and_nothing_changes(played, damage, message):
    before = played.row("user 1")
    with pytest.raises(ValueError, match=message):
        played.put("user 1", damage(before))
    assert played.row("user 1") == before


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"arms": ["chess", *ARMS]}, "of other arms"),
        ({"dim": DIM + 1}, "of other dim"),
        ({"unit": 3.0}, "unit 1.5"),
        ({"unit": 1.5, "level": 7.0}, "level"),
    ],
)
def test_a_row_of_another_flock_is_refused(played, other, message):
    flock = new_flock(**other)
    with pytest.raises(ValueError, match=message):
        flock.put("user 1", played.row("user 1"))
    assert flock.users == []


def test_a_flock_that_has_seen_nothing_takes_unit_and_level_from_a_row(played):
    flock = new_flock()
    flock.put("user 1", played.row("user 1"))
    assert flock.row("user 1") == played.row("user 1")


def change_arms(flock):
    """New arms, in a slot of their own and in that of a retired one."""
    flock.add_arm("science")
    flock.retire_arm("sport")
    flock.add_arm("chess")
    return flock


@pytest.mark.parametrize("user", ["user 1", "rare"])  # a triangle, and a list of events
def test_arms_that_were_added_while_a_user_was_away_are_there(played, user):
    stayed, left = Flock.load(_saved(played)), Flock.load(_saved(played))
    for flock in (stayed, left):
        flock.update(flock.select(["rare"], np.ones((1, 3, DIM))), [1.0])
        flock.drop(flock.select(["user 1"], np.ones((1, 3, DIM)), [["sport"]]))
    (row,) = left.release([user], pending=True)
    for flock in (stayed, left):
        for name in flock.users:  # so that the slot of sport is free
            flock._crowd.pending[flock._crowd.users.slots([name])] = 0
        change_arms(flock)
    left.put(user, row)
    assert left._crowd.n_slots == 4
    contexts = np.ones((1, 4, DIM))
    assert np.array_equal(stayed.select([user], contexts).scores, left.select([user], contexts).scores)
    assert left.user(user).biases == stayed.user(user).biases


# ---------------------------------------------------------------------------------------------------------- shards


SHARED = {"dim": 7, "unit": 1.5, "level": 0.25}  # of so many features that looks begin early


def shard(pipe, buckets):
    """One of several processes: the users of some buckets, decisions and rewards as they come."""
    flock, waiting = new_flock(**SHARED, looks=False), {}
    while (message := pipe.recv()) is not None:
        verb, *rest = message
        if verb == "select":
            number, users, contexts = rest
            mine = [event for event, user in enumerate(users) if flock.bucket(user) in buckets]
            choices = flock.select([users[event] for event in mine], contexts[mine])
            waiting[number] = mine, choices
            pipe.send((mine, choices.arms.tolist()))
        elif verb == "update":
            number, rewards = rest
            mine, choices = waiting.pop(number)
            flock.update(choices, rewards[mine])
            pipe.send(None)
        elif verb == "hear":
            pipe.send(flock.hear(*rest))
        else:
            flock.take_up(*rest)
            pipe.send(None)


def test_three_processes_find_the_population_of_one_bit_for_bit():
    alone, maker = new_flock(**SHARED), new_flock(**SHARED, looks=False)
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for buckets in ([0, 1, 2, 3, 4, 5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15]):
        ours, theirs = context.Pipe()
        workers.append(context.Process(target=shard, args=(theirs, buckets), daemon=True))
        pipes.append(ours)
    for worker in workers:
        worker.start()

    def ask(*message):
        for pipe in pipes:
            pipe.send(message)
        return [pipe.recv() for pipe in pipes]

    try:
        rng, looks, last = np.random.default_rng(1), 0, 0
        for number in range(40):
            users, contexts = [f"user {k}" for k in rng.integers(9, size=4)], rng.standard_normal((4, 3, 7))
            choices = alone.select(users, contexts)
            arms = [None] * 4
            for mine, chosen in ask("select", number, users, contexts):
                for event, arm in zip(mine, chosen, strict=True):
                    arms[event] = arm
            assert arms == choices.arms.tolist()
            rewards = choices.actions[:, 0] + rng.standard_normal(4)
            before, n_rewards = alone.shared, 4 * (number + 1)
            alone.update(choices, rewards)
            ask("update", number, rewards)
            if alone.shared is not before:
                population = maker.look(lambda present: sum(ask("hear", present)), rewards=n_rewards, last=last)
                ask("take_up", population)
                maker.take_up(population)
                looks, last = looks + 1, n_rewards
                for one, other in zip(alone.shared, population, strict=True):
                    assert np.array_equal(one, other)
        assert looks >= 7
    finally:
        for pipe, worker in zip(pipes, workers, strict=True):
            pipe.send(None)
            worker.join(20)


def test_populations_of_another_size_are_refused_before_compiled_code_sees_them(played):
    other, before = new_flock(arms=["sport"]).shared, _saved(played).getvalue()
    heard = played.hear(played.shared)
    shared, lopsided = played.shared, np.triu(np.ones((5, 5)), 1)
    cut = shared._replace(spread=shared.spread[:2, :2])
    no_covariances = [shared._replace(spread=np.eye(5) + lopsided), shared._replace(doubt=9.0 - np.eye(5))]
    no_numbers = [shared._replace(mean=np.full(5, np.nan)), shared._replace(noise=np.array([1e-320, 2.0]))]
    for wrong in (other, cut, None, *no_covariances, *no_numbers):
        for call in (played.take_up, played.hear, lambda each: played.renew(each, heard)):
            with pytest.raises(ValueError, match=r"population|must"):
                call(wrong)
    assert _saved(played).getvalue() == before


@pytest.mark.parametrize(
    "sent",
    [
        np.ndarray.tolist,
        np.asfortranarray,
        lambda array: array.astype(">f8"),
        lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
        lambda array: np.frombuffer(array.tobytes()).reshape(array.shape),
    ],
    ids=["lists", "columns", "other-byte-order", "strides", "read-only"],
)
def test_a_population_arrives_whatever_way_its_arrays_were_sent(played, sent):
    """Compiled code would read such arrays as if they lay in memory like ours."""
    contexts, rows, heard = np.random.default_rng(5).standard_normal((2, 3, DIM)), [], []
    for population in (played.shared, type(played.shared)(*map(sent, played.shared))):
        flock = Flock.load(_saved(played))
        heard.append(flock.hear(population))
        flock.take_up(population)
        rows.append(flock.select(["user 1", "newcomer"], contexts).scores)
        assert np.array_equal(flock.renew(population, heard[-1].tolist()).mean, flock.renew(population, heard[0]).mean)
    assert np.array_equal(*rows)
    assert np.array_equal(*heard)


def test_a_population_that_was_taken_up_is_the_flocks_own(played):
    flock, population = Flock.load(_saved(played)), played.shared._replace(mean=np.zeros(5))
    flock.take_up(population)
    population.mean[:] = 7.0
    assert not flock.shared.mean.any()


def test_nothing_is_learnt_from_nobody():
    flock = new_flock(users=["anna"], looks=False)
    with pytest.raises(ValueError, match="no user has a reward to learn from"):
        flock.renew(flock.shared, flock.hear(flock.shared))


def test_one_user_cannot_take_the_population_from_all_others():
    flock, rng, users = new_flock(), np.random.default_rng(1), [f"user {number}" for number in range(6)]

    def batches(n, contexts=1.0, rewards=1.0):
        for _ in range(n):
            choices = flock.select(
                users, rng.standard_normal((6, 3, DIM)) * np.repeat([contexts, 1.0], [1, 5])[:, None, None]
            )
            flock.update(choices, rng.standard_normal(6) * np.repeat([rewards, 1.0], [1, 5]))

    batches(10)
    batches(1, contexts=1e98)
    batches(9)
    batches(1, rewards=1e99)
    with pytest.warns(UserWarning, match="the population stays as it is: .* differ too much in size"):
        batches(19)
    assert all(np.isfinite(each).all() for each in flock.shared)
    assert flock.user("user 1").rewards == 40


@pytest.mark.parametrize("size", [1e-100, 1e60, 1e99])
def test_rewards_of_any_allowed_size_can_be_saved_and_shared(size):
    flock, rng = new_flock(), np.random.default_rng(1)
    for _ in range(20):
        choices = flock.select(["anna", "bob"], rng.standard_normal((2, 3, DIM)))
        flock.update(choices, size * rng.standard_normal(2))
    assert Flock.load(_saved(flock)).population() == flock.population()
    flock.take_up(flock.renew(flock.shared, flock.hear(flock.shared)))


def test_contexts_of_the_largest_numbers_can_be_saved_and_put_back():
    """Their length is larger than any number that is allowed."""
    flock = new_flock()
    choices = flock.select(["anna"], np.full((1, 3, DIM), 1e100))
    flock.update(choices, [1.0])
    flock.put("anna", flock.row("anna"))
    assert Flock.load(_saved(flock)).unit == flock.unit == 1e100
    new_flock(unit=flock.unit)


# ------------------------------------------------------------------------------------------------- rows from elsewhere


def changed_row(flock, user, **changes):
    """The row of a user in which some arrays are others, with a checksum that is right."""
    crowd = flock._crowd
    kept = crowd.kept(crowd.users.slots([user]))
    parts = {name: each for name, each in changes.items() if name in kept.data._fields}
    kept = kept._replace(data=kept.data._replace(**parts), **{k: v for k, v in changes.items() if k not in parts})
    arms = crowd.arms
    return in_bytes(kept, Header(crowd.dim, len(arms.taken), arms.digest(len(arms.taken)), crowd.origin))


@pytest.mark.parametrize(
    "changes",
    [
        {"sides": np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -60.0]])},
        {"sides": np.full((1, 6), 1e150)},
        {"triangles": np.full((1, 15), 1e150)},
        {"triangles": np.full((1, 15), np.nan)},
        {"decisions": np.array([2**31 - 1], np.int32)},
        {"pending": np.array([[2**31 - 1, 0, 0]], np.int32)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_row_of_impossible_numbers_is_refused(played, changes):
    before = _saved(played).getvalue()
    with pytest.raises(ValueError, match=r"must|impossible"):
        played.put("user 1", changed_row(played, "user 1", **changes))
    assert _saved(played).getvalue() == before


_LARGEST_SUM = 4e100 * 32**0.5  # of user 1, after 32 rewards


@pytest.mark.parametrize(
    ("changes", "too_much"),
    [
        ({"plays": np.array([2**52])}, {"plays": np.array([2**53])}),
        ({"decisions": np.array([2**30 - 2**23], np.int32)}, {"decisions": np.array([2**31 - 2**24], np.int32)}),
        ({"pending": np.full((1, 3), 2**30 - 2**23, np.int32)}, {"pending": np.full((1, 3), 2**31 - 2**24, np.int32)}),
        ({"sides": np.full((1, 6), 0.99 * _LARGEST_SUM)}, {"sides": np.full((1, 6), 1.01 * _LARGEST_SUM)}),
        ({"triangles": np.full((1, 15), 0.99 * _LARGEST_SUM)}, {"triangles": np.full((1, 15), 1.01 * _LARGEST_SUM)}),
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_user_at_the_limits_of_a_row_goes_on_and_the_file_of_all_stays_readable(played, changes, too_much):
    flock, contexts = Flock.load(_saved(played)), np.random.default_rng(5).standard_normal((1, 3, DIM))
    assert flock.user("user 1").rewards == 32
    with pytest.raises(ValueError, match=r"impossible|must hold finite numbers"):
        flock.put("user 1", changed_row(flock, "user 1", **too_much))
    flock.put("user 1", changed_row(flock, "user 1", **changes))
    choices = flock.record(["user 1"] * 3, ARMS, contexts[0])
    flock.update(choices.rows([0, 1]), [1.0, 2.0])
    assert Flock.load(_saved(flock)).users == flock.users


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_what_cannot_be_a_posterior_is_made_anew(played, value):
    flock, fresh = Flock.load(_saved(played)), Flock.load(_saved(played))
    posteriors = Posterior(np.full((1, 5), value), np.full((1, 5, 5), value), np.full((1, 2), value))
    flock.put("user 1", changed_row(flock, "user 1", posteriors=posteriors))
    fresh.put("user 1", changed_row(flock, "user 1", version=np.array([-1])))
    contexts = np.random.default_rng(5).standard_normal((1, 3, DIM))
    assert np.array_equal(flock.select(["user 1"], contexts).scores, fresh.select(["user 1"], contexts).scores)


def test_a_row_of_too_few_plays_does_not_spoil_the_file_of_all(played):
    flock = Flock.load(_saved(played))
    none = np.zeros(1, np.int64)
    flock.put("user 1", changed_row(flock, "user 1", plays=none, looked=none, pending=np.zeros((1, 3), np.int32)))
    flock._crowd.pending[:] = 0
    for arm in ("sport", "art"):
        flock.retire_arm(arm)
        flock.add_arm(f"new {arm}")
    assert Flock.load(_saved(flock)).users == flock.users


@pytest.mark.parametrize("name", ["version", "rewards"])
def test_numbers_that_cannot_be_counted_on_are_refused(played, name):
    with np.load(_saved(played)) as arrays:
        parts = dict(arrays)
    header = json.loads(parts["header"].tobytes()) | {name: 2**63 - 1}
    file = io.BytesIO()
    np.savez(file, **(parts | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}))
    file.seek(0)
    with pytest.raises(UnreadableFile, match=f"{name} holds"):
        Flock.load(file)


# ------------------------------------------------------------------------------------------------------------- arms


def test_the_population_is_possible_with_a_new_arm_though_users_agree_about_one_of_the_others():
    flock, rng, users = new_flock(), np.random.default_rng(0), [f"user {number}" for number in range(200)]
    tastes = 3.0 * rng.standard_normal(200)

    def batches(n):
        for _ in range(n):
            arms = rng.choice(flock.arms, 200)
            choices = flock.record(users, arms, rng.standard_normal((200, DIM)))
            flock.update(choices, np.where(np.isin(arms, ARMS[:2]), tastes, 0.0) + 0.3 * rng.standard_normal(200))

    batches(8)
    flock.add_arm("science")
    assert np.linalg.eigvalsh(flock.shared.spread)[0] > 0.0
    assert np.linalg.eigvalsh(flock.shared.doubt)[0] > 0.0
    flock.looks = False  # under this population, not the next one
    batches(8)
    assert (flock.select(users, np.ones((200, 4, DIM))).widths > 0.0).all()
    assert all(np.isfinite(list(flock.user(user).bias_sds.values())).all() for user in users[:20])


def test_a_new_arm_goes_along_with_the_others_as_they_do_with_each_other():
    spread = 0.5 * np.eye(5)
    spread[DIM:, DIM:] += 2.0
    wide = with_arm(first_population(3, DIM)._replace(spread=spread), DIM, 3).spread
    np.testing.assert_allclose(wide[DIM:, DIM:], 0.5 * np.eye(4) + 2.0, rtol=1e-14)
    assert not wide[:DIM, DIM:].any()


@pytest.mark.parametrize("change", [lambda flock: flock.add_arm("science"), lambda flock: flock.reset_arm("art")])
def test_users_and_population_take_a_new_arm_at_once(played, change, monkeypatch):
    """Compiled code would read outside of arrays if another thread decided in between, or if one of them failed."""
    flock, locked = Flock.load(_saved(played)), []

    def out_of_memory(*_):
        locked.append(flock._lock.locked())
        raise MemoryError

    monkeypatch.setattr(population_module, "with_arm", out_of_memory)
    with pytest.raises(MemoryError):
        change(flock)
    assert locked == [True]
    assert (flock.arms, flock._crowd.n_slots, len(flock.shared.mean)) == (ARMS, 3, 3 + DIM)


@pytest.mark.parametrize("plays", [1, 5, 18])
def test_a_flock_can_be_saved_after_an_arm_took_the_slot_of_another(plays):
    flock = new_flock()
    for _ in range(plays):
        flock.update(flock.select(["anna"], np.ones((1, 3, DIM)), [["sport"]]), [1.0])
    flock.retire_arm("sport")
    flock.add_arm("chess")
    assert Flock.load(_saved(flock)).row("anna") == flock.row("anna")
    flock.put("anna", flock.row("anna"))
    assert flock.user("anna").rewards == plays - 1


# ----------------------------------------------------------------------------------------------- memory that is needed


def test_users_with_a_single_reward_cost_no_matrix():
    flock, names = new_flock(), [f"user {number}" for number in range(100)]
    flock.update(flock.select(names, np.ones((100, 3, DIM))), np.ones(100))
    assert len(flock._crowd.state.memory.triangles) == 0
    flock.update(flock.select(names[:3] * LIST, np.ones((3 * LIST, 3, DIM))), np.ones(3 * LIST))
    assert len(flock._crowd.state.memory.triangles) == 3
    flock.update(flock.select(names[:3] * LIST, np.ones((3 * LIST, 3, DIM))), np.ones(3 * LIST))
    assert len(flock._crowd.state.memory.triangles) == 3


def test_a_reward_copies_nothing_of_other_users(played):
    flock = Flock.load(_saved(played))
    for _ in range(2):
        before = flock._crowd.pending, flock._crowd.keys, flock._crowd.state.looked
        flock.update(flock.select(["user 1"], np.ones((1, 3, DIM))), [1.0])
    after = flock._crowd.pending, flock._crowd.keys, flock._crowd.state.looked
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_more_users_than_fit_are_refused_before_the_memory_is_gone():
    tracemalloc.start()
    with pytest.raises(ValueError, match="GB"):
        Flock(n_users=10**11, n_arms=3, dim=2)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


@pytest.mark.parametrize("claimed", [{"dim": 16_000}, {"n_arms": 16_000}, {"n_users": 10**9, "users": None}])
def test_loading_costs_no_more_than_the_file_has(played, claimed):
    with np.load(_saved(played)) as file:
        arrays = {name: file[name] for name in file.files}
    header = {**json.loads(arrays["header"].tobytes()), **claimed}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    changed = io.BytesIO()
    np.savez(changed, **arrays)
    tracemalloc.start()
    with pytest.raises(UnreadableFile):
        Flock.load(changed)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_arms_come_and_go_while_decisions_are_pending(played):
    flock = Flock.load(_saved(played))
    choices = flock.select(["user 1", "anna"], np.ones((2, 3, DIM)))
    flock.add_arm("science")
    flock.retire_arm("sport")
    flock.update(choices, [1.0, 2.0])
    assert flock.arms == ["politics", "art", "science"]
    report = flock.population()
    assert abs(report.biases["science"] - np.mean([report.biases["politics"], report.biases["art"]])) < 2.0
    play(flock, 30, seed=3)
    assert set(flock.user("anna").biases) == {"politics", "art", "science"}


def test_a_slot_is_used_again_without_the_bias_of_its_last_arm():
    """What is left of the plays is what they say of theta if nothing is known of the bias."""
    flock, rng = new_flock(unit=1.0), np.random.default_rng(0)
    theta, biases = np.array([1.0, -1.0]), {"sport": 50.0, "politics": 0.0, "art": 0.0, "science": 0.0}
    for _ in range(40):
        contexts = rng.standard_normal((1, 3, DIM))
        choices = flock.select(["anna"], contexts)
        flock.update(choices, choices.actions @ theta + biases[choices.arms[0]] + 0.1 * rng.standard_normal(1))
    flock.retire_arm("sport")
    flock.add_arm("science")
    assert flock._crowd.n_slots == 3
    known = flock.user("anna")
    assert known.theta["feature 0"] == pytest.approx(1.0, abs=0.2)
    assert known.biases["science"] < 25.0


# ---------------------------------------------------------------------------------------------------------- options


def test_sampling_draws_from_the_posterior():
    flock = new_flock(index="sampling", unit=1.0)
    play(flock, 20)
    user, rng = flock.user("user 1"), np.random.default_rng(0)
    noise = rng.standard_normal((50, 5))
    draws = flock.select(["user 1"] * 50, np.zeros((50, 3, DIM)), noise=noise).scores
    assert draws.std() > 0.0
    assert draws.mean() > min(user.biases.values())


@pytest.mark.parametrize("index", ["optimism", "sampling"])
@pytest.mark.parametrize("size", [1e10, 1e30, 1e99])
def test_scores_are_finite_though_contexts_become_larger_by_far(index, size):
    flock, rng = play(new_flock(index=index), 30), np.random.default_rng(3)
    for _ in range(30):
        choices = flock.select(["user 1", "user 2"], size * rng.standard_normal((2, 3, DIM)))
        assert np.isfinite(choices.scores).all()
        flock.update(choices, rng.standard_normal(2))
    assert np.isfinite([flock.population().noise_sd, *flock.population().theta.values()]).all()


def test_contexts_far_beyond_their_unit_are_refused_and_change_nothing():
    flock = new_flock()
    contexts = np.full((2, 3, DIM), 1e-30)
    contexts[1] = 1e99
    with pytest.raises(ValueError, match=r"at most 1e\+100 times their usual length, 1\.41421e-30"):
        flock.select(["anna", "bob"], contexts)
    assert (flock.users, flock._origin.tolist()) == ([], [0.0, 0.0, 0.0])


def test_propensities_of_sampling_are_those_of_its_choices():
    flock = play(new_flock(index="sampling", unit=1.0, floor=0.1), 20)
    contexts, before = np.random.default_rng(2).standard_normal((3, DIM)), flock.row("user 1")
    shares = flock.propensity("user 1", contexts, ["sport", "art"], draws=2_000)
    assert flock.row("user 1") == before
    choices = flock.select(["user 1"] * 2_000, np.repeat(contexts[None], 2_000, 0), [["sport", "art"]] * 2_000)
    chosen = [float(np.mean(np.asarray(choices.arms) == arm)) for arm in ARMS]
    np.testing.assert_allclose(shares, chosen, atol=0.04)
    assert shares[1] == 0.0
    assert shares.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"draws=1000000000000 .* take fewer"):
        flock.propensity("user 1", contexts, draws=10**12)


def test_a_floor_makes_propensities_exact():
    flock = new_flock(floor=0.3)
    found = {flock.select(["anna"], np.ones((1, 3, DIM))).propensities[0].round(9) for _ in range(60)}
    assert found == {0.8, 0.1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda flock: flock.select(["anna"], np.ones((1, 2, DIM))), "contexts"),
        (lambda flock: flock.select(["anna"], np.full((1, 3, DIM), np.nan)), "finite"),
        (lambda flock: flock.select([""], np.ones((1, 3, DIM))), "name"),
        (lambda flock: flock.select(["anna"], np.ones((1, 3, DIM)), [["chess"]]), "chess"),
        (lambda flock: flock.user("nobody"), "unknown"),
        (lambda flock: flock.retire_arm("chess"), "chess"),
        (lambda flock: flock.release(["user 1", "user 1"]), "twice"),
        (lambda flock: flock.take_up(None), "population"),
        (lambda flock: flock.hear(new_flock(arms=[*ARMS, "science"]).shared), "mean"),
        (lambda flock: flock.renew(flock.shared, np.ones((16, 3))), "heard"),
        (lambda flock: flock.look(lambda population: np.ones((16, 3)), rewards=20), "heard"),
        (lambda flock: flock.look(flock.hear, rewards=0), "rewards"),
        (lambda flock: flock.propensity("user 1", np.ones((3, DIM))), "sampling"),
        (lambda flock: Flock(users=[], n_users=3, arms=ARMS, dim=2), "not both"),
        (lambda flock: new_flock(index="greedy"), "index"),
        (lambda flock: new_flock(biases="none"), "biases"),
        (lambda flock: new_flock(unit=-1.0), "unit"),
        (lambda flock: new_flock(level=np.nan), "level"),
        (lambda flock: new_flock(looks=False).select(["anna"], np.ones((1, 3, DIM))), "give unit"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_and_changes_nothing(played, call, message):
    before = _saved(played).getvalue()
    with pytest.raises(ValueError, match=message):
        call(played)
    assert _saved(played).getvalue() == before


def test_a_choice_is_rewarded_once():
    flock = new_flock()
    choices = flock.select(["anna"], np.ones((1, 3, DIM)))
    flock.update(choices, [1.0])
    with pytest.raises(UnknownDecision, match="rewarded"):
        flock.update(choices, [1.0])


# ---------------------------------------------------------------------------------------------------------- reports


def test_the_population_says_what_it_rests_on(played):
    report = played.population()
    assert set(report.biases) == set(ARMS)
    assert sum(report.kinds.values()) == pytest.approx(1.0)
    assert report.looks == len(report.history["rewards"]) > 3
    assert any("users" in warning for warning in report.warnings)
    assert "16 rewards" in new_flock().population().warnings[0]


def test_equal_rewards_and_contexts_that_never_change_are_warned_of():
    flock, contexts = new_flock(), np.random.default_rng(0).standard_normal((1, 3, DIM))
    for visit in range(60):
        flock.update(flock.select([f"user {visit % 30}"], contexts), [1.0])
    report = flock.population()
    assert report.noise_sd >= 1e-6  # and not 0
    assert any("never change" in warning for warning in report.warnings)
    assert any("All rewards are equal" in warning for warning in report.warnings)
    assert np.isfinite(flock.select(["newcomer"], contexts).scores).all()


def test_a_newcomer_has_the_posterior_of_the_population():
    prior = prior_for_users(first_population(3, DIM))
    nothing = Data(np.empty((0, 5)), np.empty(0), np.zeros(2))
    posterior = Posterior(np.empty(5), np.empty((5, 5)), np.empty(2))
    look(prior, DIM, nothing, posterior)
    assert isinstance(prior, Prior)
    assert np.array_equal(posterior.mean, np.zeros(5))
    assert posterior.scalars[1] == 0.0
