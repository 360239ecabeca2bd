"""The drawings of all panels, and the figures of a results folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from albatross.closure import digest
from albatross.report.figures import (
    ball,
    drift,
    flock,
    nested,
    news,
    norm,
    race,
    rated,
    scaling,
    simple_bandit,
    style,
    theorems,
    users,
)
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.plots import Plot
from albatross.store.results import Damaged, Stored, usable

DRAWINGS: dict[str, Drawing] = {
    **norm.DRAWINGS,
    **ball.DRAWINGS,
    **rated.DRAWINGS,
    **nested.DRAWINGS,
    **simple_bandit.DRAWINGS,
    **users.DRAWINGS,
    **flock.DRAWINGS,
    **drift.DRAWINGS,
    **scaling.DRAWINGS,
    **news.DRAWINGS,
    **theorems.DRAWINGS,
}


def title(panel: str) -> str:
    """Return the title of a panel."""
    return _drawing(panel).title


def measure(panel: str) -> str:
    """Return the name of the final number of each policy."""
    return _drawing(panel).measure


def label(panel: str, entry: Mapping[str, Any]) -> str:
    """Return the name of a policy of the panel, from its entry in the summary."""
    return _drawing(panel).label(entry)


def plots(stored: Stored, panel: str) -> list[Plot]:
    """Return the panel's plots for the page."""
    return _drawing(panel).plots(_content(stored, panel))


def write_figures(stored: Stored) -> None:
    """Draw every stored panel and the race for print, as PNG and PDF next to their tables."""
    for panel in stored.summaries:
        with usable(stored.folder / panel):
            content = _content(stored, panel)
            key = _key(content._replace(rows={}), content.rows)
        _write(stored.folder / panel, _drawing(panel).draw, content, key)
    if stored.standings:
        write_race(stored)


def write_race(stored: Stored) -> None:
    """Draw the stored standings of all families of problems."""
    _write(stored.folder / "race", race.draw, stored.standings, _key(stored.standings))


def _write(folder: Path, draw: Callable[[Any], Figure], content: Any, key: str) -> None:
    """Draw figure.pdf and figure.png, unless they already show the same content, drawn by the same sources."""
    key = f"{key}-{digest(draw.__module__)}-{mpl.__version__}"
    pdf, png = folder / "figure.pdf", folder / "figure.png"
    for path in (pdf, png):
        if path.is_symlink():  # what it leads to may be anything
            raise ValueError(f"{path} is a link, and would be written over: remove it")
    if not (pdf.is_file() and style.key_of(png) == key):
        with usable(folder):
            style.save(partial(draw, content), pdf, png, key=key)


def _key(plain: Any, columns: Mapping[str, np.ndarray] = MappingProxyType({})) -> str:
    """Return a hash of what is drawn."""
    found = hashlib.sha256(json.dumps(plain).encode())
    for name, column in columns.items():
        found.update(name.encode())
        found.update(json.dumps(column.tolist()).encode() if column.dtype == object else column.tobytes())
    return found.hexdigest()[:16]


def _drawing(panel: str) -> Drawing:
    if panel not in DRAWINGS:
        raise Damaged(f"there is no drawing of panel {panel!r}: remove its folder, or add it to report/figures")
    return DRAWINGS[panel]


def _content(stored: Stored, panel: str) -> Content:
    summary = stored.summaries[panel]
    return Content(summary["settings"], summary["policies"], summary["trials"], stored.table(panel))
