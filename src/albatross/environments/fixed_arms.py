"""FixedArms: K arms whose contexts never change, mean reward <x_i, theta*>.

Contexts provide no exploration here: a policy learns the reward of an arm only by playing it, or a similar arm.
Abbasi-Yadkori, Pal and Szepesvari (2011) and most papers on linear bandits use such arms in their experiments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.environments.noise import LAWS, Noise, fill_noise
from albatross.protocol import Rounds, begin, describe, draw

DRAWN = ("normal", "cube", "axes")


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedArms:
    """A linear bandit with fixed contexts, given as (K, d) or drawn for each trial.

    "normal" draws from N(0, I), "cube" uniformly from [-1/sqrt(d), 1/sqrt(d)]^d. "axes" are the first K unit vectors,
    which share no information: a K-armed bandit. theta* is given, or uniform on the sphere of its norm.

    >>> FixedArms(n_arms=2, dim=2, theta=[-3, 4]).theta_norm
    5.0
    """

    n_arms: int  #: K
    dim: int  #: d, features per arm
    arms: Any = "normal"  #: (K, d) contexts, or "normal", "cube" or "axes"
    theta_norm: float = 1.0  #: norm of theta*
    theta: Any = None  #: (d,) theta*; None: random
    noise_sd: float = 1.0  #: standard deviation of the noise
    noise: str = "gaussian"  #: its law: "gaussian", "uniform", "rademacher" or "skewed"

    def __post_init__(self) -> None:
        checks.whole("n_arms", self.n_arms, least=1)
        checks.whole("dim", self.dim, least=1)
        checks.at_least_zero("theta_norm", self.theta_norm)
        checks.at_least_zero("noise_sd", self.noise_sd)
        checks.one_of("noise", self.noise, LAWS)
        if isinstance(self.arms, str):
            checks.one_of("arms", self.arms, DRAWN)
            if self.arms == "axes" and self.n_arms > self.dim:
                raise ValueError(f"arms='axes' needs dim >= n_arms={self.n_arms}, not dim={self.dim}")
        else:
            object.__setattr__(self, "arms", checks.finite_array("arms", self.arms, (self.n_arms, self.dim)).copy())
        if self.theta is not None:
            object.__setattr__(self, "theta", checks.finite_array("theta", self.theta, (self.dim,)).copy())
            object.__setattr__(self, "theta_norm", float(np.linalg.norm(self.theta)))


class FixedArmsInstance(NamedTuple):
    arms: np.ndarray  # (K, d)
    theta: np.ndarray  # (d,)
    noise: Noise


@begin.register
def begin_fixed_arms(env: FixedArms, rng: np.random.Generator) -> FixedArmsInstance:
    direction = rng.standard_normal(env.dim)
    theta = env.theta_norm * direction / np.linalg.norm(direction) if env.theta is None else env.theta
    shape = (env.n_arms, env.dim)
    if not isinstance(env.arms, str):
        arms = env.arms
    elif env.arms == "normal":
        arms = rng.standard_normal(shape)
    elif env.arms == "cube":
        arms = rng.uniform(-1.0, 1.0, shape) / math.sqrt(env.dim)
    else:
        arms = np.eye(*shape)
    return FixedArmsInstance(arms, theta, Noise(env.noise, float(env.noise_sd)))


@draw.register
def draw_fixed_arms(instance: FixedArmsInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    chunk.contexts[:] = instance.arms
    chunk.means[:] = instance.arms @ instance.theta
    fill_noise(chunk.noise, instance.noise, rng)


@describe.register
def describe_fixed_arms(instance: FixedArmsInstance) -> dict[str, Any]:
    return {"theta": instance.theta, "arms": instance.arms}
