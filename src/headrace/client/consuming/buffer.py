"""What was fetched and handed out: how far a reader is, without a step of Python's for every record.

A batch is handed out by C: an iterator over a list. How many are left in it is asked for only when somebody
wants to know which record is in work: at a commit, a seek, a pause, or when all is over.
"""

from collections.abc import Callable, Collection, Iterator
from operator import length_hint
from typing import Any, Final

import confluent_kafka

from headrace.protocol.ids import TopicPartition

LARGEST: Final = 500  # records; more would keep Python's garbage collector busy
FIRST: Final = 16
SLOW_S: Final = 0.5  # a batch that takes longer to be worked on is followed by a smaller one
QUICK_S: Final = 0.05  # and one that takes less by a larger one

Record = Any  # librdkafka's message

_topic: Final = confluent_kafka.Message.topic
_partition: Final = confluent_kafka.Message.partition
_offset: Final = confluent_kafka.Message.offset


class Buffer:
    """Batches on their way to whoever iterates, from one thread at a time."""

    def __init__(self) -> None:
        self._before: dict[TopicPartition, int] = {}  # the next offset of each partition, without the batch
        self._batch: list[Record] = []
        self._left: Iterator[Record] = iter(())
        self._in_work = 1  # how many of those handed out last are not done before more is asked for
        self._again: list[Record] = []  # what was fetched, and is to be handed out next

    def put(self, batch: list[Record]) -> Iterator[Record]:
        """Have these handed out by the iterator that is returned; one of them is in work at a time."""
        self._batch, self._left, self._in_work = batch, iter(batch), 1
        return self._left

    def hand_out(self, batch: list[Record]) -> None:
        """These are handed out and in work, all of them."""
        self._batch, self._left, self._in_work = batch, iter(()), len(batch)

    @property
    def whole(self) -> int:
        """How many records were put in, if all of them were handed out and nothing else is left; or 0."""
        return 0 if self._again or length_hint(self._left) else len(self._batch)

    def settle(self, reached: dict[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """All that was handed out is done: returns how far that is. What was not can be had from `rest`.

        Whoever knows what was `reached` saves us a look at every record.
        """
        self._before = self.handed_out() if reached is None else self._before | reached
        self._again = [*self._left, *self._again]
        self._batch, self._left = [], iter(())
        return self._before

    def again(self, is_done: Callable[[Record], bool]) -> None:
        """Have what is in work handed out once more, before the rest, but for what `is_done` after all."""
        count = self._count()
        sure = max(0, count - self._in_work)
        self._before = self._reached(sure)
        work: list[Record] = []
        for record in self._batch[sure:count]:
            if is_done(record):
                self._before[place_of(record)] = record.offset() + 1
            else:
                work.append(record)
        self._again = [*work, *self._left, *self._again]
        self._batch, self._left = [], iter(())

    def rest(self) -> list[Record]:
        """What was fetched before and not handed out."""
        rest, self._again = self._again, []
        return rest

    def keep(self, records: list[Record]) -> None:
        """Have these handed out next, before what is kept already."""
        self._again = [*records, *self._again]

    def handed_out(self) -> dict[TopicPartition, int]:
        """How far everything is that was handed out: the next offset of each partition."""
        return self._reached(self._count())

    def done(self) -> dict[TopicPartition, int]:
        """The same without what is in work."""
        return self._reached(max(0, self._count() - self._in_work))

    def drop(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Hand out nothing more of these partitions; returns the first offset of each that was not."""
        left = [*self._left, *self._again]
        first: dict[TopicPartition, int] = {}
        for record in left:
            if (place := place_of(record)) in places:
                first.setdefault(place, record.offset())
        handed = self._batch[: len(self._batch) - len(left) + len(self._again)]
        self._batch = handed  # the iterator has come to its end, so that all of it counts as handed out
        self._again = [record for record in left if place_of(record) not in places]
        return first

    def forget(self, places: Collection[TopicPartition]) -> None:
        """These partitions are another's now, or read from elsewhere."""
        self.drop(places)
        self._before = {place: at for place, at in self._before.items() if place not in places}
        self._batch = [record for record in self._batch if place_of(record) not in places]

    def _count(self) -> int:
        return len(self._batch) - length_hint(self._left)

    def _reached(self, count: int) -> dict[TopicPartition, int]:
        """Past the first records of the batch. By C's loops: it may be asked for each batch."""
        if not count:
            return dict(self._before)
        some = self._batch[:count]
        places = zip(map(_topic, some), map(_partition, some), strict=True)
        last = dict(zip(places, map(_offset, some), strict=True))
        return self._before | {TopicPartition(*place): offset + 1 for place, offset in last.items()}


class Pace:
    """How many records to fetch at a time, by how long the last ones took. It is told the time.

    A reader that needs a second for each record should not have five hundred of them waiting: it would
    be taken for dead before it asks for more, and hold back what it has done.
    """

    def __init__(self) -> None:
        self.size = FIRST
        self._given_at_s: float | None = None

    def given(self, now_s: float) -> None:
        """A batch begins to be worked on."""
        self._given_at_s = now_s

    def asked(self, now_s: float) -> None:
        """It is done, and more is wanted."""
        if self._given_at_s is None:
            return
        took_s = now_s - self._given_at_s
        self._given_at_s = None
        if took_s > SLOW_S:
            self.size = max(1, int(self.size * SLOW_S / took_s))
        elif took_s < QUICK_S:
            self.size = min(LARGEST, self.size * 2)


def place_of(record: Record) -> TopicPartition:
    """The partition that librdkafka's message is from."""
    return TopicPartition(record.topic(), record.partition())
