"""How often Albatross locks in: trials of the race's small problems that cost more than four times the median.

Run it as `python benchmarks/lock_in.py [trials [seed]]`; 200 trials take about a minute.
"""

from __future__ import annotations

import sys

import numpy as np

from albatross import policies, simulate
from albatross.race.problems import ARMS

PROBLEMS = ("20 fixed arms, norm 0.3", "10 fixed arms in a cube", "lock-in: 10 arms alone", "10 x 10, norm 0")
HORIZON, MUCH = 5_000, 4.0


def main(trials: int = 200, seed: int = 72) -> None:
    """Print a line for every problem."""
    print("| problem | mean | median | worst | above four times the median |\n|---|---|---|---|---|")
    for name in PROBLEMS:
        run = simulate(
            policies.Albatross(), ARMS[name].env, horizon=HORIZON, trials=trials, seed=seed, record=1, workers=1
        )
        regret = run.regret[:, -1]
        middle, error = np.median(regret), regret.std(ddof=1) / trials**0.5
        locked = np.count_nonzero(regret > MUCH * middle)
        print(
            f"| {name} | {regret.mean():.0f} ± {error:.0f} | {middle:.0f} | {regret.max():.0f} | {locked} |", flush=True
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
