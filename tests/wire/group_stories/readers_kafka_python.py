"""kafka-python as a `Reader`."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from wire.group_stories.kafka_python import (
    ConsumerRebalanceListener,
    CooperativeStickyAssignor,
    KafkaConsumer,
    KafkaError,
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
)
from wire.group_stories.reading import CommitFailed, Place, Read, Watcher

QUICK: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
    "reconnect_backoff_max_ms": 100,
    "max_poll_records": 20,
}
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
    return KafkaConsumer(*topics, bootstrap_servers=bootstrap, **{**QUICK, **options})


class KafkaPythonReader:
    def __init__(self, bootstrap: str, topics: Sequence[str], watcher: Watcher, **options: Any) -> None:
        self._consumer = open_consumer(bootstrap, **options)
        self._consumer.subscribe(topics, listener=Listener(watcher))

    def poll(self, timeout_s: float) -> list[Read]:
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
