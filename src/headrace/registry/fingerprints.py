"""The fingerprint of a schema, the same in every registry: an MD5 that is written as a UUID (its guid).

Confluent's registry computes the same one, so headers with a fingerprint stay valid when `_schemas` moves
from one registry to the other. The input of the hash, in this order and without separators:

    text, then of each reference: name, subject, version (4 bytes)
    01, then of the metadata: tags (key, values), properties (key, value), sensitive      if there is metadata
    01, then of the rules: migration, domain and encoding rules, field by field, enableAt   if there are rules
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from headrace.registry.formats import Reference, SchemaType
from headrace.registry.records import SchemaValue

Identity = tuple[SchemaType, str, tuple[Reference, ...], str, str]

_BEFORE_EXTRAS: Final = b"\1"
_RULES: Final = ("migrationRules", "domainRules", "encodingRules")


def identity(value: SchemaValue) -> Identity:
    """Return a key that is equal for schemas that share an id: same text, references, metadata and rules."""
    schema, metadata, rules = value.schema, value.metadata, value.rule_set
    metadata_text = "" if metadata is None else json.dumps(metadata, sort_keys=True)
    rules_text = "" if rules is None else json.dumps(rules, sort_keys=True)
    return schema.type, schema.text, schema.references, metadata_text, rules_text


def fingerprint(value: SchemaValue) -> bytes:
    digest = hashlib.md5(usedforsecurity=False)
    for part in _parts(value):
        digest.update(part)
    return digest.digest()


def guid(value: SchemaValue) -> str:
    """Return the fingerprint as a UUID."""
    return str(UUID(bytes=fingerprint(value)))


def read_guid(text: str) -> bytes | None:
    """Return the fingerprint that is written as `text`; None if it is not a UUID."""
    try:
        return UUID(text).bytes
    except ValueError:
        return None


def _parts(value: SchemaValue) -> Iterator[bytes]:
    yield _bytes(value.schema.text)
    for reference in value.schema.references:
        yield _bytes(reference.name)
        yield _bytes(reference.subject)
        yield reference.version.to_bytes(4, signed=True)
    if value.metadata is not None:
        yield _BEFORE_EXTRAS
        metadata = _mapping(value.metadata)
        for key, values in _sorted(metadata.get("tags")):
            yield from map(_bytes, (key, *_set(values)))
        for pair in _sorted(metadata.get("properties")):
            yield from map(_bytes, pair)
        yield from map(_bytes, _set(metadata.get("sensitive")))
    if value.rule_set is not None:
        yield _BEFORE_EXTRAS
        rules = _mapping(value.rule_set)
        for kind in _RULES:
            for rule in _list(rules.get(kind)):
                yield from _of_rule(_mapping(rule))
        yield _bytes(rules.get("enableAt"))


def _of_rule(rule: Mapping[str, Any]) -> Iterator[bytes]:
    yield from map(_bytes, (rule.get("name"), rule.get("doc")))
    yield from map(_bytes, (rule.get("kind") or "TRANSFORM", rule.get("mode") or "WRITEREAD"))
    yield _bytes(rule.get("type"))
    yield from map(_bytes, _set(rule.get("tags")))
    for pair in _sorted(rule.get("params")):
        yield from map(_bytes, pair)
    yield from map(_bytes, (rule.get("expr"), rule.get("onSuccess"), rule.get("onFailure")))
    if rule.get("disabled") is True:
        yield b"\1"


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping for any JSON value: malformed records of `_schemas` need a fingerprint, too."""
    return value if isinstance(value, Mapping) else {} if value is None else {"name": value}


def _sorted(value: Any) -> list[tuple[str, Any]]:
    return sorted(_mapping(value).items(), key=lambda item: _utf16(item[0]))


def _set(value: Any) -> list[str]:
    return sorted({_text(each) for each in _list(value)}, key=_utf16)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _utf16(text: str) -> bytes:
    """Return the order in which Java sorts strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _bytes(value: Any) -> bytes:
    return b"" if value is None else _text(value).encode(errors="replace")
