"""OFUL on the unit ball, every round or rarely switching; with a support given, the oracle of ALB-Dim.

Abbasi-Yadkori, Pal and Szepesvari (2011), Figures 1 and 3. The optimistic action is exact (`linalg.optimistic_action`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from albatross import checks
from albatross.confidence import ellipsoid_radius
from albatross.linalg import optimistic_coordinates
from albatross.policies.ball_fit import (
    MOMENT,
    SIZE,
    BallFit,
    ball_fit,
    describe_ball,
    follow,
    learn_action,
    look_through,
    narrow,
    plays_until_switch,
)
from albatross.protocol import (
    compiled,
    diagnostics,
    hold,
    init,
    on_ball,
    resolve,
    select,
    tag_size,
    update,
)


@dataclass(frozen=True, kw_only=True)
class BallOFUL:
    """OFUL on the unit ball (Abbasi-Yadkori, Pal and Szepesvari 2011, Figures 1 and 3).

    `switch` is C of the rarely switching form; 0 chooses anew every round. `support` lists the coordinates to play on.
    """

    sigma: float = 1.0
    delta: float = 0.1
    norm_bound: float = 1.0
    ridge: float = 1.0
    switch: float = 0.0
    support: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        checks.positive("sigma", self.sigma)
        checks.probability("delta", self.delta)
        checks.positive("norm_bound", self.norm_bound)
        checks.positive("ridge", self.ridge)
        checks.at_least_zero("switch", self.switch)
        if self.support is not None:
            object.__setattr__(self, "support", checks.coordinates("support", self.support))


class BallOFULParameters(NamedTuple):
    sigma: float
    delta: float
    norm_bound: float
    strength: float
    switch: float
    support: np.ndarray  # (d,) bool


class BallState(NamedTuple):
    fit: BallFit
    pulls: np.ndarray  # (1,) rewards received


@on_ball.register
def on_ball_oful(policy: BallOFUL) -> bool:
    return True


@resolve.register
def resolve_ball_oful(policy: BallOFUL, n_arms, dim, horizon):
    return BallOFULParameters(
        float(policy.sigma),
        float(policy.delta),
        float(policy.norm_bound),
        float(policy.ridge),
        float(policy.switch),
        support_mask(policy.support, dim),
    )


def support_mask(support: tuple[int, ...] | None, dim: int) -> np.ndarray:
    """(d,) the coordinates to play on; all of them for None."""
    mask = np.full(dim, support is None)
    if support is not None:
        if max(support) >= dim:
            raise ValueError(f"support names coordinate {max(support)}, the ball has coordinates 0 to {dim - 1}")
        mask[list(support)] = True
    return mask


@init.register
def init_ball_oful(policy: BallOFULParameters, n_arms, dim, rng):
    return BallState(ball_fit(dim, policy.support, policy.strength), np.zeros(1))


@narrow.register
def narrow_ball_oful(policy: BallOFULParameters, state, vectors):
    return state._replace(fit=look_through(state.fit, vectors))


@tag_size.register
def tag_size_ball_oful(policy: BallOFULParameters):
    return policy.support.size + 1


@compiled
def optimism(policy, fit):
    """The longest theta of the confidence ellipsoid, in the eigenbasis: its direction is the optimistic action."""
    k = fit.clock[SIZE]
    values = fit.values[:k]
    reach = ellipsoid_radius(fit.log_det[0], policy.norm_bound, policy.delta, policy.sigma, policy.strength)
    return optimistic_coordinates(values, fit.carried[MOMENT, :k] / values, reach)


@select.register
def select_ball_oful(policy: BallOFULParameters, state, offer, noise):
    return follow(state.fit, optimism(policy, state.fit), 1.0)


@hold.register
def hold_ball_oful(policy: BallOFULParameters, state, choice):
    return plays_until_switch(state.fit, choice, policy.switch)


@update.register
def update_ball_oful(policy: BallOFULParameters, state, choice, reward, n):
    state.pulls[0] += n
    learn_action(state.fit, choice, reward, n, policy.switch)


@diagnostics.register
def diagnostics_ball_oful(policy: BallOFULParameters, state):
    log_det = float(state.fit.log_det[0])
    reach = ellipsoid_radius(log_det, policy.norm_bound, policy.delta, policy.sigma, policy.strength)
    return {**describe_ball(state.fit), "pulls": state.pulls.copy(), "radius": float(reach)}
