"""ALB-Norm: OFUL+ in epochs of doubling length; each epoch's confidence set gives the next epoch's norm bound.

Ghosh, Sankararaman and Ramchandran (2021), Algorithm 1. If no first bound b_1 is given, the policy estimates one from 2
tau plays of one arm, whose bias cancels in differences of pairs (Section 3.3). If that arm is not offered, the policy
plays the one that it has played most, and moves the start there once it is ahead by more than tau plays. Then every arm
is played once, and epoch i plays OFUL+ with bound b_i for T_i = 2^(i-1) T_1 rounds at confidence delta_i = delta_1 /
2^(i-1). At its end

    b_{i+1} = max{||theta|| : theta in the confidence set} = ||theta_hat|| + K,

which may be larger than b_i. By default OFUL+ keeps what it has learnt over epochs; `restart=True` forgets all but each
arm's first play, as in the paper's proof.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.compiling import compiled
from albatross.confidence import Form, initial_norm_bound
from albatross.linalg.vectors import dot, norm
from albatross.models.ridge import Ridge, absorb, forget, ridge
from albatross.options import (
    AtLeastOne,
    AtLeastZero,
    Flag,
    Option,
    Positive,
    Probability,
    Ties,
    derived,
    parameters,
    policy,
)
from albatross.picking import by_row, pick_uniformly
from albatross.policies.arms.oful_plus import Estimator, OFULPlus, OFULPlusState, ball_radius
from albatross.protocol import (
    Choice,
    check_state,
    diagnostics,
    fold_arm,
    init,
    noise_size,
    reset,
    resolve,
    score,
    select,
    update,
)

_EPOCH, _EXPLORED, _ARM = 0, 1, 2  # places in the clock
_ENOUGH_EPOCHS = 54  # 2^53 rounds and more
_HARDLY_ANY = 1e-12  # ridge: ordinary least squares, but 0 along directions that contexts never take
_LEAST = 1.0 / checks.LARGEST  # ridge: the largest contexts, squared and divided by it, are finite


def _check_arm(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "random"):
        try:
            checks.whole(name, value, least=0)
        except ValueError as error:
            raise ValueError(f"{error}; or 'random'") from None


@policy
class ALBNorm:
    """ALB-Norm (Ghosh, Sankararaman and Ramchandran 2021, Algorithm 1).

    >>> from albatross import environments, simulate
    >>> env = environments.Mixture(n_arms=5, dim=3, noise_sd=0.1)
    >>> run = simulate(ALBNorm(norm_bound=3.0, sigma=0.1), env, horizon=300, seed=0)
    >>> round(run.regret[0, -1].item(), 1)
    33.3
    """

    norm_bound: AtLeastZero | None = None  #: b_1; None: estimated from the first plays
    explore: AtLeastOne | None = None  #: tau, pairs of plays behind that estimate; None: 2 d
    #: the arm of those plays, or "random"
    explore_arm: Annotated[int | str, Option(_check_arm, lambda arm: -1 if arm == "random" else int(arm))] = 0
    delta_explore: Probability = 0.1  #: failure probability of that estimate
    epoch_length: AtLeastOne = 100  #: T_1, rounds of the first epoch
    delta: Probability = 0.1  #: delta_1: of the first epoch's set as in OFUL+; halved from epoch to epoch
    sigma: Positive = 1.0  #: standard deviation of the noise
    rho_min: Positive = 1.0  #: least eigenvalue of the contexts' covariance
    form: Form = "main"  #: "main": the displays of Section 3.2; "appendix": those of Appendix A
    scale: Positive = 0.5  #: c, a factor on all widths
    estimator: Estimator = "centered"  #: "centered": contexts and rewards centred within arms; "paper": as in the paper
    restart: Flag = False  #: forget all but each arm's first play when an epoch begins
    ties: Ties = "random"  #: "random": ties follow an order drawn once; "first": to the lowest arm
    first: Any = derived()  # OFUL+ of the first epoch
    max_epochs: int = derived()


class ALBNormState(NamedTuple):
    inner: OFULPlusState
    pulls: np.ndarray  # (K,) all plays, those of the start and of earlier epochs included
    clock: np.ndarray  # (3,) int64: the epoch, counted from 0; plays of the start so far; the arm of the start
    norm_bounds: np.ndarray  # (max_epochs + 1,) b_1, b_2, ...
    epoch_ends: np.ndarray  # (2, max_epochs) rewards received when b_{i+1} was set, and K at that moment
    forced: np.ndarray  # (K, d + 1) S: context and reward of every arm's first play; empty without restart
    start: Ridge  # least squares on the pairs' differences; empty where b_1 is given
    half_pair: np.ndarray  # (d + 1,) context and reward of the start that wait for their partner


@resolve.register
def resolve_alb_norm(policy: ALBNorm, n_arms, dim, horizon):
    explore = 2 * dim if policy.explore is None else policy.explore
    if policy.norm_bound is None and explore <= dim:
        raise ValueError(
            f"explore={explore} pairs cannot estimate {dim} coordinates: take more than {dim}, better 2 x {dim}, "
            "or give norm_bound"
        )
    if policy.explore_arm != "random" and int(policy.explore_arm) >= n_arms:
        raise ValueError(f"explore_arm={policy.explore_arm} is not one of the arms 0 to {n_arms - 1}")
    epochs = _ENOUGH_EPOCHS
    if horizon is not None:
        epochs = min(epochs, math.ceil(math.log2(horizon / policy.epoch_length + 1.0)) + 1)
    same = ("delta", "sigma", "rho_min", "form", "scale", "estimator", "ties")
    norm_bound = 1.0 if policy.norm_bound is None else policy.norm_bound  # 1: the least that the start can find
    first = OFULPlus(norm_bound=norm_bound, horizon=1, **{name: getattr(policy, name) for name in same})
    return parameters(
        policy,
        norm_bound=norm_bound,
        explore=explore if policy.norm_bound is None else 0,
        first=resolve(first, n_arms, dim, None),
        max_epochs=epochs,
    )


@init.register
def init_alb_norm(policy: ALBNorm, n_arms, dim, rng):
    arm = rng.integers(n_arms) if int(policy.explore_arm) < 0 else policy.explore_arm
    norm_bounds = np.zeros(policy.max_epochs + 1)
    norm_bounds[0] = policy.norm_bound
    return ALBNormState(
        inner=init(policy.first, n_arms, dim, rng),
        pulls=np.zeros(n_arms),
        clock=np.array([0, 0, arm], np.int64),
        norm_bounds=norm_bounds,
        epoch_ends=np.zeros((2, policy.max_epochs)),
        forced=np.zeros((n_arms if policy.restart else 0, dim + 1)),
        start=ridge(dim if policy.explore else 0, strength=_HARDLY_ANY),
        half_pair=np.zeros(dim + 1 if policy.explore else 0),
    )


@noise_size.register
def noise_size_alb_norm(policy: ALBNorm, n_arms, dim):
    return 1 if policy.explore else 0


@compiled
def exploring(policy, clock):
    """Return whether the policy is still in its first 2 tau plays of one arm."""
    return clock[_EXPLORED] < 2.0 * policy.explore


@compiled
def epoch_policy(policy, clock, norm_bounds):
    """Return OFUL+ as the current epoch plays it: b_i, delta_i and T~, in OFUL+ plays since the last restart."""
    epoch = clock[_EPOCH]
    doubled = math.ldexp(1.0, int(epoch))
    rounds = policy.epoch_length * (doubled if policy.restart else 2.0 * doubled - 1.0)
    return policy.first._replace(norm_bound=norm_bounds[epoch], horizon=rounds, delta=policy.delta / doubled)


@select.register
def select_alb_norm(policy: ALBNorm, state, offer, noise):
    if exploring(policy, state.clock):
        for row in range(offer.arms.size):
            if offer.eligible[row] and offer.arms[row] == state.clock[_ARM]:
                return Choice(row, offer.contexts[row], np.inf, np.inf, 1.0, np.empty(0))
        row, propensity = pick_uniformly(most_played(offer, state.pulls), noise[0])
        return Choice(row, offer.contexts[row], np.inf, np.inf, propensity, np.empty(0))
    return select(epoch_policy(policy, state.clock, state.norm_bounds), state.inner, offer, noise[:0])


@compiled
def most_played(offer, pulls):
    """(R,) whether a row is eligible and no eligible one's arm has been played more often."""
    plays = by_row(pulls, offer.arms)
    return offer.eligible & (plays == np.max(plays[offer.eligible]))


