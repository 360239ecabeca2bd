"""The catalogue: every policy with its name on the command line, its citation and the knowledge it requires."""

from __future__ import annotations

from typing import NamedTuple

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


class Entry(NamedTuple):
    """An entry of the catalogue."""

    policy: type
    citation: str
    setting: str
    must_know: str  # beforehand, to be what its paper says it is


_GHOSH = "Ghosh, Sankararaman, Ramchandran 2021"
_MIXTURE = "arms with biases and contexts"
_LINEAR = "arms with contexts, with or without biases"
_SPARSE = "arms with contexts of which few features matter, with or without biases"
_PLAIN = "arms without contexts"
_BALL = "the unit ball"
_FEATURES = "arms with contexts, without biases"
_NESTED = "arms with nested feature maps, without biases"
_META = "any with finitely many arms, over base policies"

CATALOGUE: dict[str, Entry] = {
    "albatross": Entry(Albatross, "this library; MacKay 1992, Audibert and Bubeck 2009", _LINEAR, "nothing"),
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
    "sw-linucb": Entry(
        SWLinUCB, "Cheung, Simchi-Levi, Zhu 2019, Algorithm 1", _FEATURES, "window, width of exploration"
    ),
    "lints": Entry(LinTS, "Agrawal, Goyal 2013, Algorithm 1", _LINEAR, "noise level"),
    "greedy": Entry(Greedy, "Bastani, Bayati, Khosravi 2021, Algorithm 1", _LINEAR, "that contexts are diverse"),
    "na-oful": Entry(NAOFUL, "Gales, Sethuraman, Jun 2022", _LINEAR, "noise level"),
    "sf-oful": Entry(
        SFOFUL, "after Abbasi-Yadkori, Pal, Szepesvari 2011, Theorem 1 (not in the literature)", _LINEAR, "noise level"
    ),
    "eb-ucb": Entry(EBUCB, "Suder, Laber 2025", _LINEAR, "noise level, a generous norm bound"),
    "eb-lints": Entry(EBLinTS, "Agrawal, Goyal 2013; MacKay 1992", _LINEAR, "noise level"),
    "sa-lasso": Entry(
        SALasso,
        "Oh, Iyengar, Zeevi 2021, Algorithm 1",
        _SPARSE,
        "noise level, size of features, that contexts are diverse",
    ),
    "threshold-lasso": Entry(
        ThresholdLasso, "Ariu, Abe, Proutiere 2022, Algorithm 1", _SPARSE, "penalty, that contexts are diverse"
    ),
    "ucb": Entry(UCB, "Auer, Cesa-Bianchi, Fischer 2002; anytime index", _PLAIN, "noise level"),
    "ucb1": Entry(UCB1, "Auer, Cesa-Bianchi, Fischer 2002, Figure 1", _PLAIN, "range of rewards"),
    "successive-rejects": Entry(
        SuccessiveRejects, "Audibert, Bubeck, Munos 2010, Section 3", _PLAIN, "number of plays to spend on exploring"
    ),
    "alb-dim": Entry(ALBDim, f"{_GHOSH}, Algorithm 2", _BALL, "noise level"),
    "albatross-dim": Entry(AlbatrossDim, "this library; prior of Stephens 2017", _BALL, "noise level"),
    "ball-oful": Entry(BallOFUL, "Abbasi-Yadkori, Pal, Szepesvari 2011, Figures 1 and 3", _BALL, "noise level"),
    "ball-lints": Entry(BallLinTS, "Agrawal, Goyal 2013, Algorithm 1", _BALL, "noise level"),
    "sl-ucb": Entry(SLUCB, "Carpentier, Munos 2012, Section 3 (other noise model)", _BALL, "noise level, horizon"),
    "online-to-confidence": Entry(
        OnlineToConfidence,
        "Abbasi-Yadkori, Pal, Szepesvari 2012, Theorem 1 (exact mixture as the predictor)",
        _BALL,
        "noise level, sparsity, few coordinates",
    ),
    "explore-then-commit": Entry(
        ExploreThenCommit, "after Hao, Lattimore, Wang 2020, Algorithm 1", _BALL, "noise level, horizon"
    ),
    "alb-dim-arms": Entry(ALBDimArms, f"{_GHOSH}, Algorithm 2 on a finite set", _FEATURES, "noise level, norm bound"),
    "alb-dim-finite": Entry(ALBDimFinite, f"{_GHOSH}, Algorithm 3", _NESTED, "noise level, feature maps"),
    "sup-lin-rel": Entry(SupLinRel, "Auer 2002, Figure 3", _FEATURES, "noise level, length of features, horizon"),
    "sup-lin-ucb": Entry(
        SupLinUCB,
        "Chu, Li, Reyzin, Schapire 2011, Algorithm 3",
        _FEATURES,
        "noise level, length of features, horizon",
    ),
    "exp4-ix": Entry(
        Exp4IX, "Neu 2015, Section 3.2", _FEATURES, "a finite class of policies, range of rewards, horizon"
    ),
    "first-features": Entry(FirstFeatures, "Foster, Krishnamurthy, Luo 2019, Section 2", _NESTED, "the right map"),
    "mod-cb": Entry(
        ModCB, "Foster, Krishnamurthy, Luo 2019, Algorithm 1 (LinUCB or Exp4-IX inside)", _NESTED, "feature maps"
    ),
    "corral": Entry(
        Corral, "Agarwal, Luo, Neyshabur, Schapire 2017, Algorithm 1", _META, "base policies, range of rewards, horizon"
    ),
    "regret-balancing": Entry(
        RegretBalancing,
        "Abbasi-Yadkori, Pacchiano, Phan 2020; Pacchiano et al. 2020; Cutkosky et al. 2021",
        _META,
        "base policies and their regret bounds",
    ),
    "d3rb": Entry(D3RB, "Pacchiano, Dann, Gentile 2024, Algorithm 1", _META, "base policies"),
    "ed2rb": Entry(ED2RB, "Pacchiano, Dann, Gentile 2024, Algorithm 1", _META, "base policies"),
    "uniform": Entry(Uniform, "folklore", "arms of any kind", "nothing"),
}
