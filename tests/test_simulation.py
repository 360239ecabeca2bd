from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass

import numpy as np
import processes
import pytest
from stepping import agent_on_stream, rounds_of

from albatross import Run, environments, policies, simulate, simulation
from albatross.protocol import begin, draw
from albatross.recording import recording_grid

# 20 x 50 contexts make chunks of 131 rounds, so that a few hundred rounds already cross several.
WIDE = environments.Mixture(n_arms=20, dim=50, noise_sd=0.5)
SMALL = environments.Mixture(n_arms=4, dim=3, noise_sd=0.5)
CHUNK = simulation._CHUNK_BYTES // (8 * 20 * 50)

LINTS = policies.LinTS(sigma=0.5)
ALB_NORM = policies.ALBNorm(norm_bound=5.0, epoch_length=20, sigma=0.5)
GREEDY = policies.Greedy()
UNIFORM = policies.Uniform()


def assert_same_run(one: Run, other: Run) -> None:
    """Curves and diagnostics equal to the last bit."""
    assert np.array_equal(one.rounds, other.rounds)
    assert np.array_equal(one.regret, other.regret)
    assert np.array_equal(one.reward, other.reward)
    assert len(one.diagnostics) == len(other.diagnostics)
    for found, wanted in zip(one.diagnostics, other.diagnostics, strict=True):
        np.testing.assert_equal(found, wanted)


# ------------------------------------------------------------------------------------------- the same problem


def test_every_policy_of_a_trial_meets_the_same_contexts_and_noise():
    lone_arm = environments.Mixture(n_arms=1, dim=3, noise_sd=1.0)  # whatever the policy, there is one thing to do
    runs = simulate({"lints": LINTS, "greedy": GREEDY, "uniform": UNIFORM}, lone_arm, horizon=200, trials=3, seed=4)
    assert np.array_equal(runs["lints"].reward, runs["greedy"].reward)
    assert np.array_equal(runs["lints"].reward, runs["uniform"].reward)
    for trial in range(3):
        np.testing.assert_equal(runs["lints"].diagnostics[trial]["truth"], runs["greedy"].diagnostics[trial]["truth"])


def test_trials_and_seeds_give_different_problems():
    first = simulate(UNIFORM, SMALL, horizon=50, trials=3, seed=0)
    second = simulate(UNIFORM, SMALL, horizon=50, trials=3, seed=1)
    thetas = [tuple(found["truth"]["theta"]) for run in (first, second) for found in run.diagnostics]
    assert len(set(thetas)) == 6
    assert np.unique(np.concatenate([first.regret[:, -1], second.regret[:, -1]])).size == 6


def test_same_seed_gives_the_same_numbers():
    first, again = (simulate(LINTS, SMALL, horizon=100, trials=2, seed=3) for _ in range(2))
    assert_same_run(first, again)


def test_number_of_workers_changes_no_number():
    named = {"alb-norm": ALB_NORM, "lints": LINTS, "uniform": UNIFORM}
    alone = simulate(named, WIDE, horizon=2 * CHUNK + 10, trials=5, seed=2, workers=1)
    together = simulate(named, WIDE, horizon=2 * CHUNK + 10, trials=5, seed=2, workers=2)
    for name in named:
        assert_same_run(alone[name], together[name])


def test_other_policies_and_their_order_change_no_number():
    def play(*names):
        known = {"alb-norm": ALB_NORM, "lints": LINTS, "uniform": UNIFORM}
        return simulate({name: known[name] for name in names}, WIDE, horizon=CHUNK + 10, trials=2, seed=5)

    both, reversed_, more = play("lints", "uniform"), play("uniform", "lints"), play("alb-norm", "uniform", "lints")
    for name in ("lints", "uniform"):
        assert_same_run(both[name], reversed_[name])
        assert_same_run(both[name], more[name])
    assert_same_run(both["lints"], simulate(LINTS, WIDE, horizon=CHUNK + 10, trials=2, seed=5))


def test_more_trials_begin_with_the_same_ones():
    few, many = (simulate(LINTS, SMALL, horizon=60, trials=trials, seed=6) for trials in (2, 4))
    assert np.array_equal(few.regret, many.regret[:2])


