"""What people write into a request, as the bytes of a key or value."""

import base64
import binascii
from typing import Any

from headrace.http.gateway.plain_json import NotJson, store_json


class BadValue(ValueError):
    """What was given cannot be written that way; the sentence says why, `place` which of several it is."""

    place = 0


class TooCostly(BadValue):
    """Writing or reading it by its schema takes too much time or memory."""


def as_json(value: Any) -> bytes | None:
    """JSON's null is no bytes at all: a tombstone."""
    if value is None:
        return None
    try:
        return store_json(value)
    except NotJson as error:
        raise BadValue(f"this is no JSON that can be written: {error}") from None


def as_text(value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadValue(f"expected a string, got {_kind(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadValue("there is half a surrogate pair in it, which is no text") from None


def as_binary(value: Any) -> bytes | None:
    """From base64, in either alphabet."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadValue(f"expected base64 in a string, got {_kind(value)}")
    try:
        return base64.b64decode(value.translate(_URL_SAFE).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadValue(f"this is not base64: {error}") from None


def as_given(value: Any) -> bytes | None:
    """A string is text, null is nothing, all else is JSON."""
    return as_text(value) if isinstance(value, str) else as_json(value)


_URL_SAFE = str.maketrans("-_", "+/")


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)
