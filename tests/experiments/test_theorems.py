"""The panel on theorems: its fast loop, its conditions, how often what is proved holds, and a tiny run stored whole."""

from __future__ import annotations

import numpy as np
import pytest

from albatross import bounds, policies
from albatross.environments.mixture import MixtureInstance
from albatross.environments.noise import Noise
from albatross.experiments import PANELS, results, theorems
from albatross.experiments.epochs import CENTRED, PAPER, Setting, play_epoch
from albatross.loops import Tally, play
from albatross.protocol import Rounds, draw, init, resolve
from albatross.report import claims
from albatross.report.claims.engine import MISSING
from albatross.report.figures import panels
from albatross.store.results import Stored


def tiny_settings():
    settings = {kind: dict(each) for kind, each in theorems.QUICK.items()}
    settings["mixture"] |= {"epochs": 4, "epoch_length": 300}
    settings["mixture"]["growth"] = {
        "arms": ["n_arms", [2, 3], 300, 2],
        "dims": ["dim", [1, 2], 300, 1],
        "bounds": ["norm_bound", [1.0, 2.0], 300, 2],
    }
    settings["start"]["draws"] = 20
    settings["samples"] |= {"numbers": 1, "dims": [5, 20], "proved_dims": [3]}
    settings["samples"]["first_phase_dims"] = {"literal": [2], "unnormalised": [5], "isotropic": [3]}
    settings["ball"] |= {"phases": 3, "smallest": [0.5, 0.25]}
    return settings


# ------------------------------------------------------------------------------------------------------ the fast loop


@pytest.mark.parametrize(("name", "estimator"), [("centered", CENTRED), ("paper", PAPER)])
def test_the_fast_loop_plays_and_learns_as_oful_plus_does(name, estimator):
    instance, rounds = (
        MixtureInstance(np.array([0.6, -0.3]), np.array([0.2, -0.5, 0.4]), Noise("gaussian", 0.3), None),
        3_000,
    )
    setting = Setting(1.5, float(rounds), 0.1, 0.3, 0.8, estimator)
    sums = play_epoch(setting, instance, theorems.stream(3, 1))

    chunk = Rounds(np.empty((4096, 3, 2)), np.ones((4096, 3), bool), np.empty((4096, 3)), np.empty((4096, 3)))
    draw(instance, chunk, theorems.stream(3, 1))  # the same rounds
    given = {"norm_bound": 1.5, "delta": 0.1, "sigma": 0.3, "rho_min": 0.8}
    policy = policies.OFULPlus(form="appendix", scale=1.0, estimator=name, ties="first", **given)
    parameters = resolve(policy, 3, 2, rounds + 3)
    state = init(parameters, 3, 2, np.random.default_rng(0))
    tally = Tally(np.zeros(2), np.zeros(1, np.int64), np.array([rounds + 3]), np.zeros(1), np.zeros(1))
    play(parameters, state, chunk, rounds + 3, np.zeros((rounds + 3, 0)), np.zeros(3, np.int64), tally, 0)

    assert sums.counts.tolist() == state.fit.weight.tolist()
    assert sums.theta == pytest.approx(state.fit.theta, abs=1e-9)
    assert sums.regret[0] == pytest.approx(tally.regret[0], rel=1e-9)
    assert sums.inverse == pytest.approx(state.fit.root @ state.fit.root.T, rel=1e-8)
    assert sums.log_det[0] == pytest.approx(state.fit.log_det[0], rel=1e-9)


@pytest.mark.parametrize("settings", [theorems.SETTINGS, theorems.QUICK], ids=["full", "quick"])
def test_every_condition_of_theorem_1_holds_on_every_problem(settings):
    here = settings["mixture"]
    base = {key: here[key] for key in ("n_arms", "dim", "norm_bound", "delta")} | {"sigma": here["noise_sd"]}
    problems = [({}, here["epoch_length"], here["epochs"])]
    for name, values, length, epochs in here["growth"].values():
        problems += [({name: value}, length, epochs) for value in values]
    for changed, length, epochs in problems:
        horizon = 8 + length * (2**epochs - 1)
        found = bounds.check(**{**base, **changed}, epoch_length=length, horizon=horizon)
        assert [condition.statement for condition in found if not condition.holds] == []


# ------------------------------------------------------------------------------------------------- what is measured


def test_to_the_letter_theta_leaves_the_set_and_centred_it_stays():
    settings = {**theorems.SETTINGS["mixture"], "epoch_length": 400_000, "epochs": 1}
    found = {name: theorems.refine(settings, name, theorems.stream(0, 0)) for name in theorems.READINGS}
    assert found["letter"]["set"][0] > 1.0
    assert found["letter"]["norm-bound"][1] < 1.0
    for name in ("centred", "proved"):
        assert found[name]["set"][0] < 1.0
        assert found[name]["norm-bound"][1] > 1.0
    assert found["proved"]["norm-bound"][1] < found["centred"]["norm-bound"][1]


