"""The reader of Avro: records of the writer's schema are resolved to the reader's."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import fastavro
from fastavro.read import LOGICAL_READERS

from headrace.reader.registry.avro_shapes import shape_of
from headrace.reader.registry.reader import ResolvedSchema, Unreadable, parse_writer
from headrace.reader.registry.shapes import UNFIT, Shape, one_line
from headrace.registry.formats.avro import AvroSchema
from headrace.registry.formats.avro_types import AvroType
from headrace.registry.formats.avro_writer import Writer

_FINER: Final = "headrace-finer"  # milliseconds, read as microseconds
_COARSER: Final = "headrace-coarser"
LOGICAL_READERS[f"long-{_FINER}"] = lambda value, *_: value * 1000
LOGICAL_READERS[f"long-{_COARSER}"] = lambda value, *_: value // 1000


class AvroReader:
    def __init__(self, reader: AvroSchema) -> None:
        self._reader = reader
        self.shape: Shape = shape_of(reader.root)

    def decoder_for(self, writer: ResolvedSchema) -> Callable[[bytes], Any]:
        schema = parse_writer(writer, AvroSchema, self._reader)
        same = schema.formatted("resolved") == self._reader.formatted("resolved")
        logical = _take_logical_types(schema.root)
        if not same:
            _Alignment(logical).align(schema.root, self._reader.root)
        try:
            written = fastavro.parse_schema(Writer().type(schema.root))
            wanted = None if same else fastavro.parse_schema(_plain(Writer().type(self._reader.root)))
        except Exception as error:  # fastavro has many exceptions without a common base
            raise Unreadable(f"fastavro cannot use the schema: {one_line(error)}") from error
        return partial(_decode, written, wanted)


def _decode(written: Any, wanted: Any, payload: bytes) -> Any:
    stream = io.BytesIO(payload)
    try:
        found = fastavro.schemaless_reader(stream, written, wanted, return_named_type=True)
    except (*UNFIT, EOFError, fastavro.read.SchemaResolutionError) as error:
        raise Unreadable(
            f"it is not such an Avro record: {type(error).__name__}: {one_line(error)}"
        ) from error
    if (left := len(payload) - stream.tell()) != 0:
        raise Unreadable(f"{left} byte{'s follow' if left > 1 else ' follows'} the Avro record")
    return found


class _Alignment:
    """Has fastavro convert numbers where the writer's logical type differs from the reader's.

    Avro's schema resolution ignores logical types: it would read milliseconds as microseconds, and 12.50 with
    a scale of 2 as 1250 with a scale of 0.
    """

    def __init__(self, logical: dict[AvroType, str]) -> None:
        self._logical = logical  # of the writer's types
        self._seen: set[tuple[AvroType, AvroType]] = set()

    def align(self, writer: AvroType, reader: AvroType) -> None:
        if (writer, reader) in self._seen:
            return
        self._seen.add((writer, reader))
        for old, new in _pairs(writer, reader):
            self.align(old, new)
        if conversion := self._conversion(writer, reader):
            writer.props = {**writer.props, "logicalType": conversion}

    def _conversion(self, writer: AvroType, reader: AvroType) -> str | None:
        old, new = self._logical.get(writer), reader.props.get("logicalType")
        if old == new == "decimal":
            return old
        if old is None or new is None:
            return None
        match old.removeprefix("local-"), new.removeprefix("local-"):
            case "timestamp-millis", "timestamp-micros":
                return _FINER
            case "timestamp-micros", "timestamp-millis":
                return _COARSER
        return None


def _pairs(writer: AvroType, reader: AvroType) -> Iterator[tuple[AvroType, AvroType]]:
    """Yield the parts of a writer's type, each with the type that it is read as."""
    match writer.kind, reader.kind:
        case "union", _:
            yield from ((branch, reader) for branch in writer.branches)
        case _, "union":
            yield from ((writer, branch) for branch in reader.branches if branch.kind == writer.kind)
        case ("array", "array") | ("map", "map"):
            yield writer.inner, reader.inner
        case "record", "record":
            fields = {field.name: field.type for field in writer.fields}
            for field in reader.fields:
                name = next((each for each in (field.name, *field.aliases) if each in fields), None)
                if name is not None:
                    yield fields[name], field.type


def _take_logical_types(root: AvroType) -> dict[AvroType, str]:
    """Remove the logical types from a schema, and return them."""
    found: dict[AvroType, str] = {}
    seen: set[AvroType] = set()
    waiting = [root]
    while waiting:
        type_ = waiting.pop()
        if type_ in seen:
            continue
        seen.add(type_)
        if "logicalType" in type_.props:
            found[type_] = str(type_.props.pop("logicalType"))
        waiting += [*type_.branches, *(field.type for field in type_.fields)]
    return found


def _plain(schema: Any) -> Any:
    """Return a schema in JSON without logical types. A default that looks like one is not changed."""
    match schema:
        case list():
            return [_plain(each) for each in schema]
        case dict():
            return {
                key: value if key == "default" else _plain(value)
                for key, value in schema.items()
                if key != "logicalType"
            }
    return schema
