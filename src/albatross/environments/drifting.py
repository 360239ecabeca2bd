"""Drifting: K arms with fresh Gaussian contexts and a theta* that changes, abruptly or slowly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.normals import fill_normal
from albatross.protocol import Rounds, begin, describe, draw

_DRIFTS = ("redrawn", "turn", "walk")


@dataclass(frozen=True, kw_only=True)
class Drifting:
    """Mean reward mu_i + <alpha_i, theta_t>, with contexts N(0, I) and theta_t of norm `theta_norm`.

    - "redrawn": every `rounds` rounds theta_t, and the biases if there are any, are drawn anew, theta_t on the sphere.
    - "turn": theta_t turns evenly in a random plane, once around in `rounds` rounds.
    - "walk": theta_t is a stationary random walk, N(0, theta_norm^2 / d I) at all times, whose correlation falls by a
      factor e in `rounds` rounds.

    >>> Drifting(n_arms=2, dim=3, drift="turn", rounds=6_000)
    Drifting(n_arms=2, dim=3, drift='turn', rounds=6000, theta_norm=1.0, noise_sd=1.0, biases=False)
    """

    n_arms: int  #: K
    dim: int  #: d, features per arm
    drift: str  #: "redrawn", "turn" or "walk"
    rounds: int  #: rounds between changes, of a turn, or of the walk's memory
    theta_norm: float = 1.0  #: norm of theta_t
    noise_sd: float = 1.0  #: standard deviation of the noise, which is Gaussian
    biases: bool = False  #: biases U[-1, 1], redrawn with theta_t; otherwise they are 0

    def __post_init__(self) -> None:
        checks.whole("n_arms", self.n_arms, least=1)
        checks.one_of("drift", self.drift, _DRIFTS)
        checks.whole("dim", self.dim, least=2 if self.drift == "turn" else 1)  # a turn needs a plane
        checks.whole("rounds", self.rounds, least=1)
        checks.at_least_zero("theta_norm", self.theta_norm)
        checks.at_least_zero("noise_sd", self.noise_sd)
        checks.flag("biases", self.biases)


class DriftingInstance(NamedTuple):
    env: Drifting
    path: np.random.Generator  # of theta_t and the biases alone, so that they do not depend on the size of chunks
    theta: np.ndarray  # (d,) of the last round drawn; of a turn, of the first
    across: np.ndarray  # (d,) spans the plane of a turn with the first theta
    biases: np.ndarray  # (K,)
    played: np.ndarray  # (1,) rounds drawn so far


def _on_sphere(env: Drifting, path: np.random.Generator) -> np.ndarray:
    direction = path.standard_normal(env.dim)
    return env.theta_norm * direction / np.linalg.norm(direction)


@begin.register
def begin_drifting(env: Drifting, rng: np.random.Generator) -> DriftingInstance:
    path = np.random.Generator(np.random.SFC64(int(rng.integers(2**63))))
    theta, across = _on_sphere(env, path), _on_sphere(env, path)
    if env.drift == "turn" and env.theta_norm > 0.0:
        across -= theta * (theta @ across) / (theta @ theta)
        across *= env.theta_norm / np.linalg.norm(across)
    if env.drift == "walk":
        theta = env.theta_norm / math.sqrt(env.dim) * path.standard_normal(env.dim)
    biases = path.uniform(-1.0, 1.0, env.n_arms) if env.biases else np.zeros(env.n_arms)
    return DriftingInstance(env, path, theta, across, biases, np.zeros(1, np.int64))


@draw.register
def draw_drifting(instance: DriftingInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    env, n = instance.env, len(chunk.means)
    fill_normal(chunk.contexts, rng, None)
    thetas, biases = np.empty((n, env.dim)), np.empty((n, env.n_arms))
    first = int(instance.played[0])
    if env.drift == "turn":
        angles = 2.0 * math.pi * (first + np.arange(n)) / env.rounds
        thetas[:] = np.cos(angles)[:, None] * instance.theta + np.sin(angles)[:, None] * instance.across
        biases[:] = instance.biases
    else:
        keep = math.exp(-1.0 / env.rounds)
        step = math.sqrt(1.0 - keep**2) * env.theta_norm / math.sqrt(env.dim)
        for t in range(n):
            if env.drift == "walk" and first + t > 0:
                instance.theta[:] = keep * instance.theta + step * instance.path.standard_normal(env.dim)
            elif env.drift == "redrawn" and first + t > 0 and (first + t) % env.rounds == 0:
                instance.theta[:] = _on_sphere(env, instance.path)
                if env.biases:
                    instance.biases[:] = instance.path.uniform(-1.0, 1.0, env.n_arms)
            thetas[t], biases[t] = instance.theta, instance.biases
    instance.played[0] += n
    chunk.means[:] = np.einsum("nkd,nd->nk", chunk.contexts, thetas) + biases
    fill_normal(chunk.noise, rng, None)
    chunk.noise[:] *= env.noise_sd


@describe.register
def describe_drifting(instance: DriftingInstance) -> dict[str, Any]:
    return {"theta": instance.theta.copy(), "biases": instance.biases.copy()}
