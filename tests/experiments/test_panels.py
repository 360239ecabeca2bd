"""Panels (a) to (c) come out with 25 trials, and are stored whole."""

from __future__ import annotations

import json

import duckdb
import pytest
from PIL import Image

from albatross import simulate
from albatross.experiments import PANELS, norm_regret, results
from albatross.experiments.norm_regret import SETTINGS
from albatross.report import claims
from albatross.report.claims.engine import CHANGED, FAILS, HOLDS
from albatross.report.figures import panels
from albatross.store.results import Stored

TRIALS = 25
NORM_PANELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in NORM_PANELS:
        results.run(PANELS[name], trials=TRIALS, seed=0, out=folder)
    return folder


def summary_of(out, panel):
    return json.loads((out / panel / "summary.json").read_text())


def test_the_papers_claims_about_the_panels_come_out_some_with_a_stated_change(out):
    verdicts = {result.claim.id: result.verdict for result in claims.measured(Stored(out))}
    for claim in ("drop", "poorly", "near-oracle-norm", "upper-bound", "corral-grid"):
        assert verdicts[claim] == HOLDS, claim
    for claim in ("sandwich", "improves", "converges"):
        assert verdicts[claim] == CHANGED, claim
    assert verdicts["osom"] == FAILS  # where theta* is short, ignoring contexts is better


@pytest.mark.parametrize(
    ("panel", "above", "below", "wanted"),
    [
        ("a", "oful-plus-paper", "alb-norm-paper", 2.29),
        ("b", "oful-plus-paper", "alb-norm-paper", 2.84),
        ("a", "oful-plus-literal", "oracle-literal", 1.38),
        ("b", "oful-plus-literal", "oracle-literal", 1.27),
        ("a", "alb-norm-literal", "oracle-literal", 1.44),
        ("b", "alb-norm-literal", "oracle-literal", 1.32),
    ],
)
def test_ratios_to_the_letter_are_those_of_an_independent_transcription(out, panel, above, below, wanted):
    found = Stored(out).final(panel, above).mean() / Stored(out).final(panel, below).mean()
    assert found == pytest.approx(wanted, rel=0.03)


def test_osom_given_10_never_switches_and_given_1_it_does_where_the_norm_is_1(out):
    switched = {panel: summary_of(out, panel)["policies"] for panel in ("a", "b")}
    never = {"times": 0, "of": TRIALS, "round": None}
    assert switched["a"]["osom"]["switched"] == switched["b"]["osom"]["switched"] == never
    found = switched["b"]["osom-given-1"]["switched"]
    assert found["times"] == TRIALS
    assert SETTINGS["n_arms"] < found["round"] < SETTINGS["horizon"]


@pytest.mark.parametrize("panel", ["a", "b"])
def test_alb_norm_is_sandwiched_in_four_of_five_trials(out, panel):
    oracle, alb, given = (Stored(out).final(panel, name) for name in ("oracle", "alb-norm", "oful-plus"))
    assert ((oracle < alb) & (alb < given)).sum() >= 20


@pytest.mark.parametrize("panel", ["a", "b"])
def test_with_appendix_a_to_the_letter_the_first_refinement_explodes_and_nothing_is_gained(out, panel):
    assert 2_500 <= summary_of(out, panel)["policies"]["alb-norm-literal"]["norm_bounds"]["mean"][1] <= 2_700
    alb, given = (Stored(out).final(panel, f"{name}-literal").mean() for name in ("alb-norm", "oful-plus"))
    assert given < 1.1 * alb


@pytest.mark.parametrize(("norm", "highest"), [(0.1, 0.3), (1.0, 1.25)])
def test_the_estimates_end_just_above_the_norm_and_hardly_ever_below(out, norm, highest):
    rows = Stored(out).table("c", f"SELECT * FROM curves WHERE policy = 'alb-norm' AND theta_norm = {norm}")
    assert (rows["norm_bound"] >= norm).mean() >= 0.95
    assert norm <= rows["norm_bound"][rows["epoch"] == 8].mean() <= highest


