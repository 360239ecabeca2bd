"""The sources that a module depends on, found without importing it."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import processes
import pytest

import albatross
from albatross.closure import closure

ROOT = Path(albatross.__file__).parent
FILES = {
    ".".join(["albatross", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def names(module):
    return {path.relative_to(ROOT).as_posix() for path in closure(module)}


def test_a_module_depends_on_itself_and_on_what_its_imports_import():
    found = names("albatross.policies.arms.alb_norm")
    assert {"policies/arms/alb_norm.py", "policies/arms/oful_plus.py", "protocol.py", "compiling.py"} <= found
    assert not {path for path in found if path.startswith(("environments/", "policies/ball/"))}


def test_a_name_that_a_package_passes_on_leads_to_its_file_and_not_to_the_package(tmp_path):
    digest = in_a_copy(
        tmp_path, "from albatross.policies import (\n    UCB,  # one of many\n    LinTS as Thompson,\n)\n"
    )
    assert "policies/arms/ucb.py" in digest.files
    assert "policies/arms/lints.py" in digest.files
    assert "policies/__init__.py" not in digest.files
    assert "policies/arms/alb_norm.py" not in digest.files


@pytest.mark.parametrize("use", ["", "kinds = vars(policies)", "policies.UCB; print(policies)"])
def test_a_package_taken_as_a_whole_is_all_that_it_passes_on(tmp_path, use):
    found = in_a_copy(tmp_path, f"from albatross import policies\n{use}\n").files
    assert {"policies/__init__.py", "policies/arms/ucb.py", "policies/ball/alb_dim.py"} <= found


def test_of_a_package_only_the_names_that_are_used_count(tmp_path):
    found = in_a_copy(tmp_path, "from albatross import policies as rivals\nrivals.UCB(); rivals.LinTS()\n").files
    assert {"policies/arms/ucb.py", "policies/arms/lints.py"} <= found
    assert not {"policies/__init__.py", "policies/arms/alb_norm.py"} & found


def test_a_lazily_loaded_name_of_the_library_leads_to_its_file(tmp_path):
    digest = in_a_copy(tmp_path, "def late():\n    from albatross import simulate\n")
    assert "simulation.py" in digest.files
    assert "__init__.py" not in digest.files


class in_a_copy:
    """What a module with this text, in a copy of the package, depends on."""

    def __init__(self, folder, text):
        copy = folder / "albatross"
        if not copy.exists():
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "data"))
        (copy / "new.py").write_text(text)
        script = (
            "from albatross.closure import closure, digest; from pathlib import Path;"
            f"print(digest('albatross.new'), *(path.relative_to({str(copy)!r}) for path in closure('albatross.new')))"
        )
        done = processes.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(folder)})
        self.value, *files = done.stdout.split()
        self.files = {Path(file).as_posix() for file in files}


def test_the_digest_changes_with_a_source_in_the_closure_and_with_no_other(tmp_path):
    text = "from albatross.policies import UCB\n"
    before = in_a_copy(tmp_path, text).value
    with open(tmp_path / "albatross" / "environments" / "mixture.py", "a") as file:
        file.write("# elsewhere\n")
    assert in_a_copy(tmp_path, text).value == before
    with open(tmp_path / "albatross" / "picking.py", "a") as file:
        file.write("# here\n")
    assert in_a_copy(tmp_path, text).value != before


@pytest.mark.parametrize("module", FILES)
def test_no_import_of_the_package_is_missed(module):
    path, found = FILES[module], names(module)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, which is not followed"
            modules = [f"{node.module}.{each.name}" for each in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        else:
            continue
        for name in modules:
            file = ROOT.parent.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("albatross.") and file.is_file():
                assert file.relative_to(ROOT).as_posix() in found
