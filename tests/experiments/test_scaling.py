"""The scaling panel: slopes and claims on made-up regret, and a tiny run that is stored whole."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from albatross.cli.commands import albatross
from albatross.experiments import PANELS, results, scaling
from albatross.experiments.scaling import SETTINGS, Sweep

EXPONENTS = {  # of a world in which the paper is right in all it says
    "norm": {"alb-norm": 0.5, "oful-plus": 0.1, "oracle": 0.6, "alb-norm-no-biases": 0.5},
    "bound": {"alb-norm": 0.02, "oful-plus": 0.5},
    "rounds-mixture": {"alb-norm": 0.55},
    "dim": {"alb-dim": 0.05, "oful": 1.0},
    "sparsity": {"alb-dim": 0.9},
    "rounds-ball": {"alb-dim": 0.5},
    "rounds-nested": {"alb-dim-suplinrel": 0.5},
}
AT = {"rounds-mixture": [800.0, 1e4, 1e5], "rounds-ball": [1e5, 1e7, 1e9], "rounds-nested": [5e3, 2e4, 1e5]}
FACTORS = {"oracle": 1.0, "oful-plus": 9.0, "oful": 9.0}  # all others are twice the oracle at x = 1
LUCK = np.array([[0.9], [1.0], [1.2]])  # of three trials


def world(changes=()):
    """Regret that is a power of x, with these exponents but for changes: {(part, policy): exponent}."""
    exponents = {**{(part, name): each for part, of in EXPONENTS.items() for name, each in of.items()}, **dict(changes)}
    sweeps = {}
    for part in EXPONENTS:
        x = np.array(AT.get(part, [1, 3, 9] if part in ("norm", "bound") else [10, 20, 40]))
        names = [name for where, name in exponents if where == part]
        regret = {name: FACTORS.get(name, 2.0) * 100.0 * LUCK * x ** exponents[part, name] for name in names}
        sweeps[part] = Sweep(x, regret)
    return sweeps


def verdicts(sweeps):
    return {each["statement"]: each["holds"] for each in scaling.claims(sweeps, SETTINGS)}


def test_the_slope_of_a_power_is_its_exponent_whatever_the_factors():
    x = np.array([0.1, 1.0, 5.0, 40.0])
    found = scaling.slope(x, np.array([[3.0], [7.0], [11.0]]) * x**0.37)
    assert found.mean == pytest.approx(0.37, abs=1e-12)
    assert found.margin == pytest.approx(0.0, abs=1e-12)


def test_the_interval_of_a_slope_is_students_over_trials():
    x = np.array([1.0, 10.0, 100.0])
    found = scaling.slope(x, np.array([x**0.4, x**0.5, x**0.9]))
    assert found.mean == pytest.approx(0.6, abs=1e-12)
    assert found.margin == pytest.approx(4.302652729911275 * np.std([0.4, 0.5, 0.9], ddof=1) / 3**0.5, rel=1e-9)


def test_one_trial_has_a_slope_without_an_interval():
    x = np.array([1.0, 10.0])
    assert str(scaling.slope(x, x[None] ** 2)) == "2.00"


def test_where_the_paper_is_right_all_claims_but_the_theorems_conditions_hold():
    failed = [statement for statement, holds in verdicts(world()).items() if not holds]
    assert failed == [f"the conditions of Theorem {number} hold here" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("change", "statement"),
    [
        ({("norm", "alb-norm"): -0.1}, "ALB-Norm's regret grows with the norm"),
        ({("norm", "alb-norm-no-biases"): -0.1}, "without biases ALB-Norm's regret grows with the norm"),
        (
            {("norm", "alb-norm"): 1.5},
            "told 10, ALB-Norm stays nearer to the oracle than OFUL+ at every norm below 10",
        ),
        ({("bound", "alb-norm"): 0.2}, "ALB-Norm's regret does not grow with the bound"),
        ({("bound", "oful-plus"): 0.0}, "OFUL+'s regret grows with the bound"),
        ({("dim", "alb-dim"): 0.3}, "ALB-Dim's regret does not grow with d"),
        ({("dim", "oful"): -0.2}, "OFUL's regret grows with d"),
        ({("sparsity", "alb-dim"): -0.2}, "ALB-Dim's regret grows with d*"),
        ({("rounds-mixture", "alb-norm"): 1.0}, "ALB-Norm's regret grows with T no faster than Theorem 1's curve"),
        ({("rounds-ball", "alb-dim"): 0.8}, "ALB-Dim's regret grows with T no faster than Theorem 2's curve"),
        (
            {("rounds-nested", "alb-dim-suplinrel"): 0.9},
            "ALB-Dim's regret grows with T no faster than Theorem 3's curve",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_a_verdict_follows_the_data(change, statement):
    assert verdicts(world())[statement]
    assert not verdicts(world(change))[statement]


def test_where_a_condition_is_met_the_theorem_speaks():
    longer = {**SETTINGS["nested"], "first_phase": 10**9}
    assert all(condition.holds for condition in scaling.conditions("nested", longer))
    assert not any(condition.holds for condition in scaling.conditions("nested", SETTINGS["nested"]))
    inside = {**SETTINGS["ball"], "exploration": "sphere"}
    assert [each.holds for each in scaling.conditions("ball", inside)] == [False, False, False, True]


def test_what_a_theorem_promises_does_not_depend_on_what_it_says_does_not_matter():
    assert len(set(scaling.promise("bound", np.array([1.0, 10.0, 100.0]), SETTINGS))) == 1
    assert len(set(scaling.promise("dim", np.array([50, 400]), SETTINGS))) == 1
    norms = np.array([0.0, 1.0, 3.0])
    assert scaling.promise("norm", norms, SETTINGS) / (norms + 1.0) == pytest.approx(
        np.full(3, scaling.promise("norm", norms, SETTINGS)[0]), rel=1e-12
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Of every part as little as will do; ball and maps are as small as their policies take."""
    mixture = {
        "n_arms": 5,
        "dim": 4,
        "horizon": 500,
        "theta_norms": [0.5, 2.0],
        "norm_bounds": [1.0, 10.0],
        "epochs": 4,
    }
    ball = {"dim": 20, "sparsity": 4, "first_phase": 400, "phases": 3, "dims": [10, 20], "sparsities": [2, 4]}
    maps = {"dims": [2, 4], "true_dim": 2, "first_phase": 100, "horizon": 600}
    small = {
        "mixture": mixture,
        "ball": {**ball, "points": 4, "horizon_without_blocks": 300},
        "nested": {**maps, "points": 3},
    }
    settings = {kind: {**SETTINGS[kind], **each} for kind, each in small.items()}
    out = tmp_path_factory.mktemp("results")
    return out, results.run(PANELS["scaling"]._replace(settings=settings), trials=2, seed=0, out=out)


