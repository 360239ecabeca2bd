"""Noise: laws of the luck in rewards, each with mean 0 and a standard deviation of 1 before it is scaled.

| law            | takes the values                       | sub-Gaussian with parameter |
|----------------|----------------------------------------|-----------------------------|
| `"gaussian"`   | all                                    | its standard deviation      |
| `"uniform"`    | between -sqrt(3) and sqrt(3)           | its standard deviation      |
| `"rademacher"` | -1 and 1                               | its standard deviation      |
| `"skewed"`     | 3 in one of ten rounds, else -1/3      | 1.422 standard deviations   |

The proofs of Ghosh, Sankararaman and Ramchandran (2021) ask for noise that is sub-Gaussian with parameter sigma:
E exp(s noise) <= exp(s^2 sigma^2 / 2) for every s. Under the first three laws a policy may be given the standard
deviation as sigma. Under the last, that of a click which is rare, it must be given more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from albatross.normals import fill_normal

_RARE = 0.1  # how often skewed noise is positive


def fill_uniform(out: np.ndarray, rng: np.random.Generator) -> None:
    out[:] = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), out.shape)


def fill_rademacher(out: np.ndarray, rng: np.random.Generator) -> None:
    out[:] = np.where(rng.random(out.shape) < 0.5, -1.0, 1.0)


def fill_skewed(out: np.ndarray, rng: np.random.Generator) -> None:
    sd = math.sqrt(_RARE * (1.0 - _RARE))  # of a click
    out[:] = np.where(rng.random(out.shape) < _RARE, (1.0 - _RARE) / sd, -_RARE / sd)


_FILLING: dict[str, Callable[[np.ndarray, np.random.Generator], None]] = {
    "gaussian": fill_normal,
    "uniform": fill_uniform,
    "rademacher": fill_rademacher,
    "skewed": fill_skewed,
}
LAWS = tuple(_FILLING)


class Noise(NamedTuple):
    """The noise of an environment."""

    law: str  # one of LAWS
    sd: float  # standard deviation


def fill_noise(out: np.ndarray, noise: Noise, rng: np.random.Generator) -> None:
    """Fill a C-ordered array with independent numbers.

    >>> numbers = np.empty(5)
    >>> fill_noise(numbers, Noise("rademacher", 0.5), np.random.default_rng(0))
    >>> numbers.tolist()
    [0.5, -0.5, -0.5, -0.5, 0.5]
    """
    _FILLING[noise.law](out, rng)
    out *= noise.sd
