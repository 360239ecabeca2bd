"""The report: complete, offline, and the same for the same results."""

from __future__ import annotations

import dataclasses
import html
import json
from html.parser import HTMLParser

import plotly.graph_objects as plotly
import pytest
import small_results

from albatross.report import claims, page
from albatross.report.claims.engine import OURS, PAPERS, judge
from albatross.report.figures import panels, race
from albatross.store import files
from albatross.store.identity import FORMAT
from albatross.store.results import Damaged, Stored

pytestmark = pytest.mark.xdist_group("report")


class Links(HTMLParser):
    """Everything that a browser might fetch or jump to, and what can be jumped to."""

    def __init__(self, text):
        super().__init__()
        self.found, self.ids, self.panels = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.found += [given[key] for key in ("src", "href") if key in given]
        self.ids += [given["id"]] if "id" in given else []
        self.panels += [given["id"]] if tag == "section" and given.get("class") == "panel" else []


def rendered(folder):
    """The page, without drawing figures for print."""
    return page.render(Stored(folder))


def test_every_panel_and_the_race_have_a_section_in_the_papers_order(results):
    wanted = [
        *"abcde",
        "e-literal",
        *"fgh",
        "simple",
        "nested",
        "users",
        "flock",
        "drift",
        "scaling",
        "news",
        "theorems",
        "race",
    ]
    assert Links((results / "report.html").read_text()).panels == wanted


def test_only_panels_that_are_there_have_a_section(tmp_path):
    small_results.write_panel(tmp_path, "f")
    assert Links(rendered(tmp_path)).panels == ["f"]


def test_everything_linked_is_on_the_page_or_beside_it(results):
    links = Links((results / "report.html").read_text())
    assert "a/figure.png" in links.found
    assert "race/figure.pdf" in links.found
    assert len(links.ids) == len(set(links.ids))
    for link in links.found:
        if link.startswith("#"):
            assert link[1:] in links.ids
        else:
            assert link == "data:," or (results / link).is_file()


def test_every_verdict_is_on_the_page(results):
    text = (results / "report.html").read_text()
    assert "2.4</b>" in text  # OFUL+ / ALB-Norm of panel (a)
    for verdict in ("holds", "holds with a stated change", "does not hold"):
        assert f">{verdict}</span>" in text
    assert ">1 not run</summary>" in text  # about data that nobody may ship


def test_every_claim_stands_once_on_the_page_and_ours_stand_apart(results):
    text = (results / "report.html").read_text()
    section = {PAPERS: text.index('id="claims"'), OURS: text.index('id="questions"')}
    for claim in claims.CLAIMS:
        assert text.count(f'id="claim-{claim.id}"') == 1
        assert html.unescape(text).count(claim.statement) == 1, claim.id
        place = text.index(f'id="claim-{claim.id}"')
        assert (place > section[OURS]) == (claim.whose == OURS)


def test_figures_come_before_claims_and_what_was_not_run_is_folded(tmp_path):
    small_results.write_panel(tmp_path, "a")
    text = rendered(tmp_path)
    assert text.index('class="drawing"') < text.index('id="claims"')
    folded = text[text.index("not run</summary>") :]
    assert 'id="claim-gap"' in folded
    assert 'id="claim-drop"' not in folded


def test_a_claim_names_the_panels_it_was_judged_on_and_those_that_were_not_run(tmp_path):
    small_results.write_panel(tmp_path, "a")
    small_results.write_panel(tmp_path, "b")
    text = " ".join(rendered(tmp_path).split())
    assert 'on <a href="#a">a</a>, <a href="#b">b</a>; not run: users</div>' in text


def test_the_same_results_give_the_same_page_whatever_the_time_they_took(results, tmp_path):
    small_results.write_all(tmp_path)
    path = tmp_path / "a" / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "elapsed_s": 1234.5}))
    assert rendered(tmp_path) == (results / "report.html").read_text()


def test_the_page_of_all_trials_stays_small(tmp_path):
    small_results.write_all(tmp_path, trials=25)
    assert len(rendered(tmp_path).encode()) < 12e6


@pytest.mark.parametrize("panel", [*small_results.TABLES])
def test_plotly_knows_every_property_of_every_figure(results, panel):
    figures = panels.plots(Stored(results), panel)
    assert figures
    for figure in figures:
        plotly.Figure(data=figure.data, layout=figure.layout)


def test_the_axis_of_the_race_has_labels_as_far_as_the_intervals_go():
    line = {
        "name": "ucb",
        "ratios": {"5 of 50": 1.0, "all of 200": 158.0},
        "mean": 12.6,
        "worst_interval": [118.0, 1369.0],
    }
    assert race.plot([line]).layout["xaxis"]["ticktext"] == ["1", "10", "100", "1k"]


def test_plotly_knows_every_property_of_the_race(results):
    for lines in Stored(results).standings.values():
        figure = race.plot(lines)
        plotly.Figure(data=figure.data, layout=figure.layout)
        assert figure.data[-2]["y"][0] == lines[0]["name"]  # the best is drawn last, on top


