"""Test the oldest and the newest versions of all that Albatross stands on: `make compat`.

The oldest are those that pyproject.toml allows, on the oldest Python; the newest are what pip takes on the newest
Python that is found here. Each has a virtual environment of its own in a temporary folder, and runs a short part of the
tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OLDEST_PYTHON = PROJECT["requires-python"].removeprefix(">=")
NEWER_PYTHONS = ("3.15", "3.14", "3.13", "3.12")  # that Numba supports, the newest first
SHOWN = ("numpy", "scipy", "numba", "threadpoolctl")

# Golden cases, the contract of a few policies of each kind, agents, fleets, simulations, and what the extra is for.
TESTS = (
    *("test_confidence.py", "policies/test_ucb.py", "policies/test_oful_plus.py", "policies/test_alb_norm.py"),
    *("test_contract.py", "test_agent.py", "test_fleet.py", "test_flock.py", "test_simulation.py", "models"),
    *("datasets", "report/test_page.py", "race/test_compare.py", "cli/test_commands.py"),
)
CHOSEN = "not test_contract or [albatross] or [lints] or [ball-oful] or [corral]"


def find_python(version: str) -> str | None:
    """A Python of this version that can make virtual environments."""
    path = shutil.which(f"python{version}")
    works = path and subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0
    return path if works else None


def oldest_versions() -> list[str]:
    """What pyproject.toml allows at least, as constraints."""
    return [each.replace(">=", "==") for each in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["lab"]]


def passes(python: str, constraints: list[str]) -> bool:
    """Whether the tests pass on this Python under these constraints."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory(prefix="albatross-compat-") as folder:
        pinned, inside = Path(folder) / "constraints.txt", Path(folder) / "venv" / "bin" / "python"
        pinned.write_text("\n".join(constraints))
        subprocess.run([python, "-m", "venv", inside.parent.parent], check=True)
        wanted = [f"{ROOT}[lab]", "pytest", "pytest-xdist", "hypothesis"]
        subprocess.run([inside, "-m", "pip", "install", "--quiet", "-c", pinned, *wanted], check=True)
        print("installed", _installed(inside), flush=True)
        command = [inside, "-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
        command += ["-p", "no:cacheprovider", "-k", CHOSEN]
        # Old and new libraries deprecate one another, which is not for us to mend.
        command += ["-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"]
        command += [f"tests/{name}" for name in TESTS]
        environment["XDG_CACHE_HOME"] = folder
        return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def _installed(python: Path) -> str:
    listed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    versions = dict(re.findall(r"^(\S+)\s+(\S+)", listed, flags=re.MULTILINE))
    return ", ".join(f"{name} {versions[name]}" for name in SHOWN)


def main() -> None:
    """Run both, and say which passed."""
    outcomes = {}
    newest = next((version for version in NEWER_PYTHONS if find_python(version)), None)
    if newest != NEWER_PYTHONS[0]:
        print(f"python{NEWER_PYTHONS[0]}, the newest that Numba supports, was not found: newest here is {newest}")
    for label, version, constraints in (("oldest", OLDEST_PYTHON, oldest_versions()), ("newest", newest, [])):
        python = find_python(version) if version else None
        if python is None:
            print(f"{label} versions are left out: python{version or ' newer than ' + OLDEST_PYTHON} was not found")
            continue
        print(f"{label} versions on python{version}", flush=True)
        outcomes[f"{label} on python{version}"] = passes(python, constraints)
    for name, passed in outcomes.items():
        print(f"{name}: {'passed' if passed else 'FAILED'}")
    sys.exit(not (outcomes and all(outcomes.values())))


if __name__ == "__main__":
    main()
