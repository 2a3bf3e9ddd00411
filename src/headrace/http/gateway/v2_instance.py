"""REST proxy, v2: what all requests to a consumer share."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from anyio import to_thread
from fastapi import Path
from pydantic import Field

from headrace.http.gateway.asking import NO_NUL, PLACES, Body, Index, Name
from headrace.http.gateway.hub import Hub
from headrace.http.gateway.v2_answers import v2
from headrace.protocol.ids import TopicPartition

Answer = TypeVar("Answer")
InstanceName = Annotated[
    str, Path(description="A consumer's name.", min_length=1, max_length=1000, pattern=NO_NUL)
]
ADDRESS: Final = "/consumers/{group}/instances/{instance}"
_STATUSES: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
REFUSALS: Final = v2(*_STATUSES)
NO_CONTENT: Final[dict[str, Any]] = {
    "status_code": HTTPStatus.NO_CONTENT,
    "responses": v2(*_STATUSES, status=HTTPStatus.NO_CONTENT),
}


class PlaceV2(Body):
    """A partition."""

    topic: Name
    partition: Index


class PlacesV2(Body):
    """Partitions."""

    partitions: Annotated[list[PlaceV2], Field(max_length=PLACES)]

    def places(self) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition) for each in self.partitions]


async def in_thread(hub: Hub, what: Callable[[], Answer]) -> Answer:
    """Call what waits for brokers, apart from the threads of other routes."""
    return await to_thread.run_sync(what, limiter=hub.consuming)


async def in_reading_thread(hub: Hub, what: Callable[[], Answer]) -> Answer:
    """Call what waits for records, apart from all that does not; a Problem if too many do."""
    hub.check_room_to_read()
    return await to_thread.run_sync(what, limiter=hub.reading)
