"""Ball: the arms are the vectors x of the unit ball, with mean reward <x, theta*>; theta* may be sparse.

The problem of Ghosh, Sankararaman and Ramchandran (2021), Sections 4 and 6.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.environments.noise import LAWS, Noise, fill_noise
from albatross.protocol import begin, describe


@dataclass(frozen=True, kw_only=True, eq=False)
class Ball:
    """A linear bandit on the unit ball. theta* is given, or drawn for each trial: random coordinates with random signs.

    Their magnitudes are given, or `sparsity` evenly spaced numbers that start at `smallest` and have norm 1.

    >>> Ball(dim=200, sparsity=3, smallest=0.5).magnitudes.round(3).tolist()
    [0.5, 0.574, 0.648]
    """

    dim: int  #: d, the number of coordinates
    sparsity: int | None = None  #: d*, the number of nonzero coordinates
    smallest: float | None = None  #: smallest nonzero magnitude
    magnitudes: Any = None  #: (d*,) nonzero magnitudes, instead of `sparsity` and `smallest`
    theta: Any = None  #: (d,) theta*, instead of the three above
    noise_sd: float = 1.0  #: standard deviation of the noise
    noise: str = "gaussian"  #: its law: "gaussian", "uniform", "rademacher" or "skewed"

    n_arms = 1  # the ball as a whole

    def __post_init__(self) -> None:
        checks.whole("dim", self.dim, least=1)
        checks.at_least_zero("noise_sd", self.noise_sd)
        checks.one_of("noise", self.noise, LAWS)
        if self.theta is not None:
            extra = [name for name in ("sparsity", "smallest", "magnitudes") if getattr(self, name) is not None]
            if extra:
                raise ValueError(f"theta is given, so leave out {' and '.join(extra)}: they describe a random theta")
            theta = checks.finite_array("theta", self.theta, (self.dim,)).copy()
            _at_most_unit("theta", theta)
            object.__setattr__(self, "theta", theta)
            return
        if self.magnitudes is None:
            checks.whole("sparsity", self.sparsity, least=1)
            checks.positive("smallest", self.smallest)
            magnitudes = _evenly_to_unit_norm(float(self.smallest), int(self.sparsity))  # type: ignore[arg-type]
            _at_most_unit(f"sparsity={self.sparsity} coordinates of smallest={self.smallest}", magnitudes)
        else:
            magnitudes = checks.finite_array("magnitudes", self.magnitudes, (None,)).copy()
            if not (magnitudes.size and (magnitudes > 0.0).all()):
                raise ValueError(f"magnitudes must be one or more positive numbers, not {self.magnitudes!r}")
            _at_most_unit("magnitudes", magnitudes)
            if self.smallest is not None and magnitudes.min() < self.smallest:
                raise ValueError(f"magnitudes must be at least smallest={self.smallest:g}, not {magnitudes.min():g}")
            if self.sparsity not in (None, magnitudes.size):
                raise ValueError(f"sparsity={self.sparsity} must be the number of magnitudes, {magnitudes.size}")
        if magnitudes.size > self.dim:
            raise ValueError(f"sparsity={magnitudes.size} must be at most dim={self.dim}")
        object.__setattr__(self, "magnitudes", magnitudes)
        object.__setattr__(self, "sparsity", magnitudes.size)


def _at_most_unit(name: str, array: np.ndarray) -> None:
    length = float(np.linalg.norm(array))
    if length > 1.0 + 1e-12:
        raise ValueError(f"{name} must have a norm of at most 1, not {length:.6g}")


def _evenly_to_unit_norm(low: float, n: int) -> np.ndarray:
    """Return n evenly spaced numbers from `low` on with norm 1, or all `low` if their norm exceeds 1."""
    u = np.linspace(0.0, 1.0, n)
    a, b, c = u @ u, low * u.sum(), n * low**2 - 1.0
    spread = (math.sqrt(b * b - a * c) - b) / a if n > 1 and c < 0.0 else 0.0
    return low + spread * u


class BallInstance(NamedTuple):
    theta: np.ndarray  # (d,)
    noise: Noise


@begin.register
def begin_ball(env: Ball, rng: np.random.Generator) -> BallInstance:
    theta = env.theta
    if theta is None:
        theta = np.zeros(env.dim)
        support = rng.permutation(env.dim)[: env.sparsity]
        theta[support] = rng.permutation(env.magnitudes) * rng.choice([-1.0, 1.0], len(support))
    return BallInstance(theta, Noise(env.noise, float(env.noise_sd)))


def draw_luck(instance: BallInstance, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n independent numbers from the distribution of the noise, with mean 0 and variance 1."""
    if instance.noise.law == "gaussian":
        return rng.standard_normal(n)  # the bulk generator is no faster for so few, and has another stream
    luck = np.empty(n)
    fill_noise(luck, Noise(instance.noise.law, 1.0), rng)
    return luck


@describe.register
def describe_ball(instance: BallInstance) -> dict[str, Any]:
    return {"theta": instance.theta, "support": np.flatnonzero(instance.theta)}
