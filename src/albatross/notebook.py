"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any


def html_table(caption: str, rows: Sequence[Sequence[Any]]) -> str:
    """Return a table with a caption; the first row is the header.

    >>> html_table("arms", [("arm", "pulls"), ("<sport>", 3)])
    '<table><caption>arms</caption><tr><th>arm</th><th>pulls</th></tr><tr><td>&lt;sport&gt;</td><td>3</td></tr></table>'
    """
    cells = [
        "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)
        for row, tag in zip(rows, ["th"] + ["td"] * (len(rows) - 1), strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