@score.register
def score_alb_norm(policy: ALBNorm, state, offer, noise):
    return score(epoch_policy(policy, state.clock, state.norm_bounds), state.inner, offer, noise[:0])


@update.register
def update_alb_norm(policy: ALBNorm, state, choice, reward, n):
    arm, each = choice.arm, reward / n
    for _ in range(n):
        state.pulls[arm] += 1.0
        if exploring(policy, state.clock):
            if state.pulls[arm] > state.pulls[state.clock[_ARM]] + policy.explore:
                state.clock[_ARM] = arm  # the other is retired, or hardly ever eligible
                drop_half_pair(state.clock)
            if arm == state.clock[_ARM]:
                explore_pair(policy, state, choice.action, each)
                continue
        if policy.restart and state.inner.fit.weight[arm] == 0.0:
            remember(state.forced[arm], choice.action, each)
        inner = epoch_policy(policy, state.clock, state.norm_bounds)
        update(inner, state.inner, choice, each, 1)
        if state.inner.plays[0] >= inner.horizon and not exploring(policy, state.clock):
            end_epoch(policy, state, inner)


@compiled
def remember(row, x, reward):
    """Store context and reward as one row."""
    for j in range(x.size):
        row[j] = x[j]
    row[x.size] = reward


@compiled
def drop_half_pair(clock):
    """Do not wait for the partner of a play: it would be a play of another arm, whose bias does not cancel."""
    clock[_EXPLORED] -= clock[_EXPLORED] % 2


