"""`albatross check-policy`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from albatross.cli.plainly import plainly, printable

_ROUNDS = 50  # that are played in plain Python as well
_LIMIT = 600.0  # seconds for them
_IN_PYTHON = """
import json, sys
from albatross.contract import Case, arms_and_scores
from albatross.cli.check_policy import built
print("\\nplayed:", json.dumps(arms_and_scores(Case(built(sys.argv[1]), None), int(sys.argv[2]))))
"""
_PLAYED = re.compile(r"^played: (\[.*\])$", re.MULTILINE)  # the file may print, too, also at its end


@click.command("check-policy")
@click.argument("policy", metavar="FILE.py[:CLASS[(PARAMETERS)]]")
@plainly
def check_policy(policy: str) -> None:
    """Check a policy of your own: it compiles, plays, learns, saves and repeats as all policies of the library do.

    Write it as my_file.py:MyPolicy(alpha=0.3). The file is run, as Python would run it. Without a class, the file must
    have one policy only. The exit code is 0 if all checks pass, and 1 if one fails.
    """
    from albatross import own_files
    from albatross.contract import Broken, case_of, checks_for, sentence

    subject = built(policy)
    name = type(subject).__name__
    failures: list[str] = []

    def run(text: str, check: Any) -> Any:
        """Run one check and print its sentence, with the reason if it fails."""
        try:
            found = check()
        except Broken as error:
            reason = str(error)
        except MemoryError:
            raise
        except Exception as error:  # a user's code may raise anything
            reason = own_files.said(error)
        else:
            click.echo(f"ok      {text}")
            return found
        failures.append(text)
        click.echo(printable(f"FAILED  {text.removesuffix('.')}: {reason}"))
        return None

    # Plain Python plays first: an index outside of an array could crash compiled code.
    played, case = run("It compiles and plays.", lambda: (_played_in_python(policy), case_of(subject))) or (None, None)
    checks = [] if case is None else checks_for(case)
    for check in checks:
        run(sentence(check), lambda check=check: check(case))
    if case is not None:
        run("Plain Python plays the same arms as compiled code.", lambda: _compare_with_python(played, case))
    if failures:
        click.echo(f"{name} breaks the contract: {len(failures)} of {2 + len(checks)} checks failed")
        sys.exit(1)
    click.echo(f"{name} keeps the contract: {2 + len(checks)} checks passed")


def built(text: str) -> Any:
    """Return the policy of a text, given the noise level of the easy problems if it asks for it."""
    from albatross.contract import HORIZON, SIGMA
    from albatross.policies.in_words import build

    return build(text, {"sigma": SIGMA, "horizon": HORIZON}, files=True)


def _played_in_python(text: str) -> subprocess.CompletedProcess[str]:
    """Play some rounds in a process without Numba, where an index outside of an array is an error: raise it."""
    from albatross.contract import Broken

    done = subprocess.run(
        # -P: a file of the current folder must not stand for a module of Python, such as json.
        [sys.executable, "-P", "-c", _IN_PYTHON, text, str(_ROUNDS)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    if _last_line(done.stderr).startswith("IndexError: "):
        raise Broken(f"in plain Python it raises {_last_line(done.stderr)}")
    return done


def _compare_with_python(played: Any, case: Any) -> None:
    """Play the same rounds in compiled code."""
    import numpy as np

    from albatross.contract import Broken, arms_and_scores

    if played.returncode:
        raise Broken(f"in plain Python it raises {_last_line(played.stderr)}")
    slow = np.array(json.loads(_PLAYED.findall(played.stdout)[-1]))
    fast = np.array(arms_and_scores(case, _ROUNDS))
    different = np.flatnonzero(slow[:, 0] != fast[:, 0])
    if different.size:
        raise Broken(f"another arm in round {different[0] + 1}: compiled code does not check indices and types")
    if not np.allclose(slow, fast, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise Broken("scores or widths differ")


def _last_line(text: str) -> str:
    """Return the error at the end of a traceback, with its place."""
    lines = [line for line in text.splitlines() if line.strip()]
    places = re.findall(r'^ *File "(.*)", line (\d+)', text, re.MULTILINE)
    where = f" ({Path(places[-1][0]).name}, line {places[-1][1]})" if places else ""
    return f"{lines[-1].strip()}{where}" if lines else "an error without a text"
