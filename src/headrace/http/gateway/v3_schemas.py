"""REST proxy, v3: a key or value as bytes, by a schema: one that it names, brings along, or the newest."""

from http import HTTPStatus
from typing import Any, Final

from headrace.http.gateway.schemas import TYPES, Schemas, framed
from headrace.http.gateway.v3_produce import DataV3, Draft, Written
from headrace.http.problems import Problem

_FORMATS: Final = {"AVRO": "avro", "JSONSCHEMA": "jsonschema", "PROTOBUF": "protobuf"}
_NAMES: Final = {format_: name for name, format_ in _FORMATS.items()}


def write_by_schema(schemas: Schemas, asked: DataV3, topic: str, is_key: bool) -> Draft:
    """The bytes, and what the answer says of the schema; waits for brokers."""
    if asked.schema_text is not None:
        return _by_text(schemas, asked, asked.schema_text, _subject(asked, topic, is_key))
    said: dict[str, Any] = {}
    schema_id, subject = asked.schema_id, _subject(asked, topic, is_key)
    if schema_id is None:
        found = schemas.version(subject, asked.schema_version)
        schema_id, said = found.id, {"subject": found.subject, "schema_version": found.version}
    elif asked.schema_version is not None:
        raise _bad("schema_id and schema_version exclude each other")
    codec = schemas.by_id(schema_id, subject)
    kind = _NAMES[codec.format]
    if asked.type not in {None, kind}:
        raise _bad(f"schema {schema_id} is {TYPES[codec.format]}, and the type says {asked.type}")
    data = None if asked.data is None else codec.encode([asked.data])[0]
    return lambda: _written(data, kind, schema_id, said)


def _by_text(schemas: Schemas, asked: DataV3, text: str, subject: str) -> Draft:
    """What is written first, and registered then: what does not fit leaves no trace."""
    if asked.type is None or asked.schema_id or asked.schema_version:
        raise _bad("a schema goes with its type, and with no schema_id or schema_version")
    kind: str = asked.type
    data = None if asked.data is None else schemas.by_text(_FORMATS[kind], text).encode([asked.data])[0]

    def write() -> Written:
        found = schemas.registered(subject, _FORMATS[kind], text)
        said = {"subject": found.subject, "schema_version": found.version}
        return _written(data, kind, found.id, said)

    return write


def _written(data: bytes | None, kind: str, schema_id: int, said: dict[str, Any]) -> Written:
    whole = None if data is None else framed(schema_id, data)
    return Written(whole, {"type": kind, **said, "schema_id": schema_id, "size": len(whole or b"")})


def _subject(asked: DataV3, topic: str, is_key: bool) -> str:
    if asked.subject is not None:
        return asked.subject
    if asked.subject_name_strategy not in {None, "TOPIC_NAME"}:
        raise _bad(f"{asked.subject_name_strategy} is not known here: name the subject")
    return f"{topic}-key" if is_key else f"{topic}-value"


def _bad(said: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, 400, said)
