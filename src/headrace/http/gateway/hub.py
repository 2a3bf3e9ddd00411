"""What the requests to a gateway share: producers, consumers, tails, and what is known of topics."""

from collections.abc import Callable, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, FastAPI, Request

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Record
from headrace.http.gateway.codec_processes import CodecProcesses
from headrace.http.gateway.delivery import Failed, Outcome, Producers
from headrace.http.gateway.instances import Instances
from headrace.http.gateway.known_topics import KnownTopics
from headrace.http.gateway.schemas import Schemas
from headrace.http.gateway.tailing import Tails
from headrace.http.gateway.validating import Validation
from headrace.http.problems import Problem
from headrace.http.reach import Reach

SEARCHES: Final = 4  # at a time: each has a thread, a consumer, and what it has read and found
WAITING: Final = 32  # for one of those to end
READING: Final = 64  # reads of consumers at a time: each waits in a thread for records
CONSUMING: Final = 64  # what else is asked of consumers

Answer = TypeVar("Answer")


class Hub:
    """There is one in a gateway; nothing in it costs anything before it is used."""

    def __init__(self, app: FastAPI, reach: Reach) -> None:
        self._app = app
        self.reach = reach
        self.cluster_id: str | None = None  # once it has been asked for
        self.topics = KnownTopics(reach)
        self.producers = Producers(lambda: reach.bootstrap)
        self.validation = Validation(reach, lambda: app.state.registry)
        self.tails = Tails(lambda: reach.bootstrap)
        self._searching = CapacityLimiter(SEARCHES)
        self._searches = 0  # under way or waiting
        self.instances = Instances(lambda: reach.bootstrap)
        self.reading = CapacityLimiter(READING)
        self.consuming = CapacityLimiter(CONSUMING)
        reach.at_close(self.producers.close)
        reach.at_close(self.tails.close)
        reach.at_close(self.instances.close)

    async def send(self, topic: str, records: Sequence[Record]) -> list[Outcome]:
        """What has become of each record, in their order; those that lack a schema are not even sent."""
        refused = await self.validation.refused(topic, records)
        good = [each for place, each in enumerate(records) if place not in refused]
        sent = iter(await self.producers.send(topic, good))
        return [
            _refused(topic, refused[place]) if place in refused else next(sent)
            for place in range(len(records))
        ]

    def end_streams(self) -> None:
        """Have tails and reads that wait come to an end soon: the gateway is about to stop."""
        self.tails.end()
        self.instances.interrupt()

    async def search(self, work: Callable[[], Answer]) -> Answer:
        """What comes of a search, in a thread; Problem if many wait for others already."""
        if self._searches >= SEARCHES + WAITING:
            said = f"{SEARCHES} searches are under way and {WAITING} wait for them: try again later"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, 42902, said)
        self._searches += 1
        try:
            return await to_thread.run_sync(work, limiter=self._searching)
        finally:
            self._searches -= 1

    def check_room_to_read(self) -> None:
        """Problem if as many reads wait for records as may: there is no telling when one ends."""
        if self.reading.available_tokens <= 0:
            said = f"{READING} reads of consumers are under way, as many as there may be: try again later"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, 42904, said)

    @cached_property
    def schemas(self) -> Schemas:
        """What writes and reads records by the registry's schemas."""
        processes = CodecProcesses()
        self.reach.at_close(processes.close)
        return Schemas(self._app.state.registry, processes, self.reach.settings.max_request_bytes)


def _refused(topic: str, why: str) -> Failed:
    return Failed(ClientError(f"{topic}: {why}"), retriable=False)


def hub_of(request: Request) -> Hub:
    hub = request.app.state.hub
    assert isinstance(hub, Hub)
    return hub


Shared = Annotated[Hub, Depends(hub_of)]
"""What a route asks for to get at it."""
