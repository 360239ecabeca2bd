"""The README's pictures, from a folder of results: `python docs/pictures/draw.py results`.

Panels (a) to (f) are those of `albatross reproduce`, the race is that of `albatross race`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont

_ROWS = ("ab", "cf", "de")
_WIDTH = 1_800
_MARGIN = 34  # above a panel, for its letter


def lettered(results: Path, panel: str, height: int) -> Image.Image:
    """A panel's figure at this height, below its letter."""
    with Image.open(results / panel / "figure.png") as figure:
        small = figure.convert("RGB").resize((round(figure.width * height / figure.height), height), Image.LANCZOS)
    picture = Image.new("RGB", (small.width, height + _MARGIN), "white")
    picture.paste(small, (0, _MARGIN))
    font = ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans-Bold.ttf", 24)
    ImageDraw.Draw(picture).text((4, 4), f"({panel})", fill="black", font=font)
    return picture


def row(results: Path, panels: str) -> Image.Image:
    """Panels side by side, equally high and together as wide as the picture."""
    widths = []
    for panel in panels:
        with Image.open(results / panel / "figure.png") as figure:
            widths.append(figure.width / figure.height)
    parts = [lettered(results, panel, int(_WIDTH / sum(widths))) for panel in panels]
    picture = Image.new("RGB", (_WIDTH, parts[0].height), "white")
    left = 0
    for part in parts:
        picture.paste(part, (left, 0))
        left += part.width
    return picture


def main(results: Path) -> None:
    """Write panels.png and race.png beside this file."""
    here = Path(__file__).parent
    rows = [row(results, panels) for panels in _ROWS]
    whole = Image.new("RGB", (_WIDTH, sum(each.height for each in rows)), "white")
    top = 0
    for each in rows:
        whole.paste(each, (0, top))
        top += each.height
    whole.save(here / "panels.png", optimize=True)
    shutil.copy(results / "race" / "figure.png", here / "race.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
