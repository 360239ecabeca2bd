"""Names of users, arms and requests as callers give them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

# No control characters, no halves of pairs. `$` alone would also match before a line feed at the end.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+$(?!\n)"
MOST_BYTES = 256

UserName = Annotated[str, Meta(min_length=1, max_length=MOST_BYTES, pattern=_PRINTABLE)]
ArmName = Annotated[str, Meta(min_length=1, max_length=MOST_BYTES, pattern=_PRINTABLE)]
RequestId = Annotated[str, Meta(min_length=1, max_length=128, pattern=_PRINTABLE)]


def is_short(name: str) -> bool:
    """Return whether a name has at most 256 bytes, as well as characters."""
    return len(name.encode()) <= MOST_BYTES
