"""Mixture: K arms with biases mu_i and fresh Gaussian contexts, mean reward mu_i + <alpha_i, theta*>.

The problem of Ghosh, Sankararaman and Ramchandran (2021), Sections 3.1 and 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.environments.noise import LAWS, Noise, fill_noise
from albatross.normals import fill_normal, normal_root
from albatross.protocol import Rounds, begin, describe, draw


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Arms with biases and random contexts. By default, each trial draws biases and theta*.

    Biases are U[-1, 1], contexts N(0, I) or N(0, covariance), and theta* is uniform on the sphere of radius
    `theta_norm`. If theta is given, `theta_norm` is its norm.

    >>> Mixture(n_arms=2, dim=3, theta_norm=0.5)
    Mixture(n_arms=2, dim=3, theta_norm=0.5, noise_sd=1.0, noise='gaussian', theta=None, biases=None, covariance=None)
    """

    n_arms: int  #: K
    dim: int  #: d, features per arm
    theta_norm: float = 1.0  #: norm of theta*
    noise_sd: float = 1.0  #: standard deviation of the noise
    noise: str = "gaussian"  #: its law: "gaussian", "uniform", "rademacher" or "skewed"
    theta: Any = None  #: (d,) theta*; None: random
    biases: Any = None  #: (K,) biases; None: random
    covariance: Any = None  #: (d, d) covariance of contexts, possibly of low rank; None: the identity

    def __post_init__(self) -> None:
        checks.whole("n_arms", self.n_arms, least=1)
        checks.whole("dim", self.dim, least=1)
        checks.at_least_zero("theta_norm", self.theta_norm)
        checks.at_least_zero("noise_sd", self.noise_sd)
        checks.one_of("noise", self.noise, LAWS)
        if self.theta is not None:
            object.__setattr__(self, "theta", checks.finite_array("theta", self.theta, (self.dim,)).copy())
            object.__setattr__(self, "theta_norm", float(np.linalg.norm(self.theta)))
        if self.biases is not None:
            biases = checks.finite_array("biases", self.biases, (self.n_arms,))
            object.__setattr__(self, "biases", biases.copy())
        if self.covariance is not None:
            object.__setattr__(self, "covariance", checks.covariance("covariance", self.covariance, self.dim))


class MixtureInstance(NamedTuple):
    theta: np.ndarray  # (d,)
    biases: np.ndarray  # (K,)
    noise: Noise
    root: np.ndarray | None  # (d, d) contexts are standard normal times this


@begin.register
def begin_mixture(env: Mixture, rng: np.random.Generator) -> MixtureInstance:
    direction = rng.standard_normal(env.dim)
    theta = env.theta_norm * direction / np.linalg.norm(direction) if env.theta is None else env.theta
    drawn = rng.uniform(-1.0, 1.0, env.n_arms)
    biases = drawn if env.biases is None else env.biases
    return MixtureInstance(theta, biases, Noise(env.noise, float(env.noise_sd)), normal_root(env.covariance))


@draw.register
def draw_mixture(instance: MixtureInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    fill_normal(chunk.contexts, rng, instance.root)
    np.matmul(chunk.contexts, instance.theta, out=chunk.means)
    chunk.means[:] += instance.biases
    fill_noise(chunk.noise, instance.noise, rng)


@describe.register
def describe_mixture(instance: MixtureInstance) -> dict[str, Any]:
    return {"theta": instance.theta, "biases": instance.biases}
