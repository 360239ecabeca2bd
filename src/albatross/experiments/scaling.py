"""How regret scales: with the norm and the bound given for it, with d and d*, and with T beside the theorems' curves.

Ghosh, Sankararaman and Ramchandran (2021) claim that regret grows with the norm of theta* and not with the bound L
(Theorem 1), and with the number d* of coordinates in use and not with d (Theorem 2; Theorem 3 for finitely many arms).
Their figure shows two norms and two dimensions; here each quantity takes several values while all else stays as in
panels (b), (d) and `nested`, and a line is fitted on log axes: regret is about x to the power of its slope. All of it
comes out but one: with the norm, regret falls before it rises, even the oracle's. Biases do that: where theta* is short
they decide which arm is best, and OFUL+ takes long to learn them. With all biases 0 regret is flat, and then grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from albatross import bounds, environments, policies, simulate
from albatross.experiments import dim_regret, nested, norm_regret
from albatross.experiments.panel import Outcome, Panel, spread, switching
from albatross.intervals import slope
from albatross.runs import Run

SETTINGS: dict[str, Any] = {
    "mixture": {
        **norm_regret.SETTINGS,
        "theta_norm": 1.0,
        "theta_norms": [0.1, 0.3, 1.0, 3.0, 10.0],  # up to the bound, 10
        "norm_bounds": [1.0, 3.0, 10.0, 30.0, 100.0],  # from the norm, 1, on
        "epochs": 10,  # of the long run
    },
    # One first phase for every d and d*, so that phases end together and what changes is d or d* alone; theta* always
    # has norm 1 and 0.12 as its smallest magnitude. Exploration is N(0, I), outside the ball, as in panels (d), (e).
    "ball": {
        **{key: value for key, value in dim_regret.SETTINGS.items() if key != "largest"},
        "dim": 200,
        "first_phase": 10_000,
        "dims": [50, 100, 200, 400],
        "sparsities": [5, 10, 20, 40],
        "gammas": [0.06, 0.12, 0.2],  # the last phase cuts at 0.031; 20 coordinates of 0.22 have norm 1
        "points": 16,
        "horizon_without_blocks": 300_000,
    },
    "nested": {**nested.SETTINGS, "horizon": 127_820, "points": 12},  # two whole phases
}
QUICK: dict[str, Any] = {
    "mixture": {
        **SETTINGS["mixture"],
        "theta_norms": [0.1, 1.0, 10.0],
        "norm_bounds": [1.0, 10.0, 100.0],
        "horizon": 3_175,
        "epochs": 7,
    },
    "ball": {**SETTINGS["ball"], "dim": 100, "dims": [50, 100, 200], "sparsities": [5, 10, 20]},
    "nested": {**SETTINGS["nested"], "horizon": 30_000},
}


class Sweep(NamedTuple):
    """Regret of each policy at several values of one quantity."""

    x: np.ndarray  # (n,)
    regret: dict[str, np.ndarray]  # (trials, n)
    switched: Mapping[str, dict[str, Any]] = MappingProxyType({})  # when OSOM did, over all trials and values


def finals(values: list[Any], played: list[dict[str, Run]]) -> Sweep:
    """Return the final regrets of the runs, one run per value."""
    regret = {name: np.stack([runs[name].regret[:, -1] for runs in played], axis=1) for name in played[0]}
    switched = {name: switching([each for runs in played for each in runs[name].diagnostics]) for name in regret}
    return Sweep(np.array(values), regret, switched)


def over_time(runs: Mapping[str, Run]) -> Sweep:
    """Return the regret of one run at the recorded rounds."""
    return Sweep(next(iter(runs.values())).rounds, {name: run.regret for name, run in runs.items()})


# ------------------------------------------------------------------------------------------------- what is played


def mixture_policies(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies of panels (a) and (b) that take at most one bound, and Albatross."""
    found = norm_regret.contenders(settings)
    kept = ("alb-norm", "oful-plus", "oracle", "lints")
    return {**{name: found[name] for name in kept}, "albatross": policies.Albatross()}


