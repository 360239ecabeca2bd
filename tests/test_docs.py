"""What the documents say works."""

from __future__ import annotations

import dataclasses
import doctest
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import processes
import pytest
from sphinx.pycode import ModuleAnalyzer

from albatross import datasets, environments
from albatross.cli.commands import albatross
from albatross.errors import missing_extra
from albatross.experiments import PANELS, results
from albatross.policies import CATALOGUE
from albatross.protocol import Choice, init, resolve, update
from albatross.report.claims.engine import HOLDS, judge
from albatross.report.figures import panels as figures
from albatross.store.results import Stored

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
SERVICE_PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "service").glob("*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def blocks(path):
    """The language and the text of every fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / path).read_text(), flags=re.DOTALL | re.MULTILINE)


def texts(path, language):
    return [text for kind, text in blocks(path) if kind == language]


# ------------------------------------------------------------------------------------------------- Python blocks


@pytest.mark.parametrize("block", texts("README.md", "python"))
def test_every_python_block_of_the_readme_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})


def shape(printed):
    """What was printed without its numbers and spaces: numbers may differ in the last digits between machines."""
    return re.sub(r"\s+", "", re.sub(r"-?\d[\d.,]*(e[+-]\d+)?", "#", printed))


@pytest.mark.parametrize("page", [page for page in PAGES if texts(page, "python")])
def test_the_python_blocks_of_a_page_run_in_order_and_print_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for kind, text in blocks(page):
        if kind == "python":
            capsys.readouterr()
            exec(compile(text, page, "exec"), namespace)
        elif kind == "text":
            assert shape(capsys.readouterr().out) == shape(text)


@pytest.fixture
def skeletons(monkeypatch):
    """A module made of the skeletons in CONTRIBUTING.md, as if they were copied into files."""
    module = ModuleType("skeletons")
    monkeypatch.setitem(sys.modules, "skeletons", module)
    for text in texts("CONTRIBUTING.md", "python"):
        exec(compile(text, "CONTRIBUTING.md", "exec"), vars(module))
    return module


def test_the_examples_in_the_skeletons_print_what_they_say(skeletons):
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder()
    for name in ("DiscountedUCB", "Seasons"):
        for example in finder.find(getattr(skeletons, name), name, module=skeletons):
            runner.run(example)
    assert (runner.failures, runner.tries) == (0, 7)


def test_the_policy_of_the_skeletons_learns_plays_at_once_as_one_by_one(skeletons):
    policy = resolve(skeletons.DiscountedUCB(discount=0.5), 2, 1, None)
    at_once, one_by_one = (init(policy, 2, 1, np.random.default_rng(0)) for _ in range(2))
    for arm, reward, n in ((0, 0.3, 1), (1, 0.7, 3), (0, -0.2, 2)):
        choice = Choice(arm, np.zeros(1), 0.0, 0.0, 1.0, np.empty(0))
        update(policy, at_once, choice, n * reward, n)
        for _ in range(n):
            update(policy, one_by_one, choice, reward, 1)
    for found, wanted in zip(at_once, one_by_one, strict=True):
        assert found == pytest.approx(wanted)


def test_the_panel_and_the_claim_of_the_skeletons_are_stored_drawn_and_judged(skeletons, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "DRAWINGS", skeletons.DRAWINGS)
    # In place of modules that have no file:
    monkeypatch.setattr(skeletons.draw_print, "__module__", "albatross.report.figures.drawing")
    panel = skeletons.PANELS["plain"]._replace(module="albatross.experiments.panel")
    results.run(panel, trials=2, seed=0, out=tmp_path)
    stored = Stored(tmp_path)
    figures.write_figures(stored)
    assert (tmp_path / "plain" / "figure.png").exists()
    assert [plot.title for plot in figures.plots(stored, "plain")] == ["Cumulative regret"]
    assert judge(skeletons.CLAIMS[0], stored).verdict == HOLDS


def test_a_policy_of_ones_own_takes_no_more_than_26_lines():
    example = texts("docs/own-policy.md", "python")[0]
    assert "@update.register" in example
    assert len([line for line in example.splitlines() if line.strip()]) <= 26


def test_the_news_recommender_takes_no_more_than_40_lines():
    (example,) = texts("docs/recommender.md", "python")
    assert "retire_arm" in example
    assert len([line for line in example.splitlines() if line.strip()]) <= 40


# -------------------------------------------------------------------------------------------------- shell blocks


def commands(path):
    for text in texts(path, "bash"):
        if "curl " in text:  # tests/service/test_docs_of_service.py makes these calls
            continue
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


SHELL = [(page, words) for page in ["README.md", "CONTRIBUTING.md", *PAGES, *SERVICE_PAGES] for words in commands(page)]


@pytest.mark.parametrize(("page", "words"), SHELL, ids=[f"{page}: {' '.join(words)}" for page, words in SHELL])
def test_every_command_in_the_documents_exists_with_its_options(page, words):
    program, *arguments = words
    assert program in ("albatross", "make", "pip")
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    if program == "albatross":
        command: click.Command = albatross
        while isinstance(command, click.Group):
            command, *arguments = command.commands[arguments[0]], *arguments[1:]
        _, left, _ = command.make_parser(click.Context(command)).parse_args(arguments)
        assert left == []


WANT_AN_EXTRA = {"python": r"\balbatross\.datasets\b", "bash": r"^albatross\b"}  # of what a snippet may need


@pytest.mark.parametrize("page", ["README.md", *PAGES, *SERVICE_PAGES])
def test_a_snippet_that_needs_an_extra_says_so(page):
    needing = [
        text
        for kind, text in blocks(page)
        if kind in WANT_AN_EXTRA and re.search(WANT_AN_EXTRA[kind], text, flags=re.MULTILINE)
    ]
    extra = "service" if page in SERVICE_PAGES else "(lab|service)"
    assert [text for text in needing if not re.search(rf"# needs pip install '\.\[{extra}\]'", text)] == []


@pytest.mark.parametrize(
    ("library", "extra"),
    [("click", "lab"), ("duckdb", "lab"), ("starlette", "service"), ("uvicorn.config", "service"), (None, "lab")],
)
def test_the_extra_of_a_missing_library_is_named(library, extra):
    assert f"run pip install '.[{extra}]' in your clone" in missing_extra(library)


def test_the_libraries_of_the_service_are_named_as_its_own():
    names = {re.match(r"[a-z-]+", each)[0] for each in PROJECT["optional-dependencies"]["service"]}
    others = {re.match(r"[a-z-]+", each)[0] for each in PROJECT["optional-dependencies"]["lab"]}
    assert [each for each in names - others if "[service]" not in missing_extra(each.replace("-", "_"))] == []


@pytest.mark.parametrize("library", ["duckdb", "sklearn"])
def test_a_reader_without_the_extra_says_how_to_get_it(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # importing it fails, as where it is not installed
    monkeypatch.delitem(sys.modules, f"{library}.datasets", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"run pip install '\.\[lab\]' in your clone of Albatross"):
        {"duckdb": datasets.open_bandit, "sklearn": datasets.yandex}[library]()


# -------------------------------------------------------------------------------------------------- completeness


def sections(path):
    """The text under every heading of the second level, by heading."""
    parts = re.split(r"^## (.+)\n", (ROOT / path).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("page", ["docs/choosing.md", "docs/reference/policies.md"])
def test_every_policy_is_on_the_page(page):
    text = (ROOT / page).read_text()
    names = {entry.policy.__name__ for entry in CATALOGUE.values()}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", text)] == []


SETTINGS = [entry.policy for entry in CATALOGUE.values()]
SETTINGS += [getattr(environments, name) for name in environments.__all__ if name[0].isupper()]


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_documented_where_it_stands(kind):
    said = set()
    for each in kind.__mro__[:-1]:  # a keyword may stand in the class that it derives from
        documented = ModuleAnalyzer.for_module(each.__module__).find_attr_docs()
        said |= {name for owner, name in documented if owner == each.__name__}
    assert [field.name for field in dataclasses.fields(kind) if field.name not in said] == []


def test_every_command_and_option_is_documented():
    described = {heading.split()[1]: text for heading, text in sections("docs/commands.md").items()}
    assert set(described) == set(albatross.commands)
    for name, command in albatross.commands.items():
        parts = [command]
        if isinstance(command, click.Group):
            parts = list(command.commands.values())
            assert [part.name for part in parts if f"`{part.name}`" not in described[name]] == []
        params = [param for part in parts for param in part.params if isinstance(param, click.Option)]
        options = [option for param in params for option in param.opts if option != "--help"]
        assert [option for option in options if f"| `{option}` |" not in described[name]] == []


def test_every_panel_is_documented():
    text = sections("docs/commands.md")["albatross reproduce [PANEL]..."]
    assert [name for name in PANELS if f"`{name}`" not in text] == []


def test_every_dependency_has_its_sentence():
    wanted = PROJECT["dependencies"] + [name for extra in PROJECT["optional-dependencies"].values() for name in extra]
    names = {re.match(r"[a-z-]+", name)[0] for name in wanted} - {"albatross"}
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in sorted(names) if name not in table] == []


def test_the_oldest_versions_in_the_documents_are_those_of_the_project():
    oldest = dict(each.split(">=") for each in PROJECT["dependencies"])
    table = (ROOT / "docs" / "tutorial.md").read_text()
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f"| Python | {python} |" in table
    assert [name for name, version in oldest.items() if f"| {name} | {version} |" not in table] == []
    said = (ROOT / "README.md").read_text().lower()
    wanted = {"python": python, **oldest}
    del wanted["threadpoolctl"]
    assert [name for name, version in wanted.items() if f"{name} {version} to" not in said] == []


def test_the_citation_is_of_this_version():
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


# ---------------------------------------------------------------------------------------------------------- pages


def test_the_pages_build_without_a_warning_and_ask_nothing_of_other_hosts(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", tmp_path / "doctrees"]
    done = processes.run([*command, ROOT / "docs", tmp_path / "html"])
    assert (done.returncode, done.stderr) == (0, "")
    built = list((tmp_path / "html").rglob("*.html"))
    assert len(built) > len(PAGES) + len(SERVICE_PAGES)
    remote = re.compile(r"""<(?:script|img|iframe)[^>]*src="(?:https?:)?//|<link[^>]*href="(?:https?:)?//""")
    assert [path.name for path in built if remote.search(path.read_text())] == []
    styles = (tmp_path / "html").rglob("*.css")
    assert [path.name for path in styles if re.search(r"url\([\"']?(?:https?:)?//", path.read_text())] == []
