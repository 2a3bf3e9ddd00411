"""REST proxy, v2: produce records to a topic, or to one of its partitions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Depends, Response
from fastapi import Body as InBody
from fastapi.exceptions import RequestValidationError
from pydantic import Field, SkipValidation, StrictInt, StrictStr, ValidationError

from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.base import BadValue
from headrace.gateway.problems import Problem
from headrace.gateway.registry.registry import in_registry_thread
from headrace.gateway.rest import media
from headrace.gateway.rest.bodies import INT32, Body, Index, PartitionId, TopicName
from headrace.gateway.rest.delivery import Delivered
from headrace.gateway.rest.hub import Hub, HubDep
from headrace.gateway.rest.schemas import INVALID, TYPES, SchemaCodec, Schemas, framed
from headrace.gateway.rest.values import as_binary, as_json

router = APIRouter(
    tags=["REST proxy v2"],
    route_class=media.V2Route,
    default_response_class=media.V2JSON,
    responses=media.PLAIN_TOO | media.v2_answers(400, 404, 406, 413, 415, 422, 503),
)

MAX_RECORDS: Final = 100_000  # in a request
TURN: Final = 500  # records after which other requests have their turn on the event loop
KAFKA_ERROR, RETRIABLE_ERROR = 50002, 50003  # of one record
NO_KEY_SCHEMA, NO_VALUE_SCHEMA, BAD_CONVERSION, BAD_PAYLOAD = 42201, 42202, 42203, 42206
_PLAIN: Final[Mapping[str, Callable[[Any], bytes | None]]] = {"json": as_json, "binary": as_binary}


class RecordV2(Body):
    """A record; the content type says what key and value are."""

    key: Any = None
    value: Any = None
    partition: Annotated[Index | None, Field(description="If left out, the key decides.")] = None


SchemaText = Annotated[StrictStr | None, Field(description="The schema itself, which gets registered.")]
SchemaId = Annotated[
    StrictInt | None,
    Field(ge=1, le=INT32, description="The id of a schema that is registered for the subject."),
]


class ProduceV2(Body):
    """Records, and the schemas of their keys and values if the format needs schemas."""

    records: Annotated[
        list[SkipValidation[RecordV2]],  # `_validated` validates them, in turns with other requests
        Field(min_length=1, max_length=MAX_RECORDS),
    ]
    key_schema: SchemaText = None
    key_schema_id: SchemaId = None
    value_schema: SchemaText = None
    value_schema_id: SchemaId = None


Embedded = Annotated[str, Depends(media.embedded_format)]
ProduceBody = Annotated[ProduceV2, InBody(media_type=media.of_format(media.FORMATS[1]))]
_SAME: Final = {"schema": {"$ref": "#/components/schemas/ProduceV2"}}
_MEDIA: Final = {"requestBody": {"content": {media.of_format(each): _SAME for each in media.FORMATS}}}


@router.post("/topics/{name}", openapi_extra=_MEDIA)
async def produce(name: TopicName, embedded: Embedded, body: ProduceBody, hub: HubDep) -> Response:
    """Respond when all in-sync replicas have the records, with partition and offset or the error of each.

    No record is produced if one of them is invalid: its key or value is not what the content type says, or it
    names a partition that does not exist.
    """
    return await _produce(hub, name, embedded, body, await _validated(body))


@router.post("/topics/{name}/partitions/{partition_id}", openapi_extra=_MEDIA)
async def produce_to_partition(
    name: TopicName, partition_id: PartitionId, embedded: Embedded, body: ProduceBody, hub: HubDep
) -> Response:
    """Produce all records to this partition, and respond as for a topic."""
    records = await _validated(body)
    if any(record.partition not in {None, partition_id} for record in records):
        raise Problem(422, f"a record names another partition than {partition_id}, which the path names")
    return await _produce(hub, name, embedded, body, records, partition=partition_id)


async def _validated(body: ProduceV2) -> list[RecordV2]:
    """Return the records after validation, during which other requests have their turn.

    Raise RequestValidationError as if they had been validated with the rest of the body.
    """
    records: list[RecordV2] = []
    for number, given in enumerate(body.records):
        if number % TURN == TURN - 1:
            await asyncio.sleep(0)
        try:
            records.append(RecordV2.model_validate(given))
        except ValidationError as error:
            at = ("body", "records", number)
            errors = error.errors(include_url=False)
            raise RequestValidationError([{**each, "loc": (*at, *each["loc"])} for each in errors]) from None
    return records


async def _produce(
    hub: Hub,
    topic: str,
    embedded: str,
    body: ProduceV2,
    given: Sequence[RecordV2],
    *,
    partition: int | None = None,
) -> Response:
    await hub.topics.partitions(topic)
    for each in {partition, *(record.partition for record in given)}:
        await hub.topics.check(topic, each)
    if embedded in _PLAIN:
        keys, values = await _encode_plain(given, _PLAIN[embedded])
    else:
        encode = partial(_encode_by_schema, hub.schemas, topic, embedded, body, given)
        keys, values = await in_registry_thread(encode)
    records = [
        Record(key=key, value=value, partition=partition if each.partition is None else each.partition)
        for each, key, value in zip(given, keys.data, values.data, strict=True)
    ]
    offsets: list[dict[str, Any]] = []  # dicts are cheaper to make: there may be 100,000
    for outcome in await hub.send(topic, records):
        offset: dict[str, Any] = {"partition": None, "offset": None, "error_code": None, "error": None}
        if isinstance(outcome, Delivered):
            offset["partition"], offset["offset"] = outcome.partition, outcome.offset
        else:
            offset["error_code"] = RETRIABLE_ERROR if outcome.retriable else KAFKA_ERROR
            offset["error"] = str(outcome.error)
        offsets.append(offset)
    return media.V2JSON(
        {"offsets": offsets, "key_schema_id": keys.schema_id, "value_schema_id": values.schema_id}
    )


class Encoded(NamedTuple):
    """Keys or values as bytes, and the id of their schema if they have one."""

    data: Sequence[bytes | None]
    schema_id: int | None = None


async def _encode_plain(
    records: Sequence[RecordV2], encode: Callable[[Any], bytes | None]
) -> tuple[Encoded, Encoded]:
    keys, values = [], []
    for number, each in enumerate(records):
        if number % TURN == TURN - 1:
            await asyncio.sleep(0)
        try:
            keys.append(encode(each.key))
            values.append(encode(each.value))
        except BadValue as error:
            raise Problem(BAD_PAYLOAD, f"record {number}: {error}") from None
    return Encoded(keys), Encoded(values)


@dataclass(frozen=True, slots=True)
class _SchemaRef:
    """The schema of keys or values, as a request names it."""

    what: str  # key or value
    subject: str
    text: str | None
    schema_id: int | None
    missing: int  # the error code if there is no schema


def _encode_by_schema(
    schemas: Schemas, topic: str, embedded: str, body: ProduceV2, records: Sequence[RecordV2]
) -> tuple[Encoded, Encoded]:
    """Return all keys and values encoded by their schemas, which get registered if they are new.

    Raise a Problem if a value does not fit or has no schema; then no schema is registered either. Waits for
    brokers, so it is for threads.
    """
    key = _SchemaRef("key", f"{topic}-key", body.key_schema, body.key_schema_id, NO_KEY_SCHEMA)
    value = _SchemaRef("value", f"{topic}-value", body.value_schema, body.value_schema_id, NO_VALUE_SCHEMA)
    key_codec, value_codec = _codec(schemas, embedded, key), _codec(schemas, embedded, value)
    keys = _encode([record.key for record in records], key_codec, key)
    values = _encode([record.value for record in records], value_codec, value)
    return _framed(schemas, embedded, key, keys), _framed(schemas, embedded, value, values)


def _codec(schemas: Schemas, embedded: str, ref: _SchemaRef) -> SchemaCodec | None:
    """Return the codec of the schema; raise a Problem if the schema is not of the content type's format."""
    if ref.schema_id is None:
        return None if ref.text is None else schemas.by_text(embedded, ref.text)
    codec = schemas.by_id(ref.schema_id, ref.subject)
    if codec.format != embedded:
        why = f"schema {ref.schema_id} is {TYPES[codec.format]}, but the content type says {embedded}"
        raise Problem(INVALID, why)
    return codec


def _encode(values: Sequence[Any], codec: SchemaCodec | None, ref: _SchemaRef) -> list[bytes | None]:
    if codec is None:
        if any(value is not None for value in values):
            why = f"there are {ref.what}s, but neither {ref.what}_schema nor {ref.what}_schema_id"
            raise Problem(ref.missing, why)
        return [None] * len(values)
    present = [number for number, value in enumerate(values) if value is not None]
    encoded: list[bytes | None] = [None] * len(values)
    try:
        for number, data in zip(present, codec.encode([values[each] for each in present]), strict=True):
            encoded[number] = data
    except BadValue as error:
        raise Problem(BAD_CONVERSION, f"the {ref.what} of record {present[error.index]}: {error}") from None
    return encoded


def _framed(schemas: Schemas, embedded: str, ref: _SchemaRef, data: Sequence[bytes | None]) -> Encoded:
    schema_id = ref.schema_id
    if schema_id is None and ref.text is not None:
        schema_id = schemas.registered(ref.subject, embedded, ref.text).id
    if schema_id is None:
        return Encoded(data)
    return Encoded([None if each is None else framed(schema_id, each) for each in data], schema_id)
