"""Figures for print, drawn from stored tables."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import small_results
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from albatross.report.figures import panels, style
from albatross.store.results import Stored


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    small_results.write_panel(folder, "f")
    small_results.write_race(folder)
    panels.write_figures(Stored(folder))
    return folder


@pytest.fixture
def folder(drawn, tmp_path):
    """A copy to change."""
    return shutil.copytree(drawn, tmp_path / "results")


def stamps(folder):
    return {path.parent.name + path.suffix: path.stat().st_mtime_ns for path in folder.glob("*/figure.*")}


def test_a_panel_and_the_race_have_a_png_and_a_pdf(folder):
    assert set(stamps(folder)) == {"f.png", "f.pdf", "race.png", "race.pdf"}
    with Image.open(folder / "f" / "figure.png") as picture:
        assert picture.width > 800
    assert (folder / "race" / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_table_gives_the_same_files(folder, tmp_path_factory):
    again = tmp_path_factory.mktemp("again")
    shutil.copytree(folder / "f", again / "f", ignore=shutil.ignore_patterns("figure.*"))
    panels.write_figures(Stored(again))
    for name in ("figure.png", "figure.pdf"):
        assert (again / "f" / name).read_bytes() == (folder / "f" / name).read_bytes()


def test_missed_coordinates_are_drawn_on_a_scale_of_their_own(folder):
    _, missed, false = panels.plots(Stored(folder), "f")
    highest = [max(max(trace["y"]) for trace in plot.data) for plot in (missed, false)]
    assert highest[0] <= 20 < highest[1]  # of 20 that matter, and of hundreds that do not


def test_a_policy_far_above_the_others_is_on_the_scale_of_its_plot(results):
    content = panels._content(Stored(results), "b")
    regret = np.where(content.rows["policy"] == "ucb", 20.0 * content.rows["regret"], content.rows["regret"])
    far = content._replace(rows={**content.rows, "regret": regret})
    for axes in style.styled(lambda: panels.DRAWINGS["b"].draw(far)).axes:
        assert axes.get_ylim()[1] > max(line.get_ydata()[-1] for line in axes.lines)


@pytest.mark.parametrize("panel", [*panels.DRAWINGS])
def test_no_title_legend_or_text_runs_out_of_its_figure(results, panel):
    content = panels._content(Stored(results), panel)
    if panel == "nested":  # the longest title
        models = [[20, dim] for dim in 7 * [5] + 2 * [10] + [20]]
        content = content._replace(
            policies={name: {**each, "models": models} for name, each in content.policies.items()}
        )

    def laid_out():
        figure = panels.DRAWINGS[panel].draw(content)
        FigureCanvasAgg(figure).draw()
        return figure

    figure = style.styled(laid_out)
    shown = [each for axes in figure.axes for each in (axes.title, axes._left_title, axes.xaxis.label, *axes.texts)]
    shown += [legend for place in (figure, *figure.axes) for legend in place.findobj(Legend)]
    for each in shown:
        box = each.get_window_extent()
        assert box.width == 0 or (box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1)


def test_figures_that_are_up_to_date_are_not_drawn_again(folder):
    before = stamps(folder)
    panels.write_figures(Stored(folder))
    assert stamps(folder) == before


@pytest.mark.parametrize("change", ["table", "drawing", "lost"])
def test_a_figure_is_drawn_again_where_its_table_or_its_drawing_changed(folder, monkeypatch, change):
    before = stamps(folder)
    if change == "table":
        small_results.change_table(folder, "f", "SELECT * REPLACE (missed + 1 AS missed) FROM curves")
    if change == "drawing":
        monkeypatch.setattr(panels, "digest", lambda module: "other" if module.endswith("ball") else "0")
    if change == "lost":
        (folder / "f" / "figure.pdf").unlink()
    panels.write_figures(Stored(folder))
    after = stamps(folder)
    assert after["f.png"] != before["f.png"]
    assert "f.pdf" in after
    assert (after["race.png"] == before["race.png"]) == (change != "drawing")


def test_a_panel_that_nobody_draws_is_named(folder):
    shutil.copytree(folder / "f", folder / "new")
    with pytest.raises(ValueError, match="there is no drawing of panel 'new'"):
        panels.write_figures(Stored(folder))


@pytest.mark.parametrize("limits", [(0.75, 1.2), (0.3, 1.6), (0.02, 3.0), (1.0, 1e6)])
def test_a_log_axis_has_numbers_whatever_its_range(limits):
    axes = Figure().subplots()
    axes.set_xscale("log")
    axes.set_xlim(limits)
    style.plain_log_ticks(axes.xaxis)
    assert sum(limits[0] <= tick <= limits[1] for tick in axes.get_xticks()) >= 2
