"""Schemas as people give them: as JSON, a dict or confluent_kafka's object. What is none is told at once."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.client.errors import BadSetting

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema


def schema_text(
    schema: "str | Mapping[str, Any] | list[Any] | Schema | None", name: str
) -> "str | Schema | None":
    """The schema as text, for the format of this name; BadSetting if that is no JSON."""
    if isinstance(schema, Mapping | list):
        return json.dumps(schema)
    if schema is None or hasattr(schema, "schema_str"):
        return schema
    if not isinstance(schema, str):
        raise BadSetting(f"the schema for {name} is JSON, as text or as a dict, not {schema!r:.80}")
    if schema.isidentifier():  # a type's name
        return json.dumps(schema)
    try:
        json.loads(schema)
    except ValueError as error:
        raise BadSetting(f"the schema for {name} is no JSON: {error}: {schema.strip()!r:.80}") from error
    return schema


def avro_schema(schema: "str | Mapping[str, Any] | list[Any] | Schema | None") -> "str | Schema | None":
    """The same; BadSetting if it is not Avro. Objects, which may refer to others, are the registry's."""
    text = schema_text(schema, "Avro")
    if isinstance(text, str):
        _check(json.loads(text))
    return text


def _check(schema: Any) -> None:
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema  # noqa: PLC0415  not for everybody

    try:
        parse_schema(schema)
    except UnknownType as error:
        unknown = error.name
        if isinstance(unknown, Mapping):  # its type is what is unknown
            unknown = unknown.get("type", unknown)
        raise BadSetting(f"the Avro schema has a type that there is not: {unknown}") from error
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise BadSetting(f"the Avro schema is not one: {type(error).__name__}: {error}") from error
