"""REST proxy, v2: records written to a topic, or to one of its partitions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response
from fastapi import Body as InBody

from headrace.client.records.one_by_one import Record
from headrace.http.gateway.asking import PartitionId, TopicName
from headrace.http.gateway.delivery import Delivered, Outcome
from headrace.http.gateway.encoding import BadValue, as_binary, as_json
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.media import FORMATS, AnswerType, embedded_format, of_format
from headrace.http.gateway.plain_json import json_answer
from headrace.http.gateway.v2_answers import v2
from headrace.http.gateway.v2_encoders import Encoded, by_schema
from headrace.http.gateway.v2_records import TURN, ProduceV2, RecordV2, checked
from headrace.http.problems import Problem
from headrace.http.registry.threads import in_registry_thread

router = APIRouter(tags=["REST proxy v2"])

KAFKA_ERROR, RETRIABLE_ERROR = 50002, 50003  # of one record
BAD_PAYLOAD: Final = 42206
_REFUSALS = v2(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_PLAIN: Final[Mapping[str, Callable[[Any], bytes | None]]] = {"json": as_json, "binary": as_binary}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetV2:
    """Where a record is, or why it is nowhere."""

    partition: int | None = None
    offset: int | None = None
    error_code: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducedV2:
    """What has become of each record, in their order."""

    offsets: tuple[OffsetV2, ...]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class How:
    """What keys and values are, and what the answer is to be."""

    embedded: Annotated[str, Depends(embedded_format)]
    media_type: AnswerType


Asked = Annotated[ProduceV2, InBody(media_type=of_format(FORMATS[1]))]
_SAME: Final = {"schema": {"$ref": "#/components/schemas/ProduceV2"}}
_MEDIA: Final = {"requestBody": {"content": {of_format(each): _SAME for each in FORMATS}}}


@router.post(
    "/topics/{name}",
    response_model=ProducedV2,
    responses=_REFUSALS,
    openapi_extra=_MEDIA,
    summary="Write records to a topic",
)
async def produce(name: TopicName, how: Annotated[How, Depends()], asked: Asked, hub: Shared) -> Response:
    """Answered when all in-sync replicas have them, with partition and offset, or what is wrong, of each.

    Nothing is written if one of them cannot be: not the key or value that the content type says, or for a
    partition that is not there.
    """
    return await _produce(hub, name, how, asked, await checked(asked))


@router.post(
    "/topics/{name}/partitions/{partition_id}",
    response_model=ProducedV2,
    responses=_REFUSALS,
    openapi_extra=_MEDIA,
    summary="Write records to a partition",
)
async def produce_to_partition(
    name: TopicName, partition_id: PartitionId, how: Annotated[How, Depends()], asked: Asked, hub: Shared
) -> Response:
    """The same, and all go to this partition."""
    records = await checked(asked)
    if any(each.partition not in {None, partition_id} for each in records):
        said = "a record names another partition than the address does"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 422, said)
    return await _produce(hub, name, how, asked, records, partition=partition_id)


async def _produce(
    hub: Hub,
    topic: str,
    how: How,
    asked: ProduceV2,
    given: Sequence[RecordV2],
    *,
    partition: int | None = None,
) -> Response:
    await hub.topics.partitions(topic)
    for each in {partition, *(record.partition for record in given)}:
        await hub.topics.check(topic, each)
    if how.embedded in _PLAIN:
        keys, values = await _plainly(given, _PLAIN[how.embedded])
    else:
        encode = partial(by_schema, hub.schemas, topic, how.embedded, asked, given)
        keys, values = await in_registry_thread(encode)
    records = [
        Record(key=key, value=value, partition=partition if each.partition is None else each.partition)
        for each, key, value in zip(given, keys.data, values.data, strict=True)
    ]
    outcomes = await hub.send(topic, records)
    answer = {
        "offsets": [_offset(outcome) for outcome in outcomes],
        "key_schema_id": keys.schema_id,
        "value_schema_id": values.schema_id,
    }
    return json_answer(answer, media_type=how.media_type)


async def _plainly(
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
            said = f"record {number}: {error}"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_PAYLOAD, said) from None
    return Encoded(keys), Encoded(values)


def _offset(outcome: Outcome) -> dict[str, Any]:
    """An OffsetV2, made in the cheapest way: there may be many."""
    if isinstance(outcome, Delivered):
        return {"partition": outcome.partition, "offset": outcome.offset, "error_code": None, "error": None}
    code = RETRIABLE_ERROR if outcome.retriable else KAFKA_ERROR
    return {"partition": None, "offset": None, "error_code": code, "error": str(outcome.error)}
