"""Committed offsets, by group, topic and partition, and the offsets of open transactions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.coordinators.group.records import GroupRecord, OffsetCommitKey, OffsetCommitValue


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int = -1  # -1: by offsets.retention.minutes; only clients before 2.1 set it


class Commit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit, without the partitions that the handler has refused already."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int  # in a consumer group, the member epoch
    offsets: Sequence[tuple[str, int, Committed]]
    version: int


class Offsets:
    """The committed offsets of all groups of one coordinator. Only records change them."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[tuple[str, int], Committed]] = {}

    def of(self, group_id: str) -> Mapping[tuple[str, int], Committed]:
        """Return all offsets of a group, by topic and partition."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        group = self._groups.get(group_id)
        return None if group is None else group.get((topic, partition))

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        partition = (key.topic, key.partition)
        if value is not None:
            self._groups.setdefault(key.group, {})[partition] = Committed(
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
            )
            return
        group = self._groups.get(key.group)
        if group is not None:
            group.pop(partition, None)
            if not group:
                del self._groups[key.group]

    def tombstones(self, group_id: str) -> list[GroupRecord]:
        return [offset_tombstone(group_id, topic, partition) for topic, partition in self.of(group_id)]

    def of_topic(self, name: str) -> Iterator[tuple[str, str, int]]:
        """Yield group, topic and partition of every offset of a topic."""
        for group_id, offsets in self._groups.items():
            for topic, partition in offsets:
                if topic == name:
                    yield group_id, topic, partition


def offset_record(group_id: str, topic: str, partition: int, committed: Committed) -> GroupRecord:
    return GroupRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.committed_ms,
            expire_timestamp=committed.expires_ms,
        ),
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


_Key = tuple[str, str, int]  # group, topic, partition


class PendingOffsets:
    """Offsets of open transactions, which become committed offsets with the marker of their transaction.

    By producer id the last offset of each partition, and by group the partitions that have one.
    """

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
