"""A results folder: for every panel a summary and a table of curves, and the standings of the race."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from albatross.queries import absolute_name
from albatross.store.files import TEMPORARY
from albatross.store.identity import FORMAT, differences
from albatross.store.tables import read_table, write_table

FILES = ("summary.json", "curves.parquet")
_ASIDE = ".panel-"  # of a folder that is being written
# Names of all files that are ever written to a panel's folder and to the race's.
_OF_PANEL = re.compile(r"summary\.json|curves\.parquet|figure\.(png|pdf)")
_OF_RACE = re.compile(r"standings-.*\.json|regret-.*\.parquet|.*-[0-9a-f]{8}\.json|figure\.(png|pdf)")
_TITLE, _HEAD = b"<title>Albatross", 4096  # of report.html, and within how many bytes it comes
_OF_SUMMARY = {"panel": str, "settings": dict, "trials": int, "seed": int, "versions": dict, "policies": dict}
_OF_STANDINGS = {"family": str, "standings": list, "problems": list}
# As the paper has them, then what goes beyond it.
_ORDER = (
    *("a", "b", "c", "d", "e", "e-literal", "f", "g", "h"),
    *("simple", "nested", "users", "flock", "drift", "scaling", "news", "theorems"),
)


class Damaged(ValueError):
    """Stored results cannot be used: their files were changed, or are of another version."""


@contextmanager
def usable(*folders: Path) -> Iterator[None]:
    """Raise whatever goes wrong with stored results as Damaged: anything may be missing in files that were changed."""
    try:
        yield
    except (OSError, MemoryError, Damaged):
        raise
    except Exception as error:
        which, why = " or ".join(map(str, folders)), f"{type(error).__name__}: {error}"
        raise Damaged(f"{which} was changed, or is of another version ({why}): remove it and run it again") from error


def check_writable(out: Path) -> None:
    """Raise an error if results cannot be written there, before anything is run."""
    absolute_name(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"results cannot be written to {out}: {error.strerror or error}") from None


def check_ours(out: Path, parts: Iterable[str]) -> None:
    """Refuse to write panels, the race or report.html over anything that no run has written."""
    for folder in (out / part for part in parts):
        known = _OF_RACE if folder.name == "race" else _OF_PANEL
        try:
            names = sorted(path.name for path in folder.iterdir())
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            with open(folder, "rb") as file:
                if folder.suffix == ".html" and _TITLE in file.read(_HEAD):
                    continue
            raise ValueError(f"{folder} was not written by albatross: choose another folder") from None
        # A link is never ours, and what it leads to would be written over.
        strange = [
            name
            for name in names
            if (folder / name).is_symlink() or not (known.fullmatch(name) or TEMPORARY.fullmatch(name))
        ]
        if not (strange or any(_only_ours(folder / name) for name in names)):
            strange = names
        if strange:
            raise ValueError(f"{folder / strange[0]} was not written by albatross: choose another folder")


def _only_ours(path: Path) -> bool:
    """Return whether only a run writes such a file: anyone may have a figure, or a summary of something else."""
    if path.name == "summary.json":
        try:
            return "panel" in _read(path)
        except (ValueError, TypeError, RecursionError):
            return False
    return not path.name.startswith("figure.")


def summary_of(folder: Path) -> dict[str, Any] | None:
    """Return the summary in a panel's folder; None if a file is missing or incomplete."""
    if not all((folder / name).is_file() for name in FILES):
        return None
    try:
        return _read(folder / "summary.json")
    except (ValueError, TypeError, RecursionError):
        return None


