"""Errors that callers may want to catch separately. All are ValueErrors, and leave everything unchanged."""

from __future__ import annotations


class UnknownDecision(ValueError):
    """The decision is not pending: already rewarded, dropped, forgotten, or made by another agent."""


class UnreadableFile(ValueError):
    """The file is not a valid saved agent or fleet: damaged, of another kind, or of another version."""


class NotCompiled(ValueError):
    """Numba cannot compile a policy. The text says where and why; `__context__` has all that Numba said."""


# What `pip install '.[service]'` adds to the libraries that `lab` has too, by the names under which they are imported.
_OF_THE_SERVICE = ("starlette", "uvicorn", "httptools", "uvloop", "msgspec", "prometheus_client", "httpx")


def missing_extra(package: str | None) -> str:
    """Return the error text for a missing library of an extra.

    >>> missing_extra("msgspec")
    "this needs msgspec: run pip install '.[service]' in your clone of Albatross"
    """
    extra = "service" if (package or "").partition(".")[0] in _OF_THE_SERVICE else "lab"
    return f"this needs {package}: run pip install '.[{extra}]' in your clone of Albatross"
