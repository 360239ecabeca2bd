"""Policies, one file per algorithm, and their catalogue."""

from __future__ import annotations

from albatross.policies.arms.alb_dim_arms import ALBDimArms
from albatross.policies.arms.alb_norm import ALBNorm
from albatross.policies.arms.albatross import Albatross
from albatross.policies.arms.eb_lints import EBLinTS
from albatross.policies.arms.eb_ucb import EBUCB
from albatross.policies.arms.greedy import Greedy
from albatross.policies.arms.lints import LinTS
from albatross.policies.arms.linucb import LinUCB
from albatross.policies.arms.na_oful import NAOFUL
from albatross.policies.arms.oful import OFUL
from albatross.policies.arms.oful_plus import OFULPlus
from albatross.policies.arms.osom import OSOM
from albatross.policies.arms.sa_lasso import SALasso
from albatross.policies.arms.sf_oful import SFOFUL
from albatross.policies.arms.successive_rejects import SuccessiveRejects
from albatross.policies.arms.sw_linucb import SWLinUCB
from albatross.policies.arms.threshold_lasso import ThresholdLasso
from albatross.policies.arms.ucb import UCB
from albatross.policies.arms.ucb1 import UCB1
from albatross.policies.arms.uniform import Uniform
from albatross.policies.ball.alb_dim import ALBDim
from albatross.policies.ball.albatross_dim import AlbatrossDim
from albatross.policies.ball.ball_lints import BallLinTS
from albatross.policies.ball.ball_oful import BallOFUL
from albatross.policies.ball.explore_then_commit import ExploreThenCommit
from albatross.policies.ball.online_to_confidence import OnlineToConfidence
from albatross.policies.ball.sl_ucb import SLUCB
from albatross.policies.catalogue import CATALOGUE, Entry
from albatross.policies.nested.alb_dim_finite import ALBDimFinite
from albatross.policies.nested.exp4_ix import Exp4IX
from albatross.policies.nested.first_features import FirstFeatures
from albatross.policies.nested.mod_cb import ModCB
from albatross.policies.nested.sup_lin_rel import SupLinRel
from albatross.policies.nested.sup_lin_ucb import SupLinUCB
from albatross.policies.over_policies.corral import Corral
from albatross.policies.over_policies.d3rb import D3RB
from albatross.policies.over_policies.ed2rb import ED2RB
from albatross.policies.over_policies.regret_balancing import RegretBalancing

__all__ = [
    "CATALOGUE",
    "D3RB",
    "EBUCB",
    "ED2RB",
    "NAOFUL",
    "OFUL",
    "OSOM",
    "SFOFUL",
    "SLUCB",
    "UCB",
    "UCB1",
    "ALBDim",
    "ALBDimArms",
    "ALBDimFinite",
    "ALBNorm",
    "Albatross",
    "AlbatrossDim",
    "BallLinTS",
    "BallOFUL",
    "Corral",
    "EBLinTS",
    "Entry",
    "Exp4IX",
    "ExploreThenCommit",
    "FirstFeatures",
    "Greedy",
    "LinTS",
    "LinUCB",
    "ModCB",
    "OFULPlus",
    "OnlineToConfidence",
    "RegretBalancing",
    "SALasso",
    "SWLinUCB",
    "SuccessiveRejects",
    "SupLinRel",
    "SupLinUCB",
    "ThresholdLasso",
    "Uniform",
]