def test_the_panel_is_stored_whole(tiny):
    out, summary = tiny
    assert {path.name for path in (out / "scaling").iterdir()} == set(results.FILES)
    assert len(summary["claims"]) == 14
    assert summary["policies"]["alb-dim, dim"]["label"] == "ALB-Dim, against d"
    assert all({"final_mean", "final_sd", "slope"} <= entry.keys() for entry in summary["policies"].values())


def test_the_summary_is_what_the_table_says(tiny):
    out, summary = tiny
    rows = duckdb.sql(f"SELECT part, policy, x, trial, regret FROM '{out}/scaling/curves.parquet'").fetchnumpy()
    for key, entry in summary["policies"].items():
        name, part = key.split(", ")
        mine = (rows["part"] == part) & (rows["policy"] == name)
        x = np.unique(rows["x"][mine])
        regret = rows["regret"][mine][np.lexsort((rows["x"][mine], rows["trial"][mine]))].reshape(2, -1)
        assert entry["final_mean"] == pytest.approx(regret[:, -1].mean(), rel=1e-12)
        assert entry["slope"]["mean"] == pytest.approx(scaling.slope(x, regret).mean, abs=1e-9)


def test_who_is_told_no_bound_has_the_same_regret_at_every_bound(tiny):
    out, _ = tiny
    rows = duckdb.sql(f"""
        SELECT policy, count(DISTINCT regret) FROM '{out}/scaling/curves.parquet' WHERE part = 'bound' GROUP BY policy
    """).fetchall()
    assert dict(rows) == {"alb-norm": 4, "oful-plus": 4, "oracle": 2, "lints": 2, "albatross": 2, "Theorem 1": 1}


def test_quick_means_fewer_values(monkeypatch, tmp_path):
    from click.testing import CliRunner

    asked = {}

    def run(panel, **how):
        asked.update(settings=panel.settings, **how)
        return {"panel": "scaling", "title": "", "measure": "regret", "trials": 2, "policies": {}, "claims": []}

    monkeypatch.setattr(results, "run", run)
    monkeypatch.setattr("albatross.report.page.write_report", lambda out: out / "report.html")
    done = CliRunner().invoke(albatross, ["reproduce", "scaling", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert asked["trials"] == 2
    assert asked["settings"] == scaling.QUICK
