"""The reader of Avro: records are decoded by the writer's schema, and then resolved to the reader's."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import fastavro

from headrace.registry.formats.avro.avro import AvroSchema
from headrace.registry.formats.avro.writer import Writer
from headrace.tables.registry.avro_resolution import Convert, Resolution
from headrace.tables.registry.avro_shapes import shape_of
from headrace.tables.registry.reader import ResolvedSchema, Unreadable, parse_writer
from headrace.tables.registry.shapes import UNFIT, Shape, one_line


class AvroReader:
    def __init__(self, reader: AvroSchema) -> None:
        self._reader = reader
        self.shape: Shape = shape_of(reader.root)

    def decoder_for(self, writer: ResolvedSchema) -> Callable[[bytes], Any]:
        schema = parse_writer(writer, AvroSchema, self._reader)
        same = schema.formatted("resolved") == self._reader.formatted("resolved")
        convert = None if same else Resolution().conversion(schema.root, self._reader.root)
        try:
            written = fastavro.parse_schema(_plain(Writer().type(schema.root)))
        except Exception as error:  # fastavro has many exceptions without a common base
            raise Unreadable(f"fastavro cannot use the schema: {one_line(error)}") from error
        return partial(_decode, written, convert)


def _decode(written: Any, convert: Convert | None, payload: bytes) -> Any:
    stream = io.BytesIO(payload)
    try:
        found = fastavro.schemaless_reader(stream, written, None, return_named_type=True)
    except (*UNFIT, EOFError) as error:
        raise Unreadable(
            f"it is not such an Avro record: {type(error).__name__}: {one_line(error)}"
        ) from error
    if (left := len(payload) - stream.tell()) != 0:
        raise Unreadable(f"{left} byte{'s follow' if left > 1 else ' follows'} the Avro record")
    if convert is None:
        return found
    try:
        return convert(found)
    except UNFIT as error:
        raise Unreadable(f"it does not fit the schema of the columns: {one_line(error)}") from error


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
