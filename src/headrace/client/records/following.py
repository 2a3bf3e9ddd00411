"""A reader that is driven step by step, with explicit positions.

with Follower("127.0.0.1:9092", "orders", Start(last=10)) as follower:
    while not follower.at_end: print(follower.step(0.2), follower.positions)
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.records.one_by_one import BATCH, BEGINNING, Reader, Record, Start
from headrace.client.wire.connection_settings import Target

_POSITIONS: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*")
_GONE: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
CHECK_S: Final = 1.0
_OFFSETS: Final = range(2**63)


class Follower(Reader):
    """A reader driven by the caller's loop. An offset outside the log becomes the nearest record's."""

    def __init__(
        self,
        target: Target,
        topic: str,
        start: Start = BEGINNING,
        *,
        partitions: Sequence[int] = (),
        positions: Mapping[int, int] | None = None,
        options: Mapping[str, str | int] | None = None,
    ) -> None:
        """`positions` are offsets by partition, and take precedence over `start`."""
        self._wanted = dict(positions or {})
        self.positions: dict[int, int] = {}  # the next offset of each partition
        self.begins: dict[int, int] = {}  # the first offset of each partition at the start
        self.ends: dict[int, int] = {}  # the end of each partition at the start
        self.lost = 0  # requested records that are not in the log any more
        super().__init__(
            target,
            topic,
            start,
            partitions=partitions,
            stop_at_end=True,
            options={"queued.min.messages": 10_000, "queued.max.messages.kbytes": 16_384, **(options or {})},
        )

    @property
    def at_end(self) -> bool:
        """Whether every partition was read to its end at the start."""
        return all(
            self.positions[index] >= end or index not in self._open for index, end in self.ends.items()
        )

    def step(self, timeout_s: float) -> list[Record]:
        """Return the available records, after waiting at most `timeout_s` for the first."""
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        records = list(self._sort([first, *self._consumer.consume(BATCH, timeout=0)]))
        for record in records:
            assert record.partition is not None, record
            self.positions[record.partition] = record.offset + 1
        return records

    @property
    def unfinished(self) -> set[int]:
        """Return the partitions that were not read to their end since the start or `place`."""
        return set(self._open)

    def place(self, positions: Mapping[int, int]) -> None:
        """Read these partitions from these offsets, and no others."""
        self.positions.update(positions)
        self._open = set(positions)
        self._consumer.assign(
            [TopicPartition(self._topic, index, offset) for index, offset in positions.items()]
        )

    def check(self) -> None:
        """Raise NoSuchTopic if the topic was deleted, which librdkafka does not report; waits CHECK_S."""
        try:
            found = self._consumer.list_topics(self._topic, timeout=CHECK_S).topics[self._topic]
        except KafkaException:
            return  # no broker answers: the topic may still exist
        if found.error is not None and found.error.code() in _GONE:
            raise NoSuchTopic(self._topic)

    def _place(self, start: Start, indexes: Sequence[int]) -> list[TopicPartition]:
        found = super()._place(start, indexes) if start.time_ms is not None else []
        times = {each.partition: each.offset for each in found}
        for index in indexes:
            low, high = self._watermarks(index)
            self.begins[index], self.ends[index] = low, high
            self.positions[index] = self._begin(index, start, low, high, times)
        return [TopicPartition(self._topic, index, offset) for index, offset in self.positions.items()]

    def _begin(self, index: int, start: Start, low: int, high: int, times: Mapping[int, int]) -> int:
        if index in self._wanted:
            self.lost += max(0, low - self._wanted[index])
            wanted = self._wanted[index]
        elif index in times:
            wanted = times[index] if times[index] >= 0 else high
        elif start.offset is not None:
            wanted = start.offset
        else:
            wanted = low if start.last is None else high - start.last
        return min(max(wanted, low), high)


def written(positions: Mapping[int, int]) -> str:
    """Return positions as text, such as 0:120,1:88."""
    return ",".join(f"{index}:{offset}" for index, offset in sorted(positions.items()))


def read_positions(text: str) -> dict[int, int]:
    """Return the positions in a text; ClientError if it has none."""
    if not _POSITIONS.fullmatch(text):
        raise ClientError(f"{text[:100]!r}: expected partition:offset,... such as 0:120,1:88")
    pairs = [pair.split(":") for pair in text.split(",")]
    found = {int(index): int(offset) for index, offset in pairs}
    if len(found) != len(pairs) or not all(offset in _OFFSETS for offset in found.values()):
        raise ClientError(f"{text[:100]!r}: a partition occurs twice, or an offset is too large")
    return found
