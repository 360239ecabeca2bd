"""Panels (g) and (h): the estimates of the norm on rated rows, and a file of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from albatross import datasets
from albatross.experiments import PANELS, rated_rows, results
from albatross.store.results import Stored


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    results.run(PANELS["g"], trials=1, seed=0, out=folder)
    results.run(PANELS["h"], trials=5, seed=0, out=folder)
    return folder


def summary_of(out, panel):
    return json.loads((out / panel / "summary.json").read_text())


@pytest.mark.parametrize("source", ["yandex", "generated"])
def test_the_estimates_hardly_ever_fall_below_the_norm(out, source):
    rows = Stored(out).table("h", f"SELECT * FROM curves WHERE source = '{source}' AND mode = 'bootstrap'")
    assert (rows["norm_bound"] >= rows["norm"]).mean() >= 0.95


@pytest.mark.parametrize("source", ["yandex", "generated"])
def test_with_a_rows_own_rating_the_estimates_still_move_in_the_last_two_epochs(out, source):
    rows = Stored(out).table(
        "h",
        "SELECT max_by(norm_bound, epoch) / max_by(norm_bound, epoch) FILTER (epoch <= 8) AS rise FROM curves "
        f"WHERE source = '{source}' AND mode = 'rating' GROUP BY draw",
    )
    assert (np.abs(rows["rise"] - 1.0) > 0.05).all()


@pytest.mark.parametrize("source", ["yandex", "generated"])
def test_the_estimates_end_within_half_the_norm_above_it_in_every_draw(out, source):
    ratios = summary_of(out, "h")["policies"][f"alb-norm-{source}-bootstrap"]["last_ratios"]
    assert len(ratios) == 5
    assert all(1.0 <= ratio <= 1.5 for ratio in ratios)


@pytest.mark.parametrize("source", ["yandex", "generated"])
def test_alb_norm_earns_far_more_than_uniform_play_in_the_last_epoch(out, source):
    found = summary_of(out, "g")["policies"]
    late = {name: found[f"{name}-{source}-bootstrap"]["last_epoch_reward"] for name in ("alb-norm", "uniform")}
    assert all(alb > 1.5 * uniform for alb, uniform in zip(late["alb-norm"], late["uniform"], strict=True))


@pytest.mark.parametrize("source", ["yandex", "generated"])
def test_alb_norm_earns_more_than_oful_plus_with_its_first_bound_and_less_than_with_the_norm(out, source):
    found = summary_of(out, "g")["policies"]
    reward = {name: found[f"{name}-{source}-bootstrap"]["final_mean"] for name in ("oful-plus", "alb-norm", "oracle")}
    assert 1.5 * reward["oful-plus"] < reward["alb-norm"] < reward["oracle"] < 1.1 * reward["alb-norm"]


def test_osom_says_in_how_many_draws_it_switched_and_when(out):
    found = summary_of(out, "g")["policies"]
    for form in ("osom", "osom-scaled"):
        for source in ("yandex", "generated"):
            switched = found[f"{form}-{source}-bootstrap"]["switched"]
            assert switched["of"] == 1
            assert (switched["round"] is None) == (switched["times"] == 0)
    assert "switched" not in found["alb-norm-yandex-bootstrap"]


def test_a_file_of_ones_own_takes_the_papers_sizes_as_far_as_it_has_them(tmp_path):
    path = tmp_path / "set2.test.txt"
    datasets.write_ranking(path, datasets.generate_ranking(900, 12, seed=2))
    settings = rated_rows.with_data(rated_rows.SETTINGS, path)
    data = settings["sources"]["data"]
    assert (data["n_arms"], data["columns"], data["rows"], data["path"]) == (22, 12, 900, str(path))
    datasets.write_ranking(tmp_path / "other.txt", datasets.generate_ranking(900, 12, seed=3))
    other = rated_rows.with_data(rated_rows.SETTINGS, tmp_path / "other.txt")["sources"]["data"]
    assert data["sha256"] != other["sha256"]  # so that results of other data are not taken for these
    short = {**settings, "epochs": 3}
    summary = results.run(PANELS["h"]._replace(settings=short), trials=1, seed=0, out=tmp_path)
    assert set(summary["policies"]) == {f"alb-norm-data-{mode}" for mode in rated_rows.MODES}


@pytest.mark.parametrize(
    ("rows", "queries", "columns", "source"),
    [
        (103_174, 3_798, 70, "yahoo"),
        (103_173, 3_798, 70, "data"),
        (103_174, 3_797, 70, "data"),
        (103_174, 3_798, 701, "data"),
        (40, 4, 70, "data"),
    ],
)
def test_the_papers_file_is_known_by_its_shape_and_not_by_its_name(
    monkeypatch, tmp_path, rows, queries, columns, source
):
    path = tmp_path / "set2.test.txt"
    path.touch()
    features = np.broadcast_to(np.arange(columns) % 7.0, (rows, columns))  # a copy could take half a gigabyte
    ranking = datasets.Ranking(features, np.zeros(rows), np.arange(rows) % queries)
    monkeypatch.setattr(rated_rows, "_read", lambda *_: ranking)
    assert set(rated_rows.with_data(rated_rows.SETTINGS, path)["sources"]) == {source}