def test_curves_are_thinned_but_end_where_they_end(results):
    figure = panels.plots(Stored(results), "a")[0]
    line = next(trace for trace in figure.data if trace["name"] == "ALB-Norm" and "fill" not in trace)
    assert len(line["x"]) < 200
    assert line["x"][-1] == 12_775


def test_what_results_say_is_escaped(tmp_path):
    small_results.write_race(tmp_path)
    path = tmp_path / "race" / "standings-the-unit-ball.json"
    path.write_text(path.read_text().replace("5 of 50", "</script><script>alert(1)</script>"))
    text = rendered(tmp_path)
    assert "<script>alert" not in text
    assert "\\u003cscript\\u003ealert" in text  # in a figure
    assert "&lt;script&gt;alert" in text  # in the table


def test_few_trials_and_mixed_seeds_are_said(tmp_path):
    small_results.write_panel(tmp_path, "a", trials=25)
    assert "Fewer than 5 trials" not in rendered(tmp_path)
    small_results.write_panel(tmp_path, "b", trials=2, seed=7)
    text = rendered(tmp_path)
    assert "Fewer than 5 trials were run of b:" in text
    assert "Not everything here was made with the same seed" in text


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there are no results in"):
        page.write_report(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{", "3", "[]", '{"panel": "f", "trials": 4}', '{"format": 0}', f'{{"format": {FORMAT}, "policies": []}}'],
)
@pytest.mark.parametrize("name", ["f/summary.json", "race/standings-the-unit-ball.json"])
def test_results_that_are_damaged_or_of_another_version_are_named(tmp_path, name, text):
    small_results.write_panel(tmp_path, "f")
    small_results.write_race(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name} was not written by this version of albatross, or is damaged"):
        page.write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def set_in(path, keys, value):
    """Change one entry of a JSON file."""
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "keys", "value"),
    [
        ("a/summary.json", ("settings",), {}),
        ("a/summary.json", ("policies", "alb-norm", "policy"), "nobody's"),
        ("a/summary.json", ("policies", "alb-norm"), []),
        ("a/summary.json", ("policies", "alb-norm", "final_mean"), 10**400),
        ("race/standings-the-unit-ball.json", ("standings", 0), 1),
        ("race/standings-the-unit-ball.json", ("standings", 0, "ratios"), {"5 of 50": {}}),
        ("race/standings-the-unit-ball.json", ("standings", 0, "worst_interval"), [None, 2.0]),
        ("race/standings-the-unit-ball.json", ("problems", 0), {}),
    ],
)
def test_valid_json_with_other_contents_is_said_to_be_changed(tmp_path, name, keys, value):
    small_results.write_panel(tmp_path, "a")
    small_results.write_race(tmp_path)
    set_in(tmp_path / name, keys, value)
    with pytest.raises(Damaged, match=f"{tmp_path / name.partition('/')[0]} was changed, or is of another version"):
        page.write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("sql", ["SELECT * FROM curves LIMIT 0", "SELECT * REPLACE (NULL AS trial) FROM curves"])
@pytest.mark.parametrize("panel", ["a", "f"])
def test_a_table_with_other_contents_is_said_to_be_changed(tmp_path, panel, sql):
    small_results.write_panel(tmp_path, panel)
    small_results.change_table(tmp_path, panel, sql)
    with pytest.raises(Damaged, match=f"{tmp_path / panel} was changed, or is of another version"):
        page.write_report(tmp_path)


def test_a_claim_that_cannot_be_judged_names_its_panels(tmp_path):
    small_results.write_panel(tmp_path, "f")
    claim = claims.CLAIMS[0]
    broken = dataclasses.replace(claim, measure=lambda stored: [][0], panels=("f", "a"))
    with pytest.raises(Damaged, match=rf"^{tmp_path / 'f'} was changed, or is of another version \(IndexError"):
        judge(broken, Stored(tmp_path))


def test_the_race_on_the_page_is_the_one_of_the_standings(tmp_path):
    # Another race on a problem of the same name, as `albatross race` leaves it beside the quick one.
    small_results.write_race(tmp_path)
    before = Stored(tmp_path).races
    other = {**before["5 of 50"], "regret": {"alb-norm": [1.0], "ucb": [1.0]}}
    (tmp_path / "race" / "zzz-5-of-50.json").write_text(json.dumps(other))
    assert Stored(tmp_path).races == before


def test_theorems_are_drawn_with_their_slope(results):
    figure = panels.plots(Stored(results), "scaling")[0]
    (line,) = (trace for trace in figure.data if trace["name"].startswith("Theorem"))
    assert line["name"] == "Theorem 1, shape only: 0.50"
    assert line["line"]["dash"] == "dot"
    assert any(trace["name"].endswith(": 0.40") for trace in figure.data)  # ALB-Norm's own slope


def test_a_disk_that_fills_up_leaves_the_old_page(tmp_path, monkeypatch):
    small_results.write_panel(tmp_path, "f")
    before = page.write_report(tmp_path).read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        page.write_report(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "report.html"]
