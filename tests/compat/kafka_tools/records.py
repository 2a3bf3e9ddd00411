"""Records as a client sees them, and every record of a topic as Apache Kafka serves it."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from compat.kafka_tools.server import client_settings

READ_TIMEOUT_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_records(bootstrap: str, topics: Collection[str], isolation_level: str) -> list[Record]:
    """Read partition 0 of each topic from its start to the end that the isolation level shows, in order."""
    settings = {"group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(client_settings(bootstrap) | settings | {"isolation.level": isolation_level})
    records: list[Record] = []
    unfinished = set(topics)
    deadline = time.monotonic() + READ_TIMEOUT_S
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
        while unfinished and time.monotonic() < deadline:
            for message in consumer.consume(500, timeout=0.1):
                if message.error() is None:
                    records.append(_record(message))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.topic())
    finally:
        consumer.close()
    assert not unfinished, f"no end of {unfinished} in {READ_TIMEOUT_S} s"
    return sorted(records, key=lambda record: (record.topic, record.offset))


def _record(message: Any) -> Record:
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )
