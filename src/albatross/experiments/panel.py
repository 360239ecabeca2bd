"""A panel: settings, and a function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from albatross.runs import Run


class Outcome(NamedTuple):
    """The results of a panel."""

    policies: dict[str, dict[str, Any]]  # by name: policy, final_mean, final_sd, norm_bounds, ...
    curves: dict[str, np.ndarray]  # columns of one long table


class Panel(NamedTuple):
    """A panel of the paper: data, and one function that runs it. How it is drawn is not part of it."""

    name: str
    module: str  # that computes it: as long as it and its imports stay the same, stored results are valid
    settings: Mapping[str, Any]
    run: Callable[..., Outcome]  # run(settings, trials=, seed=)
    trials: int = 25
    quick_trials: int = 5  # 0: no part of a quick run of everything
    seconds: float = 60.0  # that all trials are expected to take on two cores
    quick_settings: Mapping[str, Any] | None = None  # where fewer trials alone are not quick enough

    def in_short(self) -> Panel:
        """Return the same panel with few trials."""
        trials = max(self.quick_trials, 1)
        seconds = self.seconds * trials / self.trials
        return self._replace(settings=self.quick_settings or self.settings, trials=trials, seconds=seconds)


def spread(values: np.ndarray) -> dict[str, float]:
    """Return the mean and standard deviation of a policy's final numbers, for its entry in the summary."""
    return {"final_mean": float(np.mean(values)), "final_sd": float(np.std(values, ddof=1 if len(values) > 1 else 0))}


def switching(diagnostics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """When OSOM went over to its complex model, as its entry in the summary has it; nothing for other policies."""
    if not diagnostics or "switched_at" not in diagnostics[0]:
        return {}
    rounds = [each["switched_at"] for each in diagnostics if each["switched"]]
    middle = int(np.median(rounds)) if rounds else None
    return {"switched": {"times": len(rounds), "of": len(diagnostics), "round": middle}}


def curve_table(runs: Mapping[str, Run]) -> dict[str, np.ndarray]:
    """Return the curves of several runs on the same rounds as columns: policy, trial, round, regret, reward."""
    trials = {name: len(run.regret) for name, run in runs.items()}
    rounds = next(iter(runs.values())).rounds
    return {
        "policy": np.repeat(list(runs), [each * len(rounds) for each in trials.values()]),
        "trial": np.concatenate([np.repeat(np.arange(each), len(rounds)) for each in trials.values()]),
        "round": np.tile(rounds, sum(trials.values())),
        "regret": np.concatenate([run.regret.ravel() for run in runs.values()]),
        "reward": np.concatenate([run.reward.ravel() for run in runs.values()]),
    }
