"""A producer that goes on writing while a test does something to the cluster."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from cli.command import TIMEOUT_S

KEYS = 7


class Load:
    """Numbers, written in order by one idempotent producer, each key's to one partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._acknowledged: list[int] = []
        self._refused: list[KafkaError] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write while the block runs; after it, everything has been acknowledged or refused."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def check(self) -> None:
        """All that was acknowledged is there, once, and in order; and all was."""
        found = self._read()
        assert self._refused == []
        assert self._acknowledged, "nothing was written meanwhile"
        assert sorted(number for numbers in found for number in numbers) == sorted(self._acknowledged)
        assert all(numbers == sorted(numbers) for numbers in found)

    def _write(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        number = 0
        while not self._over.is_set():
            producer.produce(
                self._topic, key=str(number % KEYS), value=str(number), on_delivery=self._delivered
            )
            producer.poll(0.001)
            number += 1
        producer.flush(TIMEOUT_S)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self._acknowledged.append(int(message.value()))
        else:
            self._refused.append(error)

    def _read(self) -> list[list[int]]:
        """Every record of the topic, by partition."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "load"})
        try:
            partitions = consumer.list_topics(self._topic).topics[self._topic].partitions
            return [_records(consumer, TopicPartition(self._topic, index, 0)) for index in sorted(partitions)]
        finally:
            consumer.close()


def _records(consumer: Consumer, partition: TopicPartition) -> list[int]:
    _, end = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
    consumer.assign([partition])
    found: list[int] = []
    while len(found) < end:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{len(found)} of {end} records in {partition}"
        assert message.error() is None, message.error()
        found.append(int(message.value()))
    return found
