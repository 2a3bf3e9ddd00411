"""The new offsets of a group, partition by partition. Pure.

plan(ShiftBy(-10), [Standing(partition=TopicPartition("orders", 0), committed=25, start=20, end=90)])
    -> Reset(topic="orders", partition=0, old=25, new=20, note="15 is before the start of the log")
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One partition before the reset: the committed offset, and the ends of the log."""

    partition: TopicPartition
    committed: int | None
    start: int
    end: int
    at_time: int | None = None  # the first offset at or after the requested time, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The new offset of one partition; `note` says why it differs from the request."""

    topic: str
    partition: int
    old: int | None
    new: int
    note: str | None = None


class NewOffset(NamedTuple):
    """An offset, and a note why it differs from the request."""

    offset: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record of the log."""

    def wanted(self, at: Standing) -> NewOffset:
        return NewOffset(at.start)


@dataclass(frozen=True, slots=True)
class ToLatest:
    """After the last record."""

    def wanted(self, at: Standing) -> NewOffset:
        return NewOffset(at.end)


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset; the end of the log if there is none."""

    def wanted(self, at: Standing) -> NewOffset:
        return NewOffset(at.end, "nothing was committed") if at.committed is None else NewOffset(at.committed)


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int

    def wanted(self, at: Standing) -> NewOffset:
        return _within_log(self.offset, at)


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """Some records forward, or back if negative."""

    records: int

    def wanted(self, at: Standing) -> NewOffset:
        if at.committed is None:
            raise ClientError(f"{at.partition}: nothing is committed that could be shifted")
        return _within_log(at.committed + self.records, at)


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time; the end if there is none."""

    time_ms: int

    def wanted(self, at: Standing) -> NewOffset:
        return NewOffset(at.end, "no record since then") if at.at_time is None else NewOffset(at.at_time)


@dataclass(frozen=True, slots=True)
class ToEach:
    """An offset for each partition."""

    offsets: Mapping[TopicPartition, int]

    def wanted(self, at: Standing) -> NewOffset:
        return _within_log(self.offsets[at.partition], at)


Target = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ToEach


def plan(target: Target, standings: Iterable[Standing]) -> list[Reset]:
    """Return the new offset of every partition, in order."""
    return [_move(target.wanted(at), at) for at in sorted(standings, key=lambda at: at.partition)]


def _move(wanted: NewOffset, at: Standing) -> Reset:
    topic, partition = at.partition
    return Reset(topic=topic, partition=partition, old=at.committed, new=wanted.offset, note=wanted.note)


def _within_log(offset: int, at: Standing) -> NewOffset:
    if offset > at.end:
        return NewOffset(at.end, f"{offset} is past the end of the log")
    if offset < at.start:
        return NewOffset(at.start, f"{offset} is before the start of the log")
    return NewOffset(offset)
