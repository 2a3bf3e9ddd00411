"""A slow encoder that follows the schema word by word, and can slip in tagged fields nobody knows."""

import struct
from typing import Any

from headrace.protocol.compiled.source import FIXED
from headrace.protocol.compiled.structs import StructType, default_of, struct_named
from headrace.protocol.fields import Field
from headrace.protocol.primitives import uvarint

UNKNOWN_TAG = uvarint(9000) + uvarint(5) + b"spare"


class NaiveEncoder:
    """Encodes flexible messages, with an unknown tagged field at the end of every struct."""

    def __init__(self, version: int) -> None:
        self.version = version

    def struct(self, cls: StructType, value: Any) -> bytes:
        present = [field for field in cls.__fields__ if field.exists_in(self.version)]
        plain: list[bytes] = []
        tags: list[bytes] = []
        for field in present:
            encode, parts = (self.field, plain) if field.tag is None else (self.tag, tags)
            parts.append(encode(field, cls, getattr(value, field.name)))
        tags = [*sorted(filter(None, tags)), UNKNOWN_TAG]
        return b"".join([*plain, uvarint(len(tags)), *tags])

    def tag(self, field: Field, cls: StructType, value: Any) -> bytes:
        default = default_of(field, cls)
        if value == default or (default == () and value == []):
            return b""
        content = self.field(field, cls, value)
        return uvarint(field.tag or 0) + uvarint(len(content)) + content

    def field(self, field: Field, cls: StructType, value: Any) -> bytes:
        if field.is_array:
            if value is None:
                return uvarint(0)
            return uvarint(len(value) + 1) + b"".join(self.value(field, cls, item) for item in value)
        if field.holds_structs and field.nullable_in(self.version):
            return b"\xff" if value is None else b"\x01" + self.value(field, cls, value)
        return self.value(field, cls, value)

    def value(self, field: Field, cls: StructType, value: Any) -> bytes:
        if field.holds_structs:
            return self.struct(struct_named(field.item_kind, cls), value)
        if field.item_kind in FIXED:
            return struct.pack(">" + FIXED[field.item_kind][0], value)
        if field.flexible == "none":  # the client id of a request header
            client_id: bytes = value.encode()
            return struct.pack(">h", len(client_id)) + client_id
        if value is None:
            return uvarint(0)
        data: bytes = value.encode() if field.item_kind == "string" else value
        return uvarint(len(data) + 1) + data