@compiled
def explore_pair(policy, state, x, reward):
    """Add one play of the start: every second one completes a pair, the last one gives b_1."""
    dim = x.size
    if state.clock[_EXPLORED] % 2 == 0:
        remember(state.half_pair, x, reward)
    else:
        difference = state.half_pair[:dim] - x
        size = dot(difference, difference)
        if state.clock[_EXPLORED] == 1 and size > 0.0:
            forget(state.start, max(_HARDLY_ANY * size, _LEAST))  # hardly any in the contexts' own unit
        absorb(state.start, difference, state.half_pair[dim] - reward)
    state.clock[_EXPLORED] += 1
    if not exploring(policy, state.clock):
        state.norm_bounds[0] = initial_norm_bound(
            norm(state.start.theta), policy.explore, dim, policy.sigma, policy.delta_explore
        )


@compiled
def end_epoch(policy, state, inner):
    """Set b_{i+1} = ||theta_hat|| + K and start the next epoch."""
    epoch = state.clock[_EPOCH]
    if epoch >= policy.max_epochs:
        return
    theta, reach = state.inner.fit.theta, ball_radius(inner, state.inner)
    state.norm_bounds[epoch + 1] = norm(theta) + reach
    state.epoch_ends[0, epoch] = np.sum(state.pulls)
    state.epoch_ends[1, epoch] = reach
    state.clock[_EPOCH] = epoch + 1
    if policy.restart:
        play_forced_again(inner, state)


@compiled
def play_forced_again(inner, state):
    """Reset OFUL+ to one play of every arm that it has played."""
    played, dim = state.inner.fit.weight > 0.0, state.inner.fit.theta.size
    reset(inner, state.inner)
    for arm in range(played.size):
        if played[arm]:
            play = Choice(arm, state.forced[arm, :dim], np.nan, np.nan, np.nan, np.empty(0))
            update(inner, state.inner, play, state.forced[arm, dim], 1)


@fold_arm.register
def fold_arm_alb_norm(policy: ALBNorm, state, arm):
    if arm == state.clock[_ARM]:
        drop_half_pair(state.clock)


@check_state.register
def check_state_alb_norm(policy: ALBNorm, state):
    n_arms, pairs = state.pulls.shape[-1], float(policy.explore or 0.0)
    checks.indices("clock", state.clock, (policy.max_epochs, 2.0 * pairs, n_arms - 1))
    check_state(policy.first, state.inner)


@diagnostics.register
def diagnostics_alb_norm(policy: ALBNorm, state) -> dict[str, Any]:
    epoch, started = int(state.clock[_EPOCH]), not exploring(policy, state.clock)
    found = diagnostics(epoch_policy.py_func(policy, state.clock, state.norm_bounds), state.inner)
    if not started:  # there is no bound yet to make a radius from
        found.update(norm_bound=None, radius=None, optimistic_biases=None)
    return {
        **found,
        "pulls": state.pulls.copy(),
        "epoch": epoch + 1 if started else 0,
        "norm_bounds": state.norm_bounds[: epoch + 1].copy() if started else np.empty(0),
        "epoch_ends": state.epoch_ends[0, :epoch].astype(np.int64),
        "radii": state.epoch_ends[1, :epoch].copy(),
        "explored": int(state.clock[_EXPLORED]),
    }
