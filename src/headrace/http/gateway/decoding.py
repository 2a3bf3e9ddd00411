"""Keys and values of records for people to read: by their schema, as JSON, as text, or as base64."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headrace.http.gateway.plain_json import NotJson, read_json

MAGIC: Final = 0  # the first byte of what was written with a schema
ID_BYTES: Final = 5  # and the schema's id after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A key or value. The encoding is null, json, text, base64, avro, jsonschema or protobuf."""

    value: Any
    encoding: str
    schema_id: int | None = None


BySchema = Callable[[bytes], Decoded | None]
"""What the registry makes of bytes; None if nothing."""


def decode(data: bytes | None, by_schema: BySchema | None = None) -> Decoded:
    """The best that can be made of it. Text that is a JSON object or list is shown as one."""
    if data is None:
        return Decoded(value=None, encoding="null")
    if by_schema is not None and len(data) > ID_BYTES and data[0] == MAGIC:
        found = by_schema(data)
        if found is not None:
            return found
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _base64(data)
    return _structure(text) or (Decoded(value=text, encoding="text") if _is_readable(text) else _base64(data))


def cut(data: bytes | None, most: int, by_schema: BySchema | None = None) -> tuple[Decoded, bool]:
    """The same, and whether only the first `most` bytes of it were looked at."""
    if data is None or len(data) <= most:
        return decode(data, by_schema), False
    beginning = data[:most]
    try:
        return Decoded(value=beginning.decode(), encoding="text"), True
    except UnicodeDecodeError as error:
        if error.start >= most - 3:  # in the middle of a character
            return Decoded(value=beginning[: error.start].decode(), encoding="text"), True
        return _base64(beginning), True


def _structure(text: str) -> Decoded | None:
    """The object or list that the text is, if it is one."""
    if text[:1] not in {"{", "["}:
        return None
    try:
        return Decoded(value=read_json(text), encoding="json")
    except NotJson:
        return None


def _base64(data: bytes) -> Decoded:
    return Decoded(value=base64.b64encode(data).decode(), encoding="base64")


def _is_readable(text: str) -> bool:
    return not any(each < " " and each not in "\t\n\r" for each in text)
