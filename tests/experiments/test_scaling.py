"""The scaling panel: slopes, what the theorems promise, and a tiny run that is stored whole."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from albatross.cli.commands import albatross
from albatross.experiments import PANELS, results, scaling
from albatross.experiments.scaling import SETTINGS
from albatross.intervals import slope
from albatross.report import claims
from albatross.report.claims.engine import MISSING
from albatross.report.conditions import conditions
from albatross.report.figures import panels
from albatross.store.results import FILES, Stored


def test_the_slope_of_a_power_is_its_exponent_whatever_the_factors():
    x = np.array([0.1, 1.0, 5.0, 40.0])
    found = slope(x, np.array([[3.0], [7.0], [11.0]]) * x**0.37)
    assert found.mean == pytest.approx(0.37, abs=1e-12)
    assert found.margin == pytest.approx(0.0, abs=1e-12)


def test_the_interval_of_a_slope_is_students_over_trials():
    x = np.array([1.0, 10.0, 100.0])
    found = slope(x, np.array([x**0.4, x**0.5, x**0.9]))
    assert found.mean == pytest.approx(0.6, abs=1e-12)
    assert found.margin == pytest.approx(4.302652729911275 * np.std([0.4, 0.5, 0.9], ddof=1) / 3**0.5, rel=1e-9)


def test_one_trial_has_a_slope_without_an_interval():
    x = np.array([1.0, 10.0])
    assert str(slope(x, x[None] ** 2)) == "2.00"


def test_where_a_condition_is_met_the_theorem_speaks():
    longer = {**SETTINGS["nested"], "first_phase": 10**9}
    assert all(condition.holds for condition in conditions("nested", longer))
    assert not any(condition.holds for condition in conditions("nested", SETTINGS["nested"]))
    inside = {**SETTINGS["ball"], "exploration": "sphere"}
    assert [each.holds for each in conditions("ball", inside)] == [False, False, False, True]


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
    ball |= {"gammas": [0.2, 0.4]}
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
    assert {path.name for path in (out / "scaling").iterdir()} == set(FILES)
    found = {each.claim.id: each for each in claims.measured(Stored(out)) if "scaling" in each.claim.panels}
    assert len(found) == 13
    assert all(each.verdict != MISSING for each in found.values())
    assert panels.label("scaling", summary["policies"]["alb-dim, dim"]) == "ALB-Dim, against d"
    assert all({"final_mean", "final_sd", "slope"} <= entry.keys() for entry in summary["policies"].values())


def test_the_summary_is_what_the_table_says(tiny):
    out, summary = tiny
    rows = duckdb.sql(f"SELECT part, policy, x, trial, regret FROM '{out}/scaling/curves.parquet'").fetchnumpy()
    for entry in summary["policies"].values():
        mine = (rows["part"] == entry["part"]) & (rows["policy"] == entry["policy"])
        x = np.unique(rows["x"][mine])
        regret = rows["regret"][mine][np.lexsort((rows["x"][mine], rows["trial"][mine]))].reshape(2, -1)
        assert entry["final_mean"] == pytest.approx(regret[:, -1].mean(), rel=1e-12)
        assert entry["slope"]["mean"] == pytest.approx(slope(x, regret).mean, abs=1e-9)


def test_a_policy_that_is_given_no_bound_has_the_same_regret_at_every_bound(tiny):
    out, _ = tiny
    rows = duckdb.sql(f"""
        SELECT policy, count(DISTINCT regret) FROM '{out}/scaling/curves.parquet' WHERE part = 'bound' GROUP BY policy
    """).fetchall()
    given = {
        "alb-norm": 4,
        "oful-plus": 4,
        "osom": 3,
        "osom-scaled": 4,
    }  # in one trial OSOM switches with neither bound
    assert dict(rows) == {**given, "oracle": 2, "lints": 2, "albatross": 2, "Theorem 1": 1}


def test_quick_means_fewer_values(monkeypatch, tmp_path):
    from click.testing import CliRunner

    asked = {}

    def run(panel, **how):
        asked.update(settings=panel.settings, **how)
        return {"panel": "scaling", "title": "", "measure": "regret", "trials": 2, "policies": {}}

    monkeypatch.setattr(results, "run", run)
    monkeypatch.setattr("albatross.report.page.write_report", lambda out: out / "report.html")
    done = CliRunner().invoke(albatross, ["reproduce", "scaling", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert asked["trials"] == 2
    assert asked["settings"] == scaling.QUICK
