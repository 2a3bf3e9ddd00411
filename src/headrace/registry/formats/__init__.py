"""The formats of schemas: Avro, JSON Schema, Protobuf. Pure: text in, text and verdicts out.

`parse` understands a schema, `check` compares it with earlier ones. What is wrong with a schema is an
`InvalidSchema` with a sentence; a schema of any size and shape gets one in bounded time (see `limits`).
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
