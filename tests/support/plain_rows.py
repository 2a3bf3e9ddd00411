"""The rows of a topic as a plain loop over a confluent-kafka consumer finds them, and as Arrow has them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from wire.confluent import READER, TIMEOUT_S, settings

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A record, in the order of its place."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def consumed(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Row]:
    """Everything that a consumer reads from the beginning to the end of all partitions."""
    consumer = Consumer(settings(bootstrap, **READER, isolation_level=isolation))
    numbers = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
    found: list[Row] = []
    ended: set[int] = set()
    while len(ended) < len(numbers):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, (topic, ended)
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(message.partition())
            continue
        found.append(_row(message))
    consumer.close()
    return sorted(found, key=lambda row: row[:3])


def _row(message: Any) -> Row:
    kind, ms = message.timestamp()
    return Row(
        message.topic(),
        message.partition(),
        message.offset(),
        _EPOCH + timedelta(milliseconds=ms),
        kind - 1,  # librdkafka counts from 1
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table with all columns, in the order of their places."""
    found = [
        Row(
            each["topic"],
            each["partition"],
            each["offset"],
            each["timestamp"].astimezone(UTC),
            each["timestampType"],
            each["key"],
            each["value"],
            tuple((header["key"], header["value"]) for header in each["headers"] or ()),
        )
        for each in table.to_pylist()
    ]
    return sorted(found, key=lambda row: row[:3])
