"""Sphinx configuration: `make docs` builds the pages."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

os.environ["NUMBA_DISABLE_JIT"] = "1"  # plain functions keep their signatures and docstrings, and nothing is compiled

from albatross import __version__, protocol

for verb in vars(protocol).values():
    if hasattr(verb, "registry"):
        verb.dispatch.__module__ = protocol.__name__  # or Sphinx lists every policy's function under each verb

project, author, release = "Albatross", "The Albatross authors", __version__
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
smartquotes = False  # quotes belong to values such as "random"

html_theme = "furo"
html_title = "Albatross"
html_static_path = ["static"]
html_css_files = ["albatross.css"]
html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"
pygments_style, pygments_dark_style = "tango", "github-dark"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

add_module_names = False
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 100
toc_object_entries = False


def render_inline_math(self: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, no font and no other host is needed."""
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def render_math_block(self: Any, node: Any) -> None:
    """Write a displayed formula as MathML."""
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def name_cells(app: Any, doctree: Any) -> None:
    """Put the column's name into each cell of a wide table; the style sheet shows it where columns do not fit."""
    for table in doctree.findall(nodes.table):
        head, body = table.next_node(nodes.thead), table.next_node(nodes.tbody)
        names = [] if head is None else [entry.astext() for entry in head.findall(nodes.entry)]
        if len(names) < 3:
            continue
        table["classes"].append("many-columns")
        for row in body.findall(nodes.row):
            for name, entry in list(zip(names, row.children, strict=True))[1:]:
                if name and entry.astext():
                    entry[0].insert(0, nodes.inline("", f"{name}: ", classes=["column-name"]))


# How formulas in docstrings, which are ASCII, are shown.
_GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "eps": "ε",
    "theta": "θ",
    "kappa": "κ",
    "lam": "λ",
    "mu": "μ",
    "nu": "ν",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "Lam": "Λ",
    "Sigma": "Σ",
    "Upsilon": "Υ",
}
_SIGNS = {
    r"\btheta_hat\b": "θ\u0302",
    **{rf"\b{name}(?=\b|_\w\b)": sign for name, sign in _GREEK.items()},
    r"\bsqrt(?=\()|\bsqrt (?=\w)": "√",
    r"<([^<>]{1,30}, [^<>]{1,30})>": r"⟨\1⟩",
    r"\|\|": "‖",
    "<=": "≤",
    ">=": "≥",
    r"\^-1\b": "⁻¹",
    r"\^2\b": "²",
}


def _typeset(text: str) -> str:
    """Show formulas with mathematical signs."""
    for pattern, sign in _SIGNS.items():
        text = re.sub(pattern, sign, text)
    return text


def as_plain_text(app: Any, what: str, name: str, subject: Any, options: Any, lines: list[str]) -> None:
    """Turn a plain-text docstring into reStructuredText: nothing in its prose is markup."""
    paragraphs = [part.splitlines() for part in re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))]
    shown: list[str] = []
    for paragraph in paragraphs:
        if len(paragraph) > 1 and all(line.startswith("|") for line in paragraph):
            shown += [*_table(paragraph), ""]
        elif paragraph and paragraph[0].startswith(" "):
            shown += [".. code-block:: text", "", *(f"    {_typeset(line)}" for line in paragraph), ""]
        elif paragraph and paragraph[0].startswith(">>>"):
            shown += [*paragraph, ""]
        else:
            shown += [*map(_without_markup, paragraph), ""]
    lines[:] = shown


def _table(lines: list[str]) -> list[str]:
    """A Markdown table as a reStructuredText one."""
    rows = [line.strip("|").split("|") for line in lines if not set(line) <= set("|-")]
    cells = [
        f"   {' ' if column else '*'} - {_without_markup(cell.strip())}"
        for row in rows
        for column, cell in enumerate(row)
    ]
    return [".. list-table::", "   :header-rows: 1", "", *cells]


def _without_markup(line: str) -> str:
    parts = re.split(r"`([^`]*)`", line)  # every other part is code
    parts[::2] = [re.sub(r"[*|_\\]", r"\\\g<0>", _typeset(part)) for part in parts[::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def skip_fields(app: Any, what: str, name: str, subject: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of a NamedTuple: its signature lists them."""
    return True if str(getattr(subject, "__doc__", "")).startswith("Alias for field number") else None


def without_fields(app: Any, what: str, name: str, subject: Any, *_: Any) -> tuple[str, str] | None:
    """Drop the signature of a dataclass: its parameters are listed below its name, each with its meaning."""
    return ("", "") if dataclasses.is_dataclass(subject) else None


def setup(app: Any) -> None:
    """Register the functions above."""
    app.add_html_math_renderer("mathml", (render_inline_math, None), (render_math_block, None))
    app.connect("doctree-read", name_cells)
    app.connect("autodoc-process-signature", without_fields)
    app.connect("autodoc-process-docstring", as_plain_text)
    app.connect("autodoc-skip-member", skip_fields)
