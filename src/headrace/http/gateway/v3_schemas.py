"""REST proxy, v3: a key or value as bytes, by a schema: one that it names, brings along, or the newest."""

from http import HTTPStatus
from typing import Any, Final

from headrace.http.gateway.schemas import TYPES, Schemas, as_problem
from headrace.http.gateway.v3_produce import DataV3, Written
from headrace.http.problems import Problem
from headrace.registry.refusals import Refusal

_FORMATS: Final = {"AVRO": "avro", "JSONSCHEMA": "jsonschema", "PROTOBUF": "protobuf"}
_NAMES: Final = {format_: name for name, format_ in _FORMATS.items()}


def write_by_schema(schemas: Schemas, asked: DataV3, topic: str, is_key: bool) -> Written:
    """The bytes, and what the answer says of the schema; waits for brokers."""
    said: dict[str, Any] = {}
    schema_id = asked.schema_id
    if asked.schema_text is not None:
        if asked.type is None or asked.schema_id or asked.schema_version:
            raise _bad("a schema goes with its type, and with no schema_id or schema_version")
        subject = _subject(asked, topic, is_key)
        found = schemas.registered(subject, _FORMATS[asked.type], asked.schema_text)
        schema_id, said = found.id, {"subject": found.subject, "schema_version": found.version}
    elif schema_id is None:
        found = schemas.version(_subject(asked, topic, is_key), asked.schema_version)
        schema_id, said = found.id, {"subject": found.subject, "schema_version": found.version}
    elif asked.schema_version is not None:
        raise _bad("schema_id and schema_version exclude each other")
    try:
        codec = schemas.codec(schema_id)
    except Refusal as error:
        raise as_problem(error) from None
    kind = _NAMES[codec.format]
    if asked.type not in {None, kind}:
        raise _bad(f"schema {schema_id} is {TYPES[codec.format]}, and the type says {asked.type}")
    data = None if asked.data is None else schemas.write(schema_id, asked.data)
    return Written(data, {"type": kind, **said, "schema_id": schema_id, "size": len(data or b"")})


def _subject(asked: DataV3, topic: str, is_key: bool) -> str:
    if asked.subject is not None:
        return asked.subject
    if asked.subject_name_strategy not in {None, "TOPIC_NAME"}:
        raise _bad(f"{asked.subject_name_strategy} is not known here: name the subject")
    return f"{topic}-key" if is_key else f"{topic}-value"


def _bad(said: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, 400, said)
