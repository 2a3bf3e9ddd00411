"""Schemas as texts, and what columns and rows they make."""

import json
from collections.abc import Mapping
from typing import Any

from headrace.pipeline.registry.batches import reader_of
from headrace.pipeline.registry.reader import ResolvedSchema
from headrace.pipeline.registry.shapes import build, columns_of, spark_type
from headrace.registry.formats import Reference, Schema, SchemaType


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
    return spark_type(columns_of(reader_of(schema, message).shape)).simpleString()


def rows(
    reader: ResolvedSchema, writer: ResolvedSchema, *payloads: bytes, message: str | None = None
) -> list[Any]:
    """What the payloads of the writer are to the reader."""
    found = reader_of(reader, message)
    read = found.decoder_for(writer)
    built: list[Any] = build(columns_of(found.shape), [read(each) for each in payloads]).to_pylist()
    return built
