"""The new offsets of a group, partition by partition. Pure.

plan(ShiftBy(-10), [Standing(partition=TopicPartition("orders", 0), committed=25, start=20, end=90)])
    -> Reset(topic="orders", partition=0, old=25, new=20, note="15 is before the start of the log")
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record of the log."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """After the last record."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset; the end of the log if there is none."""


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """Some records forward, or back if negative."""

    records: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time; the end if there is none."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class ToEach:
    """An offset for each partition."""

    offsets: Mapping[TopicPartition, int]


Target = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ToEach


def plan(target: Target, standings: Iterable[Standing]) -> list[Reset]:
    """Return the new offset of every partition, in order."""
    return [_reset(target, at) for at in sorted(standings, key=lambda at: at.partition)]


def _reset(target: Target, at: Standing) -> Reset:  # noqa: C901  a case for each target
    new: int | None
    note = None
    match target:
        case ToEarliest():
            new = at.start
        case ToLatest():
            new = at.end
        case ToCurrent():
            new, note = at.committed, "nothing was committed"
        case ToTime():
            new, note = at.at_time, "no record since then"
        case ToOffset(offset):
            new = offset
        case ToEach(offsets):
            new = offsets[at.partition]
        case ShiftBy(records):
            if at.committed is None:
                raise ClientError(f"{at.partition}: nothing is committed that could be shifted")
            new = at.committed + records
    if new is None:
        new = at.end
    elif isinstance(target, ToCurrent) or at.start <= new <= at.end:
        note = None
    elif new > at.end:
        new, note = at.end, f"{new} is past the end of the log"
    else:
        new, note = at.start, f"{new} is before the start of the log"
    topic, partition = at.partition
    return Reset(topic=topic, partition=partition, old=at.committed, new=new, note=note)
