"""REST proxy, v3: a record of a request, encoded plainly or by a schema, and the report about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field, StrictInt, StrictStr, ValidationError

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.base import BadValue, TooCostly
from headrace.client.serializers.codecs.plain_json import NotJson, read_json
from headrace.gateway.problems import Problem, printable
from headrace.gateway.rest.bodies import INT32, Body, Index
from headrace.gateway.rest.delivery import Delivered
from headrace.gateway.rest.schemas import TYPES, Schemas, framed
from headrace.gateway.rest.v3_resources import v3_code_of
from headrace.gateway.rest.values import as_binary, as_json, as_text, checked_text

HEADERS: Final = 1000  # most headers of a record
BAD_PAYLOAD: Final = 42206
TOO_COSTLY: Final = 42210
_PLAIN: Final[Mapping[str, Callable[[Any], bytes | None]]] = {
    "BINARY": as_binary,
    "JSON": as_json,
    "STRING": as_text,
}
_FORMATS: Final = {"AVRO": "avro", "JSONSCHEMA": "jsonschema", "PROTOBUF": "protobuf"}
_TYPE_NAMES: Final = {format_: name for name, format_ in _FORMATS.items()}


class DataV3(Body):
    """A key or value, and its type: plain, or with a schema."""

    type: Literal["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"] | None = None
    data: Any = None
    subject: Annotated[StrictStr | None, Field(min_length=1, max_length=1000)] = None
    subject_name_strategy: Literal["TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"] | None = None
    schema_id: Annotated[StrictInt | None, Field(ge=1, le=INT32)] = None
    schema_version: Annotated[StrictInt | None, Field(ge=1, le=INT32)] = None
    schema_text: Annotated[StrictStr | None, Field(alias="schema")] = None


class HeaderV3(Body):
    """A header; its value is base64."""

    name: Annotated[StrictStr, Field(max_length=10_000)]
    value: StrictStr | None = None


class RecordV3(Body):
    partition_id: Index | None = None
    headers: Annotated[list[HeaderV3], Field(default_factory=list, max_length=HEADERS)]
    key: DataV3 | None = None
    value: DataV3 | None = None
    timestamp: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class EncodedData:
    """A key or value as bytes, and what the report says of it."""

    data: bytes | None
    report: dict[str, Any] | None


Draft = Callable[[], EncodedData]
"""A key or value that fits its schema; calling it registers the schema, if it is new."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record to send, and what the report will say of its key and value."""

    record: Record
    report: dict[str, Any]


def read_record(text: bytes) -> RecordV3:
    """Return the record in a request; raise a Problem (400) if it is invalid."""
    try:
        return RecordV3.model_validate(read_json(text))
    except NotJson as error:
        raise _bad(f"this is not JSON: {error}") from None
    except ValidationError as error:
        errors = error.errors(include_url=False)[:5]
        raise _bad(
            "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
        ) from None


def has_schema(record: RecordV3) -> bool:
    return any(each is not None and each.type not in _PLAIN for each in (record.key, record.value))


def prepare(given: RecordV3, topic: str, schemas: Callable[[], Schemas]) -> Prepared:
    """Return the encoded record; raise a Problem if that fails. With a schema, it waits for brokers."""
    try:
        key_draft = _draft(given.key, f"{topic}-key", schemas)
        value_draft = _draft(given.value, f"{topic}-value", schemas)
        headers = [(checked_text(header.name), as_binary(header.value)) for header in given.headers]
    except TooCostly as error:
        raise Problem(TOO_COSTLY, str(error)) from None
    except BadValue as error:
        raise Problem(BAD_PAYLOAD, str(error)) from None
    key, value = key_draft(), value_draft()
    timestamp_ms = None
    if given.timestamp is not None:
        since = given.timestamp - datetime(1970, 1, 1, tzinfo=UTC)
        if since.days < 0:
            raise _bad(f"{given.timestamp.isoformat()} is before 1970")
        timestamp_ms = since // timedelta(milliseconds=1)
    record = Record(
        key=key.data,
        value=value.data,
        headers=headers,
        partition=given.partition_id,
        timestamp_ms=timestamp_ms,
    )
    reports = {
        name: each.report for name, each in (("key", key), ("value", value)) if each.report is not None
    }
    return Prepared(record, reports)


def _draft(given: DataV3 | None, subject: str, schemas: Callable[[], Schemas]) -> Draft:
    if given is None:
        return lambda: EncodedData(None, None)
    encode = _PLAIN.get(given.type or "")
    if encode is None:
        return _by_schema(schemas(), given, subject)
    if given.schema_id or given.schema_version or given.schema_text or given.subject:
        raise BadValue(f"{given.type} data has no schema")
    data = encode(given.data)
    return lambda: EncodedData(data, {"type": given.type, "size": len(data or b"")})


def _bad(why: str) -> Problem:
    return Problem(400, why)


def _by_schema(schemas: Schemas, given: DataV3, default_subject: str) -> Draft:
    """Encode data by the schema in the request, by one that it names, or by the subject's latest."""
    subject = given.subject or default_subject
    if given.subject is None and given.subject_name_strategy not in {None, "TOPIC_NAME"}:
        raise _bad(f"{given.subject_name_strategy} is not supported: name the subject")
    if given.schema_text is not None:
        return _by_text(schemas, given, given.schema_text, subject)
    version: dict[str, Any] = {}
    schema_id = given.schema_id
    if schema_id is None:
        found = schemas.version(subject, given.schema_version)
        schema_id, version = found.id, {"subject": found.subject, "schema_version": found.version}
    elif given.schema_version is not None:
        raise _bad("schema_id and schema_version exclude each other")
    codec = schemas.by_id(schema_id, subject)
    type_ = _TYPE_NAMES[codec.format]
    if given.type not in {None, type_}:
        raise _bad(f"schema {schema_id} is {TYPES[codec.format]}, but the type says {given.type}")
    data = None if given.data is None else codec.encode([given.data])[0]
    return lambda: _encoded(data, type_, schema_id, version)


def _by_text(schemas: Schemas, given: DataV3, text: str, subject: str) -> Draft:
    """Encode by the schema in the request, which is only registered if the data fits."""
    if given.type is None or given.schema_id or given.schema_version:
        raise _bad("a schema needs its type, and excludes schema_id and schema_version")
    type_: str = given.type
    data = None if given.data is None else schemas.by_text(_FORMATS[type_], text).encode([given.data])[0]

    def register() -> EncodedData:
        found = schemas.registered(subject, _FORMATS[type_], text)
        version = {"subject": found.subject, "schema_version": found.version}
        return _encoded(data, type_, found.id, version)

    return register


def _encoded(data: bytes | None, type_: str, schema_id: int, version: dict[str, Any]) -> EncodedData:
    whole = None if data is None else framed(schema_id, data)
    report = {"type": type_, **version, "schema_id": schema_id, "size": len(whole or b"")}
    return EncodedData(whole, report)


def report_of(outcome: Delivered, prepared: Prepared, cluster_id: str, topic: str) -> dict[str, Any]:
    """Return the report about a record that was produced, which has the error_code 200."""
    return {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": outcome.partition,
        **({} if outcome.offset is None else {"offset": outcome.offset}),
        **_timestamp(outcome),
        **prepared.report,
    }


def failure_of(error: Problem | ClientError) -> dict[str, Any]:
    return {"error_code": v3_code_of(error), "message": printable(str(error))}


def _timestamp(outcome: Delivered) -> dict[str, str]:
    if outcome.timestamp_ms is None:
        return {}
    seconds, ms = divmod(outcome.timestamp_ms, 1000)
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return {}
    return {"timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"}
