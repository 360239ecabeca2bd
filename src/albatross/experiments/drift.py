"""Rewards that drift: what forgetting saves, and whether Albatross learns how much of it is right.

Seven problems, from none at all to a theta* that is drawn anew every 600 rounds. Albatross never forgets, forgets with
one of several half-lives, or learns its memory. Its rivals are D-LinUCB (Russac, Vernade and Cappe 2019) and SW-LinUCB
(Cheung, Simchi-Levi and Zhu 2019) at every memory and width of a grid, given that there are no biases, which is wrong
in the last problem. Of a family with a grid, the best setting of each problem is chosen in hindsight.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from albatross import environments, policies, simulate
from albatross.experiments.panel import Outcome, Panel, spread

SETTINGS: dict[str, Any] = {
    "n_arms": 10,
    "dim": 5,
    "noise_sd": 0.7,
    "horizon": 6_000,
    "problems": {  # drift, rounds, biases
        "stationary": None,
        "redrawn every 2000": ["redrawn", 2_000, False],
        "redrawn every 600": ["redrawn", 600, False],
        "one turn in 6000": ["turn", 6_000, False],
        "one turn in 30000": ["turn", 30_000, False],
        "random walk, 2000": ["walk", 2_000, False],
        "redrawn every 2000, with biases": ["redrawn", 2_000, True],
    },
    "memories": [60, 125, 250, 500, 1_000, 2_000],  # half-lives of Albatross, in plays
    "discounts": [0.98, 0.99, 0.995, 0.998, 0.999],
    "windows": [100, 200, 500, 1_000, 2_000],
    "alphas": [0.35, 0.7],
}
QUICK: dict[str, Any] = {
    **SETTINGS,
    "horizon": 2_000,
    "problems": {
        "stationary": None,
        "redrawn every 600": ["redrawn", 600, False],
        "one turn in 6000": ["turn", 6_000, False],
    },
    "memories": [60, 500],
    "discounts": [0.98, 0.998],
    "windows": [100, 1_000],
    "alphas": [0.35],
}


def problem(settings: Mapping[str, Any], kind: Any) -> Any:
    """Return the environment of one line of the settings."""
    size = {key: settings[key] for key in ("n_arms", "dim", "noise_sd")}
    if kind is None:
        return environments.Mixture(**size, biases=np.zeros(settings["n_arms"]))
    drift, rounds, biases = kind
    return environments.Drifting(**size, drift=drift, rounds=rounds, biases=biases)


def contenders(settings: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return all policies by family and setting."""
    found: dict[tuple[str, str], Any] = {
        ("never", ""): policies.Albatross(),
        ("learnt", ""): policies.Albatross(memory="learnt"),
    }
    found |= {("half-life", f"{memory}"): policies.Albatross(memory=memory) for memory in settings["memories"]}
    for gamma, alpha in product(settings["discounts"], settings["alphas"]):
        memory = float(np.log(0.5) / np.log(gamma))
        found["d-linucb", f"{gamma}, {alpha}"] = policies.LinUCB(memory=memory, alpha=alpha, biases=False)
    for window, alpha in product(settings["windows"], settings["alphas"]):
        found["sw-linucb", f"{window}, {alpha}"] = policies.SWLinUCB(window=window, alpha=alpha)
    return found


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Play all problems; the summary has the best setting of every family."""
    entries: dict[str, dict[str, Any]] = {}
    rows: list[tuple[str, str, str, int, float]] = []
    played = {" ".join(key): policy for key, policy in contenders(settings).items()}
    for name, kind in settings["problems"].items():
        runs = simulate(
            played, problem(settings, kind), horizon=settings["horizon"], trials=trials, seed=seed, record=1
        )
        finals = {key: runs[" ".join(key)].regret[:, -1] for key in contenders(settings)}
        rows += [
            (name, *key, trial, float(regret))
            for key, regrets in finals.items()
            for trial, regret in enumerate(regrets)
        ]
        for family in dict.fromkeys(family for family, _ in finals):
            best = min((key for key in finals if key[0] == family), key=lambda key: finals[key].mean())
            entries[f"{family}, {name}"] = {
                "policy": family,
                "problem": name,
                "setting": best[1],
                **spread(finals[best]),
            }
    names = ("problem", "policy", "setting", "trial", "regret")
    return Outcome(entries, dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))


PANELS = {
    "drift": Panel("drift", __name__, SETTINGS, run, trials=12, quick_trials=2, seconds=90.0, quick_settings=QUICK)
}
