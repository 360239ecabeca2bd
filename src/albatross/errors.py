"""Errors that callers may want to catch separately. All are ValueErrors, and leave everything unchanged."""

from __future__ import annotations


class UnknownDecision(ValueError):
    """The decision is not pending: already rewarded, dropped, forgotten, or made by another agent."""


class UnreadableFile(ValueError):
    """The file is not a valid saved agent or fleet: damaged, of another kind, or of another version."""


class NotCompiled(ValueError):
    """Numba cannot compile a policy. The text says where and why; `__context__` has all that Numba said."""


def missing_extra(package: str | None) -> str:
    """Return the error text for a missing library of the extra `lab`."""
    return f"this needs {package}: run pip install '.[lab]' in your clone of Albatross"
