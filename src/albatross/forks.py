"""What a forked process must not share with its parent: locks, names of decisions and random numbers.

Servers fork their workers after the model is loaded. Without this, all of them would draw the same numbers and give
their decisions the same ids.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that can start anew in a child process."""

    def _after_fork(self) -> None: ...


_living: WeakSet[Forkable] = WeakSet()


def renew_after_fork(thing: Forkable) -> None:
    """Call its `_after_fork` in every process that is forked from this one."""
    _living.add(thing)


def _renew_all() -> None:
    for thing in list(_living):
        thing._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew_all)
