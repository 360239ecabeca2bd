"""An ablation of ALB-Dim that never takes a dropped coordinate back.

Ghosh, Sankararaman and Ramchandran (2021), Section 1.1, set their successive refinement apart from successive rejects:
it "is not necessarily monotone". This is ALB-Dim as it would be if it were: D_{i+1} holds the coordinates above the
threshold that are also in D_i. An empty set stays empty, and 0 is played.
"""

from __future__ import annotations

from albatross.compiling import compiled
from albatross.models.ball_fit import start_tracking
from albatross.options import policy
from albatross.policies.ball.alb_dim import ALBDim, update_tracking_alb_dim
from albatross.policies.exploration import PHASE
from albatross.protocol import reset, update_tracking


@policy
class MonotoneALBDim(ALBDim):
    """ALB-Dim whose active sets only shrink; all but `update_tracking` is ALB-Dim's."""


_learn = compiled(update_tracking_alb_dim)


@update_tracking.register
def update_tracking_monotone(policy: MonotoneALBDim, state, choice, reward, n, tracked):
    phase = state.clock[PHASE]
    _learn(policy, state, choice, reward, n, tracked)
    if state.clock[PHASE] > phase:  # ALB-Dim has just begun a phase: begin it again, without what was dropped before
        support = state.supports[phase] & state.supports[phase + 1]
        state.supports[phase + 1] = support
        reset(policy.inner._replace(support=support), state.inner)  # type: ignore[attr-defined]
        start_tracking(tracked, support)
