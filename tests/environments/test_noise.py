"""The laws of the noise: mean, variance, bounds and sub-Gaussian parameter, in every environment that has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import policies, simulate
from albatross.environments import Ball, FixedArms, Mixture, Nested
from albatross.environments.ball import draw_luck
from albatross.environments.noise import LAWS, Noise, fill_noise
from albatross.normals import fill_normal
from albatross.protocol import Rounds, begin, draw

SD = 0.7
N = 50_000
ENVIRONMENTS = {
    "mixture": (Mixture, {"n_arms": 4, "dim": 2}),
    "nested": (Nested, {"n_arms": 4, "dims": (1, 2), "true_dim": 1}),
    "fixed-arms": (FixedArms, {"n_arms": 4, "dim": 2}),
}
# Kurtosis, least and greatest value, and the sub-Gaussian parameter, all of standard deviation 1. The last is that of a
# Bernoulli variable, (1 - 2 p) / (2 log((1 - p) / p)) (Kearns and Saul 1998), over its variance p (1 - p), at p = 1/10.
KNOWN = {
    "gaussian": (3.0, -math.inf, math.inf, 1.0),
    "uniform": (1.8, -math.sqrt(3.0), math.sqrt(3.0), 1.0),
    "rademacher": (1.0, -1.0, 1.0, 1.0),
    "skewed": (1.0 / 0.09 - 3.0, -1.0 / 3.0, 3.0, math.sqrt(0.8 / (2.0 * math.log(9.0)) / 0.09)),
}


def generator(seed=0):
    return np.random.Generator(np.random.SFC64(seed))


def drawn(kind, law, seed=0):
    make, sizes = ENVIRONMENTS[kind]
    rng, table = generator(seed), (N, 4)
    instance = begin(make(**sizes, noise_sd=SD, noise=law), rng)
    chunk = Rounds(np.empty((*table, 2)), np.ones(table, bool), np.empty(table), np.empty(table))
    draw(instance, chunk, rng)
    return chunk


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_the_noise_has_mean_zero_its_standard_deviation_and_its_bounds(kind, law):
    noise = drawn(kind, law).noise
    kurtosis, least, greatest, _ = KNOWN[law]
    assert abs(noise.mean()) < 4.0 * SD / math.sqrt(noise.size)
    assert noise.var() == pytest.approx(SD**2, abs=4.0 * SD**2 * math.sqrt(max(kurtosis - 1.0, 1e-4) / noise.size))
    assert noise.min() >= SD * least - 1e-12
    assert noise.max() <= SD * greatest + 1e-12
    if law != "gaussian":  # the bounds are reached
        assert noise.min() == pytest.approx(SD * least, rel=1e-3)
        assert noise.max() == pytest.approx(SD * greatest, rel=1e-3)
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 5.0 / math.sqrt(N)  # arms are independent


@pytest.mark.parametrize("law", LAWS)
def test_luck_on_the_ball_has_the_law_as_well(law):
    rng = generator()
    instance = begin(Ball(dim=2, theta=[0.1, 0.2], noise_sd=SD, noise=law), rng)
    luck = draw_luck(instance, N, rng)
    kurtosis, least, greatest, _ = KNOWN[law]
    assert abs(luck.mean()) < 4.0 / math.sqrt(N)
    assert luck.var() == pytest.approx(1.0, abs=4.0 * math.sqrt(max(kurtosis - 1.0, 1e-4) / N))
    assert least - 1e-12 <= luck.min()
    assert luck.max() <= greatest + 1e-12
    assert instance.noise.sd == SD


@pytest.mark.parametrize("law", LAWS)
def test_the_stated_parameter_is_the_least_that_makes_the_law_sub_gaussian(law):
    noise = np.empty(400_000)
    fill_noise(noise, Noise(law, 1.0), generator(1))
    noise -= noise.mean()  # which would count most where s is small
    s = np.r_[np.linspace(-2.0, -0.1, 20), np.linspace(0.1, 2.0, 20)]
    needed = np.sqrt([2.0 * math.log(np.exp(each * noise).mean()) / each**2 for each in s])
    stated = KNOWN[law][3]
    assert needed.max() == pytest.approx(stated, abs=0.02)  # log-moments of so many numbers are good to about 0.01


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_the_law_changes_nothing_but_the_noise(kind):
    gaussian, uniform = drawn(kind, "gaussian"), drawn(kind, "uniform")
    assert np.array_equal(gaussian.contexts, uniform.contexts)
    assert np.array_equal(gaussian.means, uniform.means)
    assert not np.array_equal(gaussian.noise, uniform.noise)


def test_gaussian_noise_is_a_scaled_run_of_standard_normal_numbers():
    plain, scaled = np.empty(1_000), np.empty(1_000)
    fill_normal(plain, generator(3))
    fill_noise(scaled, Noise("gaussian", SD), generator(3))
    assert np.array_equal(scaled, plain * SD)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_another_law_is_refused_and_the_error_names_those_that_there_are(kind):
    make, sizes = ENVIRONMENTS[kind]
    with pytest.raises(ValueError, match=r"noise must be one of .*rademacher.*cauchy"):
        make(**sizes, noise="cauchy")


def test_alb_norm_given_the_standard_deviation_does_as_well_under_every_law():
    policy = policies.ALBNorm(norm_bound=3.0, sigma=SD)
    regret = {}
    for law in LAWS:
        env = Mixture(n_arms=5, dim=3, noise_sd=SD, noise=law)
        regret[law] = simulate(policy, env, horizon=2_000, trials=20, seed=0, record=1).regret[:, -1].mean()
    for law in LAWS:
        assert regret[law] == pytest.approx(regret["gaussian"], rel=0.1), regret
