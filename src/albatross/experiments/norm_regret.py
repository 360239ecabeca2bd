"""Panels (a) and (b): regret of ALB-Norm between OFUL+, given a bound of 10, and an oracle that is given the norm.

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1. The paper's three play in three readings, each against its own
OFUL+ and its own oracle: the default; the displays of the main text with the paper's own estimator; and Appendix A to
the letter, where OFUL+ starts anew with each epoch, as the analysis has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import environments, policies, simulate
from albatross.experiments.panel import Outcome, Panel, curve_table, spread, switching
from albatross.runs import Run

SETTINGS: dict[str, Any] = {
    "n_arms": 75,
    "dim": 50,
    "noise_sd": 0.5**0.5,  # "variance 0.5"
    "norm_bound": 10.0,  # b_1
    "epoch_length": 100,
    "delta": 0.1,
    "horizon": 12_775,  # 75 forced plays and seven epochs: 75 + 100 (2^7 - 1)
    "form": "main",
    "scale": 0.5,
    "estimator": "centered",
    "norm_grid": [0.1, 0.3, 1.0, 3.0, 10.0],  # of Corral's bases
    "reward_range": [-4.0, 6.0],  # which Corral must know; a reward outside of it is cut
}
# What each reading changes of the settings, by the end of its policies' names.
READINGS: dict[str, dict[str, Any]] = {
    "": {},
    "-paper": {"estimator": "paper"},
    "-literal": {"form": "appendix", "scale": 1.0, "estimator": "paper"},
}


def in_reading(settings: Mapping[str, Any], reading: str) -> dict[str, Any]:
    """What OFUL+ and its kin are given, but for the norm."""
    here = {**settings, **READINGS[reading]}
    keys = ("delta", "form", "scale", "estimator")
    return {"sigma": here["noise_sd"], **{key: here[key] for key in keys}}


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's three in every reading, what it compares them with, and what a knowledgeable user would take."""
    sigma, given, truth = settings["noise_sd"], settings["norm_bound"], settings["theta_norm"]
    epochs = {"norm_bound": given, "epoch_length": settings["epoch_length"]}
    found: dict[str, Any] = {}
    for reading in READINGS:
        how = in_reading(settings, reading)
        found[f"alb-norm{reading}"] = policies.ALBNorm(restart=reading == "-literal", **epochs, **how)
        found[f"oful-plus{reading}"] = policies.OFULPlus(norm_bound=given, **how)
        found[f"oracle{reading}"] = policies.OFULPlus(norm_bound=truth, **how)
    default = in_reading(settings, "")
    return found | {
        "osom": policies.OSOM(norm_bound=given, **default),
        "osom-given-1": policies.OSOM(norm_bound=1.0, **default),
        "osom-scaled": policies.OSOM(norm_bound=given, test="norm", **default),
        "corral": policies.Corral(
            bases=tuple(policies.OFULPlus(norm_bound=bound, **default) for bound in settings["norm_grid"]),
            reward_range=tuple(settings["reward_range"]),
        ),
        "ucb": policies.UCB(sigma=sigma, delta=settings["delta"]),
        "lints": policies.LinTS(sigma=sigma),
        "greedy": policies.Greedy(),
        "albatross": policies.Albatross(),
    }


def problem(settings: Mapping[str, Any]) -> environments.Mixture:
    """Return the problem: biases U[-1, 1], contexts N(0, I), theta* uniform on the sphere of its norm."""
    return environments.Mixture(
        n_arms=settings["n_arms"],
        dim=settings["dim"],
        theta_norm=settings["theta_norm"],
        noise_sd=settings["noise_sd"],
    )


def norm_bounds(run: Run) -> np.ndarray:
    """(trials, epochs + 1) b_1, b_2, ... of every trial."""
    return np.stack([found["norm_bounds"] for found in run.diagnostics])


def describe(name: str, run: Run) -> dict[str, Any]:
    """Return a policy's entry in the summary."""
    final = run.regret[:, -1]
    entry: dict[str, Any] = {
        "policy": name,
        **spread(final),
        **switching(run.diagnostics),
    }
    if "norm_bounds" in run.diagnostics[0]:
        bounds = norm_bounds(run)
        sd = bounds.std(axis=0, ddof=1 if len(bounds) > 1 else 0)
        entry["norm_bounds"] = {"mean": bounds.mean(axis=0).tolist(), "sd": sd.tolist()}
    return entry


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run all policies on the same problems."""
    runs = simulate(
        contenders(settings), problem(settings), horizon=settings["horizon"], trials=trials, seed=seed, record=500
    )
    return Outcome(
        policies={name: describe(name, each) for name, each in runs.items()},
        curves=curve_table(runs),
    )


PANELS = {
    name: Panel(
        name,
        __name__,
        {**SETTINGS, "theta_norm": norm},
        run,
        seconds=35.0,
    )
    for name, norm in (("a", 0.1), ("b", 1.0))
}
