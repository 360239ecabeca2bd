from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import bounds

PAPER = {"n_arms": 75, "dim": 50, "epoch_length": 100, "norm_bound": 10.0, "horizon": 12_775}
GENEROUS = {"n_arms": 2, "dim": 1, "epoch_length": 10**7, "norm_bound": 1.0, "horizon": 10**8, "explore": 2}

T_MIN, LEAST_EPOCH, AT_LEAST_ONE, ENOUGH_PAIRS = range(4)


def holds(condition: int, **changed) -> bool:
    return bounds.check(**{**GENEROUS, **changed})[condition].holds


# ------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(("n_arms", "epoch_length", "delta", "rho_min"), [(75, 100, 0.1, 1.0), (5, 20, 0.01, 4.0)])
def test_p_of_lemma_1_is_as_printed(n_arms, epoch_length, delta, rho_min):
    by_hand = 14 * math.log(2 * n_arms * epoch_length / delta) / rho_min**0.5
    assert bounds.norm_contraction(n_arms, epoch_length, delta, rho_min) == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize(("n_arms", "epoch_length", "delta", "rho_min"), [(75, 100, 0.1, 1.0), (5, 20, 0.01, 4.0)])
@pytest.mark.parametrize("sigma", [0.5**0.5, 3.0])
def test_q_of_lemma_1_is_as_printed_with_constant_one(n_arms, epoch_length, delta, rho_min, sigma):
    by_hand = 2 * 1 * sigma * math.log(2 * n_arms * epoch_length / delta) / rho_min**0.5
    assert bounds.norm_noise(n_arms, epoch_length, delta, rho_min, sigma) == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize(("p", "q"), [(2.0, 1.0), (1.0, 2.0)])
def test_least_epoch_length_takes_the_larger_of_p_and_q(p, q):
    assert bounds.least_epoch_length(p, q, 5.0, 3) == pytest.approx(9 * (2 * 5) ** 2 * 3, rel=1e-14)


def test_theorem_1_is_as_its_proof_has_it():
    T, theta_norm, K, d, T_1, delta, tau = 50_000, 0.7, 20, 8, 500, 0.05, 30
    start = 9 * (2 * tau + K) * theta_norm
    growth = (theta_norm + 1) * (K**0.5 + d**0.5) * T**0.5 * math.log(K * T_1 / delta)
    found = bounds.theorem_1(T, theta_norm=theta_norm, n_arms=K, dim=d, epoch_length=T_1, delta=delta, explore=tau)
    assert found == pytest.approx(start + growth * math.log2(1 + T / T_1), rel=1e-13)


def test_theorem_1_takes_many_horizons_at_once():
    horizons = np.array([1, 99, 100, 101, 5_000])
    known = {"theta_norm": 1.0, "n_arms": 3, "dim": 2, "epoch_length": 100, "delta": 0.1}
    curve = bounds.theorem_1(horizons, **known)
    assert curve.shape == (5,)
    assert curve.tolist() == [bounds.theorem_1(T, **known).item() for T in horizons.tolist()]


def test_theorem_1_grows_from_the_first_round_on_because_there_is_always_one_epoch():
    known = {"n_arms": 3, "dim": 2, "epoch_length": 100, "delta": 0.1}
    curve = bounds.theorem_1(np.arange(1, 1_000), theta_norm=1.0, **known)
    assert (np.diff(curve) > 0).all()
    # At theta* = 0 nothing but the biases costs regret, and it does so in the first epoch, too.
    first = (3**0.5 + 2**0.5) * math.sqrt(50) * math.log(3 * 100 / 0.1)
    assert bounds.theorem_1(50, theta_norm=0.0, **known, explore=50) == pytest.approx(first, rel=1e-13)


# -------------------------------------------------------------------------------------------------- conditions


def test_none_of_the_conditions_on_the_epoch_holds_for_the_papers_own_experiment():
    found = bounds.check(**PAPER, sigma=0.5**0.5)
    assert [condition.holds for condition in found] == [False, False, True]


def test_all_conditions_hold_where_epochs_are_long_enough():
    assert all(condition.holds for condition in bounds.check(**GENEROUS))


def test_burn_in_condition_flips_at_t_min():
    t_min = (16 / 0.25**2 + 8 / (3 * 0.25)) * math.log(2 * 1 * 10**8 / 0.1)
    assert not holds(T_MIN, rho_min=0.25, epoch_length=math.floor(t_min))
    assert holds(T_MIN, rho_min=0.25, epoch_length=math.ceil(t_min))
    found = bounds.check(**{**GENEROUS, "rho_min": 0.25, "epoch_length": math.floor(t_min)})[T_MIN]
    assert found.given == math.floor(t_min)
    assert found.needed == pytest.approx(t_min, rel=1e-12)


