"""A bandit for every user."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from albatross.cli.commands import albatross
from albatross.experiments import results, users
from albatross.report.claims import measured
from albatross.report.claims.engine import CHANGED, FAILS, HOLDS
from albatross.store.results import Stored

PANEL = users.PANELS["users"]


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return out, results.run(PANEL, trials=1, seed=0, out=out)


def test_alb_norm_costs_less_than_one_bound_for_all_and_ranks_the_users(summary):
    out, found = summary
    assert {each.claim.id: each.verdict for each in measured(Stored(out)) if "users" in each.claim.panels} == {
        "users": HOLDS,
        "osom": CHANGED,
        "few-arms": FAILS,
        "albatross": HOLDS,
        "ranks-users": HOLDS,
    }
    assert found["policies"]["alb-norm"]["final_mean"] < 0.9 * found["policies"]["oful-plus"]["final_mean"]


def test_every_user_has_a_line_in_the_table_and_a_quarter_has_no_interest(summary):
    out, found = summary
    table = duckdb.sql(f"SELECT * FROM '{out}/users/curves.parquet' WHERE policy = 'alb-norm'").fetchnumpy()
    assert table["user"].tolist() == list(range(200))
    assert (table["norm"] == 0.0).sum() == 50
    assert 2.8 < table["norm"].max() <= 3.0
    assert table["regret"].sum() == pytest.approx(found["policies"]["alb-norm"]["final_mean"])
    assert (table["norm_bound"] > table["norm"]).mean() > 0.99


def test_ucb_is_best_where_nobody_cares_for_topics_and_worst_where_all_do(summary):
    _, found = summary
    per_user = {name: entry["per_user"] for name, entry in found["policies"].items()}
    no_interest, strong = "norm 0", next(key for key in per_user["ucb"] if key.startswith("norm above"))
    assert per_user["ucb"][no_interest] < per_user["alb-norm"][no_interest] < per_user["oful-plus"][no_interest]
    assert per_user["ucb"][strong] > 10 * per_user["alb-norm"][strong]


def test_ten_thousand_users_run():
    settings = {**PANEL.settings, "users": 10_000, "rounds": 3}
    found = users.play(settings, trial=0, seed=0, advance=lambda n: None)
    assert all(regret.shape == (10_000,) and regret.min() >= 0.0 for regret in found.regret.values())


def test_the_same_seed_gives_the_same_users_and_regrets():
    settings = {**PANEL.settings, "users": 20, "rounds": 30}
    one, again, other = (users.play(settings, trial=0, seed=seed, advance=lambda n: None) for seed in (3, 3, 4))
    np.testing.assert_equal(one, again)
    assert not np.array_equal(one.norms, other.norms)


def test_albatross_changes_no_number_of_the_others(monkeypatch):
    settings = {**PANEL.settings, "users": 10, "rounds": 60}
    everyone = users.play(settings, trial=0, seed=3, advance=lambda n: None)
    contenders = users.contenders

    def without_albatross(*given):
        return {name: policy for name, policy in contenders(*given).items() if name != "albatross"}

    monkeypatch.setattr(users, "contenders", without_albatross)
    alone = users.play(settings, trial=0, seed=3, advance=lambda n: None)
    assert set(everyone.regret) - set(alone.regret) == {"albatross"}
    for name, regret in alone.regret.items():
        np.testing.assert_array_equal(regret, everyone.regret[name])


def write_ratings(path, *, n_users=60, n_items=40, seed=0, noise=1.0):
    """Ratings of items in three factors; the taste of user u has length u / 20."""
    rng = np.random.default_rng(seed)
    items, tastes = rng.standard_normal((n_items, 3)), rng.standard_normal((n_users, 3))
    tastes *= (np.arange(n_users) / 20)[:, None] / np.linalg.norm(tastes, axis=1, keepdims=True)
    ratings = tastes @ items.T + noise * rng.standard_normal((n_users, n_items))
    lines = [f"{u},{i},{ratings[u, i]}" for u in range(n_users) for i in range(n_items)]
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    return path


def test_users_of_a_ratings_file_have_the_tastes_that_explain_their_ratings(tmp_path):
    path = write_ratings(tmp_path / "ratings.csv")
    settings = {**users.with_data(users.SETTINGS, path), "n_arms": 2, "dim": 3}
    population = users.rated(settings, np.random.default_rng(0))
    assert population.biases.shape == (60, 2)
    lengths = np.linalg.norm(population.thetas, axis=1)
    assert np.corrcoef(lengths, np.arange(60))[0, 1] > 0.8
    squares = np.concatenate(population.items) ** 2
    assert squares.mean(axis=0) == pytest.approx(np.ones(3))


def test_users_of_a_ratings_file_are_played(tmp_path):
    path = write_ratings(tmp_path / "ratings.csv")
    outcome = CliRunner().invoke(
        albatross, ["reproduce", "users", "--data", str(path), "--trials", "1", "--out", str(tmp_path / "out")]
    )
    assert outcome.exit_code == 0, outcome.output
    assert "ALB-Norm" in outcome.output
    assert (tmp_path / "out" / "users" / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["g", "users"], "--data is a ranking file for panels g and h, or a ratings file for users"),
        (["a"], "--data is a ranking file"),
        ([], "--data is a ranking file"),
    ],
)
def test_data_is_for_one_kind_of_panel(tmp_path, arguments, message):
    path = write_ratings(tmp_path / "ratings.csv", n_users=3, n_items=3)
    outcome = CliRunner().invoke(albatross, ["reproduce", *arguments, "--data", str(path)])
    assert outcome.exit_code == 1
    assert message in outcome.output


def test_ratings_that_are_noise_give_users_without_interest(tmp_path):
    rng = np.random.default_rng(0)
    designs = [rng.standard_normal((36, 26)) for _ in range(100)]
    fitted, noise_sd = users.fit_users(designs, [rng.standard_normal(36) for _ in designs])
    assert noise_sd == pytest.approx(1.0, abs=0.05)
    assert np.linalg.norm(fitted, axis=1).max() < 0.1


def test_taste_is_found_where_there_is_any():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((100, 6))
    designs = [rng.standard_normal((40, 6)) for _ in truth]
    values = [design @ theta + 0.5 * rng.standard_normal(40) for design, theta in zip(designs, truth, strict=True)]
    fitted, noise_sd = users.fit_users(designs, values)
    assert noise_sd == pytest.approx(0.5, abs=0.03)
    assert np.sqrt(np.mean((fitted - truth) ** 2)) < 0.12


def test_a_file_with_few_different_items_has_fewer_arms_and_factors(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.standard_normal((40, 5))[:, np.arange(60) % 5]  # 60 items of 5 kinds
    rows = [f"{u},{i},{kinds[u, i]}" for u in range(40) for i in range(60)]
    path = tmp_path / "kinds.csv"
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    settings = users.with_data(users.SETTINGS, path)
    assert (settings["dim"], settings["n_arms"]) == (2, 2)


def test_a_file_of_other_content_is_another_experiment(tmp_path):
    path = write_ratings(tmp_path / "ratings.csv")
    one = users.with_data(users.SETTINGS, path)
    write_ratings(path, seed=1)
    assert one != users.with_data(users.SETTINGS, path)


def test_too_few_ratings_are_refused(tmp_path):
    with pytest.raises(ValueError, match="too few"):
        users.with_data(users.SETTINGS, write_ratings(tmp_path / "few.csv", n_users=3, n_items=3))
    path = tmp_path / "sparse.csv"
    rng = np.random.default_rng(0)
    rows = [f"{u},{i},{rng.standard_normal()}" for u in range(30) for i in rng.permutation(30)[:4]]
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match="no user rated"):
        users.rated(users.with_data(users.SETTINGS, path), np.random.default_rng(0))
