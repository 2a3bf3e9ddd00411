"""Media types of the REST proxy, v2: what a body holds, and what an answer may be.

`application/vnd.kafka.json.v2+json` is JSON around records whose keys and values are JSON; with `binary` in
its place they are base64, with `avro`, `jsonschema` or `protobuf` they are written by a schema.
"""

import re
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Depends, Header, Request

from headrace.http.problems import Problem

V2: Final = "application/vnd.kafka.v2+json"
PLAIN: Final = "application/json"
FORMATS: Final = ("binary", "json", "avro", "jsonschema", "protobuf")
WITH_SCHEMA: Final = frozenset({"avro", "jsonschema", "protobuf"})
UNSUPPORTED: Final = 415
NOT_ACCEPTABLE: Final = 406
_EMBEDDED: Final = re.compile(r"application/vnd\.kafka\.([a-z]+)\.v2\+json")
_ANY_V2: Final = frozenset({V2, "application/vnd.kafka+json"})
_ANYTHING: Final = frozenset({"*/*", "application/*"})


def of_format(name: str) -> str:
    """The media type of records in a format."""
    return f"application/vnd.kafka.{name}.v2+json"


def embedded_format(request: Request) -> str:
    """What the keys and values in a body are; 415 if it does not say."""
    given = _bare(request.headers.get("content-type", ""))
    found = _EMBEDDED.fullmatch(given)
    if found is None or found[1] not in FORMATS:
        expected = ", ".join(map(of_format, FORMATS))
        said = f"the content type {given!r} does not say what keys and values are: expected one of {expected}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED, said)
    return found[1]


def check_json(request: Request) -> None:
    """415 if a body is there and is not said to be JSON."""
    given = _bare(request.headers.get("content-type", ""))
    if given not in {"", PLAIN, *_ANY_V2} and not _EMBEDDED.fullmatch(given):
        said = f"the content type is {given!r}: expected {V2}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED, said)


def answer_type(accept: Annotated[str | None, Header(include_in_schema=False)] = None) -> str:
    """The media type of an answer that has no records in it; 406 if none would do."""
    wanted = accepted(accept)
    if any(each in _ANYTHING or each in _ANY_V2 for each in wanted):
        return V2
    if PLAIN in wanted:
        return PLAIN
    if any(_EMBEDDED.fullmatch(each) for each in wanted):
        return V2  # clients that ask for records ask so for everything
    raise Problem(HTTPStatus.NOT_ACCEPTABLE, NOT_ACCEPTABLE, f"answers are {V2}, which is not accepted")


def records_type(accept: str | None, held: str) -> str:
    """The media type of records in the format that is held; 406 if another is asked for."""
    wanted = accepted(accept)
    if _ANYTHING & set(wanted) or of_format(held) in wanted:
        return of_format(held)
    if plain := [each for each in wanted if each in _ANY_V2 or each == PLAIN]:
        return plain[0]
    said = f"the records of this consumer are {held}, which is not what is accepted: {of_format(held)}"
    code = 40601 if any(_EMBEDDED.fullmatch(each) for each in wanted) else NOT_ACCEPTABLE
    raise Problem(HTTPStatus.NOT_ACCEPTABLE, code, said)


def accepted(accept: str | None) -> list[str]:
    """The media types in an Accept header, but for those that are not wanted at all."""
    parts = [part.split(";") for part in (accept or "*/*").lower().split(",") if part.strip()]
    return [kind.strip() for kind, *parameters in parts if not _is_unwanted(parameters)]


def _bare(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_unwanted(parameters: list[str]) -> bool:
    return any(re.fullmatch(r"\s*q=0(\.0*)?\s*", each) for each in parameters)


AnswerType = Annotated[str, Depends(answer_type)]