def finished(folder: Path, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the summary in a panel's folder if it has this identity, or the same with more trials."""
    summary = summary_of(folder)
    if not (summary and _is_whole(folder / "summary.json")):
        return None
    enough = {**wanted, "trials": max(wanted["trials"], summary["trials"])}
    return None if differences(summary, enough) else summary


def why_again(folder: Path, wanted: Mapping[str, Any]) -> str:
    """Describe how the stored panel differs from the wanted one; empty if nothing is stored."""
    summary = summary_of(folder)
    if summary is None:
        return f"{folder} is damaged" if folder.exists() else ""
    different = differences(summary, wanted)
    return f"{folder} was made with {', '.join(different)}" if different else f"{folder} is damaged"


def write_panel(folder: Path, summary: Mapping[str, Any], curves: Mapping[str, np.ndarray]) -> None:
    """Write a panel to a temporary folder and rename it: a killed run leaves nothing that looks complete."""
    folder = Path(os.path.realpath(folder))  # a link stays a link
    out = folder.parent
    _remove_old_leavings(out)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=out))
    try:
        aside.chmod(0o755)
        write_table(curves, aside / "curves.parquet")
        (aside / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        for path in aside.iterdir():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        check_ours(out, [folder.name])
        if folder.is_dir():
            for path in sorted(folder.iterdir(), reverse=True):  # the summary first: what has none is not trusted
                path.unlink()
            folder.rmdir()
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _remove_old_leavings(out: Path) -> None:
    """Remove temporary folders of killed runs; writing a panel never takes an hour."""
    for path in out.glob(f"{_ASIDE}*"):
        with suppress(OSError):
            old = path.is_dir() and path.stat().st_mtime < time.time() - 3_600.0
            if old and all(each.name in FILES for each in path.iterdir()):
                shutil.rmtree(path, ignore_errors=True)


def file_name(title: str) -> str:
    """Turn a title into part of a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in title)


def standings_file(out: Path, family: str) -> Path:
    """Return the file name of a family of problems of the race."""
    return out / "race" / f"standings-{file_name(family)}.json"


class Stored:
    """A results folder, for reading only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_format(self, but: Collection[Path] = ()) -> None:
        """Refuse files of another version, except files that will be written again."""
        paths = sorted([*self.folder.glob("[!.]*/summary.json"), *self.folder.glob("race/standings-*.json")])
        for path in paths:
            if path not in but and not _is_whole(path):
                raise ValueError(
                    f"{path} was not written by this version of albatross, or is damaged: "
                    f"remove {path.parent}, or choose another folder"
                )

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """The summaries by panel, in the order of the paper; panels with missing or damaged files are left out."""
        found = {path.parent.name: path for path in self.folder.glob("[!.]*/summary.json") if _is_whole(path)}
        whole = [name for name, path in found.items() if all((path.parent / each).is_file() for each in FILES)]
        ranks = {name: rank for rank, name in enumerate(_ORDER)}
        ordered = sorted(whole, key=lambda name: (ranks.get(name, len(ranks)), name))
        return {name: _read(found[name]) for name in ordered}

    @cached_property
    def standings(self) -> dict[str, list[dict[str, Any]]]:
        """The standings of the race, by family of problems."""
        with usable(self.folder / "race"):
            return {title: family["standings"] for title, family in self._families.items()}

    @cached_property
    def races(self) -> dict[str, dict[str, Any]]:
        """The problems of the standings by name: environment, policies and all final regrets."""
        with usable(self.folder / "race"):
            return {each["problem"]: each for family in self._families.values() for each in family["problems"]}

    @cached_property
    def _families(self) -> dict[str, dict[str, Any]]:
        paths = [path for path in self.folder.glob("race/standings-*.json") if _is_whole(path)]
        families = {family["family"]: family for family in map(_read, paths)}
        return dict(sorted(families.items()))

    def __contains__(self, part: str) -> bool:
        """Return whether a panel, or the race, is stored."""
        return part in self.summaries or (part == "race" and bool(self.races))

    def table(self, panel: str, sql: str = "SELECT * FROM curves") -> dict[str, np.ndarray]:
        """Return the columns of a query of a panel's table, which is called `curves`."""
        return read_table(self.folder / panel / "curves.parquet", sql, name="curves")

    def final(self, panel: str, policy: str) -> np.ndarray:
        """Return a policy's final regret in every trial."""
        return self.finals(panel, policy)[0]

    def finals(self, panel: str, *policies: str) -> list[np.ndarray]:
        """Return the final regret of each of the policies, in the trials that all of them played."""
        last = ", ".join(
            f"max_by(regret, round) FILTER (policy = '{policy}') AS last_{number}"
            for number, policy in enumerate(policies)
        )
        played = " AND ".join(f"bool_or(policy = '{policy}')" for policy in policies)
        rows = self.table(panel, f"SELECT {last} FROM curves GROUP BY trial HAVING {played} ORDER BY trial")
        return [np.asarray(rows[f"last_{number}"], dtype=float) for number in range(len(policies))]


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():  # nobody may ever write to a pipe
        raise ValueError(f"{path} is not a regular file")
    return dict(json.loads(path.read_text()))


def _is_whole(path: Path) -> bool:
    """Return whether this is a summary, or standings, of this format with all required fields."""
    kinds = _OF_SUMMARY if path.name == "summary.json" else _OF_STANDINGS
    try:
        content = _read(path)
    except (ValueError, TypeError, RecursionError):
        return False
    return content.get("format") == FORMAT and all(isinstance(content.get(key), kinds[key]) for key in kinds)
