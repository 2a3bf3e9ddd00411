"""confluent-kafka's consumer in the hands of a test: subscribed, read from, closed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from wire.group_stories.readers_confluent import open_consumer
from wire.group_stories.waiting import eventually


@contextmanager
def subscribed(bootstrap: str, group: str, topics: Sequence[str], **options: Any) -> Iterator[Any]:
    """A consumer that has subscribed, and is closed in the end."""
    consumer = open_consumer(bootstrap, group_id=group, **options)
    try:
        consumer.subscribe(list(topics))
        yield consumer
    finally:
        consumer.close()


def numbers(consumer: Any, count: int) -> list[int]:
    """The values of the next `count` messages; any error of the client fails the test."""
    found: list[int] = []

    def look() -> bool:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(int(message.value()))
        return len(found) == count

    eventually(look, pause_s=0, tell=lambda: found)
    return found


def wait_for_assignment(consumer: Any, partitions: int) -> None:
    """Poll, and return once the consumer has that many partitions. There must be nothing for it to read."""

    def look() -> bool:
        assert consumer.poll(0.1) is None
        return len(consumer.assignment()) == partitions

    eventually(look, pause_s=0, tell=consumer.assignment)


def event(consumer: Any) -> KafkaError:
    """What the client tells of next: an error, or the end of a partition. No message may come before."""
    message = eventually(lambda: consumer.poll(0.1), pause_s=0)
    assert message.error() is not None, message.value()
    error: KafkaError = message.error()
    return error


def committed(consumer: Any, topic: str, partition: int = 0) -> Any:
    """The committed position as the broker tells this consumer."""
    (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=20)
    return found
