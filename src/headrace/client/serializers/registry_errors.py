"""Errors of the schema registry, as opposed to errors of a value.

An invalid value stays invalid. A registry that does not answer may answer later, and the record may be valid.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from headrace.client.errors import Unreachable, lowered

_DEPTH: Final = 10  # of causes
_OWN_CODES: Final = 10_000  # from here on, error codes are the registry's own, not HTTP's
_NO_PATH: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
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
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < _DEPTH:
        causes.append(cause)
    for cause in causes:
        status, code = getattr(cause, "http_status_code", None), getattr(cause, "error_code", None)
        if not isinstance(status, int):
            continue
        # A registry answers 40401 and the like for a missing subject.
        if status in _NO_PATH and (not isinstance(code, int) or code < _OWN_CODES):
            return Unreachable(f"the server at {_address(url, causes)} is not a schema registry: {status}")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _REFUSALS:
            said = lowered(str(getattr(cause, "error_message", "") or "no reason given"))[:300]
            if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
                said += " (give registry={'url': ..., 'basic.auth.user.info': 'NAME:PASSWORD'})"
            return Unreachable(f"the schema registry at {_address(url, causes)} answers {status}: {said}")
    if not any(map(_is_transport, causes)):
        return None
    system = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    why = lowered(system[-1] if system else str(causes[0])) or type(causes[0]).__name__
    return Unreachable(f"no schema registry answers at {_address(url, causes)}: {why}")


def raise_if_unreachable(error: BaseException, url: object = None) -> None:
    """Raise Unreachable if the failure came from the registry."""
    unreachable = registry_unreachable(error, url)
    if unreachable is not None:
        raise unreachable from error


def _is_transport(error: BaseException) -> bool:
    """Whether it is a failure of the connection: a TransportError of httpx, which has two module names."""
    return isinstance(error, ConnectionError | TimeoutError) or any(
        kind.__name__ == "TransportError" and kind.__module__.startswith("httpx")
        for kind in type(error).__mro__
    )


def _address(url: object, causes: list[BaseException]) -> str:
    """Return the registry's address without a password, or the address of the failed request."""
    if isinstance(url, Mapping):
        url = url.get("url")
    if not isinstance(url, str):
        rest = getattr(url, "_rest_client", None)  # of confluent_kafka's client
        requests = [cause._request for cause in causes if getattr(cause, "_request", None)]  # type: ignore[attr-defined]  # noqa: SLF001
        url = ",".join(getattr(rest, "base_urls", ())) or (
            str(requests[0].url.join("/")).rstrip("/") if requests else ""
        )
    bare = []
    for address in filter(None, url.split(",")):
        parts = urlsplit(address.strip())
        bare.append(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    return ",".join(bare) or "its address"
