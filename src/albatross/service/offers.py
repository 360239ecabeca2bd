"""From a request to an offer: which arms are eligible, and their features as numbers."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from albatross.features import Features
from albatross.service.problems import invalid
from albatross.service.settings import LARGEST
from albatross.service.wire import RankRequest, check_name, escaped

Offered = tuple[list[str], np.ndarray]  # eligible arms, and their features (n, d)


def offered(request: RankRequest, features: Features, known: Mapping[str, dict[str, Any]] | None) -> Offered:
    """Return the eligible arms of a request with their features.

    `known` are the active arms with registered ones, None if arms pass.
    """
    known = _passing(request) if known is None else known
    excluded = set(request.exclude)
    for arm in excluded - known.keys():
        raise invalid(f"there is no active arm {arm!r}", at="/exclude")
    named = list(known) if request.arms is None else list(request.arms)
    if len(set(named)) < len(named):
        raise invalid("arms lists an arm twice", at="/arms")
    for arm in named:
        if arm not in known:
            raise invalid(f"there is no active arm {arm!r}", at="/arms")
    arms = [arm for arm in named if arm not in excluded]
    if not arms:
        raise invalid("no arm is eligible", at="/arms")
    if request.features_b64 is not None:
        if not isinstance(request.arms, list) or request.context:
            raise invalid("features_b64 needs arms as a list of names, and no context", at="/features_b64")
        rows = from_base64(request.features_b64, len(named), features.dim)
        if excluded:
            rows = rows[[place for place, arm in enumerate(named) if arm not in excluded]]
        return arms, rows
    given = request.arms if isinstance(request.arms, dict) else {}
    records = {f"/arms/{escaped(arm)}": {**known[arm], **given.get(arm, {})} for arm in arms}
    return arms, encoded(features, request.context, records)


def _passing(request: RankRequest) -> dict[str, dict[str, Any]]:
    """Return the arms that a request brings; nothing is registered for them."""
    if request.arms is None or (isinstance(request.arms, list) and request.features_b64 is None):
        raise invalid("the arms of this model pass: every rank must bring arms with their features", at="/arms")
    for arm in request.arms:
        check_name(arm, "an arm's name", at="/arms")
    return {arm: {} for arm in request.arms}


def encoded(features: Features, context: dict[str, Any], records: Mapping[str, dict[str, Any]]) -> np.ndarray:
    """Return features (n, d), rounded to float32: the policy sees exactly what the log holds.

    Records are named by their places in the request, for whoever must find what is wrong there.
    """
    try:
        return rounded(features.encode(context, list(records.values())))
    except ValueError as error:
        raise invalid(str(error), at=_wrong_place(features, context, records)) from None


def _wrong_place(features: Features, context: dict[str, Any], records: Mapping[str, dict[str, Any]]) -> str:
    """Return where the situation or a record is wrong by itself."""
    schema = Features.from_dict(features.to_dict())  # one that counts nothing as missing
    for place, situation, record in (("/context", context, {}), *((at, {}, each) for at, each in records.items())):
        try:
            rounded(schema.encode(situation, [record]))
        except ValueError:
            return place
    return ""


def from_base64(text: str, n: int, dim: int) -> np.ndarray:
    """Return features (n, d) that the caller encoded."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:  # also for letters that are not ASCII
        raise invalid(f"features_b64 is not base64: {error}", at="/features_b64") from None
    if len(data) != 4 * n * dim:
        wanted = f"{n} arms of {dim} numbers of 4 bytes"
        raise invalid(f"features_b64 has {len(data)} bytes, but {wanted} are {4 * n * dim}", at="/features_b64")
    try:
        return rounded(np.frombuffer(data, "<f4").reshape(n, dim))
    except ValueError as error:
        raise invalid(str(error), at="/features_b64") from None


def rounded(rows: np.ndarray) -> np.ndarray:
    """Return numbers of float32 as float64, without -0.0; refuse what is not finite, or too large: a ValueError."""
    if not max(-rows.min(initial=0.0), rows.max(initial=0.0)) <= LARGEST:  # also if one is NaN
        raise ValueError(f"features must be finite and at most {LARGEST:g} in size")
    return rows.astype(np.float32, copy=False).astype(float) + 0.0
