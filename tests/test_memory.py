"""What does not fit in memory is refused in one line, before any of it is taken."""

from __future__ import annotations

import threading
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from albatross import Agent, Fleet, checks, environments, evaluation, parallel, policies, simulate, simulation
from albatross.models import moments, ridge

SMALL = environments.Mixture(n_arms=4, dim=3)
UNIFORM = policies.Uniform()


@pytest.fixture
def one_gigabyte(monkeypatch):
    """A machine with 1 GB of free memory."""
    monkeypatch.setattr(checks, "free_memory", lambda: 1e9)


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Fails a test in which a trial is begun, or in which much memory is taken."""

    def begun(*_):
        raise AssertionError("a trial was begun")

    monkeypatch.setattr(simulation, "_play_trial", begun)
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50e6


@pytest.mark.usefixtures("one_gigabyte")
@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        (UNIFORM, {"trials": 10**6}, r"trials=1000000, .* 1.32 GB of memory, but 1 GB are free: take fewer trials"),
        ({"a": UNIFORM, "b": UNIFORM}, {"trials": 500_000}, r"trials=500000, n_policies=2 .* 1.32 GB"),
        (UNIFORM, {"trials": 10**18, "record": 1}, r"1.032e\+12 GB"),
        (UNIFORM, {"trials": 100, "horizon": 10**6, "record": 10**6}, r"1,000,000 recorded rounds .* 3.2 GB"),
        (UNIFORM, {"horizon": 10**9, "record": 10**9}, r"record=1000000000: 1,000,000,000 rounds .* 40 GB .*'log'"),
    ],
)
def test_results_that_do_not_fit_are_refused(policy, options, message):
    with pytest.raises(ValueError, match=message):
        simulate(policy, SMALL, **{"horizon": 10, **options})


def test_a_billion_trials_are_refused_on_any_machine():
    with pytest.raises(ValueError, match=r"trials=1000000000, .* GB are free"):
        simulate(UNIFORM, SMALL, horizon=10, trials=10**9)


@pytest.mark.parametrize("policy", [policies.LinTS(), policies.ALBNorm(), policies.SALasso(), policies.Albatross()])
def test_a_model_of_a_billion_features_is_refused(policy, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1e12)  # the contexts would fit
    with pytest.raises(ValueError, match=r"a linear model of dim=100000000\d would take 8e\+09 GB"):
        simulate(policy, environments.Mixture(n_arms=2, dim=10**9), horizon=10)


@pytest.mark.usefixtures("one_gigabyte")
def test_agents_and_fleets_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"contexts of 10 arms and 1000000000 features would take 80 GB"):
        Agent(UNIFORM, n_arms=10, dim=10**9)
    with pytest.raises(ValueError, match=r"contexts of 1000000 arms and 1000 features would take 8 GB"):
        Fleet(UNIFORM, n_users=1, n_arms=10**6, dim=1_000)
    with pytest.raises(ValueError, match=r"1000000000 users would take .* GB of memory, but 1 GB are free: take fewer"):
        Fleet(policies.UCB(), n_users=10**9, n_arms=2, dim=1)


@pytest.mark.usefixtures("one_gigabyte")
def test_a_problem_whose_contexts_do_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"n_arms=10000 and dim=10000, .* 1.6 GB"):
        simulate(UNIFORM, environments.Mixture(n_arms=10_000, dim=10_000), horizon=10)


@pytest.mark.parametrize("make", [ridge.ridge, lambda dim: ridge.joint(2, dim), lambda dim: moments.moments(2, dim)])
@pytest.mark.usefixtures("one_gigabyte")
def test_every_linear_model_looks_whether_there_is_room(make):
    with pytest.raises(ValueError, match=r"a linear model of dim=12000 would take 1.152 GB"):
        make(12_000)


def test_workers_count_each_with_its_own_models(monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 18e6)
    env = environments.Mixture(n_arms=2, dim=1_000)  # 8 MB a model
    with pytest.raises(AssertionError, match="begun"):
        simulate(policies.LinTS(), env, horizon=10, trials=4, workers=2)
    with pytest.raises(ValueError, match="what policies learn of dim=1000 in 3 trials at once"):
        simulate(policies.LinTS(), env, horizon=10, trials=4, workers=3)


@pytest.mark.usefixtures("one_gigabyte")
@pytest.mark.parametrize("run", [evaluation.replay, evaluation.evaluate])
def test_replays_that_do_not_fit_are_refused(run):
    log = environments.Logged(
        contexts=np.ones((4, 2, 1)), actions=[0, 1, 0, 1], rewards=[0, 1, 0, 1], propensities=[0.5] * 4
    )
    with pytest.raises(ValueError, match=r"the rewards of trials=1000000 replays would take 1.016 GB"):
        run(UNIFORM, log, trials=10**6)


@pytest.mark.usefixtures("one_gigabyte")
def test_tables_of_rounds_and_actions_that_do_not_fit_are_refused():
    n_arms, n = 100_000, 1_000
    contexts = environments.logged.Products(of_actions=np.ones((n_arms, 1)), of_rounds=np.ones((n, 1)))
    log = environments.Logged(
        contexts=contexts, actions=np.zeros(n, int), rewards=np.ones(n), propensities=np.full(n, 0.5)
    )
    for run in (
        lambda: evaluation.evaluate(UNIFORM, log),
        lambda: evaluation.predicted_rewards(log),
        lambda: evaluation.probabilities(UNIFORM, log, trained_on=slice(0), rows=slice(None)),
    ):
        with pytest.raises(ValueError, match=r"tables of 1,000 rounds and 100,000 actions would take .* take fewer"):
            run()


@pytest.mark.usefixtures("one_gigabyte")
def test_an_indicator_for_each_of_many_actions_is_refused_and_made_only_where_it_is_wanted():
    columns = {"actions": [0, 1], "rewards": [0, 1], "propensities": [0.5, 0.5], "action_features": None}
    log = SimpleNamespace(**columns, n_actions=200_000, features=[[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"arms='disjoint' with 200000 actions would take 320 GB"):
        environments.Logged.from_log(log, "disjoint")
    assert environments.Logged.from_log(log, "biases").n_arms == 200_000


@pytest.mark.usefixtures("one_gigabyte")
def test_draws_that_do_not_fit_are_refused():
    log = environments.Logged(contexts=np.ones((2, 2, 1)), actions=[0, 1], rewards=[0, 1], propensities=[0.5] * 2)
    for run in (
        lambda: Agent(UNIFORM, n_arms=2, dim=1).propensity([[1.0], [1.0]], draws=10**12),
        lambda: evaluation.probabilities(UNIFORM, log, trained_on=[0], rows=[1], draws=10**12),
        lambda: evaluation.evaluate(UNIFORM, log, draws=10**12),
    ):
        with pytest.raises(ValueError, match=r"draws=1000000000000 of the policy's noise would take .* GB of memory"):
            run()


def test_trials_are_handed_out_a_few_at_a_time_and_come_back_in_their_order(monkeypatch):
    handed_out, done, waiting = [], [], []

    class Pool(parallel.ThreadPoolExecutor):
        def submit(self, function, trial):
            handed_out.append(trial)
            waiting.append(len(handed_out) - len(done))
            return super().submit(function, trial)

    def run(trial):
        done.append(trial)
        return trial**2

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", Pool)
    assert parallel.in_threads(run, 500, 3, threading.Event()) == [trial**2 for trial in range(500)]
    assert handed_out == list(range(500))
    assert max(waiting) <= 6


def test_free_memory_is_what_linux_says_or_what_a_container_may_take(monkeypatch, tmp_path):
    machine, container = tmp_path / "meminfo", tmp_path / "memory.max"
    (_, in_kilobytes), (_, in_bytes), *_ = checks._MEMORY_FILES.items()
    monkeypatch.setattr(checks, "_MEMORY_FILES", {str(machine): in_kilobytes, str(container): in_bytes})
    everything = checks.free_memory()  # neither file is there
    machine.write_text("MemTotal:  8000 kB\nMemAvailable:  5000 kB\n")
    container.write_text("max\n")
    assert checks.free_memory() == 5_000 * 1024 < everything
    container.write_text("3000000\n")
    assert checks.free_memory() == 3_000_000
