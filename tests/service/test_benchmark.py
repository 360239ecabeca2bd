"""The yardstick of the benchmark: the HTTP server on an engine without a log and without a policy."""

from __future__ import annotations

import asyncio
import base64

import httpx
import numpy as np

from albatross.service.http import Service
from albatross.service.keys import new_key
from albatross.service.sqlite import SQLiteStore
from service import ARMS, MODEL, D, K, NoEngine


def test_the_yardstick_answers_what_the_load_asks(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.toml").write_text(MODEL.format(policy="flock", arms=str(ARMS).replace("'", '"'), d=D))
    store = SQLiteStore(tmp_path / "log.db", create=True)
    key, row = new_key("bench", ["admin"], None, None, 1e9)
    store.add_key(row)
    store.close()

    async def ask():
        engine = NoEngine(tmp_path)
        options = {"base_url": "http://service", "headers": {"Authorization": f"Bearer {key}"}}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=Service(engine)), **options) as client:
            features = base64.b64encode(np.zeros((K, D), "<f4").tobytes()).decode()
            body = {"user": "u", "arms": ARMS, "features_b64": features}
            ranked = await client.post("/v1/models/m/rank", json=body)
            decision = ranked.json()["decisions"][0]["id"]
            rewarded = await client.post(f"/v1/decisions/{decision}/reward", json={"value": 1.0})
        engine.store.close()
        return ranked.status_code, rewarded.status_code, rewarded.json()["status"]

    assert asyncio.run(ask()) == (200, 200, "learnt")
