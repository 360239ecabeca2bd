"""ModCB: a base policy on the smallest feature map, until a test on random exploration rejects it as too small.

Foster, Krishnamurthy and Luo (2019), Algorithm 1. In round t, a uniformly random arm is played with probability min(1,
(K/t)^(1/3)). These samples estimate the square-loss gap between maps m and j without estimating either regression,
which takes only about sqrt(d) samples. Let w be the features of map j, made uncorrelated one after the other, without
those of map m, and v = w y. The gap is ||E v||^2, which (||sum v||^2 - sum ||v||^2) / (n (n - 1)) estimates without
bias. Map j replaces m, and the base restarts on it, if the estimate is at least 2 z times its spread under no gap,
sqrt(2 tr(S^2) / (n (n - 1))), with S the covariance of v and z = sqrt(2 ln(M t^2 / delta)).

Departures: the paper's base is Exp4-IX over a cover of policies, which must be finite (`base=Exp4IX(...)`); by default
LinUCB replaces it. On a map, features beyond it are 0 for the base, so several experts may be one policy there. The
paper's threshold has an unnamed constant; the spread above replaces it. A map is tested only with at least 20 samples
and twice as many as its dimension, because the spread is unknown before, and then whenever there are 5 % more samples
than at the last test. Features are made uncorrelated by the covariance of all offered arms; if it is not given, it is
estimated from them, and a pending decision then holds d (d + 1) / 2 numbers.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled, generic
from albatross.models.square_loss_gap import square_loss_gap
from albatross.options import AtLeastZero, Option, Positive, Probability, derived, parameters, policy
from albatross.picking import pick_uniformly, uniform_from_normal
from albatross.policies.arms.linucb import LinUCB
from albatross.policies.nested.exp4_ix import Exp4IX, arms_named, weights_of
from albatross.policies.nested.maps import Dims, check_maps, in_map
from albatross.protocol import (
    Choice,
    check_state,
    diagnostics,
    init,
    noise_size,
    reset,
    resolve,
    select,
    tag_size,
    update,
)

_MODEL, _SAMPLES, _TESTED, _SWITCHES, _OFFERS = 0, 1, 2, 3, 4  # places in the clock
# Places in a tag; what the base keeps there and the mean of x x' over the arms offered follow.
_EXPLORED, _CHOSEN_IN, _OWN = 0, 1, 2
_FEWEST = 20  # samples of a test


def _check_base(name: str, value: Any) -> None:
    if not (value is None or isinstance(value, Exp4IX)):
        raise ValueError(f"{name} must be Exp4IX(...), or None for LinUCB, not {value!r}")


@policy
class ModCB:
    """ModCB (Foster, Krishnamurthy and Luo 2019, Algorithm 1), with LinUCB(alpha, ridge) or Exp4-IX as its base.

    >>> from albatross import environments, simulate
    >>> env = environments.Nested(n_arms=5, dims=(2, 6), true_dim=2, noise_sd=0.1)
    >>> run = simulate(ModCB(dims=(2, 6)), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    107.9
    """

    dims: Dims  #: number of features of each nested map; the last has all
    delta: Probability = 0.1  #: failure probability of the tests
    alpha: AtLeastZero = 1.0  #: of LinUCB, which plays on the map
    ridge: Positive = 1.0  #: of LinUCB
    #: (d, d) of all arms' features; None: estimated from what is offered
    covariance: Annotated[Any, Option()] = None
    exponent: Positive = 1 / 3  #: a random arm is played with probability (K / t)^exponent
    #: Exp4-IX over a finite class of linear policies, as in the paper; None: LinUCB
    base: Annotated[Exp4IX | None, Option(_check_base)] = None
    known: int = derived()  # whether the covariance is given
    tag: int = derived()

    def __post_init__(self) -> None:
        if self.covariance is not None:
            given = checks.covariance("covariance", self.covariance, self.dims[-1])
            if not np.linalg.eigvalsh(given)[0] > 0.0:
                raise ValueError("covariance must have positive eigenvalues: no feature may repeat others")
            object.__setattr__(self, "covariance", tuple(map(tuple, given.tolist())))


class ModCBState(NamedTuple):
    base: Any
    pulls: np.ndarray  # (K,)
    clock: np.ndarray  # (5,) int64: the map; exploration samples; how many at the last test; switches; offers
    moment: np.ndarray  # (d,) sum of x y over exploration
    second: np.ndarray  # (d, d) sum of y^2 x x'
    offered: np.ndarray  # (d, d) lower triangle: sum over offers of the mean of x x' over arms; 0 where it is known
    tests: np.ndarray  # (M, 2) for every larger map, at the last test: estimate, what it must reach
    history: np.ndarray  # (M, 3) switches: rewards so far, from, to


@resolve.register
def resolve_mod_cb(policy: ModCB, n_arms, dim, horizon):
    check_maps(policy.dims, n_arms, dim)
    known = policy.covariance is not None
    linucb = LinUCB(alpha=policy.alpha, ridge=policy.ridge, biases=False)
    base = resolve(linucb if policy.base is None else policy.base, n_arms, dim, horizon)
    return parameters(
        policy,
        base=base,
        known=known,
        covariance=np.array(policy.covariance) if known else np.zeros((dim, dim)),
        tag=_OWN + tag_size(base) + (0 if known else dim * (dim + 1) // 2),
    )


@init.register
def init_mod_cb(policy: ModCB, n_arms, dim, rng):
    return ModCBState(
        base=init(policy.base, n_arms, dim, rng),
        pulls=np.zeros(n_arms),
        clock=np.zeros(5, np.int64),
        moment=np.zeros(dim),
        second=np.zeros((dim, dim)),
        offered=np.zeros((dim, dim)),
        tests=np.zeros((len(policy.dims), 2)),
        history=np.zeros((len(policy.dims), 3)),
    )


@noise_size.register
def noise_size_mod_cb(policy: ModCB, n_arms, dim):
    return 2 + noise_size(policy.base, n_arms, dim)


@tag_size.register
def tag_size_mod_cb(policy: ModCB):
    return policy.tag


probability_of = generic("probability_of")  # probability_of(base, state, offer, choice, arm): that the base plays arm


@probability_of.register
def probability_linucb(base: LinUCB, state, offer, choice, arm):
    return 1.0 if arm == choice.arm else 0.0


@probability_of.register
def probability_exp4_ix(base: Exp4IX, state, offer, choice, arm):
    return np.sum(weights_of(base, state) * (arms_named(base, offer) == arm))


@select.register
def select_mod_cb(policy: ModCB, state, offer, noise):
    n_arms, dim = offer.contexts.shape
    t = 1.0 + np.sum(state.pulls) + np.sum(offer.pending)
    explore = min(1.0, (n_arms / t) ** policy.exponent)
    seen = offer._replace(contexts=in_map(offer.contexts, policy.dims[state.clock[_MODEL]]))
    choice = select(policy.base, state.base, seen, noise[2:])
    tag = np.zeros(policy.tag)
    tag[_CHOSEN_IN] = state.clock[_MODEL]
    for i in range(choice.tag.size):
        tag[_OWN + i] = choice.tag[i]
    if not policy.known:  # update will want to know what was offered
        outer = offer.contexts.T @ (offer.contexts * (offer.eligible / np.sum(offer.eligible)).reshape((-1, 1)))
        place = _OWN + choice.tag.size
        for i in range(dim):
            for j in range(i + 1):
                tag[place] = outer[i, j]
                place += 1
    arm, uniform = pick_uniformly(offer.eligible, noise[1])
    score, width = 0.0, 0.0
    if uniform_from_normal(noise[0]) < explore:
        tag[_EXPLORED] = 1.0
    else:
        arm, score, width = choice.arm, choice.score, choice.width
    propensity = explore * uniform
    propensity += (1.0 - explore) * probability_of(policy.base, state.base, seen, choice, arm)
    return Choice(arm, offer.contexts[arm], score, width, propensity, tag)


@update.register
def update_mod_cb(policy: ModCB, state, choice, reward, n):
    for _ in range(n):
        learn_once(policy, state, choice, reward / n)


@compiled
def learn_once(policy, state, choice, reward):
    """Add one play."""
    dim = choice.action.size
    size = policy.tag - _OWN - (0 if policy.known else dim * (dim + 1) // 2)  # of the base's tag
    model = state.clock[_MODEL]
    state.pulls[choice.arm] += 1.0
    own = not np.isnan(choice.tag[_EXPLORED])
    if own and not policy.known:
        state.clock[_OFFERS] += 1
        place = _OWN + size
        for i in range(dim):
            for j in range(i + 1):
                state.offered[i, j] += choice.tag[place]
                place += 1
    if own and choice.tag[_EXPLORED] == 1.0:
        state.clock[_SAMPLES] += 1
        for i in range(dim):
            state.moment[i] += reward * choice.action[i]
            for j in range(dim):
                state.second[i, j] += reward * reward * choice.action[i] * choice.action[j]
        if state.clock[_SAMPLES] >= 1.05 * state.clock[_TESTED]:
            compare_maps(policy, state)
    elif not own or choice.tag[_CHOSEN_IN] == model:  # the base on an earlier map is gone
        action = in_map(choice.action.reshape((1, -1)), policy.dims[model])[0]
        play = choice._replace(action=action, tag=choice.tag[_OWN : _OWN + size])
        update(policy.base, state.base, play, reward, 1)


@compiled
def compare_maps(policy, state):
    """Move to the smallest larger map that predicts significantly better, if there is one."""
    model, n = state.clock[_MODEL], state.clock[_SAMPLES]
    rounds = np.sum(state.pulls)
    z = math.sqrt(2.0 * math.log(len(policy.dims) * rounds * rounds / policy.delta))
    covariance = policy.covariance if policy.known else state.offered / state.clock[_OFFERS]
    for larger in range(model + 1, len(policy.dims)):
        dim = policy.dims[larger]
        if n < max(2 * dim, _FEWEST):
            return
        state.clock[_TESTED] = n
        estimate, spread = square_loss_gap(
            covariance[:dim, :dim].copy(),
            policy.dims[model],
            state.moment[:dim].copy(),
            state.second[:dim, :dim].copy(),
            float(n),
        )
        state.tests[larger, 0] = estimate
        state.tests[larger, 1] = 2.0 * z * spread
        if estimate >= 2.0 * z * spread and estimate > 0.0:
            row = state.clock[_SWITCHES]
            state.history[row, 0] = rounds
            state.history[row, 1] = policy.dims[model]
            state.history[row, 2] = dim
            state.clock[_SWITCHES] += 1
            state.clock[_MODEL] = larger
            reset(policy.base, state.base)
            return


@check_state.register
def check_state_mod_cb(policy: ModCB, state):
    model = state.clock[..., _MODEL]
    checks.indices("clock", model, len(policy.dims) - 1)
    checks.indices("clock", state.clock[..., _SWITCHES], model)  # every switch goes to a larger map
    check_state(policy.base, state.base)


@diagnostics.register
def diagnostics_mod_cb(policy: ModCB, state):
    model, n_switches = int(state.clock[_MODEL]), int(state.clock[_SWITCHES])
    return {
        "pulls": state.pulls.copy(),
        "model": int(policy.dims[model]),
        "explored": int(state.clock[_SAMPLES]),
        "switches": [
            {"rounds": int(row[0]), "from": int(row[1]), "to": int(row[2])} for row in state.history[:n_switches]
        ],
        "estimates": state.tests[model + 1 :, 0].copy(),
        "needed": state.tests[model + 1 :, 1].copy(),
        "base": diagnostics(policy.base, state.base),
    }
