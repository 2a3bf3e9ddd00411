"""Writing and reading records one by one: what `headrace produce` and `headrace consume` are made of."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.librdkafka_errors import translate
from headrace.client.wire.connection_settings import Target, settings_for
from headrace.client.wire.librdkafka import with_librdkafka_security

TIMEOUT_S: Final = 30.0
ELECTION_S: Final = 3.0  # for a partition without a leader to get one
RETRY_S: Final = 0.1
_LEADERLESS: Final = {
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001  of a partition that is in the metadata
    KafkaError._DESTROY_BROKER,  # noqa: SLF001  the broker has left the cluster while it was asked
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
POLL_S: Final = 0.2  # how soon Ctrl-C is noticed
BATCH: Final = 500  # records returned at a time
POLL_EVERY: Final = 100  # records written between two polls
ANY_PARTITION: Final = -1

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to write, or a record that was read."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    topic: str = ""
    offset: int = -1


@dataclass(slots=True)
class Receipt:
    """The acknowledged records: how many, and the first and last offset in each partition."""

    topic: str
    records: int = 0
    partitions: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, partition: int, offset: int | None) -> None:
        """Count a record; with acks=0 its offset is unknown."""
        self.records += 1
        if offset is None:
            return
        first, last = self.partitions.get(partition, (offset, offset))
        self.partitions[partition] = (min(first, offset), max(last, offset))


class Writer:
    """Writes to one topic. A later `write`, or `flush`, raises the error of a failed record."""

    def __init__(self, target: Target, topic: str, options: Mapping[str, str | int] | None = None) -> None:
        connection = settings_for(target)
        connection.check()
        self.receipt = Receipt(topic)
        self._bootstrap = connection.bootstrap
        self._failure: ClientError | None = None
        self._written = 0
        self._producer = Producer(
            {
                **connection.librdkafka(),
                "log_level": 0,
                "partitioner": "murmur2_random",  # as in Java: all clients agree on a key's partition
                "delivery.timeout.ms": int(TIMEOUT_S * 1000),
                "message.max.bytes": 1_000_000_000,  # the topic's limit applies
                **with_librdkafka_security(options or {}),
            }
        )

    def write(self, record: Record) -> None:
        """Queue a record; waits while the buffer is full."""
        options: dict[str, Any] = {}
        if record.timestamp_ms is not None:
            options["timestamp"] = record.timestamp_ms
        while True:
            try:
                self._producer.produce(
                    self.receipt.topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=ANY_PARTITION if record.partition is None else record.partition,
                    on_delivery=self._delivered,
                    **options,
                )
            except BufferError:
                self._producer.poll(POLL_S)
            except KafkaException as error:
                raise translate(error, self.receipt.topic, self._bootstrap) from error
            else:
                break
        self._written += 1
        if self._written % POLL_EVERY == 0:
            self._producer.poll(0)
            self._check()

    def flush(self) -> Receipt:
        """Wait until all records are acknowledged, and return their offsets."""
        while self._producer.flush(POLL_S):
            self._check()
        self._check()
        return self.receipt

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.receipt.add(message.partition(), message.offset())
        elif self._failure is None:
            self._failure = (
                ClientError(f"{self.receipt.topic} has no partition {message.partition()}")
                if error.code() == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
                else translate(error, self.receipt.topic, self._bootstrap)
            )

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


@dataclass(frozen=True, slots=True)
class Start:
    """The first record to read: by offset, by time, the first of all, or `last` records before the end."""

    offset: int | None = None
    time_ms: int | None = None
    last: int | None = None


BEGINNING: Final = Start()
END: Final = Start(last=0)


class Reader:
    """Reads partitions of a topic without a group.

    with Reader("127.0.0.1:9092", "orders", BEGINNING) as reader:
        for records in reader.batches(): …
    """

    def __init__(
        self,
        target: Target,
        topic: str,
        start: Start,
        *,
        end: Start | None = None,
        partitions: Sequence[int] = (),
        stop_at_end: bool = False,
        options: Mapping[str, str | int] | None = None,
    ) -> None:
        """Records at `end` and after it are not read; with `stop_at_end`, a partition may end before it."""
        connection = settings_for(target)
        connection.check()
        self._bootstrap = connection.bootstrap
        self._topic = topic
        self._stop_at_end = stop_at_end
        self._consumer = Consumer(
            {
                **connection.librdkafka(),
                "log_level": 0,
                "group.id": "headrace-reader",  # librdkafka requires a group; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                # The end of a partition is known only after an empty fetch.
                "fetch.wait.max.ms": 50 if stop_at_end else 500,
                "queued.min.messages": 1_000_000,  # or 64 MB; with fewer it waits for the next fetch
                **(options or {}),
            }
        )
        try:
            indexes = self._partitions(partitions)
            assigned = self._place(start, indexes)
            ends = [] if end is None else self._place(end, indexes)
            self._ends = {each.partition: each.offset for each in ends if each.offset >= 0}
            self._open = set(indexes)
            self._consumer.assign(assigned)
        except KafkaException as error:
            self._consumer.close()
            raise translate(error, topic, self._bootstrap) from error
        except ClientError:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def batches(self) -> Iterator[list[Record]]:
        """Yield records, several at a time; without `stop_at_end` it never ends."""
        while self._open:
            first = self._consumer.poll(POLL_S)
            if first is None:
                continue
            more = self._consumer.consume(BATCH, timeout=0)
            records = list(self._sort([first, *more]))
            if records:
                yield records

    def _sort(self, messages: Iterable[Message]) -> Iterator[Record]:
        """Yield the records among `messages`, which also report ends of partitions and errors."""
        for message in messages:
            error = message.error()
            if error is None and message.offset() >= self._ends.get(message.partition(), sys.maxsize):
                self._open.discard(message.partition())
            elif error is None:
                yield record_of(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                if self._stop_at_end:
                    self._open.discard(message.partition())
            elif error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
                raise ClientError(
                    f"{self._topic}-{message.partition()}: the offset does not exist (OFFSET_OUT_OF_RANGE)"
                )
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # librdkafka looks for the group's coordinator; nothing is read or written there
            elif error.fatal() or not error.retriable():
                raise translate(error, self._topic, self._bootstrap)

    def _partitions(self, wanted: Sequence[int]) -> list[int]:
        found = self._consumer.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic]
        if found.error is not None:
            raise translate(found.error, self._topic, self._bootstrap)
        if not found.partitions:
            raise NoSuchTopic(self._topic)
        for index in wanted:
            if index not in found.partitions:
                raise ClientError(
                    f"{self._topic} has no partition {index}, only 0 to {max(found.partitions)}"
                )
        return sorted(set(wanted) or found.partitions)

    def _place(self, start: Start, indexes: Sequence[int]) -> list[TopicPartition]:
        if start.time_ms is not None:
            asked = [TopicPartition(self._topic, index, start.time_ms) for index in indexes]
            return list(self._consumer.offsets_for_times(asked, timeout=TIMEOUT_S))
        placed = []
        for index in indexes:
            offset = start.offset
            if offset is None:
                low, high = self._watermarks(index)
                offset = low if start.last is None else max(low, high - start.last)
            placed.append(TopicPartition(self._topic, index, offset))
        return placed

    def _watermarks(self, index: int) -> tuple[int, int]:
        """Return the first and the next offset of a partition."""
        asked, deadline_s = TopicPartition(self._topic, index), time.monotonic() + ELECTION_S
        while True:
            try:
                low, high = self._consumer.get_watermark_offsets(asked, timeout=TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in _LEADERLESS:
                    raise
                if time.monotonic() >= deadline_s:
                    no_leader = f"{self._topic}-{index} has no leader (see `headrace cluster status`)"
                    raise Unreachable(no_leader) from error
                time.sleep(RETRY_S)  # librdkafka asks for the leader anew
            else:
                return low, high


def record_of(message: Message) -> Record:
    kind, timestamp_ms = message.timestamp()
    return Record(
        value=message.value(),
        key=message.key(),
        headers=message.headers() or (),
        partition=message.partition(),
        timestamp_ms=timestamp_ms if kind else None,
        topic=message.topic(),
        offset=message.offset(),
    )
