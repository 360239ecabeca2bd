"""One report for all tests that only look at it: its figures take half a minute to draw."""

from __future__ import annotations

import pytest
import small_results

from albatross.report import page


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """A results folder with its report. Tests only read it."""
    folder = tmp_path_factory.mktemp("results")
    small_results.write_all(folder)
    page.write_report(folder)
    return folder
