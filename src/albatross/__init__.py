"""Albatross: linear bandits of unknown difficulty.

Names are loaded on first use, so that `albatross --help` does not load the compiler.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from albatross import bounds, confidence, environments, evaluation, features, linalg, models, policies, protocol
    from albatross.agent import Agent, Decision
    from albatross.features import Features
    from albatross.fleet import Fleet
    from albatross.flock import Flock
    from albatross.loops import Choices
    from albatross.runs import Run, runs_frame
    from albatross.simulation import simulate
    from albatross.store.decision_log import LogWriter

__all__ = [
    "Agent",
    "Choices",
    "Decision",
    "Features",
    "Fleet",
    "Flock",
    "LogWriter",
    "Run",
    "bounds",
    "confidence",
    "environments",
    "evaluation",
    "features",
    "linalg",
    "models",
    "plot_regret",
    "policies",
    "protocol",
    "runs_frame",
    "simulate",
]

try:
    __version__ = version("albatross")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+source"

_HOMES = {
    "Agent": "agent",
    "Choices": "loops",
    "Decision": "agent",
    "Features": "features",
    "Fleet": "fleet",
    "Flock": "flock",
    "LogWriter": "store.decision_log",
    "Run": "runs",
    "plot_regret": "report.figures.compare",
    "runs_frame": "runs",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"albatross.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"albatross.{name}")
    raise AttributeError(f"module 'albatross' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
