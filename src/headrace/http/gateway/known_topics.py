"""How many partitions a topic has: librdkafka would go on looking for one that is not there."""

import time
from collections import OrderedDict
from http import HTTPStatus
from threading import Lock
from typing import Final

from starlette.concurrency import run_in_threadpool

from headrace.client.errors import NoSuchTopic, raise_for
from headrace.http.problems import Problem
from headrace.http.reach import SILENCE_S, Reach
from headrace.protocol.errors import ErrorCode

FRESH_S: Final = 5.0
KEPT: Final = 10_000  # topics
NO_PARTITION: Final = 40402


class KnownTopics:
    """Partition counts that are at most `FRESH_S` old."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = Lock()
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def partitions(self, topic: str) -> int:
        """How many there are; NoSuchTopic if there is none of that name. Nothing is created."""
        with self._lock:
            known = self._known.get(topic)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        return await run_in_threadpool(self.ask, topic)

    async def check(self, topic: str, partition: int | None) -> None:
        """NoSuchTopic or a Problem if the topic or its partition is not there."""
        await PartitionsOf(self, topic).check(partition)

    def ask(self, topic: str) -> int:
        found = self._reach.live.any_metadata([topic], SILENCE_S).topics[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(topic)
        if found.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            raise_for(found.error_code, None, topic)
        self._keep(topic, len(found.partitions))
        return len(found.partitions)

    def _keep(self, topic: str, count: int) -> None:
        with self._lock:
            self._known[topic] = count, time.monotonic() + FRESH_S
            self._known.move_to_end(topic)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)


class PartitionsOf:
    """Those of one topic, for one request: however many are not there, brokers are asked once."""

    def __init__(self, known: KnownTopics, topic: str) -> None:
        self._known = known
        self._topic = topic
        self._asked = False

    async def check(self, partition: int | None) -> None:
        """NoSuchTopic or a Problem if the topic or its partition is not there."""
        count = await self._known.partitions(self._topic)
        if partition is None:
            return
        if partition >= count and not self._asked:
            self._asked = True
            count = await run_in_threadpool(self._known.ask, self._topic)  # it may have been added just now
        if not 0 <= partition < count:
            said = f"{self._topic} has no partition {partition}, only 0 to {count - 1}"
            raise Problem(HTTPStatus.NOT_FOUND, NO_PARTITION, said)
