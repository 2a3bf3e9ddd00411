"""kafka-python as a `Reader`."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final

from wire.group_stories.kafka_python import (
    ConsumerRebalanceListener,
    CooperativeStickyAssignor,
    KafkaConnectionError,
    KafkaConsumer,
    KafkaError,
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
)
from wire.group_stories.reading import CommitFailed, Place, Read, Watcher
from wire.group_stories.waiting import eventually

QUICK: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
    "reconnect_backoff_max_ms": 100,
    "max_poll_records": 20,
}
JOIN_TIMEOUT_MS: Final = 10_000
ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def open_consumer(bootstrap: str, *topics: str, **options: Any) -> Any:
    """A consumer that notices soon what happens to its group."""
    if assignor := options.pop("assignor", None):
        options["partition_assignment_strategy"] = (ASSIGNORS[assignor],)
    consumer = KafkaConsumer(*topics, bootstrap_servers=bootstrap, **{**QUICK, **options})
    learn_partitions(consumer)
    return consumer


def learn_partitions(consumer: Any) -> None:
    """Have a consumer that has subscribed hear of its partitions before it joins.

    A leader that hears of them while it joins will rejoin, and if its poll ends meanwhile, it never takes up
    what it is assigned (kafka-python 3.0.12, on Apache Kafka too).
    """

    def has_learned() -> bool:
        try:
            consumer.topics()
        except KafkaConnectionError:  # raised here while the broker is down
            return False
        return True

    eventually(has_learned)


class KafkaPythonReader:
    def __init__(self, bootstrap: str, topics: Sequence[str], watcher: Watcher, **options: Any) -> None:
        self._consumer = open_consumer(bootstrap, **options)
        if topics[0].startswith("^"):
            self._consumer.subscribe(pattern=topics[0], listener=Listener(watcher))
        else:
            self._consumer.subscribe(topics, listener=Listener(watcher))
        learn_partitions(self._consumer)

    def poll(self, timeout_s: float) -> list[Read]:
        # A poll that ends before its JoinGroup is answered loses the answer, and the next one joins again: if
        # a static member that has come back leads the group or is sticky, this is a rebalance.
        with suppress(KafkaConnectionError):  # raised here while the broker is down
            self._consumer._coordinator.poll(timeout_ms=JOIN_TIMEOUT_MS)
        found = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        return [
            Read(Place(each.topic, each.partition), each.offset, each.value)
            for records in found.values()
            for each in records
        ]

    def commit(self) -> None:
        try:
            self._consumer.commit()
        except KafkaError as error:
            raise CommitFailed(str(error)) from error

    def close(self) -> None:
        self._consumer.close()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Passes on what it is told."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._watcher.assigned(places(assigned))

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._watcher.revoked(places(revoked))


def places(partitions: Collection[Any]) -> list[Place]:
    return [Place(each.topic, each.partition) for each in partitions]


def numbers(consumer: Any, count: int) -> list[int]:
    """The values of the next `count` records, of which there must be no more.

    A poll returns as soon as there is one. A short one would let the client forget what it is assigned.
    """
    found: list[int] = []

    def look() -> bool:
        batches = consumer.poll(timeout_ms=10_000)
        found.extend(int(record.value) for records in batches.values() for record in records)
        return len(found) >= count

    eventually(look, pause_s=0, tell=lambda: found)
    assert len(found) == count, found
    return found
