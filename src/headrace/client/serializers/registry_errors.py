"""Errors of the schema registry, as opposed to errors of a value.

An invalid value stays invalid. A registry that does not answer may answer later, and the record may be valid.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from headrace.client.errors import Unreachable, lowered

_DEPTH: Final = 10  # of causes
_OWN_CODES: Final = 10_000  # from here on, error codes are the registry's own, not HTTP's
_REFUSALS: Final = {  # about the client or the moment; other statuses below 500 are about the schema
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
}


def registry_unreachable(error: BaseException, url: object = None) -> Unreachable | None:
    """Return Unreachable if the registry did not answer, or refused for now; None for other errors.

    `url` is the user's registry: an address, the client's settings, or a client.
    """
    if isinstance(error, Unreachable):
        return error
    causes = list(_causes(error))
    for each in causes:
        status = getattr(each, "http_status_code", None)
        if not isinstance(status, int):
            continue
        if _is_no_registry(status, getattr(each, "error_code", None)):
            return Unreachable(f"the server at {_address(url, causes)} is not a schema registry: {status}")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _REFUSALS:
            where, said = _address(url, causes), str(getattr(each, "error_message", "") or "no reason given")
            return Unreachable(
                f"the schema registry at {where} answers {status}: {lowered(said)[:300]}{_advice(status)}"
            )
    if any(map(_is_transport, causes)):
        return Unreachable(f"no schema registry answers at {_address(url, causes)}: {_why(causes)}")
    return None


def raise_if_unreachable(error: BaseException, url: object = None) -> None:
    """Raise Unreachable if the failure came from the registry."""
    unreachable = registry_unreachable(error, url)
    if unreachable is not None:
        raise unreachable from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    for _ in range(_DEPTH):
        yield error
        cause = error.__cause__ or error.__context__
        if cause is None:
            return
        error = cause


def _is_no_registry(status: int, code: object) -> bool:
    """Whether the path does not exist. A registry answers 40401 and the like for a missing subject."""
    missing = status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
    return missing and (not isinstance(code, int) or code < _OWN_CODES)


def _is_transport(error: BaseException) -> bool:
    """Whether it is a failure of the connection: a TransportError of httpx, which has two module names."""
    return isinstance(error, ConnectionError | TimeoutError) or any(
        kind.__name__ == "TransportError" and kind.__module__.startswith("httpx")
        for kind in type(error).__mro__
    )


def _why(causes: list[BaseException]) -> str:
    """Return the message of the operating system, if there is one."""
    for each in reversed(causes):
        if isinstance(each, OSError) and each.strerror:
            return lowered(each.strerror)
    return lowered(str(causes[0])) or type(causes[0]).__name__


def _address(url: object, causes: list[BaseException]) -> str:
    """Return the registry's address without a password, or the address of the failed request."""
    if isinstance(url, Mapping):
        url = url.get("url")
    if not isinstance(url, str):
        rest = getattr(url, "_rest_client", None)  # of confluent_kafka's client
        url = ",".join(getattr(rest, "base_urls", ())) or next(filter(None, map(_requested, causes)), "")
    return ",".join(_without_password(each.strip()) for each in url.split(",")) if url else "its address"


def _requested(error: BaseException) -> str:
    request = getattr(error, "_request", None)
    if request is None:
        return ""
    parts = urlsplit(str(request.url))
    return f"{parts.scheme}://{parts.netloc}"


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _advice(status: int) -> str:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return " (give registry={'url': ..., 'basic.auth.user.info': 'NAME:PASSWORD'})"
    return ""
