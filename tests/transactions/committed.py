"""What a read_committed consumer has seen of a topic, in all."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from wire.confluent import settings

PAUSE_S: Final = 0.2
_RETRIED: Final = {KafkaError._PARTITION_EOF, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}


@dataclass(slots=True)
class CommittedReader:
    """Collects the values of each key, in the order of their offsets; a key is in one partition only."""

    consumer: Any
    values: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0

    def read(self) -> int:
        """Read what there is, and return how many records were read since the beginning."""
        for message in self.consumer.consume(5000, PAUSE_S):
            if message.error():
                assert message.error().code() in _RETRIED, message.error()
                continue
            self.values[message.key().decode()].append(message.value())
            self.count += 1
        return self.count


@contextmanager
def committed_reader(bootstrap: str, topic: str, partitions: int) -> Iterator[CommittedReader]:
    """Yield a reader of all partitions of a topic, from the beginning."""
    consumer = Consumer(
        settings(
            bootstrap,
            group_id="nobody",
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="error",
        )
    )
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        yield CommittedReader(consumer)
    finally:
        consumer.close()
