"""Partitions that are to go on elsewhere: when librdkafka can be told so.

librdkafka asks the broker where the beginning of a partition is. If the partition is moved before the answer
has come, it asks again half a second later, and goes there from wherever it has been sent. So one that was
assigned or moved a moment ago stays until something has come of it: a record, or that it is at its end.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import OFFSET_END, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.buffer import Record, place_of
from headrace.protocol.ids import TopicPartition

ENDS_S: Final = 30.0  # for the leaders to say where partitions end


class Moves:
    """Of one consumer, which must have `enable.partition.eof`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._targets: dict[TopicPartition, int] = {}
        self._awaited: set[TopicPartition] = (
            set()
        )  # nothing has come of these since they were assigned or moved

    def __bool__(self) -> bool:
        """Whether a partition is to be moved yet."""
        return bool(self._targets)

    @property
    def planned(self) -> Mapping[TopicPartition, int]:
        """Where partitions are to go that are not there yet."""
        return self._targets

    @property
    def watching(self) -> bool:
        """Whether it matters what comes: `passes_over` is to be told of it."""
        return bool(self._targets or self._awaited)

    def assigned(self, places: Iterable[TopicPartition]) -> None:
        """The consumer has these from now on."""
        self._awaited.update(places)

    def unassigned(self, places: Iterable[TopicPartition]) -> None:
        """It has them no longer."""
        for place in places:
            self._awaited.discard(place)
            self._targets.pop(place, None)

    def plan(self, place: TopicPartition, offset: int) -> None:
        """Have this partition go on there."""
        self._targets[place] = offset

    def plan_again(self, targets: Mapping[TopicPartition, int]) -> None:
        """What has come last was lost on its way: have these go there, unless they are to go elsewhere."""
        self._targets = {**targets, **self._targets}
        self._awaited.clear()  # what they waited for may be what was lost

    def go(
        self, resolved: Callable[[TopicPartition, int], int] = lambda _place, offset: offset
    ) -> dict[TopicPartition, int]:
        """Move what can be moved; returns where to. An offset may have to be `resolved` only then."""
        gone: dict[TopicPartition, int] = {}
        for place in self._targets.keys() - self._awaited:
            with suppress(KafkaException):  # not yet; it stays among the targets
                offset = resolved(place, self._targets[place])
                self._client.seek(RdkafkaPartition(*place, offset))
                gone[place] = offset
                self._awaited.add(place)
                del self._targets[place]
        return gone

    def passes_over(self, message: Record) -> bool:
        """Whether this, which has come just now, is from where its partition is no longer to be."""
        place = place_of(message)
        self._awaited.discard(place)
        return place in self._targets


def with_ends(client: Any, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The same offsets, with a number for each that is "the end": what is written from now on is behind it.

    Where a leader does not tell, librdkafka will ask when it gets there.
    """
    asked = [RdkafkaPartition(*place, OFFSET_END) for place, offset in places.items() if offset == OFFSET_END]
    found = client.offsets_for_times(asked, timeout=ENDS_S) if asked else ()
    known = {TopicPartition(each.topic, each.partition): each.offset for each in found if each.error is None}
    return {**places, **{place: offset for place, offset in known.items() if offset >= 0}}
