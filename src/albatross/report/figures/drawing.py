"""How the panels of a family are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from albatross.report.figures.plots import Plot


class Content(NamedTuple):
    """The stored results of a panel."""

    settings: Mapping[str, Any]
    policies: Mapping[str, Mapping[str, Any]]
    trials: int
    rows: Mapping[str, np.ndarray]  # the columns of its table

    def only(self, chosen: np.ndarray) -> Content:
        """Return the same with some of the rows."""
        return self._replace(rows={name: column[chosen] for name, column in self.rows.items()})


class Drawing(NamedTuple):
    """How a panel is shown to a reader. None of this is needed to run it."""

    title: str
    label: Callable[[Mapping[str, Any]], str]  # of a policy, from its entry in the summary
    draw: Callable[[Content], Figure]  # for print
    plots: Callable[[Content], list[Plot]]  # for the page
    measure: str = "regret"  # what the policies' final numbers are
