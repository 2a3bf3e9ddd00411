"""How far reassignments are: the bytes that new replicas have copied."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.reading import read_partitions, read_reassignments
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.requests import nodes_of
from headrace.protocol.ids import TopicPartition, by_topic


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
    return [_progress(each, leaders.get(each.topic_partition), taken, answered) for each in reassignments]


def _progress(
    each: Reassignment,
    leader: int | None,
    taken: Mapping[tuple[int, TopicPartition], int],
    answered: Collection[int],
) -> MoveProgress:
    if leader not in answered or not set(each.adding) <= set(answered):
        return MoveProgress(reassignment=each, copied_bytes=None, total_bytes=None)
    assert leader is not None, each
    size = taken.get((leader, each.topic_partition), 0)
    copied = [min(size, taken.get((broker, each.topic_partition), 0)) for broker in each.adding]
    return MoveProgress(reassignment=each, copied_bytes=sum(copied), total_bytes=size * len(each.adding))
