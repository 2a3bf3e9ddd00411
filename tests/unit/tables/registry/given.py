"""Schemas as texts, and what columns and rows they make."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.pandas.types import from_arrow_type

from headrace.registry.formats import Reference, Schema, SchemaType
from headrace.tables.registry.batches import reader_of
from headrace.tables.registry.reader import ResolvedSchema
from headrace.tables.registry.shapes import arrow_type, build, columns_of


def whole(type_: str, schema: Any, references: Mapping[str, Any] | None = None) -> ResolvedSchema:
    """A schema; `references` are texts by the names that it uses."""
    found = {
        Reference(name, f"{name}-subject", 1): Schema(SchemaType(type_), text(each))
        for name, each in (references or {}).items()
    }
    return ResolvedSchema(Schema(SchemaType(type_), text(schema), tuple(found)), tuple(found.items()))


def text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def columns(schema: ResolvedSchema, message: str | None = None) -> str:
    """In Spark's words."""
    kind = arrow_type(columns_of(reader_of(schema, message).shape))
    return str(from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString())


def rows(
    reader: ResolvedSchema, writer: ResolvedSchema, *payloads: bytes, message: str | None = None
) -> list[Any]:
    """What the payloads of the writer are to the reader."""
    found = reader_of(reader, message)
    read = found.decoder_for(writer)
    built: list[Any] = build(columns_of(found.shape), [read(each) for each in payloads]).to_pylist()
    return built
