"""A service per test, on a folder of its own."""

from __future__ import annotations

import pytest
from serving_tests import Served

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture
def served(tmp_path):
    service = Served(tmp_path)
    yield service
    service.close()
