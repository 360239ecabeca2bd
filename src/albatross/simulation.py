"""Play policies against an environment: many paired trials, in threads, at the speed of compiled code."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  compiled code calls it: it must be loaded before its threads are limited
from threadpoolctl import threadpool_limits

from albatross import checks
from albatross.compiling import all_ours, compiled
from albatross.environments.ball import Ball, BallInstance, draw_luck
from albatross.loops import Tally, play, play_ball
from albatross.parallel import default_workers, in_threads, progress_bar
from albatross.protocol import (
    Environment,
    Offer,
    Policy,
    Rounds,
    begin,
    check_policy,
    describe,
    diagnostics,
    draw,
    init,
    is_policy,
    noise_size,
    on_ball,
    refuse_choice,
    resolve,
    track,
)
from albatross.recording import recording_grid
from albatross.runs import Run
from albatross.states import leaves, mapped

_CHUNK_BYTES = 1 << 20  # of contexts drawn at once: small enough to stay in a core's cache while policies play it
_MANY_ROUNDS = 1_000_000
Oracle = Callable[[dict[str, Any]], Policy]  # makes a policy from the trial's truth
BYTES_A_TRIAL = 1_000  # at least, that Python keeps of a policy's trial besides its curves
_BLOCKS_AT_ONCE, _ROUNDS_AT_ONCE = 64, 2_048  # on the ball, between two looks at the clock


def streams(seed: int, trial: int) -> tuple[np.random.Generator, np.random.Generator, np.random.Generator]:
    """Return the generators of a trial: for the environment, for each policy, and for recording.

    Every policy starts from the same stream, so adding a policy does not change the numbers of the others. What is
    recorded within a block has a stream of its own, so recording changes no number.
    """
    environment, policy, records = (
        np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(trial, part)))) for part in range(3)
    )
    return environment, policy, records


class _Player:
    """One policy in one trial: its state, its own stream of random numbers and its tally."""

    def __init__(self, policy: Any, env: Any, horizon: int, rng: np.random.Generator, grid: np.ndarray) -> None:
        _check_plays(policy, env)  # an oracle may have made it
        self.parameters = resolve(policy, env.n_arms, env.dim, horizon)
        self.state = init(self.parameters, env.n_arms, env.dim, rng)
        self.rng = rng
        self.noise_size = noise_size(self.parameters, env.n_arms, env.dim)
        self.tally = Tally(np.zeros(2), np.zeros(1, np.int64), grid, np.zeros(grid.size), np.zeros(grid.size))
        self.seconds = 0.0
        self.loop: Any = None

    def play(self, loop: compiled, *args: Any) -> Any:
        """Run the compiled loop and add its time, without compiling, to `seconds`."""
        self.loop = self.loop or loop.prepared(self.parameters, self.state, *args)
        begun = time.perf_counter()
        found = self.loop(self.parameters, self.state, *args)
        self.seconds += time.perf_counter() - begun
        return found


def _check_plays(policy: Any, env: Any) -> None:
    """Refuse anything but a policy for this kind of problem."""
    check_policy(policy)
    if on_ball(policy) != isinstance(env, Ball):
        kind = "actions of the unit ball" if on_ball(policy) else "finitely many arms"
        raise ValueError(f"{type(policy).__name__} plays {kind}, which {type(env).__name__} does not offer")


def _is_oracle(policy: Any) -> bool:
    """Return whether this is a function that makes a policy from the true parameters of a trial."""
    return callable(policy) and not isinstance(policy, type)


class _Setting(NamedTuple):
    """The settings that all trials of a simulation share."""

    policies: list[Any]
    env: Any
    horizon: int
    seed: int
    grid: np.ndarray
    blocks: bool
    advance: Any  # a function of the number of rounds done
    stop: threading.Event


def _play_trial(setting: _Setting, trial: int) -> list[Any] | None:
    """Run one trial of all policies on one instance; return (tally, seconds, diagnostics) of each, None if stopped."""
    env_rng, _, record_rng = streams(setting.seed, trial)
    instance = begin(setting.env, env_rng)
    truth = describe(instance)
    players = [
        _Player(
            policy(truth) if _is_oracle(policy) else policy,
            setting.env,
            setting.horizon,
            streams(setting.seed, trial)[1],
            setting.grid,
        )
        for policy in setting.policies
    ]
    if isinstance(instance, BallInstance):
        finished = _play_on_ball(setting, instance, env_rng, record_rng.standard_normal(setting.grid.size), players)
    else:
        finished = _play_arms(setting, instance, env_rng, players)
    if not finished:
        return None
    return [(p.tally, p.seconds, {**diagnostics(p.parameters, p.state), "truth": truth}) for p in players]


def _play_arms(setting: _Setting, instance: Any, env_rng: np.random.Generator, players: list[_Player]) -> bool:
    """Draw each chunk of rounds once and let all policies play it. Return whether the trial was completed."""
    n_arms, dim = setting.env.n_arms, setting.env.dim
    size = max(1, _CHUNK_BYTES // (8 * n_arms * dim))
    table = (size, n_arms)
    chunk = Rounds(np.empty((*table, dim)), np.ones(table, bool), np.empty(table), np.empty(table))
    pending = np.zeros(n_arms, np.int64)  # rewards come at once
    for start in range(0, setting.horizon, size):
        if setting.stop.is_set():
            return False
        # A chunk is always drawn whole, so that a longer horizon begins with the same rounds as a shorter one.
        draw(instance, chunk, env_rng)
        n = min(size, setting.horizon - start)
        for player in players:
            if setting.stop.is_set():  # the first time around each player may have to be compiled
                return False
            noise = player.rng.standard_normal((n, player.noise_size))
            # A user's own policy may write into its rows by mistake: the others must not play them.
            offered = chunk if all_ours(player.parameters) else mapped(np.copy, chunk)
            played = player.play(play, offered, n, noise, pending, player.tally, start)
            if played < n:
                offer = Offer(offered.contexts[played], offered.eligible[played], pending, -1, np.arange(n_arms))
                refuse_choice(player.parameters, player.state, offer, noise[played])
        setting.advance(n)
    return True


def _play_on_ball(
    setting: _Setting, instance: Any, env_rng: np.random.Generator, cuts: np.ndarray, players: list[_Player]
) -> bool:
    """Let each policy play on its own, with noise from the same stream. Return whether the trial was completed."""
    theta, dim = instance.theta, setting.env.dim
    offer = Offer(np.zeros((1, dim)), np.ones(1, bool), np.zeros(1, np.int64), -1, np.zeros(1, np.int64))
    luck_state = env_rng.bit_generator.state
    decisions = _BLOCKS_AT_ONCE if setting.blocks else _ROUNDS_AT_ONCE
    for player in players:
        player.state, tracked = track(player.parameters, player.state, theta)
        env_rng.bit_generator.state = luck_state
        progress = np.zeros(1, np.int64)
        while progress[0] < setting.horizon:
            if setting.stop.is_set():
                return False
            noise = player.rng.standard_normal((decisions, player.noise_size))
            luck = draw_luck(instance, decisions, env_rng)
            before = int(progress[0])
            player.play(
                play_ball,
                *(tracked, offer, float(np.linalg.norm(theta)), instance.noise.sd, setting.blocks, setting.horizon),
                *(noise, luck, cuts, player.tally, progress),
            )
            setting.advance((int(progress[0]) - before) / len(players))
    return True


@overload
def simulate(
    policy: Mapping[str, Policy | Oracle],
    env: Environment,
    *,
    horizon: int,
    trials: int = ...,
    seed: int = ...,
    workers: int | None = ...,
    record: Any = ...,
    blocks: bool = ...,
    progress: bool | None = ...,
) -> dict[str, Run]: ...
@overload
def simulate(
    policy: Policy | Oracle,
    env: Environment,
    *,
    horizon: int,
    trials: int = ...,
    seed: int = ...,
    workers: int | None = ...,
    record: Any = ...,
    blocks: bool = ...,
    progress: bool | None = ...,
) -> Run: ...
def simulate(
    policy: Any,
    env: Any,
    *,
    horizon: int,
    trials: int = 1,
    seed: int = 0,
    workers: int | None = None,
    record: int | str | Sequence[int] | np.ndarray | None = None,
    blocks: bool = True,
    progress: bool | None = None,
) -> Any:
    """Play one policy, or a dict of policies, for `trials` trials; in a trial, all see the same contexts and noise.

    The numbers depend on `seed` alone, not on `workers` (all cores by default) and not on which other policies play.
    `record`: at most that many evenly spaced rounds (2,000 by default), "log", or a list of rounds. On the ball, rounds
    in which a rarely switching policy repeats its action are played as one block, exactly in distribution, unless
    `blocks` is False; policies then share theta*, but not the noise. `progress` shows a bar; by default on a terminal
    with rich installed.

    An oracle is a function of the true parameters of a trial: `lambda truth:
    policies.BallOFUL(support=truth["support"])`.

    >>> from albatross import environments, policies
    >>> env = environments.Mixture(n_arms=3, dim=2, noise_sd=0.1)
    >>> run = simulate(policies.Greedy(), env, horizon=50, trials=2, seed=1)
    >>> run.regret.shape, run.rounds[-1].item()
    ((2, 50), 50)
    """
    if isinstance(policy, list | tuple | set) and not is_policy(policy):
        raise TypeError(f"give one policy, or a dict of names and policies, not a {type(policy).__name__}")
    named = dict(policy) if isinstance(policy, Mapping) else {"": policy}
    if not named:
        raise ValueError("simulate needs at least one policy")
    checks.rounds("horizon", horizon)
    checks.flag("blocks", blocks)
    checks.whole("trials", trials, least=1)
    checks.seed("seed", seed)
    if not (hasattr(env, "n_arms") and hasattr(env, "dim")):
        raise TypeError(f"{env!r} is not an environment: it has no n_arms and dim")
    limit = getattr(env, "length", None)
    if limit is not None and horizon > limit:
        raise ValueError(f"horizon={horizon} is longer than the {limit} rounds of {env!r}")
    workers = default_workers() if workers is None else workers
    checks.whole("workers", workers, least=1)
    grid = recording_grid(horizon, record)
    at_once = min(int(workers), int(trials))
    _check_memory(env, len(named), int(trials), at_once, grid.size)
    state_bytes = 0
    for each in named.values():  # refuse what is wrong or too large before any work, in this thread
        if _is_oracle(each):
            continue
        _check_plays(each, env)
        state = init(resolve(each, env.n_arms, env.dim, horizon), env.n_arms, env.dim, streams(seed, 0)[1])
        state_bytes += sum(array.nbytes for _, array in leaves(state))
    playing = f"dim={env.dim} in {at_once} trial{'s' * (at_once > 1)} at once"
    checks.fits_in_memory(f"what policies learn of {playing}", at_once * state_bytes, "take fewer features or workers")
    blocks = _in_blocks(env, blocks)
    if isinstance(env, Ball) and horizon > _MANY_ROUNDS:
        slow = [type(each).__name__ for each in named.values() if getattr(each, "switch", None) == 0]
        if slow and blocks:
            names = " and ".join(sorted(set(slow)))
            warnings.warn(
                f"{names} with switch=0 chooses in every round: playing round by round, not in blocks", stacklevel=2
            )

    stop = threading.Event()

    with threadpool_limits(1, user_api="blas"), progress_bar(horizon * trials, progress) as advance:
        setting = _Setting(list(named.values()), env, horizon, seed, grid, blocks, advance, stop)

        def run_trial(trial: int) -> Any:
            return _play_trial(setting, trial)

        if at_once == 1:
            done = [run_trial(trial) for trial in range(trials)]
        else:
            done = in_threads(run_trial, trials, workers, stop)

    runs = {}
    for (name, each), played in zip(named.items(), zip(*done, strict=True), strict=True):
        tallies, seconds, found = zip(*played, strict=True)
        runs[name] = Run(
            policy=each,
            rounds=grid,
            regret=np.stack([tally.regret for tally in tallies]),
            reward=np.stack([tally.reward for tally in tallies]),
            diagnostics=list(found),
            seconds=sum(seconds),
        )
    return runs if isinstance(policy, Mapping) else runs[""]


def _check_memory(env: Any, n_policies: int, trials: int, at_once: int, n_recorded: int) -> None:
    """Refuse what does not fit in memory: an instance with the contexts of a round, or the results of all trials."""
    n_arms, dim = int(env.n_arms), int(env.dim)
    checks.fits_in_memory(
        f"a problem of n_arms={n_arms} and dim={dim}, played by {at_once} at once,",
        8 * at_once * (2 * n_arms + 4) * dim,
        "take fewer arms, features or workers",
    )
    checks.fits_in_memory(
        f"the results of trials={trials}, n_policies={n_policies} with {n_recorded:,} recorded rounds",
        n_policies * trials * (32 * n_recorded + BYTES_A_TRIAL),  # curves are there twice while they are stacked
        "take fewer trials, or record fewer rounds (record=...)",
    )


def _in_blocks(env: Any, wanted: bool) -> bool:
    """Return whether blocks are valid on this environment; warn if they are not."""
    if not (wanted and isinstance(env, Ball)):
        return False
    if env.noise != "gaussian":
        warnings.warn(f"playing round by round: blocks need Gaussian noise, not {env.noise}", stacklevel=3)
        return False
    return True
