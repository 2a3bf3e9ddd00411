"""Keys and values of records: as readable values (by schema, JSON, text or base64), and encoded as bytes."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headrace.client.serializers.codecs.base import BadValue
from headrace.client.serializers.codecs.plain_json import NotJson, read_json, store_json

MAGIC: Final = 0  # the first byte of data that was encoded by a schema
ID_BYTES: Final = 5  # the magic byte and the schema's id


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A key or value. The encoding is null, json, text, base64, avro, jsonschema or protobuf."""

    value: Any
    encoding: str
    schema_id: int | None = None


BySchema = Callable[[bytes], Decoded | None]
"""Decodes bytes by the schema whose id is in them; returns None if it cannot."""


def decode(data: bytes | None, by_schema: BySchema | None = None) -> Decoded:
    """Return the data in its most readable form. Text that is a JSON object or list is decoded as JSON."""
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
    if text[:1] in {"{", "["}:
        try:
            return Decoded(value=read_json(text), encoding="json")
        except NotJson:
            pass  # text that only begins like JSON
    is_readable = not any(letter < " " and letter not in "\t\n\r" for letter in text)
    return Decoded(value=text, encoding="text") if is_readable else _base64(data)


def cut(
    data: bytes | None, most: int, by_schema: BySchema | None = None, *, raw: bool = False
) -> tuple[Decoded, bool]:
    """Return `decode` of the first `most` bytes, or their base64 if `raw`, and whether the data has more."""
    if raw and data is not None:
        return _base64(data[:most]), len(data) > most
    if data is None or len(data) <= most:
        return decode(data, by_schema), False
    beginning = data[:most]
    try:
        return Decoded(value=beginning.decode(), encoding="text"), True
    except UnicodeDecodeError as error:
        if error.start >= most - 3:  # the cut is in the middle of a character
            return Decoded(value=beginning[: error.start].decode(), encoding="text"), True
        return _base64(beginning), True


def _base64(data: bytes) -> Decoded:
    return Decoded(value=base64.b64encode(data).decode(), encoding="base64")


def as_json(value: Any) -> bytes | None:
    """Encode as JSON; null becomes None, a tombstone."""
    if value is None:
        return None
    try:
        return store_json(value)
    except NotJson as error:
        raise BadValue(f"this cannot be written as JSON: {error}") from None


def as_text(value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadValue(f"expected a string, got {_kind(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadValue("this has a lone surrogate in it, which is not text") from None


def checked_text(value: str) -> str:
    """Return the text; raise BadValue if it cannot be encoded."""
    as_text(value)
    return value


def as_binary(value: Any) -> bytes | None:
    """Decode base64, in the standard or the URL-safe alphabet."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadValue(f"expected base64 in a string, got {_kind(value)}")
    try:
        return base64.b64decode(value.translate(_URL_SAFE).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadValue(f"this is not base64: {error}") from None


def as_given(value: Any) -> bytes | None:
    """Encode a string as text, null as None, and anything else as JSON."""
    return as_text(value) if isinstance(value, str) else as_json(value)


_URL_SAFE = str.maketrans("-_", "+/")


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)
