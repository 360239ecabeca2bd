"""Renew what a forked process must not share with its parent: locks, names of decisions and random numbers.

Servers often fork their workers after loading a model. Without this, all workers would draw the same random numbers and
give their decisions the same ids.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object that can be renewed in a child process."""

    def _after_fork(self) -> None: ...


_living: WeakSet[Forkable] = WeakSet()


def renew_after_fork(thing: Forkable) -> None:
    """Call `_after_fork` of the object in every process forked from this one."""
    _living.add(thing)


def _renew_all() -> None:
    for thing in list(_living):
        thing._after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew_all)
