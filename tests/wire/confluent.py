"""confluent-kafka for tests: settings that find a broker quickly, and whole topics written and read."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S: Final = 20
READER: Final[Mapping[str, Any]] = {
    "group_id": "nobody",
    "enable_auto_commit": False,
    "enable_partition_eof": True,
    "fetch_wait_max_ms": 10,  # the client learns of the end from a reply that brings nothing
}


def settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    """What every client needs, and `more` with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 100} | given


def make_topic(bootstrap: str, name: str, *, partitions: int = 1, **configs: str) -> AdminClient:
    """Create a topic; returns the client, which must be kept for as long as its futures are waited for."""
    admin = AdminClient(settings(bootstrap))
    topic = NewTopic(
        name,
        num_partitions=partitions,
        replication_factor=1,
        config={key.replace("_", "."): value for key, value in configs.items()},
    )
    admin.create_topics([topic])[name].result(timeout=TIMEOUT_S)
    return admin


def send(
    bootstrap: str, topic: str, messages: Sequence[Mapping[str, Any]], **options: Any
) -> list[tuple[Any, Any]]:
    """Produce every message and return (error, message) of each, in the order of the reports."""
    producer = Producer(settings(bootstrap, **options))
    reports: list[tuple[Any, Any]] = []
    for message in messages:
        producer.produce(topic, on_delivery=lambda error, sent: reports.append((error, sent)), **message)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    return reports


def sent_offsets(reports: Sequence[tuple[Any, Any]]) -> list[int]:
    """The offsets of messages, all of which must have arrived."""
    assert [error for error, _ in reports if error is not None] == []
    return [message.offset() for _, message in reports]


def read(
    bootstrap: str,
    topic: str,
    *,
    partitions: Sequence[int] = (0,),
    start: int = OFFSET_BEGINNING,
    **options: Any,
) -> list[Any]:
    """Every message from `start` to the end of each partition, in the order in which they came."""
    return list(_read(bootstrap, [TopicPartition(topic, number, start) for number in partitions], options))


def _read(bootstrap: str, wanted: Sequence[TopicPartition], options: Mapping[str, Any]) -> Iterator[Any]:
    consumer = Consumer(settings(bootstrap, **{**READER, **options}))
    unfinished = {each.partition for each in wanted}
    deadline = time.monotonic() + TIMEOUT_S
    try:
        consumer.assign(list(wanted))
        while unfinished and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.1):
                if message.error() is None:
                    yield message
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    unfinished.discard(message.partition())
    finally:
        consumer.close()
    assert not unfinished, f"no end of partitions {unfinished} in {TIMEOUT_S} s"