def greedy_trial(rng, *, n_arms, dim, rounds, sigma):
    """Play the arm of the largest estimate, which looks at contexts; return theta* - theta_hat, ln det and G."""
    theta, biases = np.ones(dim) / np.sqrt(dim), rng.uniform(-1.0, 1.0, n_arms)
    played, arms, rewards = np.empty((rounds, dim)), np.empty(rounds, int), np.empty(rounds)
    estimate, means = np.zeros(dim), np.zeros(n_arms)
    for t in range(rounds):
        contexts = rng.standard_normal((n_arms, dim))
        arms[t] = t if t < n_arms else np.argmax(means + contexts @ estimate)
        played[t] = contexts[arms[t]]
        rewards[t] = biases[arms[t]] + played[t] @ theta + sigma * rng.standard_normal()
        if t + 1 >= n_arms:
            member = arms[: t + 1, None] == np.arange(n_arms)
            counts = member.sum(axis=0)
            centres, levels = (member.T @ played[: t + 1]) / counts[:, None], (member.T @ rewards[: t + 1]) / counts
            x, y = played[: t + 1] - centres[arms[: t + 1]], rewards[: t + 1] - levels[arms[: t + 1]]
            gram = np.eye(dim) + x.T @ x
            estimate = np.linalg.solve(gram, x.T @ y)
            means = levels - centres @ estimate
    return theta - estimate, np.log(counts).sum() + np.linalg.slogdet(gram)[1], gram


def test_theorem_a_holds_as_often_as_proved_for_a_rule_that_looks_at_contexts():
    rng, delta, sigma, shares = np.random.default_rng(11), 0.2, 0.5, []
    for _ in range(150):
        error, log_det, gram = greedy_trial(rng, n_arms=3, dim=2, rounds=60, sigma=sigma)
        least = np.linalg.eigvalsh(gram)[0]
        given = {"log_det": log_det, "norm_bound": 1.0, "delta": delta, "sigma": sigma, "n_arms": 3}
        radius = bounds.centred_radius(least_eigenvalue=least, **given)
        ellipsoid = bounds.centred_radius(least_eigenvalue=1.0, **given)
        assert np.linalg.norm(error) / radius <= np.sqrt(error @ gram @ error) / ellipsoid + 1e-12
        shares.append(np.sqrt(error @ gram @ error) / ellipsoid)
    assert np.mean(np.array(shares) <= 1.0) >= 1.0 - delta
    assert max(shares) > 0.15  # no empty promise: the set is not larger than needed by orders of magnitude


def test_the_first_bound_holds_as_proved_and_to_the_letter_not_for_small_contexts():
    rows = theorems.first_bounds({**theorems.SETTINGS["start"], "draws": 400}, seed=1)

    def share(part, reading, x):
        return np.mean([value >= 1.0 for each, name, at, _, value in rows if (each, name, at) == (part, reading, x)])

    for part, x in (("pairs", 1.2), ("pairs", 10.0), ("spreads", 0.03), ("spreads", 1.0)):
        assert share(f"start-bound-{part}", "proved", x) >= 0.9
        assert share(f"start-error-{part}", "proved", x) <= 0.1
    assert share("start-bound-spreads", "letter", 1.0) >= 0.9
    assert share("start-bound-spreads", "letter", 0.03) < 0.9
    assert share("start-error-pairs", "letter", 1.2) > 0.1


# ------------------------------------------------------------------------------------------------------ a tiny run


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    panel = PANELS["theorems"]._replace(settings=tiny_settings())
    results.run(panel, trials=2, seed=0, out=folder)
    return Stored(folder)


def test_a_tiny_run_is_stored_judged_and_drawn(tiny):
    mine = [result for result in claims.measured(tiny) if "theorems" in result.claim.panels]
    assert len(mine) == 15
    assert [result.claim.id for result in mine if result.verdict == MISSING] == []
    panels.write_figures(tiny)
    assert (tiny.folder / "theorems" / "figure.png").exists()
    assert len(panels.plots(tiny, "theorems")) == 12


def test_the_numbers_do_not_depend_on_the_number_of_workers(tiny, monkeypatch):
    monkeypatch.setattr(theorems, "default_workers", lambda: 1)
    again = theorems.run(tiny_settings(), trials=2, seed=0).curves
    stored = tiny.table("theorems")
    for name, column in again.items():
        assert stored[name].tolist() == column.tolist()
