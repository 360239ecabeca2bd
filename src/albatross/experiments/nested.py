"""Nested feature maps with finitely many arms: which inner policies gain from finding the right map, and how much.

Ghosh, Sankararaman and Ramchandran (2021), Section 5, has no figure. Here ALB-Dim runs with each inner policy, next to
the same policy on all features and on the right map, and next to other ways to choose among maps: ModCB, and Corral and
ED2RB over one LinUCB per map. With SupLinRel or SupLinUCB as the inner policy, ALB-Dim gains a little on all features.
With LinUCB it loses to LinUCB on all features, because exploration and restarts cost more than the dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross import bounds, environments, policies, simulate
from albatross.experiments.panel import Outcome, Panel, curve_table, spread
from albatross.policies.nested.sup_lin_ucb import linucb_alpha
from albatross.runs import Run

SETTINGS: dict[str, Any] = {
    "n_arms": 5,
    "dims": [5, 10, 20],
    "true_dim": 5,
    "magnitude": 0.4,
    "noise_sd": 0.5**0.5,
    "delta": 0.1,
    "first_phase": 4_900,
    "horizon": 60_000,
    "reward_range": [-4.0, 4.0],
}
INNER = {"suplinrel": "SupLinRel", "suplinucb": "SupLinUCB", "linucb": "LinUCB"}


def problem(settings: Mapping[str, Any]) -> environments.Nested:
    """Return the problem: standard normal features; theta* uses the smallest map."""
    keys = ("n_arms", "dims", "true_dim", "magnitude", "noise_sd")
    return environments.Nested(**{key: settings[key] for key in keys})


def linucb(settings: Mapping[str, Any], dim: int) -> policies.LinUCB:
    """Return LinUCB with ridge 1 for features and rewards divided by b(delta), in their original units."""
    n_arms, horizon, delta = settings["n_arms"], settings["horizon"], settings["delta"]
    b = bounds.feature_bound(dim, n_arms, horizon, delta)
    return policies.LinUCB(
        alpha=b * linucb_alpha(horizon, n_arms, delta, settings["noise_sd"], b), ridge=b * b, biases=False
    )


def contenders(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Each inner policy on all features, given the map and inside ALB-Dim; Algorithm 3 to the letter; other ways."""
    dims, true_dim = tuple(settings["dims"]), settings["true_dim"]
    confident = {"sigma": settings["noise_sd"], "delta": settings["delta"]}
    found: dict[str, Any] = {}
    for name, kind in (("suplinrel", policies.SupLinRel), ("suplinucb", policies.SupLinUCB), ("linucb", None)):
        alone = {dim: linucb(settings, dim) if kind is None else kind(**confident) for dim in (dims[-1], true_dim)}
        found[f"{name}-full"] = alone[dims[-1]]
        found[f"{name}-oracle"] = policies.FirstFeatures(policy=alone[true_dim], dim=true_dim)
        found[f"alb-dim-{name}"] = policies.ALBDimFinite(
            dims=dims, first_phase=settings["first_phase"], inner=name, **confident
        )
    # One map and one phase: SupLinRel itself, to the letter.
    letter = {"inner": "suplinrel", "scaling": "features", **confident}
    whole = {"first_phase": settings["horizon"], **letter}
    found["suplinrel-full-literal"] = policies.ALBDimFinite(dims=dims[-1:], **whole)
    found["suplinrel-oracle-literal"] = policies.FirstFeatures(
        policy=policies.ALBDimFinite(dims=(true_dim,), **whole), dim=true_dim
    )
    found["alb-dim-suplinrel-literal"] = policies.ALBDimFinite(dims=dims, first_phase=settings["first_phase"], **letter)
    bases = tuple(policies.FirstFeatures(policy=linucb(settings, dim), dim=dim) for dim in dims)
    found["mod-cb"] = policies.ModCB(dims=dims, delta=settings["delta"])
    found["corral"] = policies.Corral(bases=bases, reward_range=tuple(settings["reward_range"]))
    found["ed2rb"] = policies.ED2RB(bases=bases)
    return found


def describe(name: str, run: Run) -> dict[str, Any]:
    """Return a policy's entry in the summary."""
    final = run.regret[:, -1]
    entry: dict[str, Any] = {
        "policy": name,
        **spread(final),
    }
    if "phases" in run.diagnostics[0]:
        entry["models"] = [[phase["model"] for phase in trial["phases"]] for trial in run.diagnostics]
        entry["support_sizes"] = np.mean(entry["models"], axis=0).tolist()  # mean dimension of the map, phase by phase
    if name == "mod-cb":
        entry["models"] = [trial["model"] for trial in run.diagnostics]
    if name in ("corral", "ed2rb"):
        entry["base_plays"] = np.mean([trial["base_plays"] for trial in run.diagnostics], axis=0).tolist()
    return entry


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run all policies on the same rounds."""
    runs = simulate(
        contenders(settings), problem(settings), horizon=settings["horizon"], trials=trials, seed=seed, record=300
    )
    return Outcome(
        policies={name: describe(name, each) for name, each in runs.items()},
        curves=curve_table(runs),
    )


PANELS = {
    "nested": Panel("nested", __name__, SETTINGS, run, trials=10, quick_trials=2, seconds=32.0),
}
