"""Run panels and store them; a stored panel is not run again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from albatross.experiments.panel import Panel
from albatross.store import results
from albatross.store.identity import identity, signed


def identity_of(panel: Panel, *, trials: int, seed: int) -> dict[str, Any]:
    """Return what identifies a run of a panel."""
    return identity(panel.module, panel=panel.name, settings=dict(panel.settings), trials=trials, seed=seed)


def finished(panel: Panel, *, trials: int, seed: int, out: Path) -> dict[str, Any] | None:
    """Return the stored summary of this run, or of the same with more trials, if all of its files are there."""
    return results.finished(out / panel.name, identity_of(panel, trials=trials, seed=seed))


def why_again(panel: Panel, *, trials: int, seed: int, out: Path) -> str:
    """Describe how the stored panel differs from this run; empty if nothing is stored."""
    return results.why_again(out / panel.name, identity_of(panel, trials=trials, seed=seed))


def run(panel: Panel, *, trials: int, seed: int, out: Path) -> dict[str, Any]:
    """Run a panel, store it and return its summary."""
    out.mkdir(parents=True, exist_ok=True)
    begun, identity = (
        time.perf_counter(),
        identity_of(panel, trials=trials, seed=seed),
    )  # of the sources as they are now
    outcome = panel.run(panel.settings, trials=trials, seed=seed)
    summary = {
        **signed(identity),
        "policies": outcome.policies,
        "elapsed_s": round(time.perf_counter() - begun, 2),
    }
    results.write_panel(out / panel.name, summary, outcome.curves)
    return summary
