"""How Sphinx builds these pages: `make docs`."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"  # plain functions, with signature and docstring, and nothing to compile

from albatross import __version__, protocol

for verb in vars(protocol).values():
    if hasattr(verb, "registry"):
        verb.dispatch.__module__ = protocol.__name__  # or Sphinx lists the functions of all policies under each verb

project, author, release = "Albatross", "The Albatross authors", __version__
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
smartquotes = False  # "random" is a value

html_theme = "furo"
html_title = "Albatross"
html_static_path = ["static"]
html_css_files = ["albatross.css"]
html_copy_source = html_show_sourcelink = False
pygments_style, pygments_dark_style = "tango", "github-dark"

myst_heading_anchors = 3

add_module_names = False
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 100
toc_object_entries = False


def as_plain_text(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text here: formulas are shown as they stand, and no sign in prose is markup."""
    paragraphs = [part.splitlines() for part in re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))]
    shown: list[str] = []
    for paragraph in paragraphs:
        if paragraph and paragraph[0].startswith("|"):
            shown += [*_table(paragraph), ""]
        elif paragraph and paragraph[0].startswith(" "):
            shown += [".. code-block:: text", "", *(f"    {line}" for line in paragraph), ""]
        elif paragraph and paragraph[0].startswith(">>>"):
            shown += [*paragraph, ""]
        else:
            shown += [*map(_without_markup, paragraph), ""]
    lines[:] = shown


def _table(lines: list[str]) -> list[str]:
    """A table in Markdown as one that reStructuredText knows."""
    rows = [line.strip("|").split("|") for line in lines if not set(line) <= set("|-")]
    cells = [
        f"   {' ' if column else '*'} - {_without_markup(cell.strip())}"
        for row in rows
        for column, cell in enumerate(row)
    ]
    return [".. list-table::", "   :header-rows: 1", "", *cells]


def _without_markup(line: str) -> str:
    return re.sub(r"`([^`]*)`|([*|_\\])", lambda found: f"``{found[1]}``" if found[1] else f"\\{found[2]}", line)


def skip_fields(app: Any, what: str, name: str, subject: Any, skip: bool, options: Any) -> bool | None:
    """Fields of a NamedTuple are in its signature already."""
    return True if str(getattr(subject, "__doc__", "")).startswith("Alias for field number") else None


def without_fields(app: Any, what: str, name: str, subject: Any, *_: Any) -> tuple[str, str] | None:
    """Parameters of a dataclass stand with what they mean, below its name."""
    return ("", "") if dataclasses.is_dataclass(subject) else None


def setup(app: Any) -> None:
    """Connect the three above."""
    app.connect("autodoc-process-signature", without_fields)
    app.connect("autodoc-process-docstring", as_plain_text)
    app.connect("autodoc-skip-member", skip_fields)
