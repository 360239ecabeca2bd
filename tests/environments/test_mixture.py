from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from albatross.environments import Mixture
from albatross.protocol import Rounds, begin, describe, draw

N = 60_000


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def empty_chunk(n: int, env: Mixture) -> Rounds:
    table = (n, env.n_arms)
    return Rounds(
        np.full((*table, env.dim), np.nan), np.ones(table, bool), np.full(table, np.nan), np.full(table, np.nan)
    )


def rounds(env: Mixture, n: int, seed: int = 0) -> tuple[dict, Rounds]:
    """The truth and n rounds of one trial."""
    rng = generator(seed)
    instance, chunk = begin(env, rng), empty_chunk(n, env)
    draw(instance, chunk, rng)
    return describe(instance), chunk


def truths(env: Mixture, trials: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Thetas (trials, d) and biases (trials, K)."""
    rng = generator(seed)
    drawn = [begin(env, rng) for _ in range(trials)]
    return np.array([instance.theta for instance in drawn]), np.array([instance.biases for instance in drawn])


# -------------------------------------------------------------------------------------------- drawn once a trial


@pytest.mark.parametrize("theta_norm", [0.1, 1.0, 25.0])
@pytest.mark.parametrize("dim", [1, 3, 50])
def test_theta_has_exactly_the_norm_asked_for(theta_norm, dim):
    thetas, _ = truths(Mixture(n_arms=2, dim=dim, theta_norm=theta_norm), 50)
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), theta_norm, rtol=1e-14)


def test_theta_is_uniform_on_its_sphere():
    thetas, _ = truths(Mixture(n_arms=1, dim=3, theta_norm=2.0), 20_000)
    direction = np.array([1.0, -2.0, 2.0]) / 3.0
    for height in (*thetas.T, thetas @ direction):  # in three dimensions every height is uniform (Archimedes)
        assert stats.kstest(height, stats.uniform(-2.0, 4.0).cdf).pvalue > 0.01
    np.testing.assert_allclose(thetas.T @ thetas / len(thetas), np.eye(3) * 4.0 / 3.0, atol=0.05)


def test_theta_of_norm_zero_is_zero():
    thetas, _ = truths(Mixture(n_arms=1, dim=4, theta_norm=0.0), 3)
    assert not thetas.any()


def test_biases_are_uniform_from_minus_one_to_one():
    _, biases = truths(Mixture(n_arms=4, dim=2), 5_000)
    assert biases.min() >= -1.0
    assert biases.max() <= 1.0
    for arm in biases.T:
        assert stats.kstest(arm, stats.uniform(-1.0, 2.0).cdf).pvalue > 0.01
    np.testing.assert_allclose(np.corrcoef(biases.T), np.eye(4), atol=0.06)


def test_every_trial_has_its_own_theta_and_biases():
    thetas, biases = truths(Mixture(n_arms=3, dim=2), 100)
    assert len(np.unique(thetas[:, 0])) == 100
    assert len(np.unique(biases[:, 0])) == 100


def test_given_theta_and_biases_are_used():
    theta, biases = [3.0, -4.0], [0.5, -2.0, 7.0]
    env = Mixture(n_arms=3, dim=2, theta=theta, biases=biases)
    truth, chunk = rounds(env, 20)
    assert truth["theta"].tolist() == theta
    assert truth["biases"].tolist() == biases
    assert env.theta_norm == 5.0
    np.testing.assert_allclose(chunk.means, chunk.contexts @ theta + biases, rtol=1e-12)


def test_giving_theta_or_biases_changes_nothing_else_of_the_trial():
    plain, plain_rounds = rounds(Mixture(n_arms=3, dim=2), 20)
    given_theta, theta_rounds = rounds(Mixture(n_arms=3, dim=2, theta=[1.0, 1.0]), 20)
    given_biases, biases_rounds = rounds(Mixture(n_arms=3, dim=2, biases=np.zeros(3)), 20)
    assert given_theta["biases"].tolist() == plain["biases"].tolist()
    assert given_biases["theta"].tolist() == plain["theta"].tolist()
    for other in (theta_rounds, biases_rounds):
        assert np.array_equal(other.contexts, plain_rounds.contexts)
        assert np.array_equal(other.noise, plain_rounds.noise)


# ------------------------------------------------------------------------------------------- drawn every round


def test_contexts_are_standard_normal_and_independent():
    _, chunk = rounds(Mixture(n_arms=3, dim=2), N)
    values = chunk.contexts.reshape(N, 6)
    assert np.abs(values.mean(axis=0)).max() < 4.0 / np.sqrt(N)
    np.testing.assert_allclose(values.T @ values / N, np.eye(6), atol=4.0 * np.sqrt(2.0 / N))
    np.testing.assert_allclose((values**4).mean(axis=0), 3.0, atol=4.0 * np.sqrt(96.0 / N))
    for column in values.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > 0.001
    after_one_another = (values[1:] * values[:-1]).mean(axis=0)
    assert np.abs(after_one_another).max() < 4.0 / np.sqrt(N)


@pytest.mark.parametrize("noise_sd", [0.5**0.5, 3.0])
def test_noise_is_centred_normal_of_the_sd_asked_for_and_has_nothing_to_do_with_contexts(noise_sd):
    _, chunk = rounds(Mixture(n_arms=3, dim=2, noise_sd=noise_sd), N)
    assert stats.kstest(chunk.noise.reshape(-1), stats.norm(0.0, noise_sd).cdf).pvalue > 0.01
    assert chunk.noise.std() == pytest.approx(noise_sd, rel=0.01)
    assert np.abs(np.corrcoef(chunk.noise.T) - np.eye(3)).max() < 4.0 / np.sqrt(N)
    mixed = chunk.contexts.reshape(N, 6).T @ chunk.noise / N / noise_sd
    assert np.abs(mixed).max() < 4.0 / np.sqrt(N)


def test_no_noise_is_no_noise():
    _, chunk = rounds(Mixture(n_arms=3, dim=2, noise_sd=0.0), 10)
    assert not chunk.noise.any()


def test_means_are_bias_plus_context_times_theta():
    truth, chunk = rounds(Mixture(n_arms=4, dim=5, theta_norm=2.0), 200)
    np.testing.assert_allclose(
        chunk.means, np.einsum("tkd,d->tk", chunk.contexts, truth["theta"]) + truth["biases"], atol=1e-13
    )


def test_every_arm_is_eligible():
    _, chunk = rounds(Mixture(n_arms=4, dim=5), 20)
    assert chunk.eligible.all()


def test_rounds_go_on_from_chunk_to_chunk():
    env, rng = Mixture(n_arms=2, dim=2), generator(0)
    instance, first, second = begin(env, rng), empty_chunk(50, env), empty_chunk(50, env)
    draw(instance, first, rng)
    draw(instance, second, rng)
    assert not np.intersect1d(first.contexts, second.contexts).size
    assert not np.intersect1d(first.noise, second.noise).size


# ---------------------------------------------------------------------------------------------- how it is written


def test_repr_says_how_to_make_it_again():
    env = Mixture(n_arms=3, dim=2, theta_norm=0.5, noise_sd=0.1, biases=[0.0, 1.0, 2.0])
    again = eval(repr(env), {"Mixture": Mixture, "array": np.array})
    assert repr(again) == repr(env)
    assert repr(env).startswith("Mixture(n_arms=3, dim=2, theta_norm=0.5, noise_sd=0.1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_arms", 0),
        ("n_arms", 2.0),
        ("n_arms", True),
        ("dim", 0),
        ("dim", "2"),
        ("theta_norm", -1.0),
        ("theta_norm", np.nan),
        ("theta_norm", np.inf),
        ("theta_norm", "large"),
        ("noise_sd", -0.5),
        ("noise_sd", np.nan),
        ("noise_sd", None),
        ("theta", [1.0]),
        ("theta", [[1.0, 2.0]]),
        ("theta", [1.0, np.nan]),
        ("theta", "ab"),
        ("biases", [1.0, 2.0]),
        ("biases", 0.0),
        ("biases", [1.0, np.inf, 0.0]),
    ],
)
def test_bad_arguments_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Mixture(**{"n_arms": 3, "dim": 2, name: value})


def test_contexts_have_the_covariance_asked_for_be_it_of_low_rank():
    root = np.random.default_rng(0).standard_normal((4, 2))
    env = Mixture(n_arms=3, dim=4, covariance=root @ root.T)
    _, chunk = rounds(env, 20_000)
    flat = chunk.contexts.reshape(-1, 4)
    np.testing.assert_allclose(flat.T @ flat / len(flat), root @ root.T, atol=0.06)
    assert np.linalg.matrix_rank(flat, tol=1e-6) == 2
    with pytest.raises(ValueError, match="covariance must be symmetric"):
        Mixture(n_arms=3, dim=2, covariance=[[1.0, 0.5], [0.0, 1.0]])
