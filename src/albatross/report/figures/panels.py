"""Every panel's drawing, and the figures of a results folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from albatross.report.figures import ball, nested, norm, race, rated, scaling, style, users
from albatross.report.figures.drawing import Content, Drawing
from albatross.report.figures.plots import Plot
from albatross.store.results import Stored

DRAWINGS: dict[str, Drawing] = {
    **norm.DRAWINGS,
    **ball.DRAWINGS,
    **rated.DRAWINGS,
    **nested.DRAWINGS,
    **users.DRAWINGS,
    **scaling.DRAWINGS,
}


def title(panel: str) -> str:
    """What the panel shows."""
    return _drawing(panel).title


def measure(panel: str) -> str:
    """What the final number of each policy is."""
    return _drawing(panel).measure


def label(panel: str, entry: Mapping[str, Any]) -> str:
    """The name of a policy of the panel, from its entry in the summary."""
    return _drawing(panel).label(entry)


def plots(stored: Stored, panel: str) -> list[Plot]:
    """The panel's plots for the page."""
    return _drawing(panel).plots(_content(stored, panel))


def write_figures(stored: Stored) -> None:
    """Draw every panel and the race for print, from what is stored, as PNG and PDF beside their tables."""
    for panel in stored.summaries:
        style.save(partial(_drawing(panel).draw, _content(stored, panel)), *_files(stored.folder / panel))
    if stored.standings:
        write_race(stored)


def write_race(stored: Stored) -> None:
    """Draw the standings of all families of problems that are stored."""
    style.save(partial(race.draw, stored.standings), *_files(stored.folder / "race"))


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "figure.png", folder / "figure.pdf"


def _drawing(panel: str) -> Drawing:
    if panel not in DRAWINGS:
        raise ValueError(f"there is no drawing of panel {panel!r}: remove its folder, or add it to report/figures")
    return DRAWINGS[panel]


def _content(stored: Stored, panel: str) -> Content:
    summary = stored.summaries[panel]
    return Content(summary["settings"], summary["policies"], summary["trials"], stored.table(panel))