@pytest.mark.parametrize(
    ("panel", "wanted"),
    [
        ("a", {"oful-plus": (10589, 838), "alb-norm": (4462, 315), "oracle": (2597, 144)}),
        ("b", {"oful-plus": (5234, 286), "alb-norm": (2650, 162), "oracle": (1885, 110)}),
    ],
)
def test_final_regrets_agree_with_an_independent_reference_within_sampling_error(out, panel, wanted):
    # Mean and sd of 25 trials of the reference; the difference of two such means has sd sqrt(2/25) sd.
    found = summary_of(out, panel)["policies"]
    for name, (mean, sd) in wanted.items():
        assert abs(found[name]["final_mean"] - mean) < 4 * sd * (2 / TRIALS) ** 0.5, name


@pytest.mark.parametrize(
    ("panel", "wanted"),
    [
        ("a", [10, 3.06, 1.11, 0.63, 0.44, 0.34, 0.27, 0.22]),
        ("b", [10, 3.62, 1.91, 1.51, 1.35, 1.25, 1.18, 1.13]),
    ],
)
def test_norm_estimates_agree_with_an_independent_reference(out, panel, wanted):
    found = summary_of(out, panel)["policies"]["alb-norm"]["norm_bounds"]["mean"]
    assert found == pytest.approx(wanted, rel=0.03)


def test_with_the_papers_own_estimator_the_estimates_fall_through_the_truth(out):
    found = summary_of(out, "c")["policies"]["alb-norm-paper"]["norm_bounds"]["mean"]
    assert found[-1] < 0.5


def test_a_panel_is_stored_with_its_settings_seed_and_versions_and_is_drawn_from_its_table(out):
    panels.write_figures(Stored(out))
    for name in NORM_PANELS:
        summary = summary_of(out, name)
        assert summary["panel"] == name
        assert summary["trials"] == TRIALS
        assert summary["seed"] == 0
        assert summary["settings"]["horizon"] == 12_775
        assert {"albatross", "numpy", "numba", "python"} <= summary["versions"].keys()
        assert summary["elapsed_s"] > 0
        with Image.open(out / name / "figure.png") as picture:
            assert picture.width > 800
        assert (out / name / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert {"alb-norm", "oful-plus", "oracle", "ucb", "lints", "greedy", "albatross"} <= summary_of(out, "a")[
        "policies"
    ].keys()


def test_the_summary_is_what_the_curves_say(out):
    rows = duckdb.sql(f"""
        SELECT policy, avg(regret), stddev(regret), count(*) FROM '{out}/b/curves.parquet' WHERE round = 12775
        GROUP BY policy
    """).fetchall()
    found = summary_of(out, "b")["policies"]
    assert {name for name, *_ in rows} == found.keys()
    for name, mean, sd, trials in rows:
        assert found[name]["final_mean"] == pytest.approx(mean, rel=1e-12)
        assert found[name]["final_sd"] == pytest.approx(sd, rel=1e-9)
        assert trials == TRIALS


def test_a_finished_panel_is_known_by_its_settings_and_a_damaged_one_is_not_trusted(out):
    panel = PANELS["c"]
    assert results.finished(panel, trials=TRIALS, seed=0, out=out) == summary_of(out, "c")
    assert results.finished(panel, trials=TRIALS, seed=1, out=out) is None
    assert results.finished(panel, trials=TRIALS + 1, seed=0, out=out) is None
    other = panel._replace(settings={**panel.settings, "scale": 0.4})
    assert results.finished(other, trials=TRIALS, seed=0, out=out) is None
    whole = (out / "c" / "summary.json").read_text()
    (out / "c" / "summary.json").write_text(whole[: len(whole) // 2])
    assert results.finished(panel, trials=TRIALS, seed=0, out=out) is None
    (out / "c" / "summary.json").write_text(whole)


def test_a_run_that_fails_leaves_what_was_there(tmp_path):
    def fail(settings, *, trials, seed):
        raise RuntimeError("no")

    panel = PANELS["c"]._replace(name="x", run=fail)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "summary.json").write_text("old")
    with pytest.raises(RuntimeError):
        results.run(panel, trials=1, seed=0, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x" / "summary.json").read_text() == "old"


def test_albatross_changes_no_number_of_the_others():
    settings = {**PANELS["b"].settings, "n_arms": 5, "dim": 3, "horizon": 300}
    contenders = norm_regret.contenders(settings)
    how = {"horizon": 300, "trials": 2, "seed": 4, "record": 10}
    everyone = simulate(contenders, norm_regret.problem(settings), **how)
    del contenders["albatross"]
    for name, alone in simulate(contenders, norm_regret.problem(settings), **how).items():
        assert (alone.regret == everyone[name].regret).all(), name
