"""Draw the pictures of the README and the docs.

`python docs/pictures/draw.py` runs the tutorial's code and draws tutorial.png. With a folder of results,
`python docs/pictures/draw.py results`, it also draws panels.png from panels (a) to (f) of `albatross reproduce` and
race.png from `albatross race`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from PIL import Image, ImageDraw, ImageFont

from albatross.report.figures import race, style
from albatross.store.results import Stored

_HERE = Path(__file__).parent
_ROWS = ("ab", "cf", "de")
_WIDTH = 1_800
_MARGIN = 34  # above a panel, for its letter
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#777777")


# ------------------------------------------------------------------------------------------------------ the tutorial


def tutorial_runs() -> dict[str, Any]:
    """Run the tutorial's code up to its first simulation and return the runs by policy."""
    page = (_HERE.parent / "tutorial.md").read_text()
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # the tutorial saves an agent
        for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
            exec(compile(block, "tutorial.md", "exec"), namespace)
            if "runs" in namespace:
                break
    return namespace["runs"]


def draw_tutorial(path: Path) -> None:
    """Draw mean regret over rounds, one line per policy, labelled at its end."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for (name, run), colour in zip(tutorial_runs().items(), _COLOURS, strict=True):
        regret = run.regret.mean(axis=0)
        axes.plot(run.rounds, regret, color=colour, linewidth=2)
        axes.annotate(
            f"{name}, {regret[-1]:,.0f}",
            (run.rounds[-1], regret[-1]),
            xytext=(6, {"LinTS": 4, "greedy": -8}.get(name, 0)),  # labels must not overlap
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=11,
        )
    axes.set(xlabel="round", ylabel="cumulative regret", yscale="log", xlim=(1, run.rounds[-1]), ylim=(10, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.savefig(path, dpi=200)


# ------------------------------------------------------------------------------------------------ folders of results


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
    """Panels side by side, equally high, that fill the width of the picture."""
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


def draw_panels(results: Path, path: Path) -> None:
    """Put panels (a) to (f) into one picture."""
    rows = [row(results, panels) for panels in _ROWS]
    whole = Image.new("RGB", (_WIDTH, sum(each.height for each in rows)), "white")
    top = 0
    for each in rows:
        whole.paste(each, (0, top))
        top += each.height
    whole.save(path, optimize=True)


def draw_race(results: Path, path: Path) -> None:
    """Draw the first family of problems alone: side by side, all are too small to read on a page."""
    title, lines = next(iter(Stored(results).standings.items()))
    style.save(lambda: race.draw({title: lines}), path)


if __name__ == "__main__":
    draw_tutorial(_HERE / "tutorial.png")
    if len(sys.argv) > 1:
        draw_panels(Path(sys.argv[1]), _HERE / "panels.png")
        draw_race(Path(sys.argv[1]), _HERE / "race.png")
