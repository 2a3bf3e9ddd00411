"""Whether a schema may follow earlier ones: the seven levels, whatever the format."""

from collections.abc import Sequence
from enum import StrEnum

from headrace.registry.formats.differences import Difference, Differences, TooComplex
from headrace.registry.formats.limits import MAX_MESSAGES
from headrace.registry.formats.schema import Parsed, SchemaType

_SHOWN = 1000  # characters of an old schema in a message


class Level(StrEnum):
    """Who must be able to read what."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier schemas count, or the latest alone."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must read what was written by the old."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether the old schema must read what will be written by the new."""
        return self.value.startswith(("FORWARD", "FULL"))


def check(new: Parsed, olds: Sequence[Parsed], level: Level, *, versions: Sequence[int] = ()) -> list[str]:
    """What keeps `new` from following `olds` (the oldest first); nothing if it may.

    The messages are about one of `olds`, the newest that does not fit. `versions` are theirs in
    the subject: with them, a message says which it was.
    """
    count = len(olds) if level.transitive else min(len(olds), 1)
    for number in range(len(olds) - 1, len(olds) - 1 - count, -1):
        old = olds[number]
        messages: list[str] = []
        if level.backward:
            messages += incompatibilities(new, old, reader_name="new", writer_name="old")
        if level.forward:
            messages += incompatibilities(old, new, reader_name="old", writer_name="new")
        if messages:
            which = [f"{{oldSchemaVersion: {versions[number]}}}"] if versions else []
            return [*dict.fromkeys(messages), *which, _shown(old), f"{{compatibility: '{level}'}}"]
    return []


def incompatibilities(
    reader: Parsed, writer: Parsed, *, reader_name: str = "reader", writer_name: str = "writer"
) -> list[str]:
    """What keeps `reader` from reading everything that `writer` can have written; [] if nothing does."""
    try:
        found = _differences(reader, writer)
    except (TooComplex, RecursionError):
        sentence = "The {reader} schema and the {writer} schema are too complex to be compared"
        found = [Difference("TOO_COMPLEX", "/", sentence)]
    return [difference.told(reader_name, writer_name) for difference in found[:MAX_MESSAGES]]


def _differences(reader: Parsed, writer: Parsed) -> Differences:
    if reader.type is not writer.type:
        sentence = f"The {{reader}} schema is {reader.type}, the {{writer}} schema is {writer.type}"
        return [Difference("SCHEMA_TYPE_CHANGED", "/", sentence)]
    match reader.type:
        case SchemaType.AVRO:
            return _avro(reader, writer)
        case SchemaType.JSON:
            return _json(reader, writer)
        case SchemaType.PROTOBUF:
            return _protobuf(reader, writer)


def _avro(reader: Parsed, writer: Parsed) -> Differences:
    from headrace.registry.formats.avro import AvroSchema  # noqa: PLC0415  as the others: for who has such
    from headrace.registry.formats.avro_compatibility import differences  # noqa: PLC0415

    assert isinstance(reader, AvroSchema), reader
    assert isinstance(writer, AvroSchema), writer
    return differences(reader, writer)


def _json(reader: Parsed, writer: Parsed) -> Differences:
    from headrace.registry.formats.json_compatibility import differences  # noqa: PLC0415
    from headrace.registry.formats.json_schema import JsonSchema  # noqa: PLC0415

    assert isinstance(reader, JsonSchema), reader
    assert isinstance(writer, JsonSchema), writer
    return differences(reader, writer)


def _protobuf(reader: Parsed, writer: Parsed) -> Differences:
    from headrace.registry.formats.protobuf import ProtobufSchema  # noqa: PLC0415
    from headrace.registry.formats.protobuf_compatibility import differences  # noqa: PLC0415

    assert isinstance(reader, ProtobufSchema), reader
    assert isinstance(writer, ProtobufSchema), writer
    return differences(reader, writer)


def _shown(old: Parsed) -> str:
    text = old.canonical
    if len(text) > _SHOWN:
        return f"{{oldSchema: <truncated> '{text[:_SHOWN]}...'}}"
    return f"{{oldSchema: '{text}'}}"
