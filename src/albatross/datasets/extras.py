"""Load libraries of the extra `lab` when a reader first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from albatross.errors import missing_extra


def load(module: str, *, package: str) -> Any:
    """Import a module, or raise an error that says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(missing_extra(package), name=error.name) from error
