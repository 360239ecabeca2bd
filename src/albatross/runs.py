"""Run: the results of a policy in all trials of a simulation, also as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from albatross.checks import shown
from albatross.frames import as_frame
from albatross.notebook import html_table


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The results of one policy in all trials. Curves are cumulative, at the recorded rounds."""

    policy: Any
    rounds: np.ndarray  # (g,) the recorded rounds, counted from 1
    regret: np.ndarray  # (trials, g) cumulative pseudo-regret
    reward: np.ndarray  # (trials, g) cumulative reward
    diagnostics: list[dict[str, Any]]  # of each trial, at its end; `truth` holds the environment's secrets
    seconds: float  # spent playing, summed over trials; contexts and compiling not counted

    def __repr__(self) -> str:
        final = self.regret[:, -1]
        return (
            f"Run({self.policy!r}: {len(final)} trials, regret {final.mean():,.1f} +- "
            f"{final.std(ddof=1 if len(final) > 1 else 0):,.1f} after {self.rounds[-1]:,} rounds)"
        )

    def _repr_html_(self) -> str:
        at = np.unique(np.linspace(0, self.rounds.size - 1, 6).astype(int))
        rows = [
            (f"{self.rounds[i]:,}", f"{self.regret[:, i].mean():,.4g}", f"{self.reward[:, i].mean():,.4g}") for i in at
        ]
        return html_table(repr(self), [("round", "mean regret", "mean reward"), *rows])

    def frame(self, library: str | None = None) -> Any:
        """Return a data frame with columns policy, trial, round, regret and reward: see `runs_frame`."""
        return runs_frame(self, library)


def runs_by_name(runs: Any) -> Mapping[str, Run]:
    """Return what `simulate` returned, one run or several, as runs by name; refuse anything else."""
    if isinstance(runs, Run):
        return {type(runs.policy).__name__: runs}
    if not isinstance(runs, Mapping) or not runs or not all(isinstance(run, Run) for run in runs.values()):
        raise ValueError(f"runs must be a Run or a dict of them by name, as simulate returns, not {shown(runs)}")
    return runs


def runs_frame(runs: Mapping[str, Run] | Run, library: str | None = None) -> Any:
    """Return all runs as one long data frame: policy, trial, round, regret and reward, both cumulative.

    `library` is "pandas", "polars" or "pyarrow"; by default the first one installed.
    """
    columns: dict[str, list[np.ndarray]] = {"policy": [], "trial": [], "round": [], "regret": [], "reward": []}
    for name, run in runs_by_name(runs).items():
        trials, rounds = run.regret.shape
        columns["policy"].append(np.full(trials * rounds, name))
        columns["trial"].append(np.repeat(np.arange(trials), rounds))
        columns["round"].append(np.tile(run.rounds, trials))
        columns["regret"].append(run.regret.ravel())
        columns["reward"].append(run.reward.ravel())
    return as_frame({name: np.concatenate(parts) for name, parts in columns.items()}, library)
