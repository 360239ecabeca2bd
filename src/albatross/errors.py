"""Errors that a caller may want to tell apart. All are ValueErrors; none leaves anything half-changed."""

from __future__ import annotations


class UnknownDecision(ValueError):
    """A reward for a decision that is not pending: already rewarded, forgotten, or made by another agent."""


class UnreadableFile(ValueError):
    """A saved agent or fleet that is cut, is something else, or is of another version."""


def missing_extra(package: str | None) -> str:
    """What to do where a library of the extra `lab` is not installed; Albatross itself is installed from a clone."""
    return f"this needs {package}: run pip install '.[lab]' in your clone of Albatross"
