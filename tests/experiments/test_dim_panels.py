"""Panels (d) to (f) come out; with few trials here, because each is accurate to a few per cent."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from albatross import environments, policies, simulate
from albatross.experiments import PANELS, dim_regret, results
from albatross.experiments.monotone import MonotoneALBDim
from albatross.report import claims
from albatross.report.claims.engine import CHANGED
from albatross.store.results import Stored


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    small = {**PANELS["e"].settings, "inside_trials": 2}
    results.run(PANELS["e"]._replace(settings=small), trials=4, seed=0, out=folder)
    results.run(PANELS["f"]._replace(settings={"panels": {"e": small}}), trials=2, seed=0, out=folder)
    return folder


def summary_of(out, panel):
    return json.loads((out / panel / "summary.json").read_text())


def test_the_gap_and_the_order_are_there_when_the_last_two_phases_end(out):
    ends = dim_regret.phase_ends(PANELS["e"].settings)
    rows = Stored(out).table("e")
    for end in ends[-2:]:
        now = rows["round"] == end
        at = {name: rows["regret"][now & (rows["policy"] == name)].mean() for name in ("oracle", "alb-dim", "oful")}
        assert at["oracle"] < at["alb-dim"] < at["oful"]
    assert 6.5 <= at["oful"] / at["alb-dim"] <= 8.5


def test_the_papers_claims_about_the_panels_come_out_with_a_stated_change(out):
    verdicts = {result.claim.id: result.verdict for result in claims.measured(Stored(out))}
    assert {verdicts[claim] for claim in ("gap", "near-oracle-dim", "support")} == {CHANGED}


def test_final_regrets_agree_with_an_independent_reference(out):
    found = summary_of(out, "e")["policies"]
    for name, mean in (("alb-dim", 2.24e6), ("oful", 1.68e7), ("oracle", 1.70e6)):
        assert found[name]["final_mean"] == pytest.approx(mean, rel=0.06), name
    assert "lints" in found


def test_the_phases_are_recorded(out):
    entry = summary_of(out, "e")["policies"]["alb-dim"]
    assert entry["support_sizes"][:2] == [200.0, 200.0]
    assert entry["support_sizes"][3:] == [20.0, 20.0]
    assert entry["missed"][-1] == entry["false"][-1] == 0.0
    for key in ("samples", "conditioning", "switches"):
        assert len(entry[key]) == 5


def test_inside_the_ball_the_gap_is_above_3_and_no_true_coordinate_is_ever_dropped(out):
    entry = summary_of(out, "e")["policies"]["alb-dim-inside"]
    assert entry["trials"] == 2
    assert entry["missed"] == [0.0] * 5
    assert entry["support_sizes"][-1] == 20.0
    oful, inside, oracle = Stored(out).finals("e", "oful", "alb-dim-inside", "oracle")
    assert len(oful) == len(inside) == len(oracle) == 2
    assert (oful > 3.0 * inside).all()
    assert (oracle < inside).all()


def test_the_ablation_plays_as_alb_dim_until_a_dropped_coordinate_would_come_back(out):
    rows = Stored(out).table("f", "SELECT * FROM curves ORDER BY policy, trial, phase")
    alb, monotone = (
        {key: values[rows["policy"] == policy].reshape(2, 5) for key, values in rows.items()}
        for policy in ("alb-dim", "monotone")
    )
    assert (alb["missed"][:, 2] > 0).all()  # phase 2 drops true coordinates, and ALB-Dim takes them back
    assert (alb["missed"][:, 3:] == 0).all()
    assert (monotone["regret"][:, :3] == alb["regret"][:, :3]).all()
    assert (monotone["missed"][:, 2:] == alb["missed"][:, [2]]).all()
    assert (np.diff(monotone["support_size"], axis=1) <= 0).all()
    assert (monotone["regret"][:, -1] > 10.0 * alb["regret"][:, -1]).all()


def test_the_ablation_shrinks_its_active_sets_to_those_that_alb_dim_would_have_kept_every_time():
    # On few coordinates and with much noise, ALB-Dim drops and takes back many times.
    problem = environments.Ball(dim=6, magnitudes=[0.3, 0.2, 0.1], noise_sd=1.0)
    given = {"first_phase": 16, "exploration": "gaussian", "switch": 1.0, "growth": (2, 2)}
    runs = simulate(
        {"alb-dim": policies.ALBDim(**given), "monotone": MonotoneALBDim(**given)},
        problem,
        horizon=5_000,
        trials=20,
        seed=0,
        record=1,
    )
    sets = {
        name: [[set(phase["support"]) for phase in trial["phases"]] for trial in run.diagnostics]
        for name, run in runs.items()
    }
    assert any(later - earlier for trial in sets["alb-dim"] for earlier, later in itertools.pairwise(trial))
    assert all(later <= earlier for trial in sets["monotone"] for earlier, later in itertools.pairwise(trial))
    for free, bound in zip(sets["alb-dim"], sets["monotone"], strict=True):
        assert free[:2] == bound[:2]  # the same luck: exploration comes from the same stream
