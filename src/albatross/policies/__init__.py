"""One file per algorithm of the literature, and the catalogue of them."""

from __future__ import annotations

from typing import NamedTuple

from albatross.policies.alb_dim import ALBDim
from albatross.policies.alb_norm import ALBNorm
from albatross.policies.ball_lints import BallLinTS
from albatross.policies.ball_oful import BallOFUL
from albatross.policies.explore_then_commit import ExploreThenCommit
from albatross.policies.greedy import Greedy
from albatross.policies.lints import LinTS
from albatross.policies.linucb import LinUCB
from albatross.policies.oful import OFUL
from albatross.policies.oful_plus import OFULPlus
from albatross.policies.osom import OSOM
from albatross.policies.sl_ucb import SLUCB
from albatross.policies.ucb import UCB
from albatross.policies.ucb1 import UCB1
from albatross.policies.uniform import Uniform

__all__ = [
    "CATALOGUE",
    "OFUL",
    "OSOM",
    "SLUCB",
    "UCB",
    "UCB1",
    "ALBDim",
    "ALBNorm",
    "BallLinTS",
    "BallOFUL",
    "Entry",
    "ExploreThenCommit",
    "Greedy",
    "LinTS",
    "LinUCB",
    "OFULPlus",
    "Uniform",
]


class Entry(NamedTuple):
    """A policy as the catalogue knows it."""

    policy: type
    citation: str
    setting: str
    must_know: str  # beforehand, to be what its paper says it is


_GHOSH = "Ghosh, Sankararaman, Ramchandran 2021"
_MIXTURE = "arms with biases and contexts"
_LINEAR = "arms with contexts, with or without biases"
_PLAIN = "arms without contexts"
_BALL = "the unit ball"

CATALOGUE: dict[str, Entry] = {
    "alb-norm": Entry(ALBNorm, f"{_GHOSH}, Algorithm 1", _MIXTURE, "noise level"),
    "oful-plus": Entry(OFULPlus, f"{_GHOSH}, Appendix A", _MIXTURE, "noise level, norm bound, horizon"),
    "osom": Entry(
        OSOM,
        "Chatterji, Muthukumar, Bartlett 2020 (reconstruction)",
        _MIXTURE,
        "noise level, norm bound, horizon",
    ),
    "oful": Entry(OFUL, "Abbasi-Yadkori, Pal, Szepesvari 2011, Figure 1", _LINEAR, "noise level, norm bound"),
    "linucb": Entry(LinUCB, "Chu, Li, Reyzin, Schapire 2011, Algorithm 1", _LINEAR, "width of exploration"),
    "lints": Entry(LinTS, "Agrawal, Goyal 2013, Algorithm 1", _LINEAR, "noise level"),
    "greedy": Entry(Greedy, "Bastani, Bayati, Khosravi 2021, Algorithm 1", _LINEAR, "that contexts are diverse"),
    "ucb": Entry(UCB, "Auer, Cesa-Bianchi, Fischer 2002; anytime index", _PLAIN, "noise level"),
    "ucb1": Entry(UCB1, "Auer, Cesa-Bianchi, Fischer 2002, Figure 1", _PLAIN, "range of rewards"),
    "alb-dim": Entry(ALBDim, f"{_GHOSH}, Algorithm 2", _BALL, "noise level"),
    "ball-oful": Entry(BallOFUL, "Abbasi-Yadkori, Pal, Szepesvari 2011, Figures 1 and 3", _BALL, "noise level"),
    "ball-lints": Entry(BallLinTS, "Agrawal, Goyal 2013, Algorithm 1", _BALL, "noise level"),
    "sl-ucb": Entry(SLUCB, "Carpentier, Munos 2012, Section 3 (other noise model)", _BALL, "noise level, horizon"),
    "explore-then-commit": Entry(
        ExploreThenCommit, "after Hao, Lattimore, Wang 2020, Algorithm 1", _BALL, "noise level, horizon"
    ),
    "uniform": Entry(Uniform, "folklore", "any", "nothing"),
}
