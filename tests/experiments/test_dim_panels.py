"""Panels (d) to (f) come out; with few trials here, because each is accurate to a few per cent."""

from __future__ import annotations

import json

import pytest

from albatross.experiments import PANELS, dim_regret, results
from albatross.report import claims
from albatross.report.claims.engine import CHANGED
from albatross.store.results import Stored


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    results.run(PANELS["e"], trials=4, seed=0, out=folder)
    small = PANELS["f"].settings["panels"]["e"]
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
