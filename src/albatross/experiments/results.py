"""A panel on disk: summary.json, curves.parquet, figure.png and figure.pdf, there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
from matplotlib.figure import Figure

import albatross
from albatross.report import figures
from albatross.report.files import in_words, whole
from albatross.report.stored import FILES, FORMAT
from albatross.simulation import Run

_ASIDE = ".panel-"  # of a folder that is being written


class Outcome(NamedTuple):
    """What running a panel gives."""

    policies: dict[str, dict[str, Any]]  # by name: label, final_mean, final_sd, norm_bounds, ...
    claims: list[dict[str, Any]]
    curves: dict[str, np.ndarray]  # columns of one long table
    draw: Callable[[], Figure]


class Panel(NamedTuple):
    """A panel of the paper: data, and one function that runs it."""

    name: str
    title: str
    settings: Mapping[str, Any]
    run: Callable[..., Outcome]  # run(settings, trials=, seed=)
    trials: int = 25
    quick_trials: int = 5  # 0: no part of a quick run of everything
    measure: str = "regret"  # what the policies' final numbers are
    seconds: float = 60.0  # that all trials are expected to take on two cores
    quick_settings: Mapping[str, Any] | None = None  # where fewer trials alone are not quick enough

    def in_short(self) -> Panel:
        """The same with few trials."""
        trials = max(self.quick_trials, 1)
        seconds = self.seconds * trials / self.trials
        return self._replace(settings=self.quick_settings or self.settings, trials=trials, seconds=seconds)


def claim(statement: str, holds: bool, value: str, wanted: str) -> dict[str, Any]:
    """A statement about results, whether it holds, what was measured and what was wanted."""
    return {"statement": statement, "holds": bool(holds), "value": value, "wanted": wanted}


def _identity(panel: Panel, trials: int, seed: int) -> dict[str, Any]:
    """What makes two runs of a panel the same run."""
    return {
        "format": FORMAT,
        "panel": panel.name,
        "title": panel.title,
        "settings": json.loads(json.dumps(dict(panel.settings))),
        "trials": trials,
        "seed": seed,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of all that results may depend on."""
    return {
        "albatross": version("albatross"),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "python": platform.python_version(),
        "sources": _sources(),
    }


@cache
def _sources() -> str:
    """A hash of the package's own sources: results of other code are other results."""
    files = sorted(Path(albatross.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def check_writable(out: Path) -> None:
    """Say at once, and not after an hour, that results cannot be kept there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"results cannot be written to {out}: {error.strerror or error}") from None


def fingerprint(path: Path) -> str:
    """Of a file's content: results on other data are other results, whatever the file's name."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def spread(values: np.ndarray) -> dict[str, float]:
    """Mean and standard deviation of a policy's final numbers, as its entry in the summary has them."""
    return {"final_mean": float(np.mean(values)), "final_sd": float(np.std(values, ddof=1 if len(values) > 1 else 0))}


def finished(panel: Panel, *, trials: int, seed: int, out: Path) -> dict[str, Any] | None:
    """The stored summary of this very run, if all of its files are there."""
    summary = _summary(out / panel.name)
    return summary if summary and not _differences(summary, _identity(panel, trials, seed)) else None


def why_again(panel: Panel, *, trials: int, seed: int, out: Path) -> str:
    """What is other about the panel that is stored there, in words; nothing where none is."""
    folder = out / panel.name
    summary = _summary(folder)
    if summary is None:
        return f"{folder} is damaged" if folder.exists() else ""
    return f"{folder} was made with {', '.join(_differences(summary, _identity(panel, trials, seed)))}"


def _summary(folder: Path) -> dict[str, Any] | None:
    if not all((folder / name).is_file() for name in FILES):
        return None
    try:
        return dict(json.loads((folder / "summary.json").read_text()))
    except (ValueError, TypeError):
        return None


def _differences(summary: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Of a stored run from this one.

    >>> stored = {"trials": 5, "versions": {"numpy": "2.1", "sources": "8c1f"}, "settings": {"dim": 50, "form": "main"}}
    >>> _differences(stored, {"trials": 25, "versions": {"numpy": "2.1", "sources": "07aa"}, "settings": {"dim": 20}})
    ['trials 5 instead of 25', 'sources 8c1f instead of 07aa', 'other settings']
    """
    found = []
    for key, value in wanted.items():
        if summary.get(key) == value:
            continue
        if key == "versions" and isinstance(summary.get(key), dict):
            found += _differences(summary[key], value)
        elif isinstance(value, dict):
            found.append(f"other {key}")
        else:
            found.append(f"{key} {summary.get(key, 'unknown')} instead of {value}")
    return found


def run(panel: Panel, *, trials: int, seed: int, out: Path) -> dict[str, Any]:
    """Run a panel and store it; returns the summary."""
    out.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    outcome = panel.run(panel.settings, trials=trials, seed=seed)
    summary = {
        **_identity(panel, trials, seed),
        "measure": panel.measure,
        "policies": outcome.policies,
        "claims": outcome.claims,
        "elapsed_s": round(time.perf_counter() - begun, 2),
    }
    # Written aside and renamed: a run that is killed leaves nothing that a later one would trust.
    _remove_old_leavings(out)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=out))
    try:
        aside.chmod(0o755)
        write_table(outcome.curves, aside / "curves.parquet")
        for name in ("figure.png", "figure.pdf"):
            figures.save(outcome.draw, aside / name)
        (aside / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        for name in FILES:
            with open(aside / name, "rb+") as file:
                os.fsync(file.fileno())
        shutil.rmtree(out / panel.name, ignore_errors=True)
        aside.rename(out / panel.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return summary


def _remove_old_leavings(out: Path) -> None:
    """Of runs that were killed; none takes an hour to write a panel."""
    for path in out.glob(f"{_ASIDE}*"):
        if path.stat().st_mtime < time.time() - 3_600.0:
            shutil.rmtree(path, ignore_errors=True)


def curve_table(runs: Mapping[str, Run]) -> dict[str, np.ndarray]:
    """All curves of some runs on the same rounds as columns: policy, trial, round, regret, reward."""
    first = next(iter(runs.values()))
    trials, points = first.regret.shape
    return {
        "policy": np.repeat(list(runs), trials * points),
        "trial": np.tile(np.repeat(np.arange(trials), points), len(runs)),
        "round": np.tile(first.rounds, trials * len(runs)),
        "regret": np.concatenate([run.regret.ravel() for run in runs.values()]),
        "reward": np.concatenate([run.reward.ravel() for run in runs.values()]),
    }


def write_table(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """A table of equally long columns as Parquet."""
    with in_words(path), duckdb.connect() as connection, whole(path) as aside:
        connection.register("columns", dict(columns))
        connection.execute("COPY (SELECT * FROM columns) TO '" + str(aside).replace("'", "''") + "' (FORMAT parquet)")
