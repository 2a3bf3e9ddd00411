"""Seeks that wait until librdkafka can carry them out.

librdkafka asks the broker for the first offset of a partition. If a seek comes before the response,
librdkafka asks again half a second later, and then continues at that first offset instead of the target of
the seek. So a partition that was assigned or moved just now is not moved again before its first record, or
its end, has arrived.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import OFFSET_END, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.buffer import Record, partition_of
from headrace.protocol.ids import TopicPartition

ENDS_S: Final = 30.0  # for the leaders' responses


class Moves:
    """The pending seeks of one consumer, which must have `enable.partition.eof`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._targets: dict[TopicPartition, int] = {}
        self._awaited: set[TopicPartition] = set()  # nothing arrived since they were assigned or moved

    def __bool__(self) -> bool:
        return bool(self._targets)

    @property
    def planned(self) -> Mapping[TopicPartition, int]:
        return self._targets

    @property
    def watching(self) -> bool:
        """Whether `passes_over` has to see every message that arrives."""
        return bool(self._targets or self._awaited)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._awaited.update(partitions)

    def unassigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._awaited.discard(partition)
            self._targets.pop(partition, None)

    def plan(self, partition: TopicPartition, offset: int) -> None:
        """Continue this partition at `offset` as soon as possible."""
        self._targets[partition] = offset

    def plan_again(self, targets: Mapping[TopicPartition, int]) -> None:
        """Read again from these offsets, as fetched records were lost; pending seeks take precedence."""
        self._targets = {**targets, **self._targets}
        self._awaited.clear()  # the message that they wait for may be lost

    def go(
        self, resolved: Callable[[TopicPartition, int], int] = lambda _place, offset: offset
    ) -> dict[TopicPartition, int]:
        """Carry out the possible seeks, and return their offsets, which `resolved` may replace."""
        gone: dict[TopicPartition, int] = {}
        for partition in self._targets.keys() - self._awaited:
            with suppress(KafkaException):  # not possible yet: the seek stays pending
                offset = resolved(partition, self._targets[partition])
                self._client.seek(RdkafkaPartition(*partition, offset))
                gone[partition] = offset
                self._awaited.add(partition)
                del self._targets[partition]
        return gone

    def passes_over(self, message: Record) -> bool:
        """Whether this message, which arrived just now, is from before a pending seek of its partition."""
        partition = partition_of(message)
        self._awaited.discard(partition)
        return partition in self._targets


def with_ends(client: Any, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the offsets, with OFFSET_END replaced by the current end of the partition.

    If a leader does not answer, OFFSET_END stays, and librdkafka looks the end up later.
    """
    asked = [
        RdkafkaPartition(*partition, OFFSET_END)
        for partition, offset in partitions.items()
        if offset == OFFSET_END
    ]
    found = client.offsets_for_times(asked, timeout=ENDS_S) if asked else ()
    known = {TopicPartition(each.topic, each.partition): each.offset for each in found if each.error is None}
    return {**partitions, **{partition: offset for partition, offset in known.items() if offset >= 0}}
