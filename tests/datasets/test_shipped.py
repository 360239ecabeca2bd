from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from albatross import datasets
from albatross.datasets import open_bandit, upworthy, yandex

DATA = Path(datasets.__file__).parent / "data"


def test_yandex_is_both_parts_with_their_queries_apart():
    ranking = yandex()
    assert ranking.features.shape == (2000, 50)
    assert len(np.unique(ranking.queries)) == 117
    assert not np.intersect1d(ranking.queries[:1500], ranking.queries[1500:]).size
    assert (ranking.ratings.min(), ranking.ratings.max()) == (0.0, 0.61)
    assert int((ranking.features.std(axis=0) > 0).sum()) == 41


@pytest.mark.parametrize(
    ("campaign", "policy", "n_actions", "clicks"),
    [("all", "random", 80, 38), ("all", "bts", 80, 42), ("women", "random", 46, 46), ("women", "bts", 46, 46)],
)
@pytest.mark.filterwarnings("ignore:.*never logged:UserWarning")
def test_open_bandit_logs_are_whole(campaign, policy, n_actions, clicks):
    log = open_bandit(campaign=campaign, policy=policy)
    assert (len(log.actions), log.n_actions, log.rewards.sum()) == (10_000, n_actions, clicks)
    assert log.action_features is not None
    assert log.action_features.shape[0] == n_actions
    assert set(log.positions.tolist()) == {0, 1, 2}
    assert log.features.shape == (10_000, len(log.feature_names))
    assert set(np.unique(log.features)) == {0, 1}
    if policy == "random":
        np.testing.assert_allclose(log.propensities, 1 / n_actions, rtol=1e-3)


def test_open_bandit_knows_its_campaigns():
    with pytest.raises(ValueError, match="campaign must be one of 'all', 'women', not 'men'"):
        open_bandit(campaign="men")
    with pytest.raises(ValueError, match="policy must be one of"):
        open_bandit(policy="uniform")


def test_upworthy_has_rates_of_headlines_by_test():
    ranking = upworthy()
    assert ranking.features.shape == (16_340, 50)
    sizes = np.unique(ranking.queries, return_counts=True)[1]
    assert (len(sizes), sizes.min(), sizes.max()) == (3_602, 2, 14)
    assert 0 <= ranking.ratings.min() < ranking.ratings.max() < 0.5


@pytest.mark.parametrize("folder", ["logged-open-bandit", "ltr-yandex-querywise", "news-upworthy-headlines"])
def test_every_shipped_set_says_where_it_is_from_and_under_which_licence(folder):
    words = (DATA / folder / "ATTRIBUTION").read_text()
    assert all(word in words for word in ("Source", "Licence", "Changes"))
    if "Apache" in words:
        assert "Apache License" in (DATA / folder / "LICENSE").read_text()


def test_three_sets_of_two_megabytes_are_shipped_and_no_others():
    assert {path.name for path in DATA.iterdir()} == {
        "logged-open-bandit",
        "ltr-yandex-querywise",
        "news-upworthy-headlines",
    }
    assert sum(path.stat().st_size for path in DATA.rglob("*")) < 2.3e6
