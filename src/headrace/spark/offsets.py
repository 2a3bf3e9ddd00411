"""Offsets by partition: Spark's JSON for them, and how a batch is limited.

The JSON is that of Spark's own Kafka source: `{"orders": {"0": 17, "1": 4}}`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.offsets import EARLIEST, Offsets

_MAX: Final = 2**63 - 1  # of an offset or a timestamp


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return offsets as Spark's checkpoints have them, with topics and partitions in order."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(value: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in value.items()
        for partition, offset in partitions.items()
    }


def parse(text: str) -> dict[TopicPartition, int]:
    """Return the offsets in an option's JSON; ValueError says what is wrong with it."""
    value = _parsed(text)
    found: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise ValueError(f'expected partitions of {topic}, as in {{"{topic}": {{"0": 17}}}}')  # noqa: TRY004
        for partition, offset in partitions.items():
            if not partition.isdecimal():
                raise ValueError(f"{partition!r} of {topic} is not a partition number")
            if not isinstance(offset, int) or isinstance(offset, bool) or not EARLIEST <= offset <= _MAX:
                raise ValueError(f"{offset!r} of {topic}-{partition} is not an offset")
            found[TopicPartition(topic, int(partition))] = offset
    return found


def parse_assignment(text: str) -> list[TopicPartition]:
    """Return the partitions in an option's JSON: `{"orders": [0, 1]}`."""
    found: list[TopicPartition] = []
    for topic, partitions in _parsed(text).items():
        if not isinstance(partitions, list) or not all(
            isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in partitions
        ):
            raise ValueError(f'expected the partitions of {topic}, as in {{"{topic}": [0, 1]}}')
        found += [TopicPartition(topic, partition) for partition in partitions]
    if not found:
        raise ValueError('no partition is named; expected {"topic": [0, 1]}')
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError('expected an object, as in {"topic": {"0": 17}}')  # noqa: TRY004
    return value


def admit(start: Offsets, latest: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Return where a batch of about `limit` records ends; each partition has a proportional share.

    A partition with records contributes at least one, so that none starves. A partition that ends before
    `start`, because its topic was recreated, contributes none.
    """
    waiting = {partition: max(0, last - start.get(partition, last)) for partition, last in latest.items()}
    total = sum(waiting.values())
    if total <= limit:
        return dict(latest)
    ends: dict[TopicPartition, int] = {}
    for partition, count in waiting.items():
        share = limit * count / total
        take = int(share) if share >= 1 else -int(-share // 1)  # less than one record becomes one
        ends[partition] = min(latest[partition], start.get(partition, latest[partition]) + take)
    return ends
