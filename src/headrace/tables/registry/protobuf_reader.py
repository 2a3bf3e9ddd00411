"""The reader of Protobuf: messages are parsed with the reader's schema, in which numbers identify fields."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import Descriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.registry.schema_ids import NoSchemaId, read_message_path
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.protobuf_comparison import conflict
from headrace.tables.registry.protobuf_shapes import shape_of
from headrace.tables.registry.reader import ResolvedSchema, Unreadable, parse_writer
from headrace.tables.registry.shapes import Shape, one_line

_MAX_PATHS: Final = 1000  # of one schema that are cached
Path = tuple[int, ...]


class ProtobufReader:
    def __init__(self, reader: ProtobufSchema, message: str | None = None) -> None:
        """`message` is a full name; by default it is the first message of the file."""
        self._reader = reader
        self._message = _message(reader, message)
        self._parse = GetMessageClass(self._message).FromString
        self.shape: Shape = shape_of(self._message)

    def decoder_for(self, writer: ResolvedSchema) -> Callable[[bytes], Any]:
        return partial(self._decode, parse_writer(writer, ProtobufSchema, self._reader), {})

    def _decode(self, writer: ProtobufSchema, mismatches: dict[Path, str | None], value: bytes) -> Any:
        try:
            path, end = read_message_path(value, 0)
        except NoSchemaId as error:
            raise Unreadable(f"it {error}") from error
        if path not in mismatches:
            if len(mismatches) == _MAX_PATHS:
                mismatches.clear()
            mismatches[path] = self._mismatch(writer, path)
        mismatch = mismatches[path]
        if mismatch is not None:
            raise Unreadable(mismatch)
        try:
            return self._parse(value[end:])
        except DecodeError as error:
            raise Unreadable(f"it is not such a Protobuf message: {one_line(error)}") from error

    def _mismatch(self, writer: ProtobufSchema, path: Path) -> str | None:
        """Return why the message at this path of the writer's file cannot be read as ours."""
        written = _at(writer, path)
        if written is None:
            return f"its schema has no message {'.'.join(map(str, path))}"
        ours, theirs = self._message.full_name, written.full_name
        here = _at(self._reader, path)
        renamed = theirs not in _messages(self._reader) and here is not None and here.full_name == ours
        if theirs != ours and not renamed:
            return f"it is a {theirs}, and the columns are those of {ours}"
        return conflict(written, self._message)


def _message(schema: ProtobufSchema, name: str | None) -> Descriptor:
    messages = _messages(schema)
    if not messages:
        raise ReadError("the Protobuf schema has no message, and so no fields that could be columns")
    if name is not None and name not in messages:
        raise ReadError(f"the Protobuf schema has no message {name!r}, only {', '.join(messages)}")
    return messages[name] if name is not None else next(iter(messages.values()))


def _messages(schema: ProtobufSchema) -> dict[str, Descriptor]:
    """Return all messages of the file by their full names, nested ones after the others."""
    found: dict[str, Descriptor] = {}
    waiting = _top_level(schema)
    while waiting:
        message = waiting.pop(0)
        if not message.GetOptions().map_entry:
            found[message.full_name] = message
            waiting += message.nested_types
    return found


def _top_level(schema: ProtobufSchema) -> list[Descriptor]:
    by_name = schema.pool.FindFileByName(schema.file.name).message_types_by_name
    return [by_name[each.name] for each in schema.file.message_type]


def _at(schema: ProtobufSchema, path: Path) -> Descriptor | None:
    messages, found = _top_level(schema), None
    for index in path:
        if not 0 <= index < len(messages):
            return None
        found = messages[index]
        messages = list(found.nested_types)
    return found
