"""What the service refuses, as RFC 9457 says it: `application/problem+json`."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType

MEDIA_TYPE = "application/problem+json"


class PersonalizerError(msgspec.Struct):
    """A problem as clients of Personalizer read it."""

    code: str
    message: str


class ProblemBody(msgspec.Struct, omit_defaults=True, rename={"kind": "type"}):
    """The body of an answer that refuses."""

    title: str
    status: int
    kind: str = "about:blank"
    detail: str = ""
    at: str = ""  #: JSON pointer to the place in the request
    error: PersonalizerError | UnsetType = UNSET  #: the same once more, on the routes of Personalizer


class Problem(Exception):
    """A request that is refused, with the sentence that the caller reads. Nothing has changed."""

    def __init__(
        self, status: int, detail: str, *, at: str = "", retry_after: int | None = None, allow: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.at, self.retry_after, self.allow = status, detail, at, retry_after, allow

    @property
    def body(self) -> ProblemBody:
        """Return the body of the answer."""
        return ProblemBody(HTTPStatus(self.status).phrase, self.status, detail=self.detail, at=self.at)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of the answer."""
        found = [(b"content-type", MEDIA_TYPE.encode())]
        if self.retry_after is not None:
            found.append((b"retry-after", str(self.retry_after).encode()))
        if self.allow is not None:
            found.append((b"allow", self.allow.encode()))
        if self.status == HTTPStatus.UNAUTHORIZED:
            # A line each: browsers do not find the second scheme of one line, and would not ask for the key.
            found.append((b"www-authenticate", b"Bearer"))
            found.append((b"www-authenticate", b'Basic realm="albatross", charset="UTF-8"'))
        return found


def as_personalizer(problem: Problem) -> tuple[int, ProblemBody]:
    """Return status and body of a problem as Personalizer has them: what does not fit is a bad request."""
    code = {404: "ResourceNotFound", 400: "BadRequest", 409: "BadRequest", 422: "BadRequest"}.get(problem.status)
    code = code or (
        "InternalServerError" if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else str(problem.status)
    )
    shown = (
        problem if problem.status != HTTPStatus.UNPROCESSABLE_ENTITY else Problem(400, problem.detail, at=problem.at)
    )
    return shown.status, msgspec.structs.replace(shown.body, error=PersonalizerError(code, problem.detail))


def unavailable(detail: str) -> Problem:
    """Return the problem of a service that cannot answer now."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after=1)


def invalid(detail: str, *, at: str = "") -> Problem:
    """Return the problem of a request that does not fit the model."""
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, at=at)


def absent(detail: str) -> Problem:
    """Return the problem of a thing that is not there."""
    return Problem(HTTPStatus.NOT_FOUND, detail)
