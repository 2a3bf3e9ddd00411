"""confluent-kafka as a `Reader`, of either protocol: `group_protocol="consumer"` for the new one."""

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException

from wire.confluent import settings
from wire.group_stories.reading import CommitFailed, Place, Read, Watcher

QUICK: Final = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_wait_max_ms": 50}
CLASSIC: Final = {"heartbeat_interval_ms": 200, "session_timeout_ms": 10_000}  # the broker's with `consumer`


def open_consumer(bootstrap: str, **options: Any) -> Any:
    """A consumer that notices soon what happens to its group."""
    classic = {} if options.get("group_protocol") == "consumer" else CLASSIC
    if assignor := options.pop("assignor", None):
        options["partition_assignment_strategy"] = assignor
    callbacks = {
        name: value for name, value in options.items() if callable(value)
    }  # their names have no dots
    plain = {name: value for name, value in options.items() if name not in callbacks}
    return Consumer(settings(bootstrap, **{**QUICK, **classic, **plain}) | callbacks)


class ConfluentReader:
    def __init__(self, bootstrap: str, topics: Sequence[str], watcher: Watcher, **options: Any) -> None:
        self._consumer = open_consumer(bootstrap, **options)
        self._consumer.subscribe(
            list(topics),
            on_assign=lambda _, partitions: watcher.assigned(places(partitions)),
            on_revoke=lambda _, partitions: watcher.revoked(places(partitions)),
            on_lost=lambda _, partitions: watcher.revoked(places(partitions)),
        )

    def poll(self, timeout_s: float) -> list[Read]:
        message = self._consumer.poll(timeout_s)
        if message is None:
            return []
        if (error := message.error()) is not None:
            if error.fatal() or not is_passing(error):
                raise KafkaException(error)
            return []
        return [Read(Place(message.topic(), message.partition()), message.offset(), message.value())]

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:  # what was read belongs to somebody else by now
                raise CommitFailed(str(error)) from error

    def close(self) -> None:
        self._consumer.close()


def places(partitions: Sequence[Any]) -> list[Place]:
    return [Place(each.topic, each.partition) for each in partitions]


def is_passing(error: KafkaError) -> bool:
    """Whether the client tells of it and goes on by itself: the broker is away, or has just come back."""
    return error.retriable() or error.code() in {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,  # a join amid the move of a group to the other protocol
    }
