"""When two schemas are one: what they say, and what they refer to, is the same."""

import hashlib
import json
from typing import Any
from uuid import UUID

from headrace.registry.formats import Reference, SchemaType
from headrace.registry.records import SchemaValue

Identity = tuple[SchemaType, str, tuple[Reference, ...], str, str]


def identity(value: SchemaValue) -> Identity:
    """Equal for schemas that share an id, wherever they are registered."""
    schema = value.schema
    return schema.type, schema.text, schema.references, _sorted(value.metadata), _sorted(value.rule_set)


def guid(value: SchemaValue) -> str:
    """A fingerprint that is the same in every registry; it is Confluent's where there is no metadata."""
    digest = hashlib.md5(value.schema.text.encode(), usedforsecurity=False)
    for each in value.schema.references:
        digest.update(f"{each.name}{each.subject}".encode() + each.version.to_bytes(4))
    for extra in (value.metadata, value.rule_set):
        if extra is not None:
            digest.update(b"\1" + _sorted(extra).encode())
    return str(UUID(bytes=digest.digest()))


def _sorted(document: Any) -> str:
    return "" if document is None else json.dumps(document, sort_keys=True)
