"""The schema formats: Avro, JSON Schema and Protobuf. Pure: text in, text and verdicts out.

`parse` parses a schema, `check` compares it with earlier ones. An invalid schema raises `InvalidSchema` with
a sentence for its author. Any text gets its verdict in bounded time (see `limits`).
"""

from headrace.registry.formats.compatibility import Level, check
from headrace.registry.formats.parse import parse
from headrace.registry.formats.schema import InvalidSchema, Parsed, Reference, Resolve, Schema, SchemaType

__all__ = [
    "InvalidSchema",
    "Level",
    "Parsed",
    "Reference",
    "Resolve",
    "Schema",
    "SchemaType",
    "check",
    "parse",
]
