"""REST proxy, v3: a record as a request has it, the record that is written, and the answer about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field, StrictInt, StrictStr, ValidationError

from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.records.one_by_one import Record
from headrace.http.gateway.asking import INT32, Body, Index, example
from headrace.http.gateway.delivery import Delivered
from headrace.http.gateway.encoding import BadValue, TooCostly, as_binary, as_json, as_text
from headrace.http.gateway.plain_json import NotJson, read_json
from headrace.http.problems import Problem, code_of

HEADERS: Final = 1000  # of a record
BAD_PAYLOAD: Final = 42206
TOO_COSTLY: Final = 42210
_PLAIN: Final[Mapping[str, Callable[[Any], bytes | None]]] = {
    "BINARY": as_binary,
    "JSON": as_json,
    "STRING": as_text,
}


class DataV3(Body):
    """A key or value, and how it is written: plainly, or by a schema."""

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
    """A record to be written."""

    model_config = example(key={"type": "STRING", "data": "alice"}, value={"type": "JSON", "data": {"n": 1}})

    partition_id: Index | None = None
    headers: Annotated[list[HeaderV3], Field(default_factory=list, max_length=HEADERS)]
    key: DataV3 | None = None
    value: DataV3 | None = None
    timestamp: Annotated[AwareDatetime | None, Field(examples=["2026-01-31T12:00:00Z"])] = None


@dataclass(frozen=True, slots=True)
class Written:
    """A key or value as bytes, and what the answer says of it."""

    data: bytes | None
    said: dict[str, Any] | None


Draft = Callable[[], Written]
"""What has been found to fit, and is registered, if it is to be, when it is called."""

BySchema = Callable[[DataV3, str, bool], Draft]
"""Writes data by its schema, for a topic, as a key or not."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record to be sent, and what the answer will say of its key and value."""

    record: Record
    said: dict[str, Any]


def read_record(text: bytes) -> RecordV3:
    """The record in a request; a Problem says what is wrong with it."""
    try:
        return RecordV3.model_validate(read_json(text))
    except NotJson as error:
        raise Problem(HTTPStatus.BAD_REQUEST, 400, f"this is not JSON: {error}") from None
    except ValidationError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, 400, invalid(error)) from None


def invalid(error: ValidationError) -> str:
    """What is wrong, as people write it."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)[:5]
    )


def has_schema(asked: RecordV3) -> bool:
    """Whether the registry has to be asked about it."""
    return any(each is not None and each.type not in _PLAIN for each in (asked.key, asked.value))


def prepare(asked: RecordV3, topic: str, by_schema: BySchema) -> Prepared:
    """The record, as bytes; a Problem if it cannot be written so."""
    try:
        key_draft = _draft(asked.key, topic, by_schema, is_key=True)
        value_draft = _draft(asked.value, topic, by_schema, is_key=False)
        headers = [(_name(each), as_binary(each.value)) for each in asked.headers]
    except TooCostly as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, TOO_COSTLY, str(error)) from None
    except BadValue as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_PAYLOAD, str(error)) from None
    key, value = key_draft(), value_draft()
    record = Record(
        key=key.data,
        value=value.data,
        headers=headers,
        partition=asked.partition_id,
        timestamp_ms=None if asked.timestamp is None else _ms(asked.timestamp),
    )
    said = {name: each.said for name, each in (("key", key), ("value", value)) if each.said is not None}
    return Prepared(record, said)


def _draft(asked: DataV3 | None, topic: str, by_schema: BySchema, *, is_key: bool) -> Draft:
    if asked is None:
        return lambda: Written(None, None)
    encode = _PLAIN.get(asked.type or "")
    if encode is None:
        return by_schema(asked, topic, is_key)
    if asked.schema_id or asked.schema_version or asked.schema_text or asked.subject:
        raise BadValue(f"{asked.type} data has no schema")
    data = encode(asked.data)
    return lambda: Written(data, {"type": asked.type, "size": len(data or b"")})


def _name(header: HeaderV3) -> str:
    as_text(header.name)
    return header.name


def _ms(at: datetime) -> int:
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    if since.days < 0:
        raise Problem(HTTPStatus.BAD_REQUEST, 400, f"{at.isoformat()} is before 1970")
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


# -- answers -----------------------------------------------------------------------------------


def reported(outcome: Delivered, prepared: Prepared, cluster_id: str, topic: str) -> dict[str, Any]:
    """The answer about a record that was written, which has an error_code, too."""
    return {
        "error_code": 200,
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": outcome.partition,
        **({} if outcome.offset is None else {"offset": outcome.offset}),
        **_timestamp(outcome),
        **prepared.said,
    }


def refused(error: Problem | ClientError) -> dict[str, Any]:
    """The answer about a record that was not written."""
    code = error.code if isinstance(error, Problem) else _code(error)
    return {"error_code": code, "message": str(error).encode("utf-8", "backslashreplace").decode()}


def status_of(error: Problem | ClientError) -> int:
    return error.status if isinstance(error, Problem) else code_of(error)[0]


def _code(error: ClientError) -> int:
    return 40403 if isinstance(error, NoSuchTopic) else code_of(error)[1]


def _timestamp(outcome: Delivered) -> dict[str, str]:
    if outcome.timestamp_ms is None:
        return {}
    seconds, ms = divmod(outcome.timestamp_ms, 1000)
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return {}
    return {"timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"}
