"""One message of a topic, by its partition and offset."""

from collections.abc import Sequence
from threading import Event
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Request, Response

from headrace.client.errors import Unreachable
from headrace.client.records.one_by_one import Record, Start
from headrace.client.records.scanning import Bounds, scan
from headrace.gateway.problems import Problem, answers
from headrace.gateway.rest.bodies import INT32, INT64, TopicName
from headrace.gateway.rest.hub import Hub, HubDep

router = APIRouter(tags=["messages"])

TIME_S: Final = 5.0

PartitionIndex = Annotated[int, Path(description="The partition.", ge=0, le=INT32)]
MessageOffset = Annotated[int, Path(description="The offset.", ge=0, le=INT64)]


class NoMessage(Problem):
    """There is no message at an offset; the next one is at `next_offset`, or None if there is none."""

    def __init__(self, message: str, next_offset: int | None) -> None:
        super().__init__(40407, message)
        self.next_offset = next_offset


async def record_at(request: Request, hub: Hub, topic: str, partition: int, offset: int) -> Record:
    """Return the record at an offset; raise NoMessage if there is none."""
    await hub.topics.check(topic, partition)
    where = f"{topic}-{partition}"

    def read(cancelled: Event) -> Sequence[Record]:
        partitions = hub.reach.topics.topic(topic).partitions
        if any(part.index == partition and part.leader is None for part in partitions):
            raise Unreachable(f"{where} has no leader (LEADER_NOT_AVAILABLE)")
        return scan(
            hub.reach.connection,
            topic,
            Start(offset=offset),
            select=lambda records: [True] * len(records),
            keep=lambda record: record,
            bounds=Bounds(found=1, records=1, size_bytes=1, time_s=TIME_S, cancelled=cancelled),
            partitions=[partition],
        ).found

    found = await hub.search(request, read)
    if not found:
        raise NoMessage(f"{where} has no message at offset {offset}, nor after it", None)
    if found[0].offset != offset:
        next_one = found[0].offset
        why = f"{where} has no message at offset {offset}: the next one is at {next_one}"
        raise NoMessage(why, next_one)
    return found[0]


@router.get(
    "/topics/{name}/partitions/{partition}/messages/{offset}/{part}",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        **answers(400, 404, 429, 503),
    },
)
async def message_part(
    name: TopicName,
    partition: PartitionIndex,
    offset: MessageOffset,
    *,
    part: Literal["key", "value"],
    request: Request,
    hub: HubDep,
) -> Response:
    """Return the bytes of a message's key or value as they were written; 404 if it has none."""
    record = await record_at(request, hub, name, partition, offset)
    data = record.key if part == "key" else record.value
    if data is None:
        raise Problem(40407, f"the message at offset {offset} of {name}-{partition} has no {part}")
    file = f'attachment; filename="{name}-{partition}-{offset}-{part}.bin"'
    headers = {"Content-Disposition": file, "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type="application/octet-stream", headers=headers)
