"""Protobuf: the indexes of a message type in its schema, and then the message.

[1, 0] is the first message type inside the second of the file. The indexes come before the message: their
count and each of them as a zigzag varint. [0], which is the most frequent, is written as a single 0.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.http.gateway.encoding import BadValue
from headrace.registry.formats.protobuf import ProtobufSchema

_MAX_NESTING = 100  # message types inside message types
_LINEAR = 200_000  # fields of a decoded message, unset ones included


class ProtobufCodec:
    """Decodes all message types of a schema, and encodes the first."""

    format = "protobuf"

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self._class = cache(self._class_of)
        self._most_fields = _most_fields(schema)

    def is_linear(self, data: bytes) -> bool:
        """A nested message has two bytes at least, and all its fields are decoded, set or not."""
        return len(data) * self._most_fields <= _LINEAR

    @property
    def name(self) -> str:
        return self._full_name((0,))

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, dict):
            raise BadValue("expected a JSON object for a Protobuf message")
        try:
            message = json_format.ParseDict(value, self._class((0,))(), descriptor_pool=self._schema.pool)
        except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
            raise BadValue(f"this does not fit the Protobuf schema: {error}") from None
        return b"\0" + bytes(message.SerializeToString())

    def decode(self, data: bytes, *, tagged: bool = False) -> Any:
        del tagged  # there is no other encoding
        indexes, position = _indexes(data)
        try:
            message = self._class(indexes).FromString(data[position:])
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=True,
                descriptor_pool=self._schema.pool,
            )
        except (DecodeError, json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise BadValue(f"this does not fit the Protobuf schema: {error}") from None

    def _class_of(self, indexes: tuple[int, ...]) -> Any:
        return GetMessageClass(self._schema.pool.FindMessageTypeByName(self._full_name(indexes)))

    def _full_name(self, indexes: Sequence[int]) -> str:
        file = self._schema.file
        names, messages = [file.package] if file.package else [], file.message_type
        for index in indexes:
            if index >= len(messages):
                raise BadValue(f"the Protobuf schema has no message {list(indexes)}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)


def _most_fields(schema: ProtobufSchema) -> int:
    """Return the number of fields of the largest message type in the schema's files."""
    most = 1
    waiting = [message for file in schema.files for message in file.message_type]
    while waiting:
        message = waiting.pop()
        most = max(most, len(message.field))
        waiting += message.nested_type
    return most


def _indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the indexes of the message type, and where the message begins."""
    count, position = _varint(data, 0)
    if count == 0:
        return (0,), position
    if not 0 < count <= _MAX_NESTING:
        raise BadValue(f"a message type cannot have {count} indexes")
    indexes = []
    for _ in range(count):
        index, position = _varint(data, position)
        if index < 0:
            raise BadValue("a message index is negative")
        indexes.append(index)
    return tuple(indexes), position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise BadValue("the message indexes are truncated or too long")
