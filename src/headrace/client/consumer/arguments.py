"""Checks of the arguments of a Consumer: partitions and offsets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import confluent_kafka

from headrace.client.errors import BadSetting, NoSuchTopic
from headrace.client.settings import LAST_OFFSET, LAST_PARTITION, whole
from headrace.protocol.ids import TopicPartition

Start = Literal["earliest", "latest"]

ENDS: Final = {"earliest": confluent_kafka.OFFSET_BEGINNING, "latest": confluent_kafka.OFFSET_END}
MOST: Final = 1_000_000  # records that librdkafka hands out at a time


def partition_list(given: Any) -> list[TopicPartition]:
    """Return the partitions of a list of pairs: [("orders", 0)]."""
    if isinstance(given, str | TopicPartition) or not isinstance(given, Iterable):
        raise _not_partitions(given)
    return [_topic_partition(each) for each in given]


def begins_of(given: Any, start: int) -> dict[TopicPartition, int]:
    """Return the first offset of each partition: the mapping's, or `start` for a list."""
    if isinstance(given, Mapping):
        return {_topic_partition(partition): offset_of(offset) for partition, offset in given.items()}
    return dict.fromkeys(partition_list(given), start)


def offset_of(wanted: Any) -> int:
    """Return an offset as librdkafka has it."""
    if isinstance(wanted, str) and wanted in ENDS:
        return int(ENDS[wanted])
    offset = whole(wanted)
    if offset is None or not (0 <= offset <= LAST_OFFSET or offset in ENDS.values()):
        raise BadSetting(f"an offset is a number from 0 on, 'earliest' or 'latest', not {wanted!r:.80}")
    return offset


def check_most(most: Any) -> None:
    """Raise BadSetting unless `most` is a valid batch size, or None for no limit."""
    if most is not None and not (isinstance(most, int) and 1 <= most <= MOST):
        raise BadSetting(f"a batch has up to {MOST:,} records, and at least one record, not {most!r:.80}")


def _topic_partition(given: Any) -> TopicPartition:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise _not_partitions(given)
    topic, partition = given
    if not isinstance(topic, str):
        raise NoSuchTopic(topic)
    number = whole(partition)
    if number is None or not 0 <= number <= LAST_PARTITION:
        raise _not_partitions(given)
    return TopicPartition(topic, number)


def _not_partitions(given: object) -> BadSetting:
    return BadSetting(f"partitions are a list of pairs, such as [('orders', 0)], not {given!r:.80}")
