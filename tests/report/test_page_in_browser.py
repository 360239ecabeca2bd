"""The report as a reader meets it: in a real browser, on a desktop and on a phone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from albatross.experiments import PANELS

pytestmark = pytest.mark.xdist_group("report")

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "_build" / "html" / "index.html"
PAGES = ["report", *["docs"] * DOCS.is_file()]


# Of lines with the page, and of the words of buttons with their ground, as WCAG defines it.
LEAST_CONTRAST = """(() => {
  const light = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map((each) => each / 255)
    .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, i) => sum + [0.2126, 0.7152, 0.0722][i] * each, 0);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const page = getComputedStyle(document.body).backgroundColor;
  const lines = [...document.querySelectorAll("path.js-line")]
    .filter((each) => parseFloat(getComputedStyle(each).strokeWidth) > 0);
  const buttons = [...document.querySelectorAll(".updatemenu-button")];
  return Math.min(
    ...lines.map((each) => contrast(getComputedStyle(each).stroke, page)),
    ...buttons.map((each) => contrast(
      getComputedStyle(each.querySelector("text")).fill, getComputedStyle(each.querySelector("rect")).fill)),
  );
})()"""
# Between the title of an axis and its labels, in pixels.
LEAST_DISTANCE = """Math.min(...[...document.querySelectorAll(".drawing")].map((each) => {
  const title = each.querySelector("text.ytitle");
  const labels = [...each.querySelectorAll(".ytick text")].map((label) => label.getBoundingClientRect().left);
  return title ? Math.min(...labels) - title.getBoundingClientRect().right : Infinity;
}))"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if "ALBATROSS_NEEDS_CHROMIUM" in os.environ:
            pytest.fail("no Chromium was found, and ALBATROSS_NEEDS_CHROMIUM asks for one")
        pytest.skip("no Chromium was found: the report is not opened in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def addresses(results):
    return {"report": (results / "report.html").as_uri(), "docs": DOCS.as_uri()}


@pytest.fixture(params=[(name, width) for name in PAGES for width in (1280, 390)], ids=lambda p: f"{p[0]}-{p[1]}")
def opened(request, browser, addresses):
    """A page that has loaded, with all that went wrong meanwhile."""
    name, width = request.param
    wrong = []
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda sent: wrong.append(f"failed: {sent.url}"))
    page.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else wrong.append(sent.url))
    page.goto(addresses[name], wait_until="load", timeout=120_000)  # a busy machine takes its time
    yield name, page, wrong
    page.close()


def test_nothing_fails_nothing_is_fetched_and_nothing_sticks_out(opened):
    name, page, wrong = opened
    if name == "report":
        drawings, drawn = page.locator(".drawing"), ".drawing.js-plotly-plot:has(svg.main-svg g.trace)"
        assert page.locator("section.panel").count() == len(PANELS) + 1  # and the race
        assert page.locator(f"section.panel:has({drawn})").count() == len(PANELS) + 1
        assert page.locator(drawn).count() == drawings.count()
        assert drawings.first.bounding_box()["y"] < 900  # on the first screen
        assert page.evaluate(LEAST_DISTANCE) > 4
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{LEAST_CONTRAST} >= 3", timeout=120_000)  # it draws everything again
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert wrong == []
