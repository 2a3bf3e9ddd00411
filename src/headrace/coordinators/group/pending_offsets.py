"""Offsets of open transactions, which become committed offsets with the marker of their transaction."""

from collections.abc import Iterator

from headrace.coordinators.group.offsets import offset_tombstone
from headrace.coordinators.group.records import GroupRecord, OffsetCommitKey

_Key = tuple[str, str, int]  # group, topic, partition


class PendingOffsets:
    """By producer id the last offset of each partition, and by group the partitions that have one."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[_Key, GroupRecord]] = {}
        self._producers: dict[str, dict[tuple[str, int], set[int]]] = {}

    def contains(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has an offset for the partition."""
        return (topic, partition) in self._producers.get(group_id, ())

    def has_group(self, group_id: str) -> bool:
        return group_id in self._producers

    def add(self, producer_id: int, record: GroupRecord) -> None:
        key = group_id, topic, partition = _key(record)
        self._by_producer.setdefault(producer_id, {})[key] = record
        self._producers.setdefault(group_id, {}).setdefault((topic, partition), set()).add(producer_id)

    def end(self, producer_id: int) -> list[GroupRecord]:
        """Remove and return the offsets of the producer's transaction."""
        records = self._by_producer.pop(producer_id, {})
        for key in records:
            self._forget(key, producer_id)
        return list(records.values())

    def discard(self, record: GroupRecord) -> None:
        """Drop what transactions have for the partition of a tombstone: its offset was deleted."""
        key = group_id, topic, partition = _key(record)
        for producer_id in tuple(self._producers.get(group_id, {}).get((topic, partition), ())):
            offsets = self._by_producer[producer_id]
            del offsets[key]
            if not offsets:
                del self._by_producer[producer_id]
            self._forget(key, producer_id)

    def tombstones(self, group_id: str) -> Iterator[GroupRecord]:
        """Yield a tombstone for each partition of a group that has a pending offset."""
        for topic, partition in self._producers.get(group_id, ()):
            yield offset_tombstone(group_id, topic, partition)

    def _forget(self, key: _Key, producer_id: int) -> None:
        group_id, topic, partition = key
        group = self._producers[group_id]
        producers = group[topic, partition]
        producers.discard(producer_id)
        if not producers:
            del group[topic, partition]
            if not group:
                del self._producers[group_id]


def _key(record: GroupRecord) -> _Key:
    assert isinstance(record.key, OffsetCommitKey), f"{record.key} cannot be part of a transaction"
    return record.key.group, record.key.topic, record.key.partition