def against_norm(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """Run one problem per norm with the same bound; ALB-Norm also without biases, where all regret is due to theta."""
    played = []
    for norm in settings["theta_norms"]:
        here = {**settings, "theta_norm": norm}
        contenders, env, how = mixture_policies(here), norm_regret.problem(here), {"horizon": here["horizon"], **trials}
        alone = {"alb-norm-no-biases": contenders["alb-norm"]}
        unbiased = replace(env, biases=np.zeros(env.n_arms))
        played.append(simulate(contenders, env, record=1, **how) | simulate(alone, unbiased, record=1, **how))
    return finals(settings["theta_norms"], played)


def against_bound(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """One problem, with every bound on the same rounds; a policy that is given none is played once."""
    values, given = settings["norm_bounds"], ("alb-norm", "oful-plus", "osom", "osom-scaled")
    contenders = {name: policy for name, policy in mixture_policies(settings).items() if name not in given}
    names = (*given, *contenders)
    for bound in values:
        here = norm_regret.contenders({**settings, "norm_bound": bound})
        contenders.update({f"{name} {bound:g}": here[name] for name in given})
    runs = simulate(contenders, norm_regret.problem(settings), horizon=settings["horizon"], record=1, **trials)
    return finals(
        values, [{name: runs[f"{name} {bound:g}" if name in given else name] for name in names} for bound in values]
    )


def against_rounds_mixture(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """Run once for long; record the ends of ALB-Norm's epochs from the third on. OFUL+ is given the full length."""
    epochs = np.arange(3, settings["epochs"] + 1)
    rounds = settings["n_arms"] + settings["epoch_length"] * (2**epochs - 1)
    env = norm_regret.problem(settings)
    return over_time(simulate(mixture_policies(settings), env, horizon=int(rounds[-1]), record=rounds, **trials))


def ball(settings: Mapping[str, Any]) -> environments.Ball:
    """Return a problem with theta* of norm 1, whatever its sparsity."""
    return environments.Ball(**{key: settings[key] for key in ("dim", "sparsity", "smallest", "noise_sd")})


def ball_policies(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's three policies of panels (d) and (e)."""
    found = dim_regret.contenders(settings)
    return {name: found[name] for name in ("alb-dim", "oful", "oracle")}


def against(varied: str, values: str) -> Callable[..., Sweep]:
    """Return regret on the ball after the last phase; AlbatrossDim, which plays no blocks, runs far fewer rounds."""

    def sweep(settings: Mapping[str, Any], **trials: Any) -> Sweep:
        played = []
        for value in settings[values]:
            here = {**settings, varied: value}
            last, short = int(dim_regret.phase_ends(here)[-1]), here["horizon_without_blocks"]
            runs = simulate(ball_policies(here), ball(here), horizon=last, record=1, **trials)
            alone = {"albatross-dim": policies.AlbatrossDim(sigma=here["noise_sd"])}
            played.append(runs | simulate(alone, ball(here), horizon=short, record=1, **trials))
        return finals(settings[values], played)

    return sweep


def against_gamma(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """Regret of the last phase alone: by then the support has been found at every gamma."""
    before, last = (int(end) for end in dim_regret.phase_ends(settings)[-2:])
    regret: dict[str, list[np.ndarray]] = {"alb-dim": [], "oracle": []}
    for gamma in settings["gammas"]:
        here = {**settings, "smallest": gamma}
        contenders = {name: dim_regret.contenders(here)[name] for name in regret}
        for name, run in simulate(contenders, ball(here), horizon=last, record=[before, last], **trials).items():
            regret[name].append(run.regret[:, 1] - run.regret[:, 0])
    return Sweep(np.array(settings["gammas"]), {name: np.stack(each, axis=1) for name, each in regret.items()})


def against_rounds_ball(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """Record one run from the end of the first phase to the end of the last."""
    ends = dim_regret.phase_ends(settings)
    rounds = np.geomspace(ends[0], ends[-1], settings["points"]).round().astype(np.int64)
    contenders = ball_policies(settings)
    return over_time(simulate(contenders, ball(settings), horizon=int(rounds[-1]), record=rounds, **trials))


def against_rounds_nested(settings: Mapping[str, Any], **trials: Any) -> Sweep:
    """Run ALB-Dim over nested maps with the inner policy of the theorem."""
    rounds = np.geomspace(settings["first_phase"], settings["horizon"], settings["points"]).round().astype(np.int64)
    found = nested.contenders(settings)
    contenders = {name: found[name] for name in ("alb-dim-suplinrel", "suplinrel-full", "suplinrel-oracle")}
    return over_time(simulate(contenders, nested.problem(settings), horizon=int(rounds[-1]), record=rounds, **trials))


class Part(NamedTuple):
    """One quantity against which regret is measured."""

    problem: str  # whose settings
    sweep: Callable[..., Sweep]
    varied: str | None = None  # the setting that changes; None: the rounds


PARTS = {
    "norm": Part("mixture", against_norm, "theta_norm"),
    "bound": Part("mixture", against_bound, "norm_bound"),
    "rounds-mixture": Part("mixture", against_rounds_mixture),
    "dim": Part("ball", against("dim", "dims"), "dim"),
    "sparsity": Part("ball", against("sparsity", "sparsities"), "sparsity"),
    "gamma": Part("ball", against_gamma, "smallest"),
    "rounds-ball": Part("ball", against_rounds_ball),
    "rounds-nested": Part("nested", against_rounds_nested),
}


# ------------------------------------------------------------------------------------------ what the theorems promise


def theorem_1(settings: Mapping[str, Any], rounds: Any) -> np.ndarray:
    """Return the bound for the settings of the mixture."""
    given = {key: settings[key] for key in ("theta_norm", "n_arms", "dim", "epoch_length", "delta")}
    return bounds.theorem_1(rounds, **given)


def theorem_2(settings: Mapping[str, Any], rounds: Any) -> np.ndarray:
    """Return the bound for the settings of the ball."""
    given = {key: settings[key] for key in ("sparsity", "smallest", "delta", "first_phase")}
    return bounds.theorem_2(rounds, sigma=settings["noise_sd"], **given)


def theorem_3(settings: Mapping[str, Any], rounds: Any) -> np.ndarray:
    """Return the bound for nested maps."""
    given = {key: settings[key] for key in ("true_dim", "n_arms", "first_phase")}
    return bounds.theorem_3(rounds, smallest=settings["magnitude"], **given)


_CURVES: dict[str, Callable[..., np.ndarray]] = {"mixture": theorem_1, "ball": theorem_2, "nested": theorem_3}
_NUMBERS = {"mixture": "Theorem 1", "ball": "Theorem 2", "nested": "Theorem 3"}
_ADAPTIVE = {"mixture": "alb-norm", "ball": "alb-dim", "nested": "alb-dim-suplinrel"}
_NO_TIME = 1e-12  # after so many rounds a bound is what it starts with


def promise(part: str, x: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
    """(n,) the part of the theorem's bound that grows with T; its constant part dwarfs the rest at these T."""
    kind, varied = PARTS[part].problem, PARTS[part].varied
    here = settings[kind]
    last = here["horizon"] if "horizon" in here else dim_regret.phase_ends(here)[-1]
    points = [(here, value) if varied is None else ({**here, varied: value}, last) for value in x]
    return np.array([np.diff(_CURVES[kind](given, [_NO_TIME, rounds]))[0] for given, rounds in points])


def promise_to_scale(part: str, sweep: Sweep, settings: Mapping[str, Any]) -> np.ndarray:
    """Return the bound scaled to the adaptive policy's last point: only its shape is meaningful."""
    curve = promise(part, sweep.x, settings)
    return curve * sweep.regret[_ADAPTIVE[PARTS[part].problem]][:, -1].mean() / curve[-1]


def describe(part: str, sweep: Sweep, name: str) -> dict[str, Any]:
    """Return a policy's entry in the summary: its regret at the largest x, and its slope."""
    found = slope(sweep.x, sweep.regret[name])
    switched = sweep.switched.get(name, {})
    return {"policy": name, "part": part, **spread(sweep.regret[name][:, -1]), "slope": found._asdict(), **switched}


def table(sweeps: Mapping[str, Sweep], settings: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return one row per part, policy, x and trial, and one per part, theorem and x."""
    curves = {
        part: {**sweep.regret, _NUMBERS[PARTS[part].problem]: promise_to_scale(part, sweep, settings)[None]}
        for part, sweep in sweeps.items()
    }
    rows = [
        (part, name, float(x), trial, regret[trial, column])
        for part, sweep in sweeps.items()
        for name, regret in curves[part].items()
        for column, x in enumerate(sweep.x)
        for trial in range(len(regret))
    ]
    return dict(zip(("part", "policy", "x", "trial", "regret"), map(np.array, zip(*rows, strict=True)), strict=True))


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run all parts, one after the other."""
    sweeps = {name: part.sweep(settings[part.problem], trials=trials, seed=seed) for name, part in PARTS.items()}
    return Outcome(
        policies={
            f"{name}, {part}": describe(part, sweep, name) for part, sweep in sweeps.items() for name in sweep.regret
        },
        curves=table(sweeps, settings),
    )


PANELS = {
    "scaling": Panel(
        "scaling",
        __name__,
        SETTINGS,
        run,
        trials=6,
        quick_trials=2,
        seconds=255.0,
        quick_settings=QUICK,
    ),
}
