"""The objects that a user's requests share: producers, consumers, tails, and a cache of topics."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, Final, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Record
from headrace.client.records.scanning import ScanCancelled
from headrace.client.serializers.codecs.processes import CodecProcesses, Matched, NoProcess
from headrace.gateway.current import clients_of
from headrace.gateway.problems import Problem
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import SchemaRegistry
from headrace.gateway.registry.rights import SubjectRights
from headrace.gateway.rest.delivery import Failed, Outcome, SharedProducer
from headrace.gateway.rest.instances import MAX_INSTANCES, Instances
from headrace.gateway.rest.schemas import NO_PROCESS, Schemas
from headrace.gateway.rest.tails import MAX_TAILS, Slots, Tails
from headrace.gateway.rest.topic_cache import KnownTopics
from headrace.gateway.rest.validation import Validation

logger = logging.getLogger(__name__)

SEARCHES: Final = 4  # at a time: each has a thread, a consumer, and what it has read and found
WAITING: Final = 32  # searches that wait for one of those to end
READING: Final = 64  # reads of consumers at a time: each waits in a thread for records
CONSUMING: Final = 64  # other calls of consumers at a time

Answer = TypeVar("Answer")


class SharedLimits:
    """What the requests of all users share: threads, slots, and processes that encode and decode."""

    def __init__(self) -> None:
        self.reading = CapacityLimiter(READING)
        self.consuming = CapacityLimiter(CONSUMING)
        self.searching = CapacityLimiter(SEARCHES)
        self.searches = 0  # running or waiting
        self.tails = Slots(MAX_TAILS)
        self.instances = Slots(MAX_INSTANCES)

    @cached_property
    def processes(self) -> CodecProcesses:
        return CodecProcesses()

    def close(self) -> None:
        if "processes" in vars(self):
            self.processes.close()


class Hub:
    """Every user has one. Nothing in it connects to a broker before it is used."""

    def __init__(
        self,
        reach: Reach,
        registry: SchemaRegistry,
        limits: SharedLimits | None = None,
        rights: SubjectRights | None = None,
    ) -> None:
        self.reach = reach
        self.cluster_id: str | None = None  # once a request has read it
        self.topics = KnownTopics(reach)
        self.producer = SharedProducer(lambda: reach.connection)
        self._limits = limits or SharedLimits()
        self.tails = Tails(lambda: reach.connection, self._limits.tails)
        self.instances = Instances(lambda: reach.connection, self._limits.instances)
        self._registry = registry
        self._rights = rights or SubjectRights(registry)
        self._validation = Validation(reach, registry)
        for part in (self.producer, self.tails, self.instances):
            reach.at_close(part.close)

    @property
    def is_busy(self) -> bool:
        """Whether the user has tails or consumers, which need this hub between requests."""
        return bool(self.tails.taken or self.instances.taken)

    async def send(self, topic: str, records: Sequence[Record]) -> list[Outcome]:
        """Return the outcome of each record, in order; records without a required schema are not sent."""
        refused = await self._validation.refused(topic, records)
        valid = [each for index, each in enumerate(records) if index not in refused]
        sent = iter(await self.producer.send(topic, valid))
        return [
            Failed(ClientError(f"{topic}: {refused[index]}"), retriable=False)
            if index in refused
            else next(sent)
            for index in range(len(records))
        ]

    def end_streams(self) -> None:
        """End tails and waiting reads soon, because the gateway is about to stop."""
        self.tails.end()
        self.instances.interrupt()

    async def search(self, request: Request, work: Callable[[threading.Event], Answer]) -> Answer:
        """Run a search in a thread; raise a Problem (429) if WAITING searches already wait.

        If the client disconnects, the event of `work` is set, and a search that waits is not run:
        ClientDisconnect.
        """
        if self._limits.searches >= SEARCHES + WAITING:
            why = f"{SEARCHES} searches are running and {WAITING} are waiting: try again later"
            raise Problem(42902, why)
        self._limits.searches += 1
        cancelled = threading.Event()
        # The scope cancels a search that waits for a thread, and not one that runs in a thread.
        with CancelScope() as waiting, suppress(ScanCancelled):

            async def cancel_at_disconnect() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass  # the request has no body
                cancelled.set()
                waiting.cancel()

            watching = asyncio.ensure_future(cancel_at_disconnect())
            try:
                return await to_thread.run_sync(work, cancelled, limiter=self._limits.searching)
            except (ScanCancelled, asyncio.CancelledError):
                logger.debug("a search is cancelled: its client has disconnected")
                raise
            finally:
                watching.cancel()
                cancelled.set()  # if this call was cancelled, the thread still runs
                self._limits.searches -= 1
        raise ClientDisconnect

    async def consume(self, call: Callable[[], Answer]) -> Answer:
        """Call what waits for brokers in one of the threads that are only for consumers."""
        return await to_thread.run_sync(call, limiter=self._limits.consuming)

    async def read(self, call: Callable[[], Answer]) -> Answer:
        """Call what waits for records in a thread for reads; raise a Problem (429) if none is free."""
        if self._limits.reading.available_tokens <= 0:
            why = f"{READING} reads of consumers are waiting for records, the most at a time: try again later"
            raise Problem(42904, why)
        return await to_thread.run_sync(call, limiter=self._limits.reading)

    def match(self, expression: str | None) -> Callable[[Sequence[Mapping[str, Any]]], Matched] | None:
        """Return what tells which messages match an expression, for a thread; None without one."""
        if not expression:
            return None

        def match(messages: Sequence[Mapping[str, Any]]) -> Matched:
            try:
                return self._limits.processes.match(expression, messages)
            except NoProcess as error:
                raise Problem(NO_PROCESS, str(error)) from None

        return match

    @cached_property
    def schemas(self) -> Schemas:
        most = self.reach.settings.max_request_bytes
        return Schemas(self._registry, self._limits.processes, most, self._rights)


def hub_of(request: Request) -> Hub:
    return clients_of(request).hub


HubDep = Annotated[Hub, Depends(hub_of)]
"""The dependency of a route that needs the hub."""
