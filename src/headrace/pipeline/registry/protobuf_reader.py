"""Protobuf messages, read with the reader's schema: fields are who they are by their numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from google.protobuf.descriptor import Descriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry.fitting import in_short
from headrace.pipeline.registry.protobuf_shapes import shape_of
from headrace.pipeline.registry.protobuf_wire import clash
from headrace.pipeline.registry.reader import Unreadable, understood
from headrace.pipeline.registry.shapes import Shape
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats.protobuf import ProtobufSchema

_MOST_INDEXES: Final = 100  # messages within messages
_MOST_KNOWN: Final = 1000  # message indexes of one schema


class ProtobufReading:
    """One message of a reader's schema, and all that it reads."""

    def __init__(self, reader: ProtobufSchema, message: str | None = None) -> None:
        """`message` is a full name; the first message of the file if there is none."""
        self._reader = reader
        self._message = _message(reader, message)
        self._parse = GetMessageClass(self._message).FromString
        self.shape: Shape = shape_of(self._message)

    def of(self, writer: Whole) -> Callable[[bytes], Any]:
        """What reads the messages that were written with `writer`."""
        return partial(self._read, understood(writer, ProtobufSchema, self._reader), {})

    def _read(self, writer: ProtobufSchema, known: dict[bytes, str | None], value: bytes) -> Any:
        begin = _end_of_indexes(value)
        indexes = value[:begin]
        if indexes not in known:
            if len(known) == _MOST_KNOWN:
                known.clear()
            known[indexes] = self._why_not(writer, _indexes(indexes))
        if (why := known[indexes]) is not None:
            raise Unreadable(why)
        try:
            return self._parse(value[begin:])
        except DecodeError as error:
            raise Unreadable(f"it is no such Protobuf message: {in_short(error)}") from error

    def _why_not(self, writer: ProtobufSchema, indexes: list[int]) -> str | None:
        """Why the message that stands there in the writer's file cannot be read as ours."""
        written = _at(writer, indexes)
        if written is None:
            return f"its schema has no message {'.'.join(map(str, indexes))}"
        ours, theirs = self._message.full_name, written.full_name
        here = _at(self._reader, indexes)
        renamed = theirs not in _names(self._reader) and here is not None and here.full_name == ours
        if theirs != ours and not renamed:
            return f"it is a {theirs}, and the columns are those of {ours}"
        return clash(written, self._message)


def _message(schema: ProtobufSchema, name: str | None) -> Descriptor:
    names = _names(schema)
    if not names:
        raise PipelineError("the Protobuf schema has no message: there are no fields to make columns of")
    if name is not None and name not in names:
        raise PipelineError(f"the Protobuf schema has no message {name!r}, only {', '.join(names)}")
    return names[name] if name is not None else next(iter(names.values()))


def _names(schema: ProtobufSchema) -> dict[str, Descriptor]:
    """Every message of the file, those within others after them."""
    found: dict[str, Descriptor] = {}
    waiting = _first(schema)
    while waiting:
        message = waiting.pop(0)
        if not message.GetOptions().map_entry:
            found[message.full_name] = message
            waiting += message.nested_types
    return found


def _first(schema: ProtobufSchema) -> list[Descriptor]:
    """The messages that are in no other, in the file's order."""
    by_name = schema.pool.FindFileByName(schema.file.name).message_types_by_name
    return [by_name[each.name] for each in schema.file.message_type]


def _at(schema: ProtobufSchema, indexes: list[int]) -> Descriptor | None:
    among, found = _first(schema), None
    for index in indexes:
        if not 0 <= index < len(among):
            return None
        found = among[index]
        among = list(found.nested_types)
    return found


def _end_of_indexes(value: bytes) -> int:
    count, position = _number(value, 0)
    if not 0 <= count <= _MOST_INDEXES:
        raise Unreadable(f"its message index has {count} steps")
    for _ in range(count):
        _, position = _number(value, position)
    return position


def _indexes(value: bytes) -> list[int]:
    """Where the message stands in the file: nothing stands for the first."""
    count, position = _number(value, 0)
    found = []
    for _ in range(count):
        index, position = _number(value, position)
        found.append(index)
    return found or [0]


def _number(value: bytes, position: int) -> tuple[int, int]:
    """A zigzag number of at most five bytes, and where it ends."""
    found = 0
    for shift in range(0, 35, 7):
        if position >= len(value):
            raise Unreadable("it ends within its message index")
        byte = value[position]
        position += 1
        found |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return found >> 1 ^ -(found & 1), position
    raise Unreadable("its message index has a number of more than five bytes")
