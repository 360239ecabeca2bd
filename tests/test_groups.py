"""How tests are handed out to workers."""

from __future__ import annotations

import pytest


def test_workers_get_groups_of_tests(request):
    """pytest-xdist finds a group at the end of a test's name. Where pytest does not let it, groups are ignored."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not handed out in groups here")
    assert request.node.nodeid.endswith("@tests/test_groups.py")
