from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from albatross import confidence
from albatross.confidence import Appendix, Main

CASES = json.loads((Path(__file__).parent / "golden" / "norm" / "radii.json").read_text())
FORMS = [Main(1.0), Appendix(1.0)]

thorough = settings(deadline=None, derandomize=True, max_examples=200)

counts = st.integers(1, 100_000).map(float)
norm_bounds = st.floats(0.0, 100.0)
deltas = st.floats(1e-6, 0.9)
sigmas = st.floats(0.01, 10.0)
arms = st.integers(1, 1_000).map(float)
dims = st.integers(1, 1_000).map(float)
horizons = st.integers(1, 1_000_000).map(float)
rhos = st.floats(0.05, 5.0)


def names_of(case: dict) -> str:
    return f"b={case['b']} t={case['t']} T={case['horizon']} K={case['K']}"


@pytest.fixture(params=CASES, ids=names_of)
def case(request) -> dict:
    return {key: float(value) for key, value in request.param.items()}


# ------------------------------------------------------------------------------------------------ golden cases


def test_burn_in_is_the_golden_one(case):
    found = confidence.burn_in(case["delta"], case["horizon"], case["d"], case["rho_min"])
    assert found == pytest.approx(case["t_min"], rel=1e-12)


def test_self_normalised_term_is_the_golden_one(case):
    found = confidence.self_normalised(case["b"], case["t"], case["delta"], case["sigma"], case["d"])
    assert found == pytest.approx(case["M"], rel=1e-12)


def test_bias_leakage_is_the_golden_one(case):
    found = confidence.bias_leakage(case["b"], case["t"], case["horizon"], case["delta"], case["sigma"], case["K"])
    assert found == pytest.approx(case["Upsilon"], rel=1e-12)


@pytest.mark.parametrize(
    ("form", "name"), [(Appendix(1.0), "K_delta"), (Main(1.0), "K_main")], ids=["appendix", "main"]
)
def test_radius_is_the_golden_one(case, form, name):
    found = confidence.radius(
        form,
        case["b"],
        case["t"],
        case["horizon"],
        case["delta"],
        case["sigma"],
        case["K"],
        case["d"],
        case["rho_min"],
    )
    assert found == pytest.approx(case[name], rel=1e-12)


@pytest.mark.parametrize(
    ("form", "name"), [(Appendix(1.0), "width_appendix"), (Main(1.0), "width_main")], ids=["appendix", "main"]
)
def test_bias_width_is_the_golden_one(case, form, name):
    found = confidence.bias_width(
        form, max(case["t"], 1.0), case["b"], case["delta"], case["sigma"], case["K"], case["d"]
    )
    assert found == pytest.approx(case[name], rel=1e-12)


def test_golden_cases_use_both_sides_of_the_burn_in():
    assert {case["t"] < case["t_min"] for case in CASES} == {True, False}


# ------------------------------------------------------------------------------ they fall as counts grow


@thorough
@given(counts, counts, norm_bounds, deltas, sigmas, arms, dims)
def test_bias_widths_fall_as_plays_grow(fewer, more, norm_bound, delta, sigma, n_arms, dim):
    assume(fewer < more)
    for form in FORMS:
        wide = confidence.bias_width(form, fewer, norm_bound, delta, sigma, n_arms, dim)
        narrow = confidence.bias_width(form, more, norm_bound, delta, sigma, n_arms, dim)
        assert 0.0 < narrow < wide


@thorough
@given(counts, counts, deltas, sigmas, arms)
def test_mean_width_falls_as_plays_grow(fewer, more, delta, sigma, n_arms):
    assume(fewer < more)
    wide, narrow = (confidence.mean_width(count, delta, sigma, n_arms) for count in (fewer, more))
    assert 0.0 < narrow < wide


@thorough
@given(counts, counts, norm_bounds, horizons, deltas, sigmas, arms, dims, rhos)
def test_main_radius_falls_with_every_round(sooner, later, norm_bound, horizon, delta, sigma, n_arms, dim, rho_min):
    assume(sooner < later)
    wide, narrow = (
        confidence.radius(Main(1.0), norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)
        for t in (sooner, later)
    )
    assert 0.0 < narrow < wide


@thorough
@given(counts, counts, norm_bounds, horizons, deltas, sigmas, arms, dims, rhos)
def test_appendix_radius_falls_once_past_the_burn_in(
    sooner, later, norm_bound, horizon, delta, sigma, n_arms, dim, rho_min
):
    assume(sooner < later)
    start = math.ceil(confidence.burn_in(delta, horizon, dim, rho_min))
    wide, narrow = (
        confidence.radius(Appendix(1.0), norm_bound, start + t, horizon, delta, sigma, n_arms, dim, rho_min)
        for t in (sooner, later)
    )
    assert 0.0 < narrow < wide


