"""Which offsets a member of a group commits: those of done records, and the ends of empty partitions."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from headrace.client.records.group_reader import GroupReader


class Librdkafka:
    """A client of a group with one partition, whose messages all arrive with the first poll."""

    arriving: Sequence[Message] = ()
    stored: dict[int, int]

    def __init__(self, _settings: dict[str, Any]) -> None:
        type(self).stored = {}

    def list_topics(self, **_timeout: float) -> object:
        return SimpleNamespace(topics={"orders": SimpleNamespace(partitions={0: None})})

    def subscribe(self, _topics: Sequence[str], *, on_assign: Callable[..., None], **_others: object) -> None:
        self._on_assign = on_assign

    def poll(self, _timeout_s: float) -> Message | None:
        self._on_assign(self, [TopicPartition("orders", 0)])
        first, *self._more = self.arriving
        return first

    def consume(self, _most: int, **_timeout: float) -> list[Message]:
        return self._more

    def store_offsets(self, offsets: Sequence[TopicPartition]) -> None:
        self.stored |= {each.partition: each.offset for each in offsets}

    def commit(self, **_how: object) -> list[TopicPartition]:
        return []

    def close(self) -> None:
        """Nothing is open."""


def end(offset: int) -> Message:
    reached = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic="orders", partition=0, offset=offset, error=reached)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[Librdkafka]:
    monkeypatch.setattr("confluent_kafka.Consumer", Librdkafka)
    monkeypatch.setattr("headrace.client.consumer.consumer.check_connection", lambda _bootstrap: None)
    return Librdkafka


def test_the_end_that_arrives_with_records_is_not_committed_before_they_are_done(
    client: type[Librdkafka],
) -> None:
    client.arriving = [Message(topic="orders", partition=0, offset=7, value=b"v"), end(8)]
    with GroupReader("h:1", "billing", ["orders"], from_beginning=True, stop_at_end=True) as reader:
        batches = reader.record_batches()
        records = next(batches)
        assert client.stored == {}
        reader.done(records)
        assert client.stored == {0: 8}
        assert list(batches) == []


def test_the_end_of_a_partition_without_records_is_committed(client: type[Librdkafka]) -> None:
    client.arriving = [end(0)]
    with GroupReader("h:1", "billing", ["orders"], from_beginning=False, stop_at_end=True) as reader:
        assert list(reader.record_batches()) == []
    assert client.stored == {0: 0}
