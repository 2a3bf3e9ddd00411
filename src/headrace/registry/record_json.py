r"""How the records of `_schemas` are written: as Confluent's registry does. Each reads what the other wrote.

    {"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}
    {"subject":"orders-value","version":1,"id":7,"schema":"\"string\"","deleted":false}

`schemaType` is left out for Avro, and what is empty always. A null value takes the key's record back.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.registry.formats import Level, Reference, Schema, SchemaType
from headrace.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Exists,
    Key,
    MaxIdKey,
    MaxIdValue,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
    SchemaValue,
    Value,
)

TENANT: Final = "default"
_MAX_INT: Final = 2**31 - 1
_LEVELS: Final = {"compatibilityLevel", "compatibility"}
_UNDERSTOOD: Final = {"subject", "alias", "normalize", "compatibilityGroup"} | _LEVELS


class BadRecord(ValueError):
    """Not a record of a registry's, or none that can be understood."""


def encode_key(key: Key) -> bytes:
    match key:
        case SchemaKey(subject, version):
            return _json({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})
        case ConfigKey(subject):
            return _json({"keytype": "CONFIG", **_subject(subject), "magic": 0})
        case ModeKey(subject):
            return _json({"keytype": "MODE", **_subject(subject), "magic": 0})
        case DeleteSubjectKey(subject):
            return _json({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0})
        case ClearSubjectKey(subject):
            return _json({"keytype": "CLEAR_SUBJECT", **_subject(subject), "magic": 0})
        case ContextKey(context):
            return _json({"keytype": "CONTEXT", "tenant": TENANT, "context": context, "magic": 0})
        case NoopKey():
            return _json({"keytype": "NOOP", "magic": 0})
        case MaxIdKey(context):
            return _json({"keytype": "NOOP", "magic": 0, "maxIdOf": context})


def encode_value(record: Record) -> bytes | None:
    value = record.value
    match value:
        case None:
            return None
        case SchemaValue():
            return _json(_schema_document(value))
        case ConfigValue():
            return _json({**_subject(getattr(record.key, "subject", None)), **config_document(value)})
        case ModeValue(mode):
            return _json({**_subject(getattr(record.key, "subject", None)), "mode": str(mode)})
        case DeleteSubjectValue(version):
            assert isinstance(record.key, DeleteSubjectKey), record
            return _json({"subject": record.key.subject, "version": version})
        case MaxIdValue(highest):
            return _json({"maxId": highest})
        case Exists() if isinstance(record.key, ContextKey):
            return _json({"tenant": TENANT, "context": record.key.context})
        case Exists():
            return _json(_subject(getattr(record.key, "subject", None)))


def _schema_document(value: SchemaValue) -> dict[str, Any]:
    document: dict[str, Any] = {"subject": value.subject, "version": value.version, "id": value.id}
    document |= described(value.schema)
    if value.metadata is not None:
        document["metadata"] = value.metadata
    if value.rule_set is not None:
        document["ruleSet"] = value.rule_set
    return {**document, "schema": value.schema.text, "deleted": value.deleted}


def described(schema: Schema) -> dict[str, Any]:
    """Its type, unless it is the usual one, and what it refers to, if anything."""
    document: dict[str, Any] = {}
    if schema.type is not SchemaType.AVRO:
        document["schemaType"] = str(schema.type)
    if schema.references:
        document["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    return document


def config_document(value: ConfigValue, *, level: str = "compatibilityLevel") -> dict[str, Any]:
    """What has been set, by the names that it has in JSON."""
    document: dict[str, Any] = dict(value.others)
    if value.alias is not None:
        document["alias"] = value.alias
    if value.normalize is not None:
        document["normalize"] = value.normalize
    if value.compatibility is not None:
        document[level] = str(value.compatibility)
    if value.group is not None:
        document["compatibilityGroup"] = value.group
    return document


def _subject(subject: str | None) -> dict[str, str]:
    return {} if subject is None else {"subject": subject}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


# -- reading ---------------------------------------------------------------------------------------


def decode(key: bytes | None, value: bytes | None) -> Record:
    """The record; BadRecord with the reason if it is none of a registry's."""
    try:
        name = _document(key)
        said = None if value is None else _document(value)
        found = _key(name, said or {})
        return Record(found, None if said is None else _value(found, said))
    except BadRecord:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadRecord(f"{type(error).__name__}: {error}") from error


def _document(data: bytes | None) -> dict[str, Any]:
    if data is None:
        raise BadRecord("it has no key")
    document = json.loads(data)
    if not isinstance(document, dict):
        raise BadRecord(f"it is {type(document).__name__}, not an object")
    return document


def _key(name: Mapping[str, Any], said: Mapping[str, Any]) -> Key:
    match name["keytype"]:
        case "SCHEMA":
            return SchemaKey(_text(name["subject"]), _positive(name["version"]))
        case "CONFIG":
            return ConfigKey(_optional_text(name.get("subject")))
        case "MODE":
            return ModeKey(_optional_text(name.get("subject")))
        case "DELETE_SUBJECT":
            return DeleteSubjectKey(_text(name["subject"]))
        case "CLEAR_SUBJECT":
            return ClearSubjectKey(_optional_text(name.get("subject", said.get("subject"))))
        case "CONTEXT":
            return ContextKey(_text(name["context"]))
        case "NOOP":
            return MaxIdKey(_text(name["maxIdOf"])) if "maxIdOf" in name else NoopKey()
        case other:
            raise BadRecord(f"its key type is {other!r}")


def _value(key: Key, said: Mapping[str, Any]) -> Value:
    match key:
        case SchemaKey():
            return _schema_value(key, said)
        case ConfigKey():
            return read_config(said)
        case ModeKey():
            return ModeValue(Mode(said["mode"]))
        case DeleteSubjectKey():
            return DeleteSubjectValue(_positive(said["version"], least=0))
        case MaxIdKey():
            return MaxIdValue(_positive(said["maxId"], least=0))
        case _:
            return Exists()


def _schema_value(key: SchemaKey, said: Mapping[str, Any]) -> SchemaValue:
    schema = Schema(
        SchemaType(said.get("schemaType") or SchemaType.AVRO),
        _text(said["schema"]),
        tuple(_references(said.get("references") or ())),
    )
    return SchemaValue(
        key.subject,
        key.version,
        _positive(said["id"], least=0),
        schema,
        said.get("metadata"),
        said.get("ruleSet"),
        deleted=said.get("deleted") is True,
    )


def _references(said: Sequence[Mapping[str, Any]]) -> list[Reference]:
    return [
        Reference(_text(each["name"]), _text(each["subject"]), _positive(each["version"])) for each in said
    ]


def read_config(said: Mapping[str, Any]) -> ConfigValue:
    """Settings as JSON has them; ValueError if there is no such level."""
    others = {name: value for name, value in said.items() if value is not None and name not in _UNDERSTOOD}
    level = said.get("compatibilityLevel") or said.get("compatibility")
    return ConfigValue(
        None if level is None else Level(level),
        said.get("normalize"),
        said.get("alias"),
        said.get("compatibilityGroup"),
        others,
    )


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise BadRecord(f"{said!r} should be text")
    return said


def _optional_text(said: object) -> str | None:
    return None if said is None else _text(said)


def _positive(said: object, least: int = 1) -> int:
    if not isinstance(said, int) or isinstance(said, bool) or not least <= said <= _MAX_INT:
        raise BadRecord(f"{said!r} should be a whole number from {least} on")
    return said
