"""The start and end of a read: "earliest", "latest", a time, or offsets of partitions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from headrace.client.errors import BadSetting
from headrace.client.settings import LAST_OFFSET, whole
from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.offsets import EARLIEST, LATEST

Bound: TypeAlias = str | int | datetime | Mapping[int, int] | Mapping[TopicPartition, int]
"""A start or an end. The offset of an end is the first that is not read."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def check(bound: object, name: str, topics: Sequence[str]) -> None:
    """Raise BadSetting unless `bound` is a start or an end of a read of these topics."""
    if isinstance(bound, str) and bound in _WORDS:
        return
    if isinstance(bound, datetime):
        if bound.tzinfo is None:
            raise BadSetting(f"{name} is a time without a time zone: give it one, such as tzinfo=UTC")
        return
    if isinstance(bound, Mapping):
        for partition, offset in bound.items():
            _partition(partition, name, topics)
            _check_offset(offset, name)
        return
    if isinstance(bound, str) or bound is None:
        raise BadSetting(f'{name} is "earliest", "latest", a datetime or offsets, not {bound!r:.80}')
    _check_offset(bound, name)


def _check_offset(offset: object, name: str) -> None:
    number = None if isinstance(offset, bool) else whole(offset)
    if number is None or not 0 <= number <= LAST_OFFSET:
        raise BadSetting(f"{name} has {offset!r:.80}, which is not an offset; expected 0 or more")


def _partition(given: object, name: str, topics: Sequence[str]) -> TopicPartition:
    """Return a partition that is given as a TopicPartition, or as its number if there is one topic."""
    if isinstance(given, tuple) and len(given) == 2:
        found = TopicPartition(*given)
        if found.topic in topics:
            return found
        raise BadSetting(f"{name} names {found}, which is not to be read")
    number = None if isinstance(given, bool) else whole(given)
    if number is None or number < 0:
        raise BadSetting(f"{name} has {given!r:.80}, which is not a partition; expected 0 or more")
    if len(topics) != 1:
        raise BadSetting(f"{name}: several topics are read, so name each partition as a TopicPartition")
    return TopicPartition(topics[0], number)


def resolve(
    bound: Bound,
    name: str,
    partitions: Sequence[TopicPartition],
    cluster: ClusterConnections,
    *,
    otherwise: int,
    read_committed: bool,
) -> dict[TopicPartition, int]:
    """Return the offset of `bound` in each partition.

    It is `otherwise` (EARLIEST or LATEST) in partitions that a mapping does not name. A time is the first
    record with a timestamp from then on; where there is none, it is the end of the partition.
    """
    topics = list(dict.fromkeys(partition.topic for partition in partitions))
    found: dict[TopicPartition, int] = {}
    asked: dict[TopicPartition, int] = dict.fromkeys(partitions, otherwise)
    match bound:
        case str():
            asked = dict.fromkeys(partitions, _WORDS[bound])
        case datetime():
            asked = dict.fromkeys(partitions, max(0, -((_EPOCH - bound) // _MS)))
        case Mapping():
            found = {_partition(each, name, topics): int(offset) for each, offset in bound.items()}
            if unknown := sorted(found.keys() - set(partitions)):
                raise BadSetting(f"{name} names {unknown[0]}, which does not exist")
        case _:
            found = dict.fromkeys(partitions, int(bound))
    asked = {each: at for each, at in asked.items() if each not in found}
    found |= cluster.offsets(asked, read_committed=read_committed) if asked else {}
    late = [each for each, offset in found.items() if offset < 0]
    if late:
        found |= cluster.offsets(dict.fromkeys(late, LATEST), read_committed=read_committed)
    return found
