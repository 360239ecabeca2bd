"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write in its place, renamed at the end: a full disk or a killed run leaves the old one or none."""
    aside = path.with_name(f".{path.name}")
    try:
        yield aside
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """A text."""
    with whole(path) as aside:
        aside.write_text(text, encoding="utf-8")
