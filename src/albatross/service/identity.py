"""Who is who: digests of users, and ids of decisions that cannot be guessed."""

from __future__ import annotations

import hmac
from hashlib import blake2b
from typing import NamedTuple

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_CHECK_BYTES, _CHECK_LETTERS = 5, 8


class DecisionId(NamedTuple):
    """Shard and sequence number of a decision."""

    shard: int
    seq: int


class Identity:
    """Names for users and decisions, made with the secret of the service.

    >>> identity = Identity(b"secret" * 6)
    >>> text = identity.decision(DecisionId(0, 4711))
    >>> text, identity.parse(text), identity.parse(text[:-1] + "0")
    ('00-4k7-6bj46j39', DecisionId(shard=0, seq=4711), None)
    """

    def __init__(self, secret: bytes) -> None:
        self._users = blake2b(b"users", key=secret, digest_size=32).digest()
        self._decisions = blake2b(b"decisions", key=secret, digest_size=32).digest()
        self._models = blake2b(b"models", key=secret, digest_size=32).digest()

    def user(self, model: int, user: str) -> bytes:
        """Return the digest of a user of a model. Names as given are never stored."""
        return blake2b(f"{model}:{user}".encode(), key=self._users, digest_size=16).digest()

    def request(self, model: int, request: str) -> bytes:
        """Return the digest of a request id."""
        return blake2b(f"{model}:request:{request}".encode(), key=self._users, digest_size=16).digest()

    def seed(self, model: int) -> int:
        """Return the seed of a model's random numbers."""
        return int.from_bytes(blake2b(f"{model}".encode(), key=self._models, digest_size=8).digest(), "little")

    def decision(self, made: DecisionId) -> str:
        """Return the id of a decision as callers see it."""
        return f"{made.shard:02x}-{_base32(made.seq)}-{self._check(made)}"

    def parse(self, text: str) -> DecisionId | None:
        """Return the decision of an id, or None if this service never gave it out."""
        parts = text.split("-")
        if len(text) > 32 or len(parts) != 3 or not set(text) <= _ALLOWED:
            return None
        try:
            found = DecisionId(int(parts[0], 16), _from_base32(parts[1]))
        except ValueError:
            return None
        canonical = self.decision(found)
        return found if hmac.compare_digest(canonical, text) else None

    def _check(self, made: DecisionId) -> str:
        digest = blake2b(f"{made.shard}:{made.seq}".encode(), key=self._decisions, digest_size=_CHECK_BYTES).digest()
        return _base32(int.from_bytes(digest, "big")).rjust(_CHECK_LETTERS, "0")


_ALLOWED = {*_LETTERS, "-"}


def _base32(number: int) -> str:
    letters = ""
    while True:
        number, last = divmod(number, 32)
        letters = _LETTERS[last] + letters
        if not number:
            return letters


def _from_base32(text: str) -> int:
    if not text:
        raise ValueError("empty")
    number = 0
    for letter in text:
        number = 32 * number + _LETTERS.index(letter)
    return number