@pytest.mark.parametrize("policy", [LINTS, ALB_NORM], ids=["lints", "alb-norm"])
@pytest.mark.parametrize("horizon", [CHUNK // 2, CHUNK, CHUNK + 40])
def test_a_longer_horizon_begins_like_a_shorter_one(policy, horizon):
    shared = list(range(1, horizon + 1))
    short = simulate(policy, WIDE, horizon=horizon, trials=2, seed=7, record=shared)
    long = simulate(policy, WIDE, horizon=3 * CHUNK + 5, trials=2, seed=7, record=shared)
    assert np.array_equal(short.regret, long.regret)
    assert np.array_equal(short.reward, long.reward)


# ------------------------------------------------------------------------------------------------- what is counted


@pytest.mark.parametrize("policy", [LINTS, ALB_NORM], ids=["lints", "alb-norm"])
def test_regret_and_reward_are_those_of_a_replay_by_hand(policy):
    horizon, seed, trial = CHUNK + 60, 11, 1
    run = simulate(policy, WIDE, horizon=horizon, trials=2, seed=seed)
    agent = agent_on_stream(policy, WIDE, seed=seed, trial=trial)
    regrets, rewards = [], []
    for contexts, means, noise in rounds_of(WIDE, horizon=horizon, seed=seed, trial=trial):
        decision = agent.select(contexts)
        reward = means[decision.arm] + noise[decision.arm]
        agent.update(decision, reward)
        regrets.append(means.max() - means[decision.arm])
        rewards.append(reward)
    assert run.rounds.tolist() == list(range(1, horizon + 1))
    assert run.regret[trial].tolist() == np.cumsum(regrets).tolist()
    assert run.reward[trial].tolist() == np.cumsum(rewards).tolist()
    assert run.diagnostics[trial]["theta_hat"].tolist() == agent.diagnostics()["theta_hat"].tolist()
    assert run.diagnostics[trial]["pulls"].tolist() == agent.diagnostics()["pulls"].tolist()


def test_regret_is_pseudo_regret_which_never_falls_and_knows_no_noise():
    loud = environments.Mixture(n_arms=4, dim=3, noise_sd=50.0)
    quiet = environments.Mixture(n_arms=4, dim=3, noise_sd=0.0)
    heard, unheard = (simulate(UNIFORM, env, horizon=300, trials=2, seed=0) for env in (loud, quiet))
    assert (np.diff(heard.regret, axis=1) >= 0).all()
    assert np.array_equal(heard.regret, unheard.regret)  # uniform play does not look at rewards
    assert not np.array_equal(heard.reward, unheard.reward)


def test_truth_is_told_with_the_diagnostics():
    run = simulate(GREEDY, environments.Mixture(n_arms=3, dim=2, theta=[3.0, 4.0]), horizon=10)
    assert run.diagnostics[0]["truth"]["theta"].tolist() == [3.0, 4.0]
    assert run.diagnostics[0]["truth"]["biases"].shape == (3,)


# ------------------------------------------------------------------------------------------------- what is returned


def test_one_policy_gives_one_run_and_a_dict_gives_a_dict_in_its_order():
    alone = simulate(GREEDY, SMALL, horizon=20)
    named = simulate({"b": UNIFORM, "a": GREEDY}, SMALL, horizon=20)
    assert isinstance(alone, Run)
    assert list(named) == ["b", "a"]
    assert named["a"].policy == GREEDY
    assert_same_run(named["a"], alone)
    assert list(simulate({"only": GREEDY}, SMALL, horizon=20)) == ["only"]


def test_run_says_what_it_is():
    run = simulate(UNIFORM, SMALL, horizon=1_234, trials=3, record=5)
    mean = f"{run.regret[:, -1].mean():,.1f}"
    assert repr(run).startswith(f"Run(Uniform(): 3 trials, regret {mean} +- ")
    assert repr(run).endswith("after 1,234 rounds)")


def test_short_runs_are_recorded_round_by_round():
    run = simulate(UNIFORM, SMALL, horizon=150, trials=2)
    assert run.rounds.tolist() == list(range(1, 151))
    assert run.regret.shape == run.reward.shape == (2, 150)


@pytest.mark.parametrize("record", [7, "log", [3, 50, 90], (3, 50, 90), np.array([3, 50, 90])], ids=str)
def test_recorded_rounds_are_the_same_whichever_others_are_recorded(record):
    full = simulate(UNIFORM, SMALL, horizon=100, trials=2)
    thin = simulate(UNIFORM, SMALL, horizon=100, trials=2, record=record)
    assert np.array_equal(thin.regret, full.regret[:, thin.rounds - 1])
    assert np.array_equal(thin.reward, full.reward[:, thin.rounds - 1])


@pytest.mark.parametrize("horizon", [1, 2, 1_999, 2_000, 2_001, 12_775, 10_000_000])
@pytest.mark.parametrize("record", [None, "log"])
def test_grid_has_at_most_two_thousand_rounds_and_both_ends(horizon, record):
    grid = recording_grid(horizon, record)
    assert 1 <= grid.size <= min(horizon, 2_000)
    assert (grid[0], grid[-1]) == (1, horizon)
    assert (np.diff(grid) > 0).all()


def test_plain_grid_is_even_and_complete_where_there_is_room():
    assert recording_grid(2_000).size == 2_000
    steps = np.diff(recording_grid(10_000_000))
    assert steps.max() - steps.min() <= 1


def test_log_grid_has_steps_in_proportion_to_the_round():
    grid = recording_grid(1_000_000, "log")
    late = grid[grid > 1_000]
    ratios = late[1:] / late[:-1]
    assert ratios.max() < 1.01
    assert np.median(np.diff(grid)[grid[:-1] > 100_000]) > 100 * np.median(np.diff(grid)[grid[:-1] < 1_000])


def test_explicit_rounds_are_taken_sorted_and_once():
    assert recording_grid(100, [100, 5, 5, 1]).tolist() == [1, 5, 100]


def test_one_recorded_round_is_the_last():
    assert recording_grid(100, 1).tolist() == [100]


def test_progress_is_shown_where_asked_for_and_changes_no_number(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the captured stream for a terminal
    silent = simulate(UNIFORM, SMALL, horizon=50)
    assert capsys.readouterr().err == ""
    shown = simulate(UNIFORM, SMALL, horizon=50, progress=True)
    assert "playing" in capsys.readouterr().err
    assert_same_run(silent, shown)


# --------------------------------------------------------------------------------------------------- memory


def test_memory_does_not_grow_with_the_horizon():
    def peak(horizon):
        tracemalloc.start()
        simulate(LINTS, SMALL, horizon=horizon, workers=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    chunk = simulation._CHUNK_BYTES // (8 * 4 * 3)
    peak(10)  # whatever is made once is made here
    short, long = peak(2 * chunk), peak(16 * chunk)
    assert short > simulation._CHUNK_BYTES  # the contexts of a chunk are seen at all
    assert long < 1.05 * short


# ------------------------------------------------------------------------------------------------ things that go wrong


@pytest.fixture
def no_work(monkeypatch):
    """Fails a test in which a trial is begun."""

    def begun(*_):
        raise AssertionError("a trial was begun")

    monkeypatch.setattr(simulation, "_play_trial", begun)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("horizon", 0),
        ("horizon", -5),
        ("horizon", 10.0),
        ("horizon", True),
        ("trials", 0),
        ("trials", 1.5),
        ("seed", -1),
        ("seed", 0.5),
        ("workers", 0),
        ("workers", -2),
        ("workers", 1.5),
        ("workers", 2.5),
        ("workers", "all"),
        ("record", 0),
        ("record", -3),
        ("record", "linear"),
        ("record", []),
        ("record", [0, 5]),
        ("record", [5, 11]),
        ("record", [1.5, 2.5]),
        ("record", [[1, 2]]),
        ("record", True),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_bad_arguments_are_refused_by_name_before_any_work(name, value):
    with pytest.raises(ValueError, match=name):
        simulate(UNIFORM, SMALL, **{"horizon": 10, "trials": 2, name: value})


@pytest.mark.usefixtures("no_work")
def test_no_policy_at_all_is_refused():
    with pytest.raises(ValueError, match="at least one policy"):
        simulate({}, SMALL, horizon=10)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("several", [[UNIFORM], (UNIFORM, UNIFORM)], ids=["list", "tuple"])
def test_several_policies_without_names_are_refused(several):
    with pytest.raises(TypeError, match=r"give one policy, or a dict of names and policies, not a (list|tuple)"):
        simulate(several, SMALL, horizon=10)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("thing", ["lints", None, policies.LinTS], ids=str)
def test_what_is_no_policy_is_refused(thing):
    with pytest.raises(TypeError, match="not a policy"):
        simulate({"good": UNIFORM, "bad": thing}, SMALL, horizon=10)


@pytest.mark.usefixtures("no_work")
def test_a_class_is_told_from_a_policy_for_something_else():
    with pytest.raises(TypeError, match="BallOFUL is not a policy but a class"):
        simulate(policies.BallOFUL, environments.Ball(dim=3, sparsity=1, smallest=0.5), horizon=10)


@pytest.mark.usefixtures("no_work")
def test_what_is_no_environment_is_refused():
    with pytest.raises(TypeError, match="not an environment"):
        simulate(UNIFORM, "mixture", horizon=10)


@pytest.mark.usefixtures("no_work")
def test_parameters_that_do_not_fit_the_problem_are_refused():
    with pytest.raises(ValueError, match="explore=3 pairs cannot estimate 3 coordinates"):
        simulate({"good": UNIFORM, "bad": policies.ALBNorm(explore=3)}, SMALL, horizon=10)


@dataclass(frozen=True)
class Failing:
    """An environment whose second chunk of rounds cannot be had."""

    n_arms: int = 20
    dim: int = 50


class FailingInstance:
    chunks = 0


@begin.register
def begin_failing(env: Failing, rng):
    return FailingInstance()


@draw.register
def draw_failing(instance: FailingInstance, chunk, rng):
    instance.chunks += 1
    if instance.chunks == 2:
        raise RuntimeError("the sensor broke")
    for array in (chunk.contexts, chunk.means, chunk.noise):
        array[:] = 0.0


@dataclass(frozen=True)
class Blind:
    n_arms: int = 2
    dim: int = 3


class BlindInstance:
    pass


@begin.register
def begin_blind(env: Blind, rng):
    return BlindInstance()


@draw.register
def draw_blind(instance: BlindInstance, chunk, rng):
    chunk.contexts[:], chunk.means[:], chunk.noise[:] = 1.0, 0.0, 0.0
    chunk.contexts[:, :, 2] = np.nan


def test_contexts_that_are_not_finite_are_blamed_on_the_environment():
    with pytest.raises(ValueError, match=r"contexts must be finite, but holds nan at \(0, 2\)"):
        simulate(UNIFORM, Blind(), horizon=10)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_inside_a_trial_comes_out(workers):
    with pytest.raises(RuntimeError, match="the sensor broke"):
        simulate(UNIFORM, Failing(), horizon=10 * CHUNK, trials=4, workers=workers)
    simulate(UNIFORM, Failing(), horizon=CHUNK, trials=4, workers=workers)  # one chunk there is


LONG_RUN = """
from albatross import environments, parallel, policies, simulation

env = environments.Mixture(n_arms=20, dim=50)
simulation.simulate(policies.Uniform(), env, horizon=10, trials=2, workers={workers})  # compiled by now
{moment}
try:
    simulation.simulate(policies.Uniform(), env, horizon=10**9, trials=4, workers={workers})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

ANNOUNCE = """
function = {module}.{name}

def announce(*args, **options):
    {module}.{name} = function
    print("playing", flush=True)
    return function(*args, **options)

{module}.{name} = announce
"""

INTERRUPT_THE_SECOND = """
class Pool(parallel.ThreadPoolExecutor):
    submitted = 0

    def submit(self, *args):
        self.submitted += 1
        if self.submitted == 2:
            print("playing", flush=True)
            raise KeyboardInterrupt
        return super().submit(*args)

parallel.ThreadPoolExecutor = Pool
"""


def long_run_ends(script: str, *, interrupt: bool) -> None:
    """Run a script until it says that it plays, interrupt it, and see it end long before the hours that it asks for."""
    with processes.started([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        said = ""
        if interrupt:
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
        # Without an interrupt nothing is read before: `communicate` misses what a line before it left in the buffer.
        said += process.communicate(timeout=60)[0]
    assert said == "playing\ninterrupted\n"
    assert process.returncode == 0


@pytest.mark.parametrize(("workers", "module", "name"), [(1, "simulation", "draw"), (2, "parallel", "wait")])
def test_ctrl_c_ends_a_long_run_at_once(workers, module, name):
    script = LONG_RUN.format(workers=workers, moment=ANNOUNCE.format(module=module, name=name))
    long_run_ends(script, interrupt=True)


def test_ctrl_c_while_trials_are_still_being_handed_out_ends_those_that_have_begun():
    script = LONG_RUN.format(workers=2, moment=INTERRUPT_THE_SECOND)
    long_run_ends(script, interrupt=False)


def test_a_policy_that_an_oracle_returns_must_fit_the_problem_too():
    arms, ball = environments.Mixture(n_arms=3, dim=2), environments.Ball(dim=3, sparsity=1, smallest=0.5)
    with pytest.raises(ValueError, match="BallOFUL plays actions of the unit ball, which Mixture does not offer"):
        simulate(lambda truth: policies.BallOFUL(), arms, horizon=5)
    with pytest.raises(ValueError, match="UCB plays finitely many arms, which Ball does not offer"):
        simulate(lambda truth: policies.UCB(), ball, horizon=5)
    with pytest.raises(TypeError, match="None is not a policy"):
        simulate(lambda truth: None, arms, horizon=5)


def test_masked_rounds_are_no_rounds_to_record():
    with pytest.raises(ValueError, match="record has masked entries"):
        recording_grid(100, np.ma.masked_array([10, 20], [False, True]))
