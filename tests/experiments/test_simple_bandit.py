"""Panel `simple`: ALB-Norm and UCB where theta* = 0, in a tiny run that is stored whole."""

from __future__ import annotations

import pytest

from albatross.experiments import PANELS, results
from albatross.report import claims
from albatross.report.claims.engine import MISSING
from albatross.report.figures import panels
from albatross.store.results import Stored


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    small = {**PANELS["simple"].settings, "sizes": [[6, 4], [12, 1]], "epochs": 2}
    results.run(PANELS["simple"]._replace(settings=small), trials=2, seed=0, out=folder)
    return folder


def test_every_size_is_played_by_all_to_the_end_of_its_last_epoch(out):
    rows = Stored(out).table(
        "simple",
        "SELECT n_arms, max(round) AS last, count(DISTINCT policy) AS n FROM curves GROUP BY n_arms ORDER BY 1",
    )
    assert rows["n_arms"].tolist() == [6, 12]
    assert rows["last"].tolist() == [6 + 300, 12 + 300]
    assert rows["n"].tolist() == [4, 4]


def test_contexts_say_nothing_so_regret_is_that_of_the_biases_alone(out):
    # No gap between two biases of U[-1, 1] is larger than 2.
    found = Stored(out).summaries["simple"]["policies"]
    assert len(found) == 8
    assert all(0.0 < entry["final_mean"] <= 2.0 * 312 for entry in found.values())


def test_the_claim_is_judged_under_its_proviso_and_the_panel_is_drawn(out):
    (result,) = (each for each in claims.measured(Stored(out)) if each.verdict != MISSING)
    assert result.claim.id == "simple-bandit"
    assert [each.what for each in result.readings[0].measured] == ["K = 12, d = 1"]
    assert [plot.title for plot in panels.plots(Stored(out), "simple")] == ["K = 6, d = 4", "K = 12, d = 1"]
