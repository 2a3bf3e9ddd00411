"""Finds the field of a message that could not be encoded, after encoding has failed."""

import struct
from typing import Any

from headrace.protocol.compiled.source import FIXED
from headrace.protocol.compiled.structs import StructType, struct_named
from headrace.protocol.fields import Field
from headrace.protocol.primitives import MAX_STRING


def explain(cls: StructType, value: Any, version: int) -> str | None:
    """Return the first invalid field and the reason, "topics[3].name: ...", or None if all are valid."""
    kind: type = cls  # mypy cannot tell an instance of a metaclass from the metaclass
    if not isinstance(value, kind):
        return f": {value!r:.60} is no {cls.__name__}"
    for field in cls.__fields__:
        if field.exists_in(version):
            fault = _field_fault(field, cls, getattr(value, field.name), version)
            if fault:
                return f".{field.name}{fault}"
    return None


def _field_fault(field: Field, cls: StructType, value: Any, version: int) -> str | None:
    if value is None:
        return None if field.nullable_in(version) else f": is None, which v{version} cannot say"
    if not field.is_array:
        return _value_fault(field, cls, value, version)
    if not hasattr(value, "__len__") or not hasattr(value, "__iter__"):
        return f": {value!r:.60} is no sequence"
    for index, item in enumerate(value):
        fault = _value_fault(field, cls, item, version)
        if fault:
            return f"[{index}]{fault}"
    return None


def _value_fault(field: Field, cls: StructType, value: Any, version: int) -> str | None:
    kind = field.item_kind
    if field.holds_structs:
        return explain(struct_named(kind, cls), value, version)
    if kind == "string":
        return _string_fault(value)
    if kind == "uuid":
        return None if isinstance(value, bytes) and len(value) == 16 else f": {value!r:.60} is no uuid"
    if kind in FIXED:
        return _number_fault(kind, value)
    return None if isinstance(value, bytes | bytearray | memoryview) else f": {value!r:.60} is no buffer"


def _string_fault(value: Any) -> str | None:
    if not isinstance(value, str):
        return f": {value!r:.60} is no str"
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        return f": {error}"
    return f": {length} bytes of text, {MAX_STRING} are the most" if length > MAX_STRING else None


def _number_fault(kind: str, value: Any) -> str | None:
    try:
        struct.pack(">" + FIXED[kind][0], value)
    except (struct.error, TypeError, OverflowError) as error:
        return f": {value!r:.60} is no {kind} ({error})"
    return None
