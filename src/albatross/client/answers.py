"""What comes of a call: an answer, another try, or an error."""

from __future__ import annotations

import random
import time
from typing import Any, TypeVar

import httpx
import msgspec

from albatross.client.calls import Call
from albatross.service.problems import MEDIA_TYPE, ProblemBody

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0  # seconds; the longest possible pause doubles from one to the other
_BUSY = (429, 503)
# The service has not seen the request, so that even what must not be done twice may be sent again.
_UNSEEN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class ServiceError(Exception):
    """The service did not do what was asked."""


class Unavailable(ServiceError):
    """The service could not be reached, or was too busy, for longer than the client's patience."""


class Refused(ServiceError):
    """The service refused a request, and changed nothing."""

    def __init__(self, problem: ProblemBody) -> None:
        place = f" (at {problem.at})" if problem.at else ""
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}{place}")
        self.status, self.detail, self.at = problem.status, problem.detail, problem.at


class NotAllowed(Refused):
    """The key is missing, wrong or revoked, or may not do this."""


class NotFound(Refused):
    """There is no such model, arm, user or decision, or it was deleted."""


_REFUSALS: dict[int, type[Refused]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 410: NotFound}


class Tries:
    """How often, and after which pauses, a call is repeated: full jitter, so that clients do not come back together."""

    def __init__(self, call: Call[Any], patience: float) -> None:
        self._call, self._until, self._longest = call, time.monotonic() + patience, _FIRST_PAUSE

    def pause(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Return the seconds to wait before the next try, or None if this was the last one."""
        asked = 0.0
        if isinstance(outcome, httpx.Response):
            again = outcome.status_code in _BUSY and (self._call.repeatable or outcome.status_code == 429)
            after = outcome.headers.get("Retry-After", "")
            asked = float(after) if after.isdigit() else 0.0
        else:
            again = self._call.repeatable or isinstance(outcome, _UNSEEN)
        pause = asked + random.uniform(0.0, self._longest)
        self._longest = min(2.0 * self._longest, _LONGEST_PAUSE)
        return pause if again and time.monotonic() + pause < self._until else None


def result(call: Call[T], outcome: httpx.Response | httpx.TransportError) -> T:
    """Return the answer, or raise what happened instead."""
    if isinstance(outcome, httpx.TransportError):
        raise Unavailable(f"no answer: {str(outcome) or type(outcome).__name__}") from outcome
    check(outcome)
    return call.read(outcome.content)


def check(response: httpx.Response) -> None:
    if response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
        problem = msgspec.json.decode(response.content, type=ProblemBody)
    elif response.status_code >= 500 or not response.headers.get("Content-Type"):  # of a proxy
        problem = ProblemBody(response.reason_phrase, response.status_code)
    else:
        return
    if problem.status >= 500 or problem.status in _BUSY:
        raise Unavailable(f"{problem.status} {problem.title}: {problem.detail}")
    raise _REFUSALS.get(problem.status, Refused)(problem)
