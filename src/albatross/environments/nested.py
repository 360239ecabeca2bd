"""Nested: K arms with nested feature maps of increasing dimension, of which theta* needs only a small one.

The problem of Ghosh, Sankararaman and Ramchandran (2021), Section 5, after Foster, Krishnamurthy and Luo (2019): map m
is the first d_m features of the last one, and mean rewards are linear in map m*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.environments.noise import LAWS, Noise, fill_noise
from albatross.normals import fill_normal, normal_root
from albatross.protocol import Rounds, begin, describe, draw


@dataclass(frozen=True, kw_only=True, eq=False)
class Nested:
    """A linear bandit with nested feature maps.

    theta* is given, or has entries of equal `magnitude` and random sign on the first `true_dim` features. Features are
    N(0, covariance), independent over arms and rounds, or sampled from an array: one row per arm from (n, d), or one
    entry per round from (n, K, d).

    >>> env = Nested(n_arms=5, dims=(5, 10, 20), true_dim=5)
    >>> env.dim, round(env.magnitude, 4)
    (20, 0.4472)
    """

    n_arms: int  #: K
    dims: tuple[int, ...]  #: dimensions of the maps; the last is d
    true_dim: int | None = None  #: number of features that theta* uses
    magnitude: float | None = None  #: magnitude of theta* on each of these; None: such that the norm is 1
    theta: Any = None  #: (d,) theta*, instead of `true_dim` and `magnitude`
    noise_sd: float = 1.0  #: standard deviation of the noise
    noise: str = "gaussian"  #: its law: "gaussian", "uniform", "rademacher" or "skewed"
    covariance: Any = None  #: (d, d) covariance of features; None: the identity
    features: Any = None  #: (n, d) or (n, K, d) features to sample from

    def __post_init__(self) -> None:
        checks.whole("n_arms", self.n_arms, least=2)
        object.__setattr__(self, "dims", checks.nested_dims("dims", self.dims))
        checks.at_least_zero("noise_sd", self.noise_sd)
        checks.one_of("noise", self.noise, LAWS)
        if self.theta is not None:
            if self.true_dim is not None or self.magnitude is not None:
                raise ValueError("theta is given, so leave out true_dim and magnitude: they describe a random theta")
            object.__setattr__(self, "theta", checks.finite_array("theta", self.theta, (self.dim,)).copy())
        else:
            self._check_drawn_theta()
        if self.covariance is not None:
            object.__setattr__(self, "covariance", checks.covariance("covariance", self.covariance, self.dim))
        if self.features is not None:
            if self.covariance is not None:
                raise ValueError("give either covariance or features, not both")
            object.__setattr__(self, "features", _feature_table(self.features, self.n_arms, self.dim))

    def _check_drawn_theta(self) -> None:
        checks.whole("true_dim", self.true_dim, least=1)
        if self.true_dim not in self.dims:
            raise ValueError(f"true_dim={self.true_dim} must be one of the maps' dimensions {self.dims}")
        if self.magnitude is None:
            object.__setattr__(self, "magnitude", 1.0 / math.sqrt(self.true_dim))
        checks.positive("magnitude", self.magnitude)

    @property
    def dim(self) -> int:
        return self.dims[-1]


def _feature_table(given: Any, n_arms: int, dim: int) -> np.ndarray:
    table = checks.numbers("features", given)
    shape = (None, dim) if table.ndim == 2 else (None, n_arms, dim)
    if not len(table):
        raise ValueError("features must have at least one row")
    return checks.finite_array("features", table, shape).copy()


class NestedInstance(NamedTuple):
    theta: np.ndarray  # (d,)
    dim: int  # dimension of the smallest map that contains theta*
    noise: Noise
    root: np.ndarray | None  # (d, d) features are standard normal times this
    features: np.ndarray | None  # (n, d) or (n, K, d)


@begin.register
def begin_nested(env: Nested, rng: np.random.Generator) -> NestedInstance:
    theta = env.theta
    signs = rng.choice([-1.0, 1.0], env.dim)
    if theta is None:
        theta = np.zeros(env.dim)
        theta[: env.true_dim] = env.magnitude * signs[: env.true_dim]
    last = int(np.flatnonzero(theta).max(initial=-1))
    needed = next(dim for dim in env.dims if dim > last)
    return NestedInstance(
        theta, needed, Noise(env.noise, float(env.noise_sd)), normal_root(env.covariance), env.features
    )


@draw.register
def draw_nested(instance: NestedInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    if instance.features is not None:
        n_drawn = chunk.contexts.shape[: 4 - instance.features.ndim]  # one row per arm, or one entry per round
        chunk.contexts[:] = instance.features[rng.integers(len(instance.features), size=n_drawn)]
    else:
        fill_normal(chunk.contexts, rng, instance.root)
    np.matmul(chunk.contexts, instance.theta, out=chunk.means)
    fill_noise(chunk.noise, instance.noise, rng)


@describe.register
def describe_nested(instance: NestedInstance) -> dict[str, Any]:
    return {"theta": instance.theta, "dim": instance.dim}
