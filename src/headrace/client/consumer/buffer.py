"""The records that were fetched and handed out, tracked without Python code for every record.

A batch is handed out by an iterator over a list, in C. How many records are left in it is computed only when
the record in work matters: at a commit, a seek, a pause, or at the end.
"""

from collections.abc import Callable, Collection, Iterator
from operator import length_hint
from typing import Any, Final

import confluent_kafka

from headrace.protocol.ids import TopicPartition

LARGEST: Final = 500  # records; more would keep Python's garbage collector busy
FIRST: Final = 16
SLOW_S: Final = 0.5  # a batch that takes longer is followed by a smaller one
QUICK_S: Final = 0.05  # a batch that takes less is followed by a larger one

Record = Any  # librdkafka's message

_topic: Final = confluent_kafka.Message.topic
_partition: Final = confluent_kafka.Message.partition
_offset: Final = confluent_kafka.Message.offset


class Buffer:
    """The batches of one reader, for one thread at a time."""

    def __init__(self) -> None:
        self._before: dict[TopicPartition, int] = {}  # the next offset of each partition, without the batch
        self._batch: list[Record] = []
        self._left: Iterator[Record] = iter(())
        self._in_work = 1  # how many records handed out last are not done until the next request
        self._again: list[Record] = []  # fetched records to hand out next

    def put(self, batch: list[Record]) -> Iterator[Record]:
        """Return an iterator that hands out these records; one of them is in work at a time."""
        self._batch, self._left, self._in_work = batch, iter(batch), 1
        return self._left

    def hand_out(self, batch: list[Record]) -> None:
        """Note that these records are handed out and in work, all of them."""
        self._batch, self._left, self._in_work = batch, iter(()), len(batch)

    @property
    def whole(self) -> int:
        """Return the size of the batch if all of it was handed out and nothing is left, else 0."""
        return 0 if self._again or length_hint(self._left) else len(self._batch)

    def settle(self, reached: dict[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Mark all records that were handed out as done, and return the next offsets; `rest` has the others.

        A caller that knows the offsets that were `reached` saves a look at every record.
        """
        self._before = self.handed_out() if reached is None else self._before | reached
        self._again = [*self._left, *self._again]
        self._batch, self._left = [], iter(())
        return self._before

    def again(self, is_done: Callable[[Record], bool]) -> None:
        """Hand out the records in work once more, before the rest, except those that `is_done` accepts."""
        count = self._count()
        sure = max(0, count - self._in_work)
        self._before = self._reached(sure)
        work: list[Record] = []
        for record in self._batch[sure:count]:
            if is_done(record):
                self._before[partition_of(record)] = record.offset() + 1
            else:
                work.append(record)
        self._again = [*work, *self._left, *self._again]
        self._batch, self._left = [], iter(())

    def rest(self) -> list[Record]:
        """Return the records that were fetched and not handed out."""
        rest, self._again = self._again, []
        return rest

    def keep(self, records: list[Record]) -> None:
        """Hand out these records next, before those that are kept already."""
        self._again = [*records, *self._again]

    def handed_out(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition after all records that were handed out."""
        return self._reached(self._count())

    def settled(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition after the records of earlier batches."""
        return dict(self._before)

    def firsts(self) -> dict[TopicPartition, int]:
        records = self._batch[::-1]
        partitions = zip(map(_topic, records), map(_partition, records), strict=True)
        first = dict(zip(partitions, map(_offset, records), strict=True))
        return {TopicPartition(*partition): offset for partition, offset in first.items()}

    def done(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition after all records that are done."""
        return self._reached(max(0, self._count() - self._in_work))

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Drop the records of these partitions, and return the first dropped offset of each."""
        left = [*self._left, *self._again]
        first: dict[TopicPartition, int] = {}
        for record in left:
            if (partition := partition_of(record)) in partitions:
                first.setdefault(partition, record.offset())
        handed = self._batch[: len(self._batch) - len(left) + len(self._again)]
        self._batch = handed  # the iterator is exhausted, so all of the batch counts as handed out
        self._again = [record for record in left if partition_of(record) not in partitions]
        return first

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were revoked, or are read from another offset."""
        self.drop(partitions)
        self._before = {
            partition: at for partition, at in self._before.items() if partition not in partitions
        }
        self._batch = [record for record in self._batch if partition_of(record) not in partitions]

    def _count(self) -> int:
        return len(self._batch) - length_hint(self._left)

    def _reached(self, count: int) -> dict[TopicPartition, int]:
        """Return the next offsets after `count` records of the batch."""
        if not count:
            return dict(self._before)
        some = self._batch[:count]
        partitions = zip(map(_topic, some), map(_partition, some), strict=True)
        last = dict(zip(partitions, map(_offset, some), strict=True))
        return self._before | {TopicPartition(*partition): offset + 1 for partition, offset in last.items()}


class Pace:
    """How many records to fetch at a time, by how long the last ones took. Pure: it is given the time.

    A reader that needs a second for each record must not get five hundred of them: it would exceed
    max.poll.interval.ms, and its done records would not be committed.
    """

    def __init__(self) -> None:
        self.size = FIRST
        self._given_at_s: float | None = None

    def given(self, now_s: float) -> None:
        self._given_at_s = now_s

    def asked(self, now_s: float) -> None:
        if self._given_at_s is None:
            return
        took_s = now_s - self._given_at_s
        self._given_at_s = None
        if took_s > SLOW_S:
            self.size = max(1, int(self.size * SLOW_S / took_s))
        elif took_s < QUICK_S:
            self.size = min(LARGEST, self.size * 2)


def partition_of(record: Record) -> TopicPartition:
    return TopicPartition(record.topic(), record.partition())
