"""Refusals in the form of all parts of the gateway: {"error_code": 40401, "message": "a sentence"}."""

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headrace.client import errors
from headrace.client.admin.users import NoSuchUser, UserExists
from headrace.client.wire.librdkafka import TokenNeedsExtension
from headrace.protocol.codec import EncodeError
from headrace.protocol.errors import ErrorCode
from headrace.registry.refusals import Refusal as RegistryRefusal

logger = logging.getLogger(__name__)

_CODES: Final[Mapping[type[errors.ClientError], int]] = {
    errors.NoSuchTopic: 40401,
    errors.NoSuchPartition: 40402,
    errors.NoSuchGroup: 40403,
    errors.NoSuchTransactionalId: 40406,
    NoSuchUser: 40410,
    errors.TopicExists: 40901,
    errors.GroupActive: 40902,
    UserExists: 40905,
    errors.AuthenticationFailed: 40101,
    TokenNeedsExtension: 40301,
    errors.Refused: 50201,
    errors.Unreachable: 50301,
    errors.ClientError: 40002,
}
"""The error code of a client's error: the first class that matches counts."""

DENIED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
"""Errors of a user that has no ACL for what it requests."""

MISSING: Final = "headrace-missing"  # a header with what a list lacks, because a broker did not answer
MISSING_SHOWN: Final = 20  # reasons in that header
RETRY_AFTER_S: Final = 1
_RETRIABLE: Final = frozenset({429, 503})
FORM: Final = "form:"  # starts the tag of a body that may have several forms
_MESSAGES: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "string_pattern_mismatch": "has a NUL character in it, and no name has one",  # our only pattern
}
"""Messages in place of the validator's own, by the validator's error type."""


class Refusal(BaseModel):
    error_code: int
    message: str


class Problem(Exception):
    """A request that cannot be carried out: error code for programs, message for people."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def status_of(code: int) -> HTTPStatus:
    """Return the HTTP status of an error code, which begins with it: 404 of 40401 and of 404."""
    return HTTPStatus(int(str(code)[:3]))


def bad_request(message: str) -> Problem:
    """Return the Problem for a request that contradicts itself or asks for something impossible."""
    return Problem(40002, message)


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that may refuse a request with these statuses."""
    return {status: {"model": Refusal} for status in statuses}


def header_text(reasons: Iterable[str]) -> str:
    """Return reasons as the value of a header, which has only ASCII and a bounded length."""
    every = list(reasons)
    left = len(every) - MISSING_SHOWN
    shown = every[:MISSING_SHOWN] + ([f"and {left} more"] if left > 0 else [])
    return "; ".join(shown).encode("ascii", "replace").decode()


def retry_after(status: int) -> dict[str, str]:
    """Return the Retry-After header of a response, which only 429 and 503 have."""
    return {"retry-after": str(RETRY_AFTER_S)} if status in _RETRIABLE else {}


def refusal(code: int, message: str) -> JSONResponse:
    status = status_of(code)
    content = {"error_code": code, "message": printable(message)}
    return JSONResponse(content, status, headers=retry_after(status))


def printable(text: str) -> str:
    """Return the text with lone surrogates escaped, which a client may have sent and UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode()


def install(app: FastAPI) -> None:
    """Answer every exception of `app` with a refusal."""
    for kind in (
        Problem,
        errors.ClientError,
        RequestValidationError,
        EncodeError,
        HTTPException,
        ClientDisconnect,
    ):
        app.add_exception_handler(kind, _answer)
    app.add_exception_handler(Exception, _answer)


def code_of(error: Problem | RegistryRefusal | errors.ClientError) -> int:
    if isinstance(error, errors.ClientError):
        if error.error_code in DENIED:
            return 40301
        return next(code for kind, code in _CODES.items() if isinstance(error, kind))
    return error.code


async def _answer(request: Request, error: Exception) -> JSONResponse:
    match error:
        case Problem() | errors.ClientError():
            return refusal(code_of(error), str(error))
        case RequestValidationError():
            return refusal(422, "; ".join(map(_message, error.errors()[:5])))
        case EncodeError():
            # Something is too long for a field of Kafka's protocol, such as a setting of 32,768 bytes.
            return refusal(40002, str(error))
        case HTTPException():
            answer = refusal(error.status_code, _unparsed(error.__cause__) or str(error.detail))
            answer.headers.update(error.headers or {})
            return answer
        case ClientDisconnect():
            # The response is for the access log: the client that disconnected does not read it.
            return refusal(400, "the client has disconnected before the end of its request")
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(50001, f"the gateway failed: {type(error).__name__}")


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return f"the body is no JSON: {errors.lowered(error['ctx']['error'])} at character {error['loc'][-1]}"
    # The tag of a body's form is ours, and not part of the path to the field.
    path = ".".join(str(part) for part in error["loc"] if not str(part).startswith(FORM))
    return f"{path}: {_MESSAGES.get(error['type'], error['msg'])}"


def _unparsed(cause: BaseException | None) -> str | None:
    """Return why a body could not be parsed, which FastAPI's own message does not say."""
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply"
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is no JSON in UTF-8: {cause.reason} at byte {cause.start} (is it compressed?)"
    return None
