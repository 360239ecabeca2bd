"""Panels (d) and (e): regret of ALB-Dim between OFUL on all coordinates and an oracle that is given the support.

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1, with 20 of 500 or 200 coordinates in use. The paper gives
neither T_0, delta, horizon nor exploration law. With exploration in the unit ball the gap does not come out at any
horizon of interest (`e-literal` shows it); with N(0, I) exploration, whose actions lie outside the ball, it does. So it
does inside the ball, if ALB-Dim learns from all of its plays: this form is slow to simulate and plays in few trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import environments, policies, simulate
from albatross.experiments.panel import Outcome, Panel, curve_table, spread
from albatross.policies.exploration import phase_lengths
from albatross.recording import recording_grid
from albatross.runs import Run

SETTINGS: dict[str, Any] = {
    "sparsity": 20,
    "smallest": 0.12,
    "largest": 0.30,
    "noise_sd": 0.5**0.5,
    "delta": 0.1,
    "switch": 1.0,
    "phases": 5,
    "exploration": "gaussian",
}


def problem(settings: Mapping[str, Any]) -> environments.Ball:
    """Return the problem: evenly spaced magnitudes, random signs and support."""
    magnitudes = np.linspace(settings["smallest"], settings["largest"], settings["sparsity"])
    return environments.Ball(dim=settings["dim"], magnitudes=magnitudes, noise_sd=settings["noise_sd"])


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's three, SL-UCB, which the paper cites, and Thompson sampling, all switching equally rarely."""
    common = {"sigma": settings["noise_sd"], "switch": settings["switch"]}
    confident = {**common, "delta": settings["delta"]}
    return {
        "alb-dim": policies.ALBDim(
            first_phase=settings["first_phase"], exploration=settings["exploration"], **confident
        ),
        "oful": policies.BallOFUL(**confident),
        "oracle": lambda truth: policies.BallOFUL(support=truth["support"], **confident),
        "sl-ucb": policies.SLUCB(**confident),
        "lints": policies.BallLinTS(**common),
    }


def inside_the_ball(settings: Mapping[str, Any]) -> policies.ALBDim:
    """ALB-Dim that never leaves the ball: least squares on all plays, and confidence intervals for the threshold."""
    return policies.ALBDim(
        first_phase=settings["first_phase"],
        samples="all",
        threshold="intervals",
        sigma=settings["noise_sd"],
        switch=settings["switch"],
        delta=settings["delta"],
    )


def phase_ends(settings: Mapping[str, Any]) -> np.ndarray:
    """Return the round in which each phase ends."""
    lengths = phase_lengths(settings["first_phase"], (25, 5), 2**53)[: settings["phases"]]
    return np.cumsum(lengths.sum(axis=1))


def refinement(run: Run, phases: int) -> dict[str, np.ndarray]:
    """(trials, phases) sizes of the active sets, missed coordinates and wrongly active coordinates."""
    found: dict[str, list[list[int]]] = {"support_sizes": [], "missed": [], "false": []}
    for trial in run.diagnostics:
        truth = set(trial["truth"]["support"])
        active = [set(phase["support"]) for phase in trial["phases"][:phases]]
        found["support_sizes"].append([len(each) for each in active])
        found["missed"].append([len(truth - each) for each in active])
        found["false"].append([len(each - truth) for each in active])
    return {name: np.array(rows) for name, rows in found.items()}


def describe(name: str, run: Run, phases: int) -> dict[str, Any]:
    """Return a policy's entry in the summary."""
    final = run.regret[:, -1]
    entry: dict[str, Any] = {
        "policy": name,
        **spread(final),
    }
    if "phases" in run.diagnostics[0]:
        entry.update({key: rows.mean(axis=0).tolist() for key, rows in refinement(run, phases).items()})
        per_phase = [trial["phases"][:phases] for trial in run.diagnostics]
        for key in ("samples", "conditioning", "switches"):
            entry[key] = np.mean([[phase[key] for phase in trial] for trial in per_phase], axis=0).tolist()
    return entry


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run all phases in blocks."""
    ends = phase_ends(settings)
    grid = np.union1d(recording_grid(int(ends[-1]), "log")[::5], ends)
    given: Any = {"env": problem(settings), "horizon": int(ends[-1]), "seed": seed, "record": grid}
    runs = simulate(contenders(settings), trials=trials, **given)
    few = min(trials, settings["inside_trials"])
    if few:  # the first of the same trials
        runs["alb-dim-inside"] = simulate(inside_the_ball(settings), trials=few, **given)
    entries = {name: describe(name, each, settings["phases"]) for name, each in runs.items()}
    if 0 < few < trials:
        entries["alb-dim-inside"]["trials"] = few
    return Outcome(policies=entries, curves=curve_table(runs))


# `inside_trials`: how many trials ALB-Dim inside the ball plays at most; one takes 80 to 120 s of CPU at d = 500.
_D = {**SETTINGS, "dim": 500, "first_phase": 10_000, "inside_trials": 2}
_E = {**SETTINGS, "dim": 200, "first_phase": 3_600, "inside_trials": 10}
PANELS = {
    "d": Panel(
        "d",
        __name__,
        _D,
        run,
        trials=6,
        quick_trials=1,
        seconds=226.0,
        quick_settings={**_D, "inside_trials": 0},
    ),
    "e": Panel(
        "e",
        __name__,
        _E,
        run,
        quick_trials=3,
        seconds=110.0,
        quick_settings={**_E, "inside_trials": 1},
    ),
}
# Recovery in phase 4 with exploration in the ball needs a first phase of 1.4e8 rounds.
LITERAL = {
    "e-literal": Panel(
        "e-literal",
        __name__,
        {**_E, "first_phase": 140_000_000, "exploration": "sphere", "inside_trials": 0},
        run,
        trials=3,
        quick_trials=0,
        seconds=410.0,
    )
}
