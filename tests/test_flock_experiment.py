"""The panel of users who learn from each other: its families, HierTS, and its table."""

import math

import numpy as np
import pytest

from albatross.experiments import PANELS, families, flock
from albatross.experiments.hier_ts import HierTS

SMALL = {**flock.SETTINGS, "users": 4, "events": 3, "n_arms": 3, "dim": 2, "rare_users": 6, "rare_events": 2, "rank": 1}
SMALL["first_events"] = 2


@pytest.mark.parametrize("family", flock.SETTINGS["families"])
def test_a_family_is_drawn_anew_by_every_seed(family):
    one, same, other = (families.drawn(family, SMALL, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(one.visits, same.visits)
    assert np.array_equal(one.population.thetas, same.population.thetas)
    assert not np.array_equal(one.population.biases, other.population.biases)
    n_users, n_visits = {"rare visits": (6, 12), "newcomers": (8, 20)}.get(family, (4, 12))
    assert (one.population.biases.shape, len(one.visits)) == ((n_users, 3), n_visits)
    assert one.counted.sum() == (4 if family == "newcomers" else n_users)


def test_newcomers_come_after_the_others():
    crowd = families.drawn("newcomers", SMALL, np.random.default_rng(0))
    new = crowd.counted[crowd.visits]
    assert not new[:12].any()
    assert new[12:].all()


def test_hier_ts_draws_from_the_posterior_of_all_users():
    """Against the normal law of all parameters at once, f and the w of three users, given the same rewards."""
    rng, p, n = np.random.default_rng(0), 3, 3
    root, prior, sd = 0.5 * rng.standard_normal((p, p)), np.array([1.0, 2.0, 0.5]), 0.7
    policy = HierTS(n, spread=root @ root.T, prior=prior, noise_sd=sd, seed=np.random.SeedSequence(1))
    users, rows, rewards = rng.integers(2, size=12), rng.standard_normal((12, p)), rng.standard_normal(12)
    for part in np.split(np.arange(12), 4):
        policy.update(users[part], rows[part], rewards[part])
    spread = root @ root.T + 1e-9 * np.eye(p)
    covariance = np.kron(np.ones((n, n)), np.diag(prior)) + np.kron(np.eye(n), spread)  # of all w
    Z = np.zeros((12, n * p))
    for event, user in enumerate(users):
        Z[event, p * user : p * user + p] = rows[event]
    gain = np.linalg.solve(Z @ covariance @ Z.T + sd**2 * np.eye(12), Z @ covariance).T
    mean, exact = gain @ rewards, covariance - gain @ Z @ covariance
    # A row of features 0 against one of x: the arm says whether <x, w> is positive.
    x, m = np.array([1.0, -0.5, 0.3]), 4_000
    offer = np.stack([np.zeros((m, p)), np.broadcast_to(x, (m, p))], axis=1)
    for user in range(n):
        own = slice(p * user, p * user + p)
        z = x @ mean[own] / np.sqrt(x @ exact[own, own] @ x)
        wanted = 0.5 * (1.0 + math.erf(z / 2**0.5))
        assert policy.select(np.full(m, user), offer).mean() == pytest.approx(wanted, abs=0.035)


def test_a_small_run_has_a_row_for_every_visit_and_every_user():
    settings = {**SMALL, "families": ["equal", "newcomers"]}
    outcome = flock.run(settings, trials=2, seed=3)
    table = outcome.curves
    assert set(outcome.policies) == {"flock", "albatross", "shared", "hier-ts"}
    assert outcome.policies["albatross"]["per_user"] == {"equal, %": 100.0, "newcomers, %": 100.0}
    curve = table["regret"][(table["family"] == "equal") & (table["policy"] == "flock") & (table["visit"] >= 0)]
    users = table["regret"][(table["family"] == "equal") & (table["visit"] < 0)]
    assert (len(curve), len(users)) == (2 * 3, 2 * 4)
    assert curve[[2, 5]].sum() * 4 == pytest.approx(users.sum())  # the same regret, by visits and by users
    again = flock.run(settings, trials=2, seed=3).curves
    assert all(np.array_equal(table[name], again[name], equal_nan=table[name].dtype == float) for name in table)


def test_the_panel_comes_with_that_of_single_users():
    from albatross.cli.reproduce import _PARTS

    assert set(_PARTS["users"]) <= set(PANELS)


def test_equal_users_pay_little_before_much_is_known():
    """The worst of ten populations, where looks that begin at 16 rewards and take two steps cost 0.033."""
    played = flock.play(flock.SETTINGS, "equal", trial=3, seed=17, advance=lambda n: None)
    assert played.regret["flock"].sum() <= 0.03 * played.regret["albatross"].sum()
