from __future__ import annotations

import numpy as np
import pytest

from albatross.datasets import generate_ranking


def explained(features: np.ndarray, ratings: np.ndarray) -> float:
    """The share of the ratings' variance that is linear in the features."""
    design = np.c_[features, np.ones(len(ratings))]
    left = ratings - design @ np.linalg.lstsq(design, ratings, rcond=None)[0]
    return 1 - left.var() / ratings.var()


def test_it_has_the_papers_shape():
    ranking = generate_ranking()
    assert ranking.features.shape == (20_000, 50)
    assert set(ranking.ratings) == {0, 1, 2, 3, 4}
    shares = np.bincount(ranking.ratings.astype(int)) / 20_000
    np.testing.assert_allclose(shares, [0.226, 0.389, 0.294, 0.070, 0.021], atol=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_it_resembles_the_real_ones(seed):
    features, ratings, queries = generate_ranking(seed=seed)
    assert features.min() == 0
    assert features.max() == 1
    assert np.array_equal(features, np.round(features, 2))
    assert 0.25 < (features > 0).mean() < 0.6
    assert features.std(axis=0).min() > 0
    values = np.linalg.eigvalsh(np.corrcoef(features.T))
    assert values[-1] > 6
    assert values[0] < 0.3
    assert 0.2 < explained(features, ratings) < 0.5
    sizes = np.bincount(queries)[1:]
    assert 15 < sizes.mean() < 25
    assert (np.diff(queries) >= 0).all()
    between = (np.bincount(queries, ratings)[1:] / sizes)[queries - 1]
    assert 0.2 < between.var() / ratings.var() < 0.45


def test_the_seed_fixes_everything():
    one, same, other = (generate_ranking(5_000, 10, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same))
    assert not np.array_equal(one.features, other.features)


@pytest.mark.parametrize("shape", [(1, 1), (4_097, 3), (3, 700)])
def test_any_shape_will_do(shape):
    features, ratings, queries = generate_ranking(*shape)
    assert features.shape == shape
    assert len(ratings) == len(queries) == shape[0]
    with pytest.raises(ValueError, match="n_rows must be a whole number"):
        generate_ranking(0)
