"""What is in a results folder: a summary and a table of curves for every panel, and the standings of the race."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from albatross.datasets.files import exact_pattern
from albatross.report.files import in_words

# Of the files in a results folder; raised whenever a version would misread what another wrote.
FORMAT = 1
FILES = ("summary.json", "curves.parquet", "figure.png", "figure.pdf")
# As the paper has them, then what goes beyond it.
_ORDER = ("a", "b", "c", "d", "e", "e-literal", "f", "g", "h", "nested", "users", "scaling")

# What panels (g) and (h) call their data and their readings.
SOURCES = {
    "yandex": "Yandex sample",
    "generated": "generated stand-in",
    "yahoo": "Yahoo!'s set2.test.txt",
    "data": "your data",
}
MODES = {
    "bootstrap": "rows, with a true model and fresh noise",
    "rating": "ill-posed: a row's own rating",
    "centroid": "ill-posed: the paper's centroids",
}


class Stored:
    """A results folder, read and never written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_format(self, but: Collection[Path] = ()) -> None:
        """Refuse what another version wrote, except files that will be written anew."""
        paths = sorted([*self.folder.glob("[!.]*/summary.json"), *self.folder.glob("race/standings-*.json")])
        for path in paths:
            if path not in but and _format_of(path) != FORMAT:
                raise ValueError(
                    f"{path} was not written by this version of albatross, or is damaged: "
                    f"remove {path.parent}, or name another folder"
                )

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """By panel, in the order of the paper: those of which all files are there."""
        found = {path.parent.name: path for path in self.folder.glob("[!.]*/summary.json")}
        whole = [name for name, path in found.items() if all((path.parent / each).is_file() for each in FILES)]
        ranks = {name: rank for rank, name in enumerate(_ORDER)}
        ordered = sorted(whole, key=lambda name: (ranks.get(name, len(ranks)), name))
        return {name: _read(found[name]) for name in ordered}

    @cached_property
    def standings(self) -> dict[str, list[dict[str, Any]]]:
        """Of the race, by family of problems."""
        return {title: family["standings"] for title, family in self._families.items()}

    @cached_property
    def races(self) -> dict[str, dict[str, Any]]:
        """The problems of the standings, by name: what was raced, by whom, and all final regrets."""
        return {problem["problem"]: problem for family in self._families.values() for problem in family["problems"]}

    @cached_property
    def _families(self) -> dict[str, dict[str, Any]]:
        paths = [path for path in self.folder.glob("race/standings-*.json") if _format_of(path) == FORMAT]
        families = {family["family"]: family for family in map(_read, paths)}
        return dict(sorted(families.items()))

    @cached_property
    def _database(self) -> Any:
        return duckdb.connect()  # in memory, and once: connecting takes longer than a query

    def __contains__(self, panel: str) -> bool:
        return panel in self.summaries

    def table(self, panel: str, sql: str = "SELECT * FROM curves") -> dict[str, np.ndarray]:
        """The columns that a query of a panel's table, called `curves`, gives."""
        path = self.folder / panel / "curves.parquet"
        with in_words(path):
            rows = self._database.read_parquet(exact_pattern(path), hive_partitioning=False)
            return dict(rows.query("curves", sql).fetchnumpy())

    def final(self, panel: str, policy: str) -> np.ndarray:
        """A policy's last regret in every trial."""
        last = (
            f"SELECT max_by(regret, round) AS last FROM curves WHERE policy = '{policy}' GROUP BY trial ORDER BY trial"
        )
        return np.asarray(self.table(panel, last)["last"], dtype=float)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def _format_of(path: Path) -> Any:
    try:
        return _read(path).get("format")
    except (ValueError, TypeError):
        return None
