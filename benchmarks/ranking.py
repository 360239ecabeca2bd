"""Write, read and cluster a ranking set of the paper's size: seconds and peak memory, a process for each step.

Run it as `python benchmarks/ranking.py [--dense]`; with --dense every cell is filled, with digits to spare.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_ROWS, N_COLUMNS, N_CLUSTERED, N_ARMS = 103_174, 700, 20_000, 500


def write(path: str, dense: str) -> None:
    from albatross.datasets import generate_ranking, write_ranking

    ranking = generate_ranking(N_ROWS, N_COLUMNS)
    if dense == "dense":
        ranking = ranking._replace(features=np.round(np.random.default_rng(0).random((N_ROWS, N_COLUMNS)), 6))
    write_ranking(path, ranking)


def read(path: str) -> None:
    from albatross.datasets import read_ranking

    ranking = read_ranking(path)
    assert ranking.features.shape == (N_ROWS, N_COLUMNS)


def cluster(path: str) -> None:
    """The whole of it: read all, draw rows and 50 columns, k-means."""
    from sklearn.cluster import KMeans

    from albatross.datasets import read_ranking

    features = read_ranking(path).features
    rng = np.random.default_rng(0)
    rows, columns = rng.choice(len(features), N_CLUSTERED, replace=False), rng.choice(N_COLUMNS, 50, replace=False)
    KMeans(N_ARMS, n_init=1, random_state=0).fit(features[rows][:, columns])


def refuse(path: str) -> None:
    """How long it takes to name the last line when that is cut."""
    from albatross.datasets import read_ranking

    with open(path, "ab") as file:
        file.write(b"1 qid:1 7:")
    try:
        read_ranking(path)
    except ValueError as error:
        print(f"    {error}")


STEPS = {"write": write, "read": read, "cluster": cluster, "refuse": refuse}


def main() -> None:
    density = "dense" if "--dense" in sys.argv else "sparse"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "set2.test.txt"))
        for step in STEPS:
            arguments = [path, density] if step == "write" else [path]
            subprocess.run([sys.executable, __file__, "--step", step, *arguments], check=True)
            if step == "write":
                print(f"    {N_ROWS:,} x {N_COLUMNS}, {density}: {Path(path).stat().st_size / 1e6:.0f} MB", flush=True)


def run_step(step: str, *arguments: str) -> None:
    start = time.perf_counter()
    STEPS[step](*arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{step:8} {time.perf_counter() - start:6.1f} s {peak:6.2f} GB", flush=True)


if __name__ == "__main__":
    if "--step" in sys.argv:
        run_step(*sys.argv[2:])
    else:
        main()
