"""The motivating example: its readers, its stories, and what each policy is given."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from albatross import datasets
from albatross.experiments import PANELS, news, results
from albatross.report.claims import measured
from albatross.report.claims.engine import MISSING
from albatross.store.results import Stored

SHORT = {**news.SETTINGS, "dim": 4, "supports": [2, 4], "norms": [0.0, 0.3, 2.0], "horizon": 1_500, "points": 20}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    results.run(PANELS["news"]._replace(settings=SHORT), trials=2, seed=0, out=folder)
    return folder


@pytest.fixture(scope="module")
def table(out):
    stored = Stored(out).table("news")
    return {
        name: np.ma.filled(column, np.nan) if column.dtype.kind == "f" else column for name, column in stored.items()
    }


def of(table, policy, **where):
    """Rows of a policy and of readers with these properties."""
    chosen = table["policy"] == policy
    for key, value in where.items():
        chosen &= table[key] == value
    return {name: column[chosen] for name, column in table.items()}


def test_there_is_a_reader_of_every_norm_and_support():
    every = news.readers(news.SETTINGS, np.random.default_rng(0))
    assert [(each.norm, each.support) for each in every] == [
        (norm, support) for norm in (0.0, 0.3, 1.0, 3.0) for support in (2, 4, 8, 16)
    ]
    for reader in every:
        assert np.linalg.norm(reader.theta) == pytest.approx(reader.norm)
        assert np.count_nonzero(reader.theta) == (reader.support if reader.norm else 0)
        assert not reader.theta[reader.support :].any()
        assert (np.abs(reader.biases) <= 1.0).all()


def test_stories_are_real_headlines_and_every_outlet_has_its_own():
    published = news.stories({**news.SETTINGS, "horizon": 3_000}, np.random.default_rng(0))
    assert published.shape == (3_000, 10, 16)
    assert published.mean(axis=(0, 1)) == pytest.approx(np.zeros(16), abs=0.1)
    assert published.std(axis=(0, 1)) == pytest.approx(np.ones(16), abs=0.1)
    headlines = datasets.upworthy()
    features = headlines.features[:, :16]
    features = ((features - features.mean(axis=0)) / features.std(axis=0)).round(9)
    told = defaultdict(set)  # the stories that a headline, which may have been tested twice, tells
    for row, story in zip(features, headlines.queries, strict=True):
        told[tuple(row)].add(int(story))
    outlets = defaultdict(set)
    for outlet in range(10):
        for row in published[:, outlet].round(9):
            (story, *more) = told[tuple(row)]
            if not more:
                outlets[story].add(outlet)
    assert len(outlets) > 2_500
    assert {len(each) for each in outlets.values()} == {1}


def test_indicators_of_outlets_stand_before_the_topics():
    contexts = np.arange(12.0).reshape(2, 2, 3)
    marked = news.with_indicators(contexts)
    assert marked[1].tolist() == [[1.0, 0.0, 6.0, 7.0, 8.0], [0.0, 1.0, 9.0, 10.0, 11.0]]


def test_only_the_oracle_is_given_the_norm_and_alb_norm_is_given_no_bound():
    given = news.contenders(news.SETTINGS, 0.3)
    assert given["alb-norm"].norm_bound is None
    assert given["alb-norm-paper"].norm_bound is None
    assert given["oracle"].norm_bound == given["oracle-paper"].norm_bound == 0.3
    assert {given[name].norm_bound for name in ("oful-plus", "oful-plus-paper", "osom", "osom-scaled")} == {3.0}


def test_alb_norm_estimates_a_first_bound_of_its_own_for_each_reader(table):
    firsts = of(table, "alb-norm", round=1_500)["first_bound"]
    assert len(np.unique(firsts)) == 2 * 6
    assert (firsts >= 1.0).all()  # the least that Section 3.3 allows
    assert of(table, "alb-norm", round=1_500, norm=2.0)["last_bound"] == pytest.approx(np.full(4, 2.0), rel=0.25)
    assert np.isnan(of(table, "lints")["first_bound"]).all()


def test_policies_play_the_same_stories_with_the_same_luck(table):
    # OFUL+ with the common bound is the oracle of the readers who have that norm, and LinUCB on all topics that of the
    # readers who are interested in all.
    for one, other, where in (
        ("oful-plus", "oracle", {"norm": 2.0}),
        ("linucb-full", "linucb-oracle", {"norm": 2.0, "support": 4}),
    ):
        assert np.array_equal(of(table, one, **where)["regret"], of(table, other, **where)["regret"])
    assert not np.array_equal(of(table, "oful-plus", norm=0.3)["regret"], of(table, "oracle", norm=0.3)["regret"])


def test_a_bound_for_each_reader_pays_where_the_norm_is_small(table):
    def regret(policy):
        return of(table, policy, norm=0.0, round=1_500)["regret"].mean()

    assert regret("oracle") < regret("alb-norm") < regret("oful-plus")


def test_the_same_seed_gives_the_same_table_and_more_populations_change_none(table):
    again = news.run(SHORT, trials=1, seed=0).curves
    first = table["population"] == 0
    for name, column in again.items():
        assert np.array_equal(column, table[name][first], equal_nan=column.dtype.kind == "f"), name


def test_every_claim_about_it_is_measured(out):
    judged = {each.claim.id: each.verdict for each in measured(Stored(out)) if "news" in each.claim.panels}
    assert len(judged) == 11
    assert MISSING not in judged.values()


@pytest.mark.parametrize("osom", ["osom", "osom-scaled"])
def test_osom_says_for_how_many_readers_it_switched_and_when(out, table, osom):
    switched = Stored(out).summaries["news"]["policies"][osom]["switched"]
    last = of(table, osom, round=table["round"].max())
    assert switched["times"] == last["switched"].sum()
    assert switched["of"] == len(last["switched"]) == 12
    assert (switched["round"] is None) == (switched["times"] == 0)
