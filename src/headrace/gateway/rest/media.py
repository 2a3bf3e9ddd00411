"""Media types of the REST proxy, v2.

`application/vnd.kafka.json.v2+json` is JSON with records whose keys and values are JSON. With `binary` in its
place keys and values are base64; with `avro`, `jsonschema` or `protobuf` they are encoded by a schema.
"""

import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from headrace.client.serializers.codecs.plain_json import write_json
from headrace.gateway.problems import Problem, answers

V2: Final = "application/vnd.kafka.v2+json"
PLAIN: Final = "application/json"
FORMATS: Final = ("binary", "json", "avro", "jsonschema", "protobuf")
PLAIN_TOO: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {PLAIN: {}}}}
"""For a route's `responses`: a client may also accept the response as plain JSON."""
_EMBEDDED: Final = re.compile(r"application/vnd\.kafka\.([a-z]+)\.v2\+json")
_ZERO: Final = re.compile(r"\s*q=0(\.0*)?\s*")
_ANY_V2: Final = frozenset({V2, "application/vnd.kafka+json"})
_ANYTHING: Final = frozenset({"*/*", "application/*"})


def v2_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that may refuse a request with these statuses, in plain JSON."""
    return {status: each | {"content": {PLAIN: {}}} for status, each in answers(*statuses).items()}


def json_answer(value: Any, status: int = 200, media_type: str = PLAIN) -> Response:
    """Return a JSON response that may contain anything that is in records."""
    return Response(write_json(value), status, media_type=media_type)


class V2JSON(JSONResponse):
    """JSON with the media type of the REST proxy, v2, and with whatever is in records."""

    media_type = V2

    def render(self, content: Any) -> bytes:
        return write_json(content)


class V2Route(APIRoute):
    """A route whose response has the media type that the client accepts; 406 if it accepts none."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_v2(request: Request) -> Response:
            media_type = answer_type(request.headers.get("accept"))
            response = await handle(request)
            if isinstance(response, V2JSON):
                response.headers["content-type"] = media_type
            return response

        return handle_in_v2


def of_format(name: str) -> str:
    return f"application/vnd.kafka.{name}.v2+json"


def embedded_format(request: Request) -> str:
    """Return the format of the keys and values in a body; raise a Problem (415) if it is not known."""
    given = _content_type(request)
    match = _EMBEDDED.fullmatch(given)
    if match is None or match[1] not in FORMATS:
        expected = ", ".join(map(of_format, FORMATS))
        why = f"the content type {given!r} does not name the format of keys and values: expected {expected}"
        raise Problem(415, why)
    return match[1]


def check_json(request: Request) -> None:
    """Raise a Problem (415) if the content type of the body is not JSON."""
    given = _content_type(request)
    if given not in {"", PLAIN, *_ANY_V2} and not _EMBEDDED.fullmatch(given):
        raise Problem(415, f"the content type is {given!r}: expected {V2}")


def answer_type(accept: str | None) -> str:
    """Return the media type of a response without records; raise a Problem (406) if none is accepted."""
    types = accepted(accept)
    if any(each in _ANYTHING or each in _ANY_V2 for each in types):
        return V2
    if PLAIN in types:
        return PLAIN
    if any(_EMBEDDED.fullmatch(each) for each in types):
        return V2  # clients of records send the same Accept header with every request
    raise Problem(406, f"responses are {V2}, which is not accepted")


def records_type(accept: str | None, held: str) -> str:
    """Return the media type of records in the format `held`; raise a Problem (406) if it is not accepted."""
    types = accepted(accept)
    if _ANYTHING & set(types) or of_format(held) in types:
        return of_format(held)
    if plain := [each for each in types if each in _ANY_V2 or each == PLAIN]:
        return plain[0]
    why = f"the records of this consumer are {held}: {of_format(held)} is not accepted"
    code = 40601 if any(_EMBEDDED.fullmatch(each) for each in types) else 406
    raise Problem(code, why)


def accepted(accept: str | None) -> list[str]:
    """Return the media types of an Accept header, without those of quality 0."""
    parts = [part.split(";") for part in (accept or "*/*").lower().split(",") if part.strip()]
    return [kind.strip() for kind, *parameters in parts if not any(map(_ZERO.fullmatch, parameters))]


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
