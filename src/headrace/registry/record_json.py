r"""The encoding of the records of `_schemas`, which is that of Confluent's registry.

    {"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}
    {"subject":"orders-value","version":1,"id":7,"schema":"\"string\"","deleted":false}

`schemaType` is left out for Avro, and empty fields always. A null value is a tombstone.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from headrace.registry import records
from headrace.registry.formats import Level, Reference, Schema, SchemaType

TENANT: Final = "default"
_MAX_INT: Final = 2**31 - 1
_LEVELS: Final = {"compatibilityLevel", "compatibility"}
_UNDERSTOOD: Final = {"subject", "alias", "normalize", "compatibilityGroup"} | _LEVELS


_KEY_TYPES: Final[Mapping[type, str]] = {
    records.SchemaKey: "SCHEMA",
    records.ConfigKey: "CONFIG",
    records.ModeKey: "MODE",
    records.DeleteSubjectKey: "DELETE_SUBJECT",
    records.ClearSubjectKey: "CLEAR_SUBJECT",
    records.ContextKey: "CONTEXT",
    records.NoopKey: "NOOP",
}


class BadRecord(ValueError):
    """The record is not one of a registry, or is malformed."""


def encode_key(key: records.RecordKey) -> bytes:
    if isinstance(key, records.MaxIdKey):
        return _json({"keytype": "NOOP", "magic": 0, "maxIdOf": key.context})
    tenant = {"tenant": TENANT} if isinstance(key, records.ContextKey) else {}
    fields = {name: value for name, value in asdict(key).items() if value is not None}
    magic = int(isinstance(key, records.SchemaKey))
    return _json({"keytype": _KEY_TYPES[type(key)], **tenant, **fields, "magic": magic})


def encode_value(record: records.Record) -> bytes | None:
    subject = getattr(record.key, "subject", None)
    document: dict[str, Any] = {} if subject is None else {"subject": subject}
    match record.value:
        case None:
            return None
        case records.SchemaValue() as value:
            document = _schema_document(value)
        case records.ConfigValue() as value:
            document |= config_document(value)
        case records.ModeValue(mode):
            document["mode"] = str(mode)
        case records.DeleteSubjectValue(version):
            document["version"] = version
        case records.MaxIdValue(highest):
            document["maxId"] = highest
        case records.Exists() if isinstance(record.key, records.ContextKey):
            document = {"tenant": TENANT, "context": record.key.context}
    return _json(document)


def _schema_document(value: records.SchemaValue) -> dict[str, Any]:
    schema = value.schema
    document = {
        "subject": value.subject,
        "version": value.version,
        "id": value.id,
        "schemaType": None if schema.type is SchemaType.AVRO else str(schema.type),
        "references": [asdict(reference) for reference in schema.references] or None,
        "metadata": value.metadata,
        "ruleSet": value.rule_set,
        "schema": schema.text,
        "deleted": value.deleted,
    }
    return {name: each for name, each in document.items() if each is not None}


def config_document(value: records.ConfigValue, *, level: str = "compatibilityLevel") -> dict[str, Any]:
    """Return the settings that are set, by their names in JSON."""
    document = {
        "alias": value.alias,
        "normalize": value.normalize,
        level: None if value.compatibility is None else str(value.compatibility),
        "compatibilityGroup": value.group,
    }
    return {**value.others, **{name: each for name, each in document.items() if each is not None}}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def decode(key: bytes | None, value: bytes | None) -> records.Record:
    """Return the record; BadRecord if it is not one of a registry."""
    try:
        key_document = _document(key)
        document = None if value is None else _document(value)
        found = _key(key_document, document or {})
        return records.Record(found, None if document is None else _value(found, document))
    except BadRecord:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{type(error).__name__}: {error}") from error


def _document(data: bytes | None) -> dict[str, Any]:
    if data is None:
        raise BadRecord("the record has no key")
    document = json.loads(data)
    if not isinstance(document, dict):
        raise BadRecord(f"found {type(document).__name__}, expected a JSON object")
    return document


def _key(name: Mapping[str, Any], document: Mapping[str, Any]) -> records.RecordKey:
    match name["keytype"]:
        case "SCHEMA":
            return records.SchemaKey(_text(name["subject"]), _positive(name["version"]))
        case "CONFIG":
            return records.ConfigKey(_optional_text(name.get("subject")))
        case "MODE":
            return records.ModeKey(_optional_text(name.get("subject")))
        case "DELETE_SUBJECT":
            return records.DeleteSubjectKey(_text(name["subject"]))
        case "CLEAR_SUBJECT":
            return records.ClearSubjectKey(_optional_text(name.get("subject", document.get("subject"))))
        case "CONTEXT":
            return records.ContextKey(_text(name["context"]))
        case "NOOP":
            return records.MaxIdKey(_text(name["maxIdOf"])) if "maxIdOf" in name else records.NoopKey()
        case other:
            raise BadRecord(f"unknown keytype {other!r}")


def _value(key: records.RecordKey, document: Mapping[str, Any]) -> records.RecordValue:
    match key:
        case records.SchemaKey():
            return _schema_value(key, document)
        case records.ConfigKey():
            return read_config(document)
        case records.ModeKey():
            return records.ModeValue(records.Mode(document["mode"]))
        case records.DeleteSubjectKey():
            return records.DeleteSubjectValue(_positive(document["version"], least=0))
        case records.MaxIdKey():
            return records.MaxIdValue(_positive(document["maxId"], least=0))
        case _:
            return records.Exists()


def _schema_value(key: records.SchemaKey, document: Mapping[str, Any]) -> records.SchemaValue:
    schema = Schema(
        SchemaType(document.get("schemaType") or SchemaType.AVRO),
        _text(document["schema"]),
        tuple(
            Reference(_text(reference["name"]), _text(reference["subject"]), _positive(reference["version"]))
            for reference in document.get("references") or ()
        ),
    )
    return records.SchemaValue(
        key.subject,
        key.version,
        _positive(document["id"], least=0),
        schema,
        document.get("metadata"),
        document.get("ruleSet"),
        deleted=document.get("deleted") is True,
    )


def read_config(document: Mapping[str, Any]) -> records.ConfigValue:
    """Return the settings in a JSON object; ValueError if the level is unknown."""
    others = {
        name: value for name, value in document.items() if value is not None and name not in _UNDERSTOOD
    }
    level = document.get("compatibilityLevel") or document.get("compatibility")
    return records.ConfigValue(
        None if level is None else Level(level),
        document.get("normalize"),
        document.get("alias"),
        document.get("compatibilityGroup"),
        others,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadRecord(f"found {value!r}, expected a string")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _positive(value: object, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MAX_INT:
        raise BadRecord(f"found {value!r}, expected an integer of at least {least}")
    return value
