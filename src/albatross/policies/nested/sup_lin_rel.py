"""SupLinRel: LinRel in stages. LinRel uses only directions with enough data.

Auer (2002), Section 4 and Figures 2 and 3. With the stage's data Z and ZZ' = Q diag(l) Q', a feature vector z splits
into u, along eigenvectors with l >= 1, and the rest v. The estimate uses u alone; its width is

    sqrt(2) (sigma / b) sqrt(ln(2TK (1 + ln T) / delta)) sqrt(sum u_j^2 / l_j) + ||v||.

1 + ln T, at least the number of stages, shares delta among them: every stage runs LinRel with delta / (1 + ln T).

A stage stores only its Gram matrix's eigenbasis and the sum of z y in it, so the cost of a round does not grow. The
factor sqrt(2) sigma / b accounts for the scaled noise; Auer's rewards are in [0, 1].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.linalg.eigen import rank_one_update
from albatross.options import policy
from albatross.picking import tie_priority
from albatross.policies.nested.sup_lin import Staged, estimate_stage, learn_stage, staged_parameters
from albatross.protocol import init, reset, resolve

_ENOUGH = 1.0 - 1e-9  # least eigenvalue to trust: one that is 1 must not fall below it by rounding


@policy
class SupLinRel(Staged):
    """SupLinRel (Auer 2002, Figure 3).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1, biases=[0.0] * 5)
    >>> run = simulate(SupLinRel(sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    60.6
    """


class SupLinRelState(NamedTuple):
    values: np.ndarray  # (S, d) eigenvalues of I + ZZ': never 0, with the same eigenvectors as ZZ'
    carried: np.ndarray  # (S, 1 + d, d) the sum of z y in the eigenbasis; then the eigenbasis, a column each
    stage_plays: np.ndarray  # (S + 1,) plays that no stage learnt from, then those of each
    pulls: np.ndarray  # (K,)
    priority: np.ndarray  # (K,)


def linrel_scale(rounds: float, n_arms: int, delta: float, sigma: float, bound: float) -> float:
    """Return sqrt(2) (sigma / b) sqrt(ln(2TK / delta_s)) with delta_s = delta / (1 + ln T), the share of a stage.

    >>> round(linrel_scale(1_000, 5, 0.1, 1.0, 1.0), 4)
    5.2117
    """
    share = delta / (1.0 + math.log(rounds))
    return math.sqrt(2.0) * sigma / bound * math.sqrt(math.log(2.0 * rounds * n_arms / share))


@resolve.register
def resolve_sup_lin_rel(policy: SupLinRel, n_arms, dim, horizon):
    return staged_parameters(policy, n_arms, dim, horizon, linrel_scale)


@init.register
def init_sup_lin_rel(policy: SupLinRel, n_arms, dim, rng):
    carried = np.zeros((policy.stages, 1 + dim, dim))
    carried[:, 1:] = np.eye(dim)
    return SupLinRelState(
        values=np.ones((policy.stages, dim)),
        carried=carried,
        stage_plays=np.zeros(policy.stages + 1),
        pulls=np.zeros(n_arms),
        priority=tie_priority(n_arms, policy.ties, rng),
    )


@reset.register
def reset_sup_lin_rel(policy: SupLinRel, state):
    state.values.fill(1.0)
    state.carried.fill(0.0)
    for stage in range(state.carried.shape[0]):
        for j in range(state.carried.shape[2]):
            state.carried[stage, 1 + j, j] = 1.0
    state.stage_plays.fill(0.0)
    state.pulls.fill(0.0)


@estimate_stage.register
def estimate_linrel(policy: SupLinRel, state, stage, contexts):
    values, moment, basis = state.values[stage], state.carried[stage, 0], state.carried[stage, 1:]
    coordinates = contexts @ basis
    means, widths = np.zeros(contexts.shape[0]), np.empty(contexts.shape[0])
    for arm in range(means.size):
        seen, unseen = 0.0, 0.0
        for j in range(values.size):
            here, eigenvalue = coordinates[arm, j], values[j] - 1.0
            if eigenvalue >= _ENOUGH:
                means[arm] += here * moment[j] / eigenvalue
                seen += here * here / eigenvalue
            else:
                unseen += here * here
        widths[arm] = policy.scale * math.sqrt(seen) + math.sqrt(unseen)
    return means, widths


@learn_stage.register
def learn_linrel(policy: SupLinRel, state, stage, x, reward, n):
    carried = state.carried[stage]
    coordinates = x @ carried[1:]
    for j in range(x.size):
        carried[0, j] += reward * coordinates[j]
    rank_one_update(state.values[stage], carried, math.sqrt(n) * coordinates)
