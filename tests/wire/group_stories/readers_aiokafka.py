"""aiokafka as a `Reader`: its event loop runs while somebody polls, commits or closes.

Its heartbeats run on that loop too, so whoever uses it must poll often.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from wire.group_stories.reading import CommitFailed, Place, Read, Watcher

QUICK: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
}
ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
MOST_AT_ONCE: Final = 20


def make_consumer(bootstrap: str, *topics: str, **options: Any) -> Any:
    """A consumer that notices soon what happens to its group; to be made in a running loop."""
    if assignor := options.pop("assignor", None):
        options["partition_assignment_strategy"] = (ASSIGNORS[assignor],)
    return AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, **{**QUICK, **options})


class AiokafkaReader:
    def __init__(self, bootstrap: str, topics: Sequence[str], watcher: Watcher, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._watcher = watcher
        self._consumer: Any = None
        self._loop.run_until_complete(self._open(bootstrap, topics, watcher, options))

    async def _open(
        self, bootstrap: str, topics: Sequence[str], watcher: Watcher, options: dict[str, Any]
    ) -> None:
        self._consumer = make_consumer(bootstrap, **options)
        await self._consumer.start()
        if topics[0].startswith("^"):
            self._consumer.subscribe(pattern=topics[0], listener=Listener(watcher))
        else:
            self._consumer.subscribe(list(topics), listener=Listener(watcher))

    def poll(self, timeout_s: float) -> list[Read]:
        asked = self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=MOST_AT_ONCE)
        found = self._loop.run_until_complete(asked)
        return [
            Read(Place(each.topic, each.partition), each.offset, each.value)
            for records in found.values()
            for each in records
        ]

    def commit(self) -> None:
        try:
            self._loop.run_until_complete(self._consumer.commit())
        except KafkaError as error:
            raise CommitFailed(str(error)) from error

    def close(self) -> None:
        self._watcher.revoked(places(self._consumer.assignment()))  # it has no callback for this
        try:
            self._loop.run_until_complete(self._consumer.stop())
        finally:
            self._loop.close()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types here
    """Passes on what it is told."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._watcher.assigned(places(assigned))

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._watcher.revoked(places(revoked))


def places(partitions: Collection[Any]) -> list[Place]:
    return [Place(each.topic, each.partition) for each in partitions]
