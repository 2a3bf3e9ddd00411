"""What a gateway caches of topics for a few seconds: the number of partitions, and rules about schemas."""

from threading import Lock
from typing import Final

from cachetools import TTLCache
from starlette.concurrency import run_in_threadpool

from headrace.client.errors import NoSuchTopic, raise_for
from headrace.client.wire.requests import TOPIC, describe_configs_request
from headrace.gateway.problems import Problem
from headrace.gateway.reach import SILENCE_S, Reach
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse
from headrace.registry.validation import KEY, KEY_STRATEGY, VALUE, VALUE_STRATEGY, Rule

FRESH_S: Final = 5.0
KEPT: Final = 10_000  # topics
NO_PARTITION: Final = 40402
_MISSING: Final = object()


def no_partition(topic: str, partition: int, count: int) -> Problem:
    """Return the Problem for a partition that a topic with `count` partitions does not have."""
    return Problem(NO_PARTITION, f"{topic} has no partition {partition}, only 0 to {count - 1}")


class KnownTopics:
    """The number of partitions of topics; librdkafka would keep looking for a topic that does not exist."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = Lock()
        self._counts: TTLCache[str, int] = TTLCache(KEPT, FRESH_S)

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions; raise NoSuchTopic if there is no topic. It is not created."""
        with self._lock:
            count = self._counts.get(topic)
        return await run_in_threadpool(self.refresh, topic) if count is None else count

    async def check(self, topic: str, partition: int | None) -> None:
        """Raise NoSuchTopic or a Problem if the topic or its partition does not exist."""
        await PartitionCheck(self, topic).check(partition)

    def refresh(self, topic: str) -> int:
        """Return the number of partitions that a broker knows of now."""
        answer = self._reach.brokers.any_metadata([topic], SILENCE_S).topics[0]
        if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(topic)
        if answer.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            raise_for(answer.error_code, None, topic)
        with self._lock:
            self._counts[topic] = len(answer.partitions)
        return len(answer.partitions)


class PartitionCheck:
    """Checks the partitions that one request names, with at most one refresh for missing ones."""

    def __init__(self, known: KnownTopics, topic: str) -> None:
        self._known = known
        self._topic = topic
        self._refreshed = False

    async def check(self, partition: int | None) -> None:
        """Raise NoSuchTopic or a Problem if the topic or its partition does not exist."""
        count = await self._known.partitions(self._topic)
        if partition is None:
            return
        if partition >= count and not self._refreshed:
            self._refreshed = True
            count = await run_in_threadpool(self._known.refresh, self._topic)  # it may be a new partition
        if not 0 <= partition < count:
            raise no_partition(self._topic, partition, count)


class TopicRules:
    """The rules of topics about the schemas of their records."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = Lock()
        self._rules: TTLCache[str, Rule | None] = TTLCache(KEPT, FRESH_S)

    async def of(self, topic: str) -> Rule | None:
        """Return the topic's rule, or None if it has none that this gateway understands."""
        with self._lock:
            rule = self._rules.get(topic, _MISSING)
        return rule if isinstance(rule, Rule | None) else await run_in_threadpool(self._refresh, topic)

    def _refresh(self, topic: str) -> Rule | None:
        request = describe_configs_request(TOPIC, [topic], (KEY, KEY_STRATEGY, VALUE, VALUE_STRATEGY))
        answer: DescribeConfigsResponse = self._reach.brokers.any(request)
        values = {config.name: config.value for found in answer.results for config in found.configs}
        try:
            rule = Rule.of(values)
        except ValueError:
            rule = None  # a strategy that only brokers of another version know
        with self._lock:
            self._rules[topic] = rule
        return rule