def test_epoch_condition_flips_where_lemma_1_says():
    # The condition has T_1 on both sides: look for the first length that satisfies the formula written out.
    def least(epoch_length, norm_bound):
        level = math.log(2 * 2 * epoch_length / 0.1)
        return 9 * (max(14 * level, 2 * 1.0 * level) * norm_bound) ** 2 * 1

    length = 1
    while length < least(length, 2.0):
        length += 1
    assert length > 10_000
    assert holds(LEAST_EPOCH, epoch_length=length, norm_bound=2.0)
    assert not holds(LEAST_EPOCH, epoch_length=length - 1, norm_bound=2.0)
    assert not holds(LEAST_EPOCH, epoch_length=length, norm_bound=2.01)
    found = bounds.check(**{**GENEROUS, "epoch_length": length, "norm_bound": 2.0})[LEAST_EPOCH]
    assert found.needed == pytest.approx(least(length, 2.0), rel=1e-12)


def test_epoch_condition_is_ruled_by_the_noise_where_there_is_much_of_it():
    needed = [bounds.check(**GENEROUS, sigma=sigma)[LEAST_EPOCH].needed for sigma in (1.0, 7.0, 14.0)]
    assert needed[0] == pytest.approx(needed[1], rel=1e-12)  # p = 14 ... rules q = 2 sigma ... up to sigma = 7
    assert needed[2] == pytest.approx(4 * needed[1], rel=1e-12)


def test_first_bound_must_be_at_least_one():
    assert holds(AT_LEAST_ONE, norm_bound=1.0)
    assert not holds(AT_LEAST_ONE, norm_bound=0.999)


def test_start_needs_more_pairs_than_dimensions_and_is_left_out_where_there_is_none():
    assert holds(ENOUGH_PAIRS, dim=4, explore=5)
    assert not holds(ENOUGH_PAIRS, dim=4, explore=4)
    assert len(bounds.check(**PAPER)) == 3


# --------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_arms", 0),
        ("n_arms", 2.5),
        ("dim", 0),
        ("epoch_length", -1),
        ("epoch_length", "100"),
        ("horizon", 0),
        ("norm_bound", -1.0),
        ("norm_bound", math.nan),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", 1.5),
        ("sigma", 0.0),
        ("sigma", math.inf),
        ("rho_min", 0.0),
        ("explore", -3),
        ("explore", "many"),
    ],
)
def test_check_refuses_what_is_no_parameter_and_names_it(name, value):
    with pytest.raises(ValueError, match=f"{name}.*{value!r}"):
        bounds.check(**{**GENEROUS, name: value})


@pytest.mark.parametrize("delta", [-0.1, 0.0, 1.0, 2.0])
def test_theorem_1_refuses_a_delta_that_is_no_probability(delta):
    with pytest.raises(ValueError, match="delta"):
        bounds.theorem_1(1_000, theta_norm=1.0, n_arms=3, dim=2, epoch_length=100, delta=delta)


# --------------------------------------------------------------------------------------- finite arms, nested maps

FINITE = {"n_arms": 5, "horizon": 60_000, "sigma": 0.7, "delta": 0.1}


@pytest.mark.parametrize("reading", bounds.FINITE_READINGS)
@pytest.mark.parametrize("eigenvalues", [(1.0, 1.0), (0.2, 3.0)])
@pytest.mark.parametrize("dim", [1, 4, 20])
def test_the_first_phase_of_finite_arms_is_the_least_that_meets_its_condition(dim, eigenvalues, reading):
    smallest, largest = eigenvalues

    def met(first_phase):
        n = math.ceil(math.sqrt(first_phase)) if reading == "literal" else 1
        low, high, log = n * smallest, n * largest, math.log(2 * dim / 0.1)
        noise = 32 * 0.7**2 / low**2 * log
        design = 4 / 3 * (6 * high + low) * (dim + high) / low**2 * log
        b = math.sqrt(dim) + math.sqrt(2 * math.log(4 * 60_000 * 5 / 0.1))
        return math.sqrt(first_phase) >= b * max(noise, design) * (1 - 1e-12)

    found = bounds.first_phase_finite(dim, **FINITE, eigenvalues=eigenvalues, reading=reading)
    assert met(found)
    assert not met(int(found * (1 - 1e-9)) - 1)


