"""Whether a format has failed because of a value, or because the schema registry could not be asked.

The first is the record's fault and stays so; the second passes, and says nothing about the record.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from headrace.client.errors import Unreachable, lowered

_DEPTH: Final = 10  # of causes that are looked at
_OWN_CODES: Final = 10_000  # from here on, a registry's error codes are its own, and not HTTP's
_REFUSALS: Final = {  # these are about us or the moment; all else that is below 500 is about the schema
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
}


def registry_unreachable(error: BaseException, url: object = None) -> Unreachable | None:
    """Unreachable if the registry could not be asked, or would not answer just now; None if that is not it.

    `url` is what the user gave for the registry: an address, the client's settings, or a client.
    """
    if isinstance(error, Unreachable):
        return error
    causes = list(_causes(error))
    for each in causes:
        status = getattr(each, "http_status_code", None)
        if not isinstance(status, int):
            continue
        if _is_elsewhere(status, getattr(each, "error_code", None)):
            return Unreachable(f"what answers at {_address(url, causes)} is no schema registry: {status}")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _REFUSALS:
            where, said = _address(url, causes), str(getattr(each, "error_message", "") or "no reason given")
            return Unreachable(
                f"the schema registry at {where} answers {status}: {lowered(said)[:300]}{_advice(status)}"
            )
    if any(map(_is_transport, causes)):
        return Unreachable(f"no schema registry answers at {_address(url, causes)}: {_why(causes)}")
    return None


def check_asked(error: BaseException, url: object = None) -> None:
    """Raise that instead, if so."""
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


def _is_elsewhere(status: int, code: object) -> bool:
    """A path that is not there. What a registry does not have is 40401 and the like to it."""
    missing = status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
    return missing and (not isinstance(code, int) or code < _OWN_CODES)


def _is_transport(error: BaseException) -> bool:
    """All that can come between us and an answer is a TransportError of httpx, which has two names."""
    return isinstance(error, ConnectionError | TimeoutError) or any(
        kind.__name__ == "TransportError" and kind.__module__.startswith("httpx")
        for kind in type(error).__mro__
    )


def _why(causes: list[BaseException]) -> str:
    """In the words of the operating system, if it has any."""
    for each in reversed(causes):
        if isinstance(each, OSError) and each.strerror:
            return lowered(each.strerror)
    return lowered(str(causes[0])) or type(causes[0]).__name__


def _address(url: object, causes: list[BaseException]) -> str:
    """Where it should be, without a password; if nobody says, where the request went."""
    if isinstance(url, Mapping):
        url = url.get("url")
    if not isinstance(url, str):
        rest = getattr(url, "_rest_client", None)  # of confluent_kafka's client
        url = ",".join(getattr(rest, "base_urls", ())) or next(filter(None, map(_asked, causes)), "")
    return ",".join(_without_password(each.strip()) for each in url.split(",")) if url else "its address"


def _asked(error: BaseException) -> str:
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
