"""Who may do what: keys with scopes, models, an expiry and a rate. Only their hashes are stored."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from albatross import checks
from albatross.checks import shown
from albatross.service.problems import Problem
from albatross.service.store import KeyRow, Store

SCOPES = ("decide", "reward", "read", "export", "import", "erase", "admin")
RATE = 1_000.0  # requests a second, unless the key has another
_PREFIX = "alb_"


def new_key(
    name: str, scopes: list[str], models: list[str] | None, expires: int | None, rate: float
) -> tuple[str, KeyRow]:
    """Return a new key, which is shown once, and the row that is stored."""
    if not (name.strip() and name.isprintable()):
        raise ValueError(f"the name of a key must be a printable text, not {shown(name)}")
    checks.positive("rate", rate)
    for scope in scopes:
        if scope not in SCOPES:
            raise ValueError(f"there is no scope {scope!r}: the scopes are {', '.join(SCOPES)}")
    if not scopes:
        raise ValueError(f"a key needs scopes, of {', '.join(SCOPES)}")
    text = _PREFIX + secrets.token_urlsafe(32)  # 256 bits
    return text, KeyRow(name, digest(text), scopes, models, expires, rate, False)


def digest(key: str) -> bytes:
    """Return what is stored of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


class Bucket:
    """Requests of a key: as many as its rate at once, refilled as time goes."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._left, self._at = max(rate, 1.0), clock()

    def take(self, n: int = 1) -> float:
        """Take n; return the seconds to wait if there are not enough."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * self._rate, max(self._rate, 1.0))
        self._at = now
        if self._left < min(n, max(self._rate, 1.0)):
            return (n - self._left) / self._rate
        self._left -= n
        return 0.0


class Keys:
    """The keys of a store, read again when somebody has changed them."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._known: dict[bytes, KeyRow] = {}
        self._buckets: dict[bytes, Bucket] = {}
        self._read_at = -1e9

    def check(self, header: str, scope: str, model: str | None) -> None:
        """Refuse a request whose key is wrong, or may not do this, or does it too often."""
        if self._clock() - self._read_at > 1.0:
            self.read()
        given = digest(_given(header))
        # Every key is compared, so that the time says nothing about which one was nearly right.
        found = None
        for known, row in self._known.items():
            if hmac.compare_digest(known, given):
                found = row
        if found is None or found.revoked or (found.expires is not None and found.expires <= time.time()):
            raise Problem(401, "the key is missing, wrong, revoked or expired: send Authorization: Bearer KEY")
        if scope not in found.scopes and "admin" not in found.scopes:
            raise Problem(403, f"this key may not do this: it needs the scope {scope}")
        if model is not None and found.models is not None and model not in found.models:
            raise Problem(403, "this key is for other models")
        wait = self._buckets.setdefault(given, Bucket(found.rate, self._clock)).take()
        if wait:
            raise Problem(429, f"this key may send {found.rate:g} requests a second", retry_after=max(1, round(wait)))

    def may(self, header: str, model: str | None) -> bool:
        """Return whether a key that was checked is for a model, None for all, without counting the request."""
        row = self._known.get(digest(_given(header)))
        return row is not None and (row.models is None or model in row.models)

    def read(self) -> None:
        """Read the keys again."""
        rows = {row.digest: row for row in self._store.all_keys()}
        self._buckets = {key: each for key, each in self._buckets.items() if rows.get(key) == self._known.get(key)}
        self._known, self._read_at = rows, self._clock()


def _given(header: str) -> str:
    """Return the key of an Authorization header: a bearer, or the password that a browser asks for."""
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