def test_theorem_3_is_its_formula_and_grows_with_the_root_of_the_true_dimension():
    curve = bounds.theorem_3([10**6, 10**8], true_dim=5, n_arms=7, smallest=0.05, first_phase=900)
    start = 2 * 900 * max(25**4, 2 / 0.05**4.65)
    for T, found in zip((10**6, 10**8), curve, strict=True):
        logs = 1 + math.log(2 * 7 * T * math.log(T))
        assert found == pytest.approx(start + 308 * logs**1.5 * math.sqrt(5 * T) + 100 * math.sqrt(T), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("dim", 0), ("n_arms", 1), ("horizon", 0), ("sigma", 0.0), ("delta", 1.0), ("reading", "loose")],
)
def test_the_first_phase_of_finite_arms_refuses_what_is_no_parameter(name, value):
    with pytest.raises(ValueError, match=name):
        bounds.first_phase_finite(**{"dim": 3, **FINITE, name: value})
    with pytest.raises(ValueError, match="eigenvalues"):
        bounds.first_phase_finite(3, **FINITE, eigenvalues=(2.0, 1.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [("true_dim", 0), ("n_arms", 1), ("smallest", 0.0), ("first_phase", 0), ("horizon", -5)],
)
def test_theorem_3_refuses_what_is_no_parameter(name, value):
    given = {"horizon": 100, "true_dim": 5, "n_arms": 7, "smallest": 0.1, "first_phase": 9, name: value}
    with pytest.raises(ValueError, match=name):
        bounds.theorem_3(given.pop("horizon"), **given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sparsity", 0), ("smallest", 0.0), ("sigma", -1.0), ("delta", 0.0), ("first_phase", 0), ("horizon", -5)],
)
def test_theorem_2_refuses_what_is_no_parameter(name, value):
    given = {"horizon": 100, "sparsity": 5, "smallest": 0.1, "sigma": 1.0, "delta": 0.1, "first_phase": 9, name: value}
    with pytest.raises(ValueError, match=name):
        bounds.theorem_2(given.pop("horizon"), **given)


# ------------------------------------------------------------------------------- Lemmas 2 and 3, and the black boxes


def test_lemmas_2_and_3_are_as_printed():
    assert bounds.lemma_2(0.1, dim=7, delta=0.05) == pytest.approx((1 / 0.1**2 + 7) * math.log(1 / 0.05), rel=1e-13)
    assert bounds.lemma_3(5, dim=7, delta=0.05) == pytest.approx((4**5 + 7) * math.log(2**5 / 0.05), rel=1e-13)


@pytest.mark.parametrize("first_phase", [1, 99, 100, 101])
def test_explored_counts_the_random_plays_of_the_phases_before(first_phase):
    root = math.ceil(math.sqrt(first_phase))
    for phase in range(5):
        assert bounds.explored(phase, first_phase) == sum(5**j * root for j in range(phase))


def test_the_black_boxes_bounds_are_as_printed():
    T, d, K, sigma, delta = 10**6, 6, 9, 0.4, 0.02
    logs = d * math.log(1 + T / d)
    printed = 4 * math.sqrt(T * logs) * (1 + sigma * math.sqrt(2 * math.log(1 / delta) + logs))
    assert bounds.oful(T, dim=d, sigma=sigma, delta=delta) == pytest.approx(printed, rel=1e-13)
    printed = 44 * (1 + math.log(2 * K * T * math.log(T))) ** 1.5 * math.sqrt(T * d) + 2 * math.sqrt(T)
    assert bounds.sup_lin_rel(T, dim=d, n_arms=K) == pytest.approx(printed, rel=1e-13)
    printed = 3.0 * (math.sqrt(K) + math.sqrt(d)) * math.sqrt(T) * math.log(K * T / delta)
    assert bounds.oful_plus(T, n_arms=K, dim=d, delta=delta, norm_bound=3.0) == pytest.approx(printed, rel=1e-13)


def test_theorem_2_is_made_of_the_black_box_of_one_phase_and_theorem_3_too():
    # The factor of sqrt(T_i) in a phase is that of OFUL at 25 T rounds, which the theorem sums over phases.
    T, T_0, known = 10**8, 10**4, {"sparsity": 5, "smallest": 0.3, "sigma": 0.7, "delta": 0.1}
    grown = bounds.theorem_2(T, **known, first_phase=T_0) - 50 / 0.3**4.65 * T_0
    box = bounds.oful(25 * T, dim=5, sigma=0.7, delta=T_0 * 0.1 / T) / math.sqrt(25 * T)
    assert grown == pytest.approx(25 * math.sqrt(T) * (1 + box), rel=1e-12)
    grown = bounds.theorem_3(T, true_dim=5, n_arms=4, smallest=0.3, first_phase=T_0)
    grown = grown - 2 * T_0 * max(25**4, 2 / 0.3**4.65) - 100 * math.sqrt(T)
    assert grown == pytest.approx(7 * (bounds.sup_lin_rel(T, dim=5, n_arms=4) - 2 * math.sqrt(T)), rel=1e-12)


# ----------------------------------------------------------------------------------------------- what does hold


def spherical(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize(("dim", "sigma", "error"), [(3, 0.5, 0.25), (30, 0.5, 0.25), (10, 0.01, 0.25)])
def test_the_samples_needed_give_the_error_that_they_promise(dim, sigma, error):
    rng, delta = np.random.default_rng(5), 0.2
    samples = bounds.samples_needed(error, dim=dim, sigma=sigma, delta=delta)
    failed = 0
    for _ in range(100):
        x = spherical(rng, samples, dim)
        failed += np.abs(np.linalg.lstsq(x, sigma * rng.standard_normal(samples))[0]).max() >= error
    assert failed <= 100 * delta
    # Of the right order: a tenth of the samples is not enough where the noise decides.
    if sigma == 0.5:
        few = samples // 10
        errors = [
            np.abs(np.linalg.lstsq(spherical(rng, few, dim), sigma * rng.standard_normal(few))[0]).max()
            for _ in range(50)
        ]
        assert np.mean(np.array(errors) >= error) > delta


def test_lemma_2_asks_for_too_few_samples_in_many_dimensions():
    rng, sigma, error, delta = np.random.default_rng(6), 0.5, 0.25, 0.1
    for factor in (1, 4):  # whatever the constant, some dimension is too large for it
        dim = 30 * factor
        samples = math.ceil(factor * bounds.lemma_2(error, dim=dim, delta=delta))
        errors = [
            np.abs(np.linalg.lstsq(spherical(rng, samples, dim), sigma * rng.standard_normal(samples))[0]).max()
            for _ in range(20)
        ]
        assert np.mean(np.array(errors) >= error) > 0.5


def hostile_contexts(rng, rounds, n_arms, rule):
    """Contexts of N(0, 1), and the arm that is played: a rule that looks at them and tries to see little spread."""
    contexts = rng.standard_normal((rounds, n_arms))
    if rule == "smallest":
        arms = np.abs(contexts).argmin(axis=1)
    else:  # "nearest": every arm is played close to a point of its own
        arms = np.abs(contexts - np.linspace(-1.0, 1.0, n_arms)).argmin(axis=1)
    return contexts[np.arange(rounds), arms], arms


@pytest.mark.parametrize("rule", ["smallest", "nearest"])
@pytest.mark.parametrize("n_arms", [2, 5])
def test_contexts_spread_at_the_promised_rate_whatever_chooses_the_arms(rule, n_arms):
    density = 1 / math.sqrt(2 * math.pi)
    rounds = bounds.rounds_to_spread(n_arms, 1, density=density, largest=5.0, delta=0.05)
    rng = np.random.default_rng(7)
    for _ in range(50):
        x, arms = hostile_contexts(rng, rounds, n_arms, rule)
        scatter = sum(((x[arms == arm] - x[arms == arm].mean()) ** 2).sum() for arm in set(arms.tolist()))
        assert scatter >= bounds.least_spread(n_arms, density) * rounds


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (bounds.samples_needed, {"error": 0.1, "dim": 3, "sigma": 1.0, "delta": 0.1}),
        (bounds.lemma_2, {"error": 0.1, "dim": 3, "delta": 0.1}),
        (bounds.oful, {"horizon": 9, "dim": 3, "sigma": 1.0, "delta": 0.1}),
        (bounds.sup_lin_rel, {"horizon": 9, "dim": 3, "n_arms": 2}),
        (bounds.oful_plus, {"horizon": 9, "dim": 3, "n_arms": 2, "delta": 0.1}),
        (
            bounds.centred_radius,
            {"log_det": 1.0, "least_eigenvalue": 2.0, "norm_bound": 1.0, "delta": 0.1, "sigma": 1.0, "n_arms": 2},
        ),
        (bounds.least_spread, {"n_arms": 2, "density": 0.4}),
        (bounds.rounds_to_spread, {"n_arms": 2, "dim": 1, "density": 0.4, "largest": 3.0, "delta": 0.1}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_bound_refuses_what_is_no_parameter_and_names_it(function, given):
    for name in given:
        with pytest.raises(ValueError, match=name):
            function(**{**given, name: -1.0})