@thorough
@given(st.floats(0.0, 1.0), norm_bounds, horizons, deltas, sigmas, arms, dims, rhos)
def test_appendix_radius_rises_up_to_the_burn_in_and_jumps_down_there(
    share, norm_bound, horizon, delta, sigma, n_arms, dim, rho_min
):
    def radius(t):
        return confidence.radius(Appendix(1.0), norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)

    burn_in = confidence.burn_in(delta, horizon, dim, rho_min)
    last_before = math.nextafter(burn_in, 0.0)
    assert radius(share * 0.99 * burn_in) < radius(last_before)
    # From T_min on, the noise is divided by sqrt(1 + rho t / 2) and the leakage by 1 + rho t / 2.
    assert radius(burn_in) < 1.001 * radius(last_before) / math.sqrt(1.0 + rho_min * burn_in / 2.0)


def test_appendix_radius_takes_the_burn_in_itself_to_the_second_branch():
    delta, horizon, dim, rho_min = 0.1, 400.0, 4.0, 1.0
    burn_in = confidence.burn_in(delta, horizon, dim, rho_min)
    noise = confidence.self_normalised(2.0, burn_in, delta, 1.0, dim)
    leakage = confidence.bias_leakage(2.0, burn_in, horizon, delta, 1.0, 5.0)
    growth = 1.0 + rho_min * burn_in / 2.0
    found = confidence.radius_appendix(2.0, burn_in, horizon, delta, 1.0, 5.0, dim, rho_min)
    assert found == pytest.approx(noise / math.sqrt(growth) + leakage / growth, rel=1e-12)


def test_main_radius_reads_round_zero_as_round_one():
    before, after = (confidence.radius_main(1.0, t, 100.0, 0.1, 1.0, 5.0, 4.0, 1.0) for t in (0.0, 1.0))
    assert before == after


# --------------------------------------------------------------------- they grow with what is not known


@thorough
@given(norm_bounds, norm_bounds, counts, horizons, deltas, sigmas, arms, dims, rhos)
def test_radii_and_widths_grow_with_the_norm_bound(small, large, t, horizon, delta, sigma, n_arms, dim, rho_min):
    assume(small + 1e-6 < large)
    for form in FORMS:
        narrow, wide = (
            confidence.radius(form, bound, t, horizon, delta, sigma, n_arms, dim, rho_min) for bound in (small, large)
        )
        assert narrow < wide
        narrow, wide = (confidence.bias_width(form, t, bound, delta, sigma, n_arms, dim) for bound in (small, large))
        assert narrow < wide


@thorough
@given(st.floats(0.01, 100.0), norm_bounds, counts, horizons, deltas, sigmas, arms, dims, rhos)
def test_scale_multiplies_radii_and_widths(scale, norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min):
    for form in (Main, Appendix):
        ball = (norm_bound, t, horizon, delta, sigma, n_arms, dim, rho_min)
        assert confidence.radius(form(scale), *ball) == pytest.approx(
            scale * confidence.radius(form(1.0), *ball), rel=1e-15
        )
        arm = (t, norm_bound, delta, sigma, n_arms, dim)
        assert confidence.bias_width(form(scale), *arm) == pytest.approx(
            scale * confidence.bias_width(form(1.0), *arm), rel=1e-15
        )


@pytest.mark.parametrize("form", FORMS, ids=["main", "appendix"])
def test_arms_without_a_play_have_an_infinite_width_and_the_others_their_own(form):
    plays = np.array([0.0, 1.0, 7.0])
    widths = confidence.bias_widths(form, plays, 2.0, 0.1, 0.5, 4.0)
    assert widths[0] == np.inf
    for arm in (1, 2):
        assert widths[arm] == confidence.bias_width(form, plays[arm], 2.0, 0.1, 0.5, 2.0, 4.0)  # two arms are in play


# ------------------------------------------------------------------------------------------------ other papers


def test_ellipsoid_radius_is_the_one_calculated_by_hand():
    # ln det V / det V_0 = 3, delta = e^-3: sqrt(3 + 6) = 3; sigma = 0.5; sqrt(ridge = 9) = 3 times the bound 2.
    assert confidence.ellipsoid_radius(3.0, 2.0, math.exp(-3.0), 0.5, 9.0) == pytest.approx(0.5 * 3.0 + 3.0 * 2.0)


def test_ellipsoid_radius_grows_with_what_has_been_learnt():
    radii = [confidence.ellipsoid_radius(log_det, 1.0, 0.1, 1.0, 1.0) for log_det in (0.0, 1.0, 10.0)]
    assert radii == sorted(set(radii))


def test_initial_norm_bound_is_the_one_calculated_by_hand():
    # sqrt(2) sigma sqrt(d / tau ln(1 / delta)) = sqrt(2) 0.5 sqrt(4 / 8 * 4) = 1
    assert confidence.initial_norm_bound(3.0, 8.0, 4.0, 0.5, math.exp(-4.0)) == pytest.approx(4.0)


def test_initial_norm_bound_is_at_least_one():
    assert confidence.initial_norm_bound(0.0, 1e6, 1.0, 0.1, 0.1) == 1.0
