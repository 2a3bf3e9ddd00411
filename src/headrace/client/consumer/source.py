"""The fetches of a consumer: librdkafka's client, the assigned partitions and their ends."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.buffer import Buffer, Record, partition_of
from headrace.client.consumer.moves import Moves, with_ends
from headrace.client.errors import ClientError
from headrace.client.librdkafka_errors import translate
from headrace.protocol.ids import TopicPartition

POLL_S: Final = 0.2  # how soon Ctrl-C and a time limit are noticed
COMMITTED_S: Final = 5.0  # for the committed offset of a partition
IDLE_AFTER_S: Final = 15.0  # without an assignment, after which none is expected

_error_of: Final = confluent_kafka.Message.error


class Source:
    """Fetches records, and tracks which partitions are assigned and where they end."""

    def __init__(
        self,
        client: Any,
        bootstrap: str,
        buffer: Buffer,
        *,
        start: int,
        incremental: bool,
        static_member: str | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start` is the first offset of a partition without a committed offset.

        `static_member` names the member, if it is a static one, in the error after another one fenced it.
        """
        self.client = client
        self.buffer = buffer
        self.assigned: set[TopicPartition] = set()
        self.patterns = False  # the subscription has patterns: matching topics may come and go
        self.more_to_come = False  # topics of patterns may be assigned later than named topics
        self._bootstrap = bootstrap
        self._start = start
        self.incremental = incremental  # otherwise a rebalance revokes all partitions first
        self._settled = False  # whether the assignment is complete
        self._static_member = static_member
        self._now_s = now_s
        self._idle_from_s = now_s() + IDLE_AFTER_S
        self._begins: dict[TopicPartition, int] = {}  # first offsets other than the committed ones
        self.ends: dict[TopicPartition, int] = {}  # the ends that partitions were read to
        self._moves = Moves(client)
        self.paused: set[TopicPartition] = set()
        self.held: dict[TopicPartition, int] = {}  # where paused partitions continue
        self._raised: BaseException | None = None  # by a user's callback that librdkafka called

    # -- partitions ----------------------------------------------------------------------------

    def gained(
        self, partitions: Collection[TopicPartition], begins: Mapping[TopicPartition, int] | None = None
    ) -> None:
        self.assigned.update(partitions)
        self._moves.assigned(partitions)
        self._begins.update(begins or {})
        self._settled = True

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned.difference_update(partitions)
        self._settled = self.incremental
        self._moves.unassigned(partitions)
        self.buffer.forget(set(partitions))
        for partition in partitions:
            self._begins.pop(partition, None)
            self.ends.pop(partition, None)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset` as soon as possible; records that arrive before are dropped."""
        self.buffer.forget({partition})
        self.go_on(partition, offset)

    def go_on(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset`, without forgetting the records that were handed out before."""
        self.ends.pop(partition, None)
        self._moves.plan(partition, offset)

    def sent_to(self) -> dict[TopicPartition, int]:
        """Return the offsets of partitions that do not continue at the committed offset."""
        return {**self._begins, **self._moves.planned, **self.held}

    @property
    def at_end(self) -> bool:
        """Whether all partitions are read to their end. Only valid while the buffer is empty."""
        is_early = self._now_s() < self._idle_from_s
        if not self._settled and (self.assigned or is_early):
            return False
        if self.more_to_come and is_early:
            return False
        far = self.buffer.handed_out()
        read = self.assigned - self.paused
        return self._moves.planned.keys().isdisjoint(read) and all(
            partition in self.ends and far.get(partition, -1) <= self.ends[partition] for partition in read
        )

    def look_for_ends(self) -> None:
        """Forget ends after which records were written since: librdkafka reports each end once."""
        known = dict.fromkeys(self.ends.keys() & (self.assigned - self.paused), confluent_kafka.OFFSET_END)
        try:
            now = with_ends(self.client, known)
        except KafkaException as error:
            raise translate(error, "the topics", self._bootstrap, is_topic=False) from error
        self.ends = {partition: end for partition, end in self.ends.items() if now.get(partition, end) <= end}

    def positions(self) -> dict[TopicPartition, int]:
        """Return librdkafka's positions, which are right for partitions without records in the buffer."""
        asked = [RdkafkaPartition(*partition) for partition in self.assigned]
        found = self.client.position(asked)
        return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    @property
    def moved(self) -> bool:
        """Whether a partition continues at another offset than librdkafka's position."""
        return bool(self._moves or self.held)

    # -- records -------------------------------------------------------------------------------

    def fetch(self, most: int, wait_s: float = POLL_S) -> list[Record]:
        """Return the next records, at most `most`; none if none arrive in time."""
        first: Record | None = None
        try:
            if self._moves:
                self._begins |= self._moves.go(self._resolved)
            first = self.client.poll(min(wait_s, POLL_S))
            found = [] if first is None else [first]
            if found and most > 1:
                found += self.client.consume(most - 1, timeout=0)
        except KafkaException as error:
            self._go_back(first)
            raise translate(error, "the topics", self._bootstrap, is_topic=False) from error
        except BaseException:  # Ctrl-C
            self._go_back(first)
            raise
        if any(map(_error_of, found)) or self._moves.watching:
            found = self._sorted(found)
        if self._raised is not None:
            self.buffer.keep(found)
            self.raise_what_callbacks_raised()
        return found

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a user's function within librdkafka, and keep its exception: librdkafka would lose it."""
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  `fetch` or `close` raises it
            self._raised = self._raised or error

    def raise_what_callbacks_raised(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _resolved(self, partition: TopicPartition, offset: int) -> int:
        """Return the offset; for OFFSET_STORED the committed one."""
        if offset != confluent_kafka.OFFSET_STORED:
            return offset
        found = self.client.committed([RdkafkaPartition(*partition)], timeout=COMMITTED_S)[0].offset
        return int(found) if found >= 0 else self._start

    def _go_back(self, first: Record | None) -> None:
        """Fetch the records again that librdkafka returned and an error lost; `first` is the first of them.

        A partition without a record handed out goes back to its first offset.
        """
        handed_out = self.buffer.handed_out()
        if first is not None and first.error() is None:
            handed_out.setdefault(partition_of(first), first.offset())
        began = dict.fromkeys(self.assigned, confluent_kafka.OFFSET_STORED) | self._begins | self.ends
        self._moves.plan_again(began | handed_out)
        self.ends.clear()

    def _sorted(self, found: Sequence[Record]) -> list[Record]:
        """Return the records among `found`. Note ends; keep the records and raise for an error."""
        records: list[Record] = []
        for record in found:
            error = record.error()
            elsewhere = self._moves.passes_over(record)
            if error is None:
                if not elsewhere:
                    records.append(record)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                if not elsewhere:
                    self.ends[partition_of(record)] = record.offset()
            elif error.code() in _REJOINS or (self.patterns and error.code() in _NO_TOPIC):
                continue
            elif error.fatal() or not error.retriable():
                self.buffer.keep(records)
                raise self._why(error, record)
        return records

    def _why(self, error: KafkaError, record: Record) -> ClientError:
        # FENCED_INSTANCE_ID is the only fatal error of the classic protocol; librdkafka hides its code.
        fatal = error.code() == KafkaError._FATAL  # noqa: SLF001
        if fatal and self._static_member is not None:
            return ClientError(f"another consumer is {self._static_member}")
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
            return ClientError(
                f"{record.topic()}-{record.partition()} has no record at that offset (OFFSET_OUT_OF_RANGE): "
                "seek to an existing offset, or give start='earliest' or 'latest'"
            )
        return translate(
            error, record.topic() or "the topics", self._bootstrap, is_topic=record.topic() is not None
        )


_NO_TOPIC: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
_REJOINS: Final = {KafkaError._MAX_POLL_EXCEEDED}  # noqa: SLF001  librdkafka rejoins by itself


def partitions_of(partitions: Iterable[RdkafkaPartition]) -> list[TopicPartition]:
    return [TopicPartition(partition.topic, partition.partition) for partition in partitions]
