"""The sizes of partitions on the brokers' disks, and how far reassignments are.

brokers = Brokers("127.0.0.1:9092")
read_log_dirs(brokers, brokers.nodes())[1]  # broker 1's directories
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.reading import read_partitions, read_reassignments
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NoAnswer
from headrace.client.wire.requests import Node, nodes_of
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

ANSWER_S: Final = 5.0  # for a broker to read its disks


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """A replica in a directory."""

    topic: str
    partition: int
    size_bytes: int
    lag: int  # records of the leader that this replica lacks

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A directory of a broker and its replicas; the sizes of its disk may be unknown (None)."""

    path: str
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None
    error: str | None
    replicas: tuple[StoredReplica, ...]


def read_log_dirs(
    brokers: Brokers, nodes: Iterable[Node], topics: Mapping[str, Sequence[int]] | None = None
) -> dict[int, tuple[LogDir, ...]]:
    """Return the directories of each broker that answers, with these partitions or all."""
    asked = None
    if topics is not None:
        asked = [DescribableLogDirTopic(topic=name, partitions=parts) for name, parts in topics.items()]
    request = DescribeLogDirsRequest(topics=asked)
    answers: dict[Node, DescribeLogDirsResponse | NoAnswer] = brokers.each(
        {node: lambda at: at.ask(request) for node in nodes}, ANSWER_S
    )
    return {
        node.id: tuple(map(_log_dir, answer.results))
        for node, answer in answers.items()
        if not isinstance(answer, NoAnswer)
    }


def sizes(log_dirs: Mapping[int, Iterable[LogDir]]) -> dict[tuple[int, TopicPartition], int]:
    taken: Counter[tuple[int, TopicPartition]] = Counter()
    for broker_id, directories in log_dirs.items():
        for directory in directories:
            for replica in directory.replicas:
                taken[broker_id, replica.topic_partition] += replica.size_bytes
    return taken


def size_of(
    taken: Mapping[tuple[int, TopicPartition], int], broker_id: int | None, partition: TopicPartition
) -> int | None:
    """Return the size of a replica; None if it is not known, or the partition has no leader to ask."""
    return None if broker_id is None else taken.get((broker_id, partition))


def _log_dir(found: DescribeLogDirsResult) -> LogDir:
    replicas = tuple(
        StoredReplica(
            topic=topic.name,
            partition=partition.partition_index,
            size_bytes=partition.partition_size,
            lag=partition.offset_lag,
        )
        for topic in found.topics
        for partition in topic.partitions
    )
    failed = found.error_code != ErrorCode.NONE
    return LogDir(
        path=found.log_dir,
        size_bytes=sum(replica.size_bytes for replica in replicas),
        total_bytes=_known(found.total_bytes),
        usable_bytes=_known(found.usable_bytes),
        error=ErrorCode(found.error_code).name.replace("_", " ").lower() if failed else None,
        replicas=tuple(sorted(replicas, key=lambda each: each.topic_partition)),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """A reassignment, and the bytes of its new replicas; None while a broker does not tell."""

    reassignment: Reassignment
    copied_bytes: int | None
    total_bytes: int | None

    @property
    def share(self) -> float | None:
        """The part that is copied, from 0 to 1."""
        if self.copied_bytes is None or self.total_bytes is None:
            return None
        return min(1.0, self.copied_bytes / self.total_bytes) if self.total_bytes else 1.0


def read_progress(brokers: Brokers) -> list[MoveProgress]:
    """Return every reassignment in progress, by three requests and one to each broker."""
    found = read_reassignments(brokers)
    if not found:
        return []
    metadata = brokers.metadata()
    leaders = {each.topic_partition: each.leader for each in read_partitions(metadata)}
    asked = by_topic(each.topic_partition for each in found)
    log_dirs = read_log_dirs(brokers, nodes_of(metadata), asked)
    return progress_of(found, leaders, sizes(log_dirs), log_dirs.keys())


def progress_of(
    reassignments: Iterable[Reassignment],
    leaders: Mapping[TopicPartition, int | None],
    taken: Mapping[tuple[int, TopicPartition], int],
    answered: Collection[int],
) -> list[MoveProgress]:
    """Return the progress of reassignments; `taken` has the sizes of replicas on brokers that `answered`."""
    progress = []
    for move in reassignments:
        leader, copied, total = leaders.get(move.topic_partition), None, None
        if leader is not None and {leader, *move.adding} <= set(answered):
            size = taken.get((leader, move.topic_partition), 0)
            copied = sum(min(size, taken.get((broker, move.topic_partition), 0)) for broker in move.adding)
            total = size * len(move.adding)
        progress.append(MoveProgress(reassignment=move, copied_bytes=copied, total_bytes=total))
    return progress
