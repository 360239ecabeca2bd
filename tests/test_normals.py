from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from albatross import normals
from albatross.normals import fill_normal

MANY = 4_000_000


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def words_of(rng: np.random.Generator) -> np.ndarray:
    """The four words of an SFC64 generator's state."""
    return rng.bit_generator.state["state"]["state"]


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    numbers = np.empty(MANY)
    fill_normal(numbers, generator(20210))
    return numbers


# --------------------------------------------------------------------------------------------------- the words


def test_words_are_numpys_sfc64_stream():
    state = words_of(generator(5))
    drawn = [int(normals.next_word(state)) for _ in range(1_000)]
    assert drawn == generator(5).bit_generator.random_raw(1_000).tolist()


def test_without_compilation_the_numbers_are_the_same_and_nothing_is_warned_of():
    script = (
        "import json, numpy as np; from albatross.normals import fill_normal; numbers = np.empty(3_000);"
        "fill_normal(numbers, np.random.Generator(np.random.SFC64(5))); print(json.dumps(numbers.tolist()))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    numbers = np.empty(3_000)
    fill_normal(numbers, generator(5))
    assert json.loads(done.stdout) == numbers.tolist()


def test_uniforms_are_those_of_numpy():
    state = words_of(generator(6))
    drawn = [normals._next_uniform(state) for _ in range(1_000)]
    assert drawn == generator(6).random(1_000).tolist()


@pytest.mark.parametrize("size", [1, 2048, 10_001])
def test_generator_goes_on_where_the_numbers_stopped(size):
    rng, plain = generator(7), generator(7)
    fill_normal(np.empty(size), rng)
    used = int(words_of(rng)[3] - words_of(plain)[3])  # the fourth word counts the steps
    assert size <= used <= 1.1 * size + 20
    plain.bit_generator.random_raw(used)
    assert words_of(rng).tolist() == words_of(plain).tolist()
    assert rng.random(10).tolist() == plain.random(10).tolist()


def test_half_word_that_numpy_has_kept_back_stays_kept():
    rng = generator(8)
    rng.integers(2**32, dtype=np.uint32)  # takes one half of a word
    kept = rng.bit_generator.state["uinteger"]
    fill_normal(np.empty(100), rng)
    assert rng.bit_generator.state["has_uint32"] == 1
    assert rng.integers(2**32, dtype=np.uint32) == kept


# ----------------------------------------------------------------------------------------- the same every time


def test_same_seed_gives_same_numbers_and_another_seed_others():
    first, again, other = np.empty(5_000), np.empty(5_000), np.empty(5_000)
    fill_normal(first, generator(1))
    fill_normal(again, generator(1))
    fill_normal(other, generator(2))
    assert first.tolist() == again.tolist()
    assert not np.intersect1d(first, other).size


def test_later_calls_give_fresh_numbers():
    rng, first, second = generator(3), np.empty(3_000), np.empty(3_000)
    fill_normal(first, rng)
    fill_normal(second, rng)
    assert not np.intersect1d(first, second).size


def test_filling_block_by_block_is_filling_at_once():
    at_once, rng = np.empty(3 * normals._BLOCK + 17), generator(4)
    fill_normal(at_once, generator(4))
    in_parts = np.empty_like(at_once)
    for start in range(0, in_parts.size, normals._BLOCK):
        fill_normal(in_parts[start : start + normals._BLOCK], rng)
    assert at_once.tolist() == in_parts.tolist()


@pytest.mark.parametrize("shape", [(1,), (7,), (2047,), (2048,), (2049,), (5_003,), (3, 5), (11, 13, 17), (1, 1, 4097)])
def test_every_entry_of_any_shape_is_filled_once(shape):
    out = np.full(shape, np.nan)
    fill_normal(out, generator(9))
    flat = np.empty(out.size)
    fill_normal(flat, generator(9))
    assert np.isfinite(out).all()
    assert out.reshape(-1).tolist() == flat.tolist()
    assert np.unique(out).size == out.size


def test_filling_nothing_uses_nothing():
    rng = generator(10)
    fill_normal(np.empty((0, 3)), rng)
    assert words_of(rng).tolist() == words_of(generator(10)).tolist()


# ------------------------------------------------------------------------------------------------------ the law


def test_law_is_standard_normal_by_kolmogorov_and_smirnov(sample):
    assert stats.kstest(sample[:1_000_000], stats.norm.cdf).pvalue > 0.01


def test_law_is_standard_normal_in_a_thousand_equally_likely_cells(sample):
    counts, _ = np.histogram(stats.norm.cdf(sample), bins=1_000, range=(0.0, 1.0))
    assert counts.sum() == sample.size
    assert stats.chisquare(counts).pvalue > 0.01


def test_law_is_right_in_every_layer_of_the_ziggurat(sample):
    edges = np.concatenate([[0.0], normals._EDGES[-2:0:-1], [np.inf]])
    counts, _ = np.histogram(np.abs(sample), bins=edges)
    expected = 2.0 * np.diff(stats.norm.cdf(edges)) * sample.size
    assert expected.min() > 500
    assert stats.chisquare(counts, expected).pvalue > 0.01


def test_moments_are_those_of_the_standard_normal_law(sample):
    variances = {1: 1.0, 2: 2.0, 3: 15.0, 4: 96.0, 5: 945.0, 6: 10_170.0}  # of z^k
    for power, variance in variances.items():
        moment = {1: 0, 2: 1, 3: 0, 4: 3, 5: 0, 6: 15}[power]
        assert abs((sample**power).mean() - moment) < 4.0 * np.sqrt(variance / sample.size), power


@pytest.mark.parametrize("beyond", [3.0, normals._TAIL, 4.0, 4.5])
def test_tails_have_the_right_weight_on_both_sides(sample, beyond):
    expected = stats.norm.sf(beyond) * sample.size
    for side in (sample, -sample):
        assert abs((side > beyond).sum() - expected) < 4.0 * np.sqrt(expected)


def test_numbers_beyond_the_last_layer_follow_the_tail_of_the_law(sample):
    tail = np.abs(sample[np.abs(sample) > normals._TAIL])
    assert tail.size > 800
    weight = stats.norm.sf(normals._TAIL)
    assert stats.kstest(tail, lambda x: 1.0 - stats.norm.sf(x) / weight).pvalue > 0.01


@pytest.mark.parametrize("lag", [1, 2, 3, 8, normals._BLOCK])
def test_neighbours_are_uncorrelated(sample, lag):
    for numbers in (sample, np.abs(sample), sample**2):
        centred = numbers - numbers.mean()
        correlation = (centred[lag:] * centred[:-lag]).mean() / centred.var()
        assert abs(correlation) < 4.0 / np.sqrt(sample.size)


def test_sign_says_nothing_of_magnitude(sample):
    assert stats.ks_2samp(sample[sample > 0], -sample[sample < 0]).pvalue > 0.01
