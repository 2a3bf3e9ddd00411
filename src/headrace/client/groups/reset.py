"""Where a group's offsets are moved to, partition by partition. Pure: no cluster is asked.

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
    """One partition before the reset: what the group has committed, and what the log has."""

    partition: TopicPartition
    committed: int | None
    start: int
    end: int
    at_time: int | None = None  # the first offset at or after the time asked for, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """One partition's move; the note says why it is not what was asked for to the letter."""

    topic: str
    partition: int
    old: int | None
    new: int
    note: str | None = None


class Wanted(NamedTuple):
    """An offset, and why it is this one where that is not obvious."""

    offset: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record that is there."""

    def wanted(self, at: Standing) -> Wanted:
        return Wanted(at.start)


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Past the last record: only what comes from now on."""

    def wanted(self, at: Standing) -> Wanted:
        return Wanted(at.end)


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """What is committed; where nothing is, the end, so that nothing is skipped from now on."""

    def wanted(self, at: Standing) -> Wanted:
        return Wanted(at.end, "nothing was committed") if at.committed is None else Wanted(at.committed)


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int

    def wanted(self, at: Standing) -> Wanted:
        return _within_log(self.offset, at)


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records forward, or back if negative."""

    records: int

    def wanted(self, at: Standing) -> Wanted:
        if at.committed is None:
            raise ClientError(f"{at.partition}: nothing is committed that could be shifted")
        return _within_log(at.committed + self.records, at)


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record of that time or later; the end if there is none."""

    time_ms: int

    def wanted(self, at: Standing) -> Wanted:
        return Wanted(at.end, "no record since then") if at.at_time is None else Wanted(at.at_time)


@dataclass(frozen=True, slots=True)
class ToEach:
    """An offset for each partition."""

    offsets: Mapping[TopicPartition, int]

    def wanted(self, at: Standing) -> Wanted:
        return _within_log(self.offsets[at.partition], at)


Target = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ToEach


def plan(target: Target, standings: Iterable[Standing]) -> list[Reset]:
    """Every partition's move, by topic and partition."""
    return [_move(target.wanted(at), at) for at in sorted(standings, key=lambda at: at.partition)]


def _move(wanted: Wanted, at: Standing) -> Reset:
    topic, partition = at.partition
    return Reset(topic=topic, partition=partition, old=at.committed, new=wanted.offset, note=wanted.note)


def _within_log(offset: int, at: Standing) -> Wanted:
    if offset > at.end:
        return Wanted(at.end, f"{offset} is past the end of the log")
    if offset < at.start:
        return Wanted(at.start, f"{offset} is before the start of the log")
    return Wanted(offset)
