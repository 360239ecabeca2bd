"""Names of users, arms and requests as callers give them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, ValidationError

# No control characters, no halves of pairs. `$` alone would also match before a line feed at the end.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+$(?!\n)"
_DURATION = r"^[0-9]{1,9}(ms|s|m|h|d)$"
FOREVER = "forever"
_DURATION_OR_FOREVER = rf"^([0-9]{{1,9}}(ms|s|m|h|d)|{FOREVER})$"
_IN_WORDS = {  # what a text must be that does not match
    _PRINTABLE: "a name must have no control characters",
    _DURATION: "a duration is a whole number with a unit, such as 90s, 30m, 24h or 7d",
    _DURATION_OR_FOREVER: f"a whole number with a unit, such as 90d, or {FOREVER!r}",
}
MOST_BYTES = 256

UserName = Annotated[str, Meta(min_length=1, max_length=MOST_BYTES, pattern=_PRINTABLE)]
ArmName = Annotated[str, Meta(min_length=1, max_length=MOST_BYTES, pattern=_PRINTABLE)]
RequestId = Annotated[str, Meta(min_length=1, max_length=128, pattern=_PRINTABLE)]
Duration = Annotated[str, Meta(pattern=_DURATION)]
DurationOrForever = Annotated[str, Meta(pattern=_DURATION_OR_FOREVER)]


def in_words(error: ValidationError) -> str:
    """Return what is wrong with a request or a file, without regular expressions.

    >>> in_words(ValidationError(f"Expected `str` matching regex {_DURATION!r} - at `$.rewards.wait`"))
    'a duration is a whole number with a unit, such as 90s, 30m, 24h or 7d - at `$.rewards.wait`'
    """
    text = str(error)
    for pattern, words in _IN_WORDS.items():
        text = text.replace(f"Expected `str` matching regex {pattern!r}", words)
    return text


def is_short(name: str) -> bool:
    """Return whether a name has at most 256 bytes, as well as characters."""
    return len(name.encode()) <= MOST_BYTES
