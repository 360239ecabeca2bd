"""Panels (a) and (b): regret of ALB-Norm between OFUL+, given a bound of 10, and an oracle that is given the norm.

Ghosh, Sankararaman and Ramchandran (2021), Section 6.1. The left half of the figure shows the default reading; the
right half shows the same problem with the exact constants of Appendix A, which do not reproduce the paper at this size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import environments, policies, simulate
from albatross.experiments.panel import Outcome, Panel, curve_table, spread
from albatross.simulation import Run

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
}
_LITERAL = {"form": "appendix", "scale": 1.0, "estimator": "paper"}


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's three policies, what an expert would use instead, and those with the literal constants."""
    sigma, delta = settings["noise_sd"], settings["delta"]
    given, truth = settings["norm_bound"], settings["theta_norm"]
    ball = {"sigma": sigma, "delta": delta}
    default = {**ball, **{key: settings[key] for key in ("form", "scale", "estimator")}}
    literal = {**ball, **_LITERAL}
    epochs = {"norm_bound": given, "epoch_length": settings["epoch_length"]}
    return {
        "alb-norm": policies.ALBNorm(**epochs, **default),
        "oful-plus": policies.OFULPlus(norm_bound=given, **default),
        "oracle": policies.OFULPlus(norm_bound=truth, **default),
        "osom": policies.OSOM(norm_bound=given, **default),
        "ucb": policies.UCB(**ball),
        "lints": policies.LinTS(sigma=sigma),
        "greedy": policies.Greedy(),
        "albatross": policies.Albatross(),
        "alb-norm-literal": policies.ALBNorm(**epochs, restart=True, **literal),
        "oful-plus-literal": policies.OFULPlus(norm_bound=given, **literal),
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
        seconds=30.0,
    )
    for name, norm in (("a", 0.1), ("b", 1.0))
}
