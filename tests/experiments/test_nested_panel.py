"""The experiment on nested maps: who comes before whom, and what is stored."""

from __future__ import annotations

import json

import pytest

from albatross.experiments import PANELS, results


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    return results.run(PANELS["nested"], trials=6, seed=0, out=tmp_path_factory.mktemp("out"))


def regret(summary, name):
    return summary["policies"][name]["final_mean"]


@pytest.mark.parametrize("inner", ["suplinrel", "suplinucb"])
def test_with_stages_inside_alb_dim_lies_between_the_oracle_and_all_features(summary, inner):
    oracle, alb, full = (regret(summary, name) for name in (f"{inner}-oracle", f"alb-dim-{inner}", f"{inner}-full"))
    assert oracle < alb < full


def test_with_linucb_inside_alb_dim_loses_to_linucb_on_all_features(summary):
    assert regret(summary, "linucb-oracle") < regret(summary, "linucb-full") < regret(summary, "alb-dim-linucb")


def test_linucb_needs_far_less_than_what_has_a_proof(summary):
    assert 5 * regret(summary, "linucb-full") < regret(summary, "suplinrel-full") < regret(summary, "suplinucb-full")


def test_the_summary_holds_the_maps_that_were_found(summary):
    models = summary["policies"]["alb-dim-suplinrel"]["models"]
    assert all(trial[0] == 20 and trial[1] in (5, 10, 20) for trial in models)
    assert sum(trial[1] == 5 for trial in models) >= 4
    json.dumps(summary)
