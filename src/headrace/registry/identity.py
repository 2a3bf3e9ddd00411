"""When two schemas are one: what they say, and what they refer to, is the same."""

import json
from typing import Any

from headrace.registry.formats import Reference, SchemaType
from headrace.registry.records import SchemaValue

Identity = tuple[SchemaType, str, tuple[Reference, ...], str, str]


def identity(value: SchemaValue) -> Identity:
    """Equal for schemas that share an id, wherever they are registered."""
    schema = value.schema
    return schema.type, schema.text, schema.references, _sorted(value.metadata), _sorted(value.rule_set)


def _sorted(document: Any) -> str:
    return "" if document is None else json.dumps(document, sort_keys=True)
