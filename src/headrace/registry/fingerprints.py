"""What a schema is called in every registry: an MD5 of what it says, written as a UUID (its guid).

Confluent's registry makes the same, so headers that name a schema by it stay good when `_schemas` moves from
one to the other. What goes in, in this order and with nothing in between:

    text, then of each reference: name, subject, version (4 bytes)
    01, then of the metadata: tags (key, values), properties (key, value), sensitive      if there is any
    01, then of the rules: migration, domain and encoding rules, field by field, enableAt   if there are any
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from headrace.registry.records import SchemaValue

_BEFORE_EXTRAS: Final = b"\1"
_RULES: Final = ("migrationRules", "domainRules", "encodingRules")


def fingerprint(value: SchemaValue) -> bytes:
    """The 16 bytes of it."""
    digest = hashlib.md5(usedforsecurity=False)
    for part in _parts(value):
        digest.update(part)
    return digest.digest()


def guid(value: SchemaValue) -> str:
    """The same as people write it."""
    return str(UUID(bytes=fingerprint(value)))


def read_guid(text: str) -> bytes | None:
    """The fingerprint that `text` stands for; None if it is none."""
    try:
        return UUID(text).bytes
    except ValueError:
        return None


def _parts(value: SchemaValue) -> Iterator[bytes]:
    yield _bytes(value.schema.text)
    for each in value.schema.references:
        yield _bytes(each.name)
        yield _bytes(each.subject)
        yield each.version.to_bytes(4, signed=True)
    if value.metadata is not None:
        yield _BEFORE_EXTRAS
        yield from map(_bytes, _of_metadata(_mapping(value.metadata)))
    if value.rule_set is not None:
        yield _BEFORE_EXTRAS
        rules = _mapping(value.rule_set)
        for kind in _RULES:
            for rule in _list(rules.get(kind)):
                yield from _of_rule(_mapping(rule))
        yield _bytes(rules.get("enableAt"))


def _of_metadata(metadata: Mapping[str, Any]) -> Iterator[Any]:
    for key, values in _sorted(metadata.get("tags")):
        yield key
        yield from _set(values)
    for pair in _sorted(metadata.get("properties")):
        yield from pair
    yield from _set(metadata.get("sensitive"))


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


def _mapping(said: Any) -> Mapping[str, Any]:
    """What should be one. Records of `_schemas` may have anything there, and need a fingerprint as well."""
    return said if isinstance(said, Mapping) else {} if said is None else {"name": said}


def _sorted(said: Any) -> list[tuple[str, Any]]:
    return sorted(_mapping(said).items(), key=lambda each: _utf16(each[0]))


def _set(said: Any) -> list[str]:
    return sorted({_text(each) for each in _list(said)}, key=_utf16)


def _list(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [] if said is None else [said]


def _utf16(text: str) -> bytes:
    """What Java sorts by."""
    return text.encode("utf-16-be", "surrogatepass")


def _text(said: Any) -> str:
    return said if isinstance(said, str) else json.dumps(said, sort_keys=True)


def _bytes(said: Any) -> bytes:
    return b"" if said is None else _text(said).encode(errors="replace")
