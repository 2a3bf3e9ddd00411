"""Encoding of the keys and values in a request as bytes."""

import base64
import binascii
from typing import Any

from headrace.client.serializers.codecs.errors import BadValue
from headrace.client.serializers.codecs.plain_json import NotJson, store_json


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
