"""Every policy, in forms that compile to something else. Add yours here and the contract holds for it too.

With and without biases, rivals are held to their formulas in tests/policies; here one form of each will do.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from albatross import contract, policies
from albatross.contract import DIM, HORIZON, N_ARMS, SIGMA  # noqa: F401  of all cases
from albatross.protocol import on_ball

_BALL = {"sigma": SIGMA, "horizon": HORIZON}
# Appendix A's constants are vacuous at this size (that is one of the findings), so its form is tried scaled down.
_APPENDIX = {"form": "appendix", "scale": 0.001, "estimator": "paper"}

_BASES = (policies.LinTS(sigma=SIGMA), policies.UCB(sigma=SIGMA), policies.OSOM(sigma=SIGMA, horizon=HORIZON))

_DIRECTIONS = [theta for theta in product((-1.0, 0.0, 1.0), repeat=DIM) if any(theta)]

VARIANTS = {
    "albatross": policies.Albatross(),
    "albatross-no-biases": policies.Albatross(biases=False),
    "albatross-safeguard": policies.Albatross(sigma=SIGMA, safeguard=True),
    "albatross-learnt": policies.Albatross(memory="learnt", explore=0.1, floor=0.02),
    "albatross-half-life-no-biases": policies.Albatross(memory=20, biases=False),
    "uniform": policies.Uniform(),
    "ucb": policies.UCB(sigma=SIGMA),
    "ucb-main": policies.UCB(sigma=SIGMA, form="main", scale=0.5),
    "ucb1": policies.UCB1(),
    "successive-rejects": policies.SuccessiveRejects(horizon=60),
    "greedy": policies.Greedy(),
    "greedy-no-biases": policies.Greedy(biases=False),
    "linucb": policies.LinUCB(),
    "linucb-no-biases": policies.LinUCB(biases=False),
    "linucb-memory": policies.LinUCB(memory=500),
    "sw-linucb-no-biases": policies.SWLinUCB(window=100),
    "oful": policies.OFUL(sigma=SIGMA, norm_bound=2.0),
    "oful-no-biases": policies.OFUL(sigma=SIGMA, biases=False),
    "lints": policies.LinTS(sigma=SIGMA),
    "lints-no-biases": policies.LinTS(sigma=SIGMA, biases=False),
    "na-oful": policies.NAOFUL(sigma=SIGMA),
    "sf-oful-no-biases": policies.SFOFUL(sigma=SIGMA, biases=False),
    "eb-ucb": policies.EBUCB(sigma=SIGMA, norm_bound=10.0),
    "eb-lints-no-biases": policies.EBLinTS(sigma=SIGMA, biases=False),
    "sa-lasso-no-biases": policies.SALasso(sigma=SIGMA, biases=False),
    "threshold-lasso-no-biases": policies.ThresholdLasso(biases=False),
    "oful-plus": policies.OFULPlus(**_BALL),
    "oful-plus-appendix": policies.OFULPlus(**_BALL, **_APPENDIX),
    "alb-norm": policies.ALBNorm(sigma=SIGMA, epoch_length=20, norm_bound=3.0),
    "alb-norm-start": policies.ALBNorm(sigma=SIGMA, epoch_length=20, explore_arm="random"),
    "alb-norm-appendix": policies.ALBNorm(sigma=SIGMA, epoch_length=20, norm_bound=3.0, restart=True, **_APPENDIX),
    "osom": policies.OSOM(**_BALL),
    "osom-norm": policies.OSOM(**_BALL, test="norm"),
    "ball-oful": policies.BallOFUL(sigma=SIGMA),
    "ball-oful-switch": policies.BallOFUL(sigma=SIGMA, switch=0.5, support=[0, 2]),
    "ball-lints": policies.BallLinTS(sigma=SIGMA, switch=0.2),
    "alb-dim": policies.ALBDim(sigma=SIGMA, first_phase=25),
    "alb-dim-inside": policies.ALBDim(
        sigma=SIGMA, first_phase=25, switch=0.5, threshold="intervals", samples="all", shrinkage=3.0
    ),
    "albatross-dim": policies.AlbatrossDim(sigma=SIGMA),
    "sl-ucb": policies.SLUCB(sigma=SIGMA, horizon=HORIZON),
    "online-to-confidence": policies.OnlineToConfidence(sparsity=2, sigma=SIGMA),
    "explore-then-commit": policies.ExploreThenCommit(sigma=SIGMA, horizon=HORIZON),
    "sup-lin-rel-no-biases": policies.SupLinRel(sigma=SIGMA, horizon=HORIZON),
    "sup-lin-ucb-no-biases": policies.SupLinUCB(sigma=SIGMA, horizon=HORIZON, feature_bound=3.0),
    "first-features": policies.FirstFeatures(policy=policies.LinTS(sigma=SIGMA), dim=2),
    "alb-dim-finite-no-biases": policies.ALBDimFinite(dims=(1, 3), sigma=SIGMA, first_phase=60, inner="linucb"),
    "alb-dim-finite-rel-no-biases": policies.ALBDimFinite(dims=(2, 3), sigma=SIGMA, first_phase=36),
    "alb-dim-finite-ucb-no-biases": policies.ALBDimFinite(
        dims=(1, 2, 3), sigma=SIGMA, first_phase=25, inner="suplinucb", feature_bound=4.0
    ),
    "alb-dim-finite-letter-no-biases": policies.ALBDimFinite(
        dims=(1, 3), sigma=SIGMA, first_phase=60, inner="linucb", scaling="features"
    ),
    "alb-dim-arms-no-biases": policies.ALBDimArms(sigma=SIGMA, first_phase=36),
    "mod-cb-no-biases": policies.ModCB(dims=(1, 2, 3)),
    "mod-cb-known-no-biases": policies.ModCB(dims=(1, 3), covariance=np.eye(DIM)),
    "exp4-ix-no-biases": policies.Exp4IX(experts=_DIRECTIONS, horizon=HORIZON, reward_range=(-2.0, 2.0)),
    "mod-cb-exp4-no-biases": policies.ModCB(
        dims=(1, 3), base=policies.Exp4IX(experts=_DIRECTIONS, horizon=HORIZON, reward_range=(-2.0, 2.0))
    ),
    "corral": policies.Corral(bases=_BASES, horizon=HORIZON, eta=1.0, reward_range=(-1.5, 1.5)),
    "regret-balancing": policies.RegretBalancing(bases=_BASES, rule="dynamic", width=0.1, share=True),
    "d3rb": policies.D3RB(bases=_BASES, width=0.1, least=0.1),
    "ed2rb": policies.ED2RB(bases=_BASES, width=0.1, least=0.1, share=True),
    "alb-dim-lints": policies.ALBDim(sigma=SIGMA, first_phase=25, inner="lints", switch=0.5, exploration="ball"),
}
# Stages throw most of the data away; Exp4-IX learns from probabilities and losses alone.
SLOW_TO_START = {
    "sup-lin-ucb-no-biases",
    "alb-dim-finite-ucb-no-biases",
    "exp4-ix-no-biases",
    "mod-cb-exp4-no-biases",
}
ON_THE_BALL = {name for name, policy in VARIANTS.items() if on_ball(policy)}


@cache
def case(name: str) -> contract.Case:
    """The policy of this name, and what the contract expects of it."""
    return contract.Case(
        VARIANTS[name],
        easy_problem(name),
        slow=name in SLOW_TO_START,
        learns=name != "uniform",
        explores=name != "greedy",
    )


def new_agent(name, *, seed=None):
    """An agent with the policy of this name."""
    return case(name).agent(seed)


def offered(name, rng):
    """Arguments of `select`: fresh contexts, or nothing on the ball."""
    return case(name).offer(rng)


def has_biases(name: str) -> bool:
    """Whether the policy can learn a bias for every arm: its name says where not."""
    return not name.endswith("-no-biases")


def easy_problem(name: str):
    """One that this policy must solve: arms that differ by their biases, or contexts that say all there is to know."""
    return contract.easy_problem(VARIANTS[name], biases=has_biases(name))
