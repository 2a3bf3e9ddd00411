"""Refusals, as every part of the gateway words them: {"error_code": 40401, "message": "a sentence"}."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headrace.client.errors import (
    ClientError,
    GroupActive,
    NoSuchGroup,
    NoSuchTopic,
    Refused,
    TopicExists,
    Unreachable,
    lowered,
)
from headrace.protocol.codec import EncodeError

logger = logging.getLogger(__name__)

_CODES: Final[Sequence[tuple[type[ClientError], HTTPStatus, int]]] = (
    (NoSuchTopic, HTTPStatus.NOT_FOUND, 40401),
    (NoSuchGroup, HTTPStatus.NOT_FOUND, 40403),
    (TopicExists, HTTPStatus.CONFLICT, 40901),
    (GroupActive, HTTPStatus.CONFLICT, 40902),
    (Refused, HTTPStatus.BAD_GATEWAY, 50201),
    (Unreachable, HTTPStatus.SERVICE_UNAVAILABLE, 50301),
    (ClientError, HTTPStatus.BAD_REQUEST, 40002),
)
"""The first that fits."""


RETRY_AFTER_S: Final = 1
_PASSING: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
FORM: Final = "form:"  # begins the tag of a body that may have several forms
_WORDS: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "string_pattern_mismatch": "has a NUL character in it, and no name has one",  # our only pattern
}
"""What people are told instead of the validator's own words."""


class Refusal(BaseModel):
    """What a request that is not carried out is answered with."""

    error_code: int
    message: str


class Problem(Exception):
    """A request that cannot be carried out: its status, a number for machines, a sentence for people."""

    def __init__(self, status: HTTPStatus, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def answers(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: it may refuse with these."""
    return {int(status): {"model": Refusal} for status in statuses}


def retry_after(status: int) -> dict[str, str]:
    """The headers of a refusal that says when to try again: 429 and 503 have such."""
    return {"retry-after": str(RETRY_AFTER_S)} if status in _PASSING else {}


def refusal(status: int, code: int, message: str) -> JSONResponse:
    # Half a surrogate pair, which may be in what somebody has sent, has no bytes in UTF-8.
    printable = message.encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error_code": code, "message": printable}, status, headers=retry_after(status))


def install(app: FastAPI) -> None:
    """Have every error of `app` answered in the one form."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(ClientError, _client_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(EncodeError, _unencodable)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def code_of(error: ClientError) -> tuple[HTTPStatus, int]:
    """The status and the number for an error of a client's."""
    return next((status, code) for kind, status, code in _CODES if isinstance(error, kind))


@contextmanager
def naming_a_new_one() -> Iterator[None]:
    """A topic that there cannot be is nothing that was not found, for whoever wants to make it."""
    try:
        yield
    except NoSuchTopic as error:
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, str(error)) from None


async def _problem(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return refusal(error.status, error.code, str(error))


async def _client_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ClientError)
    return refusal(*code_of(error), str(error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    said = "; ".join(map(_said, error.errors()[:5]))
    return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, 422, said)


def _said(each: Mapping[str, Any]) -> str:
    if each["type"] == "json_invalid":
        return f"the body is no JSON: {lowered(each['ctx']['error'])} at character {each['loc'][-1]}"
    return f"{_where(each['loc'])}: {_WORDS.get(each['type'], each['msg'])}"


def _where(location: Sequence[str | int]) -> str:
    """`body.records.0.value`, as people write it; which of our forms a body has is not for them."""
    return ".".join(str(each) for each in location if not str(each).startswith(FORM))


async def _unencodable(_request: Request, error: Exception) -> JSONResponse:
    """What is too long for a field of Kafka's protocol, such as a setting of more than 32,767 bytes."""
    return refusal(HTTPStatus.BAD_REQUEST, 40002, str(error))


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = _unread(error.__cause__) or str(error.detail)
    answer = refusal(error.status_code, error.status_code, said)
    answer.headers.update(error.headers or {})
    return answer


def _unread(cause: BaseException | None) -> str | None:
    """Why a body could not be parsed: whoever has tried says only that."""
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply"
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is no JSON in UTF-8: {cause.reason} at byte {cause.start} (is it compressed?)"
    return None


async def _gone(_request: Request, _error: Exception) -> JSONResponse:
    """For our log: whoever has left in the middle of a request does not read it."""
    return refusal(HTTPStatus.BAD_REQUEST, 400, "the client has gone before its request was whole")


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, 50001, f"the gateway failed: {type(error).__name__}")
