"""The service is killed ten times under load; `make crash` kills it a hundred times."""

from __future__ import annotations

import asyncio

from crashing import crash


def test_a_killed_service_keeps_what_it_acknowledged_and_does_nothing_twice(tmp_path):
    counted = asyncio.run(crash(tmp_path, kills=10, seed=1))
    assert counted["decisions acknowledged"] > 100
    assert min(counted[status] for status in ("learnt", "duplicate", "conflict", "waits", "late", "inactive")) > 0
    assert counted["populations"] > 0
    assert counted["snapshots compared"] > 0
