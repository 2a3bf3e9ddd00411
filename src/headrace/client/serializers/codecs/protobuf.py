"""Protobuf: the path to a message type in its schema (see `schema_ids`), and then the message."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.client.serializers.codecs.base import BadValue, Codec
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.registry.schema_ids import NoSchemaId, read_message_path, write_message_path

_LONGS = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_WRAPPED_LONGS = frozenset({"google.protobuf.Int64Value", "google.protobuf.UInt64Value"})
_LINEAR = 200_000  # fields of a decoded message, unset ones included


class ProtobufCodec(Codec):
    """Decodes and encodes all message types of a schema; the first is the default."""

    format = "protobuf"

    def __init__(self, schema: ProtobufSchema) -> None:
        self._schema = schema
        self._class = cache(
            lambda path: GetMessageClass(schema.pool.FindMessageTypeByName(self._full_name(path)))
        )
        self._most_fields = _most_fields(schema)

    def is_linear(self, data: bytes) -> bool:
        """A nested message has two bytes at least, and all its fields are decoded, set or not."""
        return len(data) * self._most_fields <= _LINEAR

    @property
    def name(self) -> str:
        return self._full_name((0,))

    def encode(self, value: Any) -> bytes:
        return self._encoded(value, (0,))

    def encode_plain(self, value: Any, message: str = "") -> bytes:
        return self._encoded(value, self._path_of(message) if message else (0,))

    def message_name(self, data: bytes) -> str:
        return self._full_name(_message_path(data)[0])

    def _encoded(self, value: Any, path: tuple[int, ...]) -> bytes:
        if not isinstance(value, dict):
            raise BadValue("expected a JSON object for a Protobuf message")
        try:
            message = json_format.ParseDict(value, self._class(path)(), descriptor_pool=self._schema.pool)
        except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
            raise BadValue(f"this does not fit the Protobuf schema: {error}") from None
        missing = message.FindInitializationErrors()  # required fields, of proto2
        if missing:
            raise BadValue(f"this does not fit the Protobuf schema: the field {missing[0]} is missing")
        return write_message_path(path) + bytes(message.SerializeToString())

    def decode(self, data: bytes, *, tagged: bool = False, numbers: bool = False) -> Any:
        del tagged  # there is no other encoding
        path, position = _message_path(data)
        try:
            message = self._class(path).FromString(data[position:])
            found = json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=True,
                descriptor_pool=self._schema.pool,
            )
            return _with_numbers(message.DESCRIPTOR, found) if numbers else found
        except (DecodeError, json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise BadValue(f"this does not fit the Protobuf schema: {error}") from None

    def _path_of(self, name: str) -> tuple[int, ...]:
        """Return the path to a message by its full name; BadValue if the schema has no such message."""
        package = self._schema.file.package
        path, messages = [], self._schema.file.message_type
        for each in name.removeprefix(f"{package}.").split("."):
            names = [message.name for message in messages]
            if each not in names:
                raise BadValue(f"the Protobuf schema has no message {name[:200]}")
            path.append(names.index(each))
            messages = messages[path[-1]].nested_type
        return tuple(path)

    def _full_name(self, path: Sequence[int]) -> str:
        file = self._schema.file
        names, messages = [file.package] if file.package else [], file.message_type
        for index in path:
            if not 0 <= index < len(messages):
                raise BadValue(f"the Protobuf schema has no message {list(path)}")
            names.append(messages[index].name)
            messages = messages[index].nested_type
        return ".".join(names)


def _message_path(data: bytes) -> tuple[tuple[int, ...], int]:
    try:
        return read_message_path(data, 0)
    except NoSchemaId as error:
        raise BadValue(f"this {error}") from None


def _with_numbers(kind: Any, value: Any) -> Any:
    """Return a message's JSON with numbers of 64 bits as numbers, which Protobuf's JSON writes as text."""
    if kind.full_name in _WRAPPED_LONGS:
        return int(value)
    if kind.full_name.startswith("google.protobuf.") or not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, each in value.items():
        field = kind.fields_by_name[name]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            field = field.message_type.fields_by_name["value"]
            found[name] = {key: _number(field, part) for key, part in each.items()}
        else:
            found[name] = (
                [_number(field, part) for part in each] if isinstance(each, list) else _number(field, each)
            )
    return found


def _number(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _with_numbers(field.message_type, value)
    return int(value) if field.cpp_type in _LONGS and isinstance(value, str) else value


def _most_fields(schema: ProtobufSchema) -> int:
    """Return the number of fields of the largest message type in the schema's files."""
    most = 1
    waiting = [message for file in schema.files for message in file.message_type]
    while waiting:
        message = waiting.pop()
        most = max(most, len(message.field))
        waiting += message.nested_type
    return most
