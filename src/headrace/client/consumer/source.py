"""Where a consumer's records come from: librdkafka's client, its partitions, and where they end."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.buffer import Buffer, Record, place_of
from headrace.client.consumer.moves import Moves, with_ends
from headrace.client.errors import ClientError, translate
from headrace.protocol.ids import TopicPartition

POLL_S: Final = 0.2  # how soon Ctrl-C and the end of time are noticed
COMMITTED_S: Final = 5.0  # for the group's offset of a partition
IDLE_AFTER_S: Final = 15.0  # without an assignment: none will come

_error_of: Final = confluent_kafka.Message.error


class Source:
    """Fetches records into a buffer, and keeps account of partitions."""

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
        self.patterns = False  # topics that match may come and go
        self.more_to_come = False  # topics of patterns may be assigned later than named topics
        self._bootstrap = bootstrap
        self._start = start
        self.incremental = incremental  # or all is revoked before anything is assigned
        self._settled = False  # whether what is assigned is all of it
        self._static_member = static_member
        self._now_s = now_s
        self._idle_from_s = now_s() + IDLE_AFTER_S
        self._begins: dict[
            TopicPartition, int
        ] = {}  # where a partition was sent to; else where the group was
        self.ends: dict[TopicPartition, int] = {}  # where a partition was at its end
        self._moves = Moves(client)
        self.paused: set[TopicPartition] = set()
        self.held: dict[TopicPartition, int] = {}  # of those that are paused: where they go on
        self._raised: BaseException | None = None  # by a callback of the user's, inside of librdkafka

    # -- partitions ----------------------------------------------------------------------------

    def gained(
        self, places: Collection[TopicPartition], begins: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """These are ours from now on, beside what we had."""
        self.assigned.update(places)
        self._moves.assigned(places)
        self._begins.update(begins or {})
        self._settled = True

    def lost(self, places: Collection[TopicPartition]) -> None:
        """These are another's."""
        self.assigned.difference_update(places)
        self._settled = self.incremental
        self._moves.unassigned(places)
        self.buffer.forget(set(places))
        for place in places:
            self._begins.pop(place, None)
            self.ends.pop(place, None)

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Go on there, as soon as it can be moved. What comes of it until then is passed over."""
        self.buffer.forget({place})
        self.go_on(place, offset)

    def go_on(self, place: TopicPartition, offset: int) -> None:
        """The same, where what was handed out before still counts."""
        self.ends.pop(place, None)
        self._moves.plan(place, offset)

    def sent_to(self) -> dict[TopicPartition, int]:
        """Where partitions were or will be sent that do not go on where the group is: offsets, or ends."""
        return {**self._begins, **self._moves.planned, **self.held}

    @property
    def at_end(self) -> bool:
        """Whether there is nothing more to read just now. Only true when the buffer is empty."""
        is_early = self._now_s() < self._idle_from_s
        if not self._settled and (self.assigned or is_early):
            return False
        if self.more_to_come and is_early:
            return False
        far = self.buffer.handed_out()
        read = self.assigned - self.paused
        return self._moves.planned.keys().isdisjoint(read) and all(
            place in self.ends and far.get(place, -1) <= self.ends[place] for place in read
        )

    def look_for_ends(self) -> None:
        """Forget ends behind which something was written since: librdkafka tells of each end once."""
        known = dict.fromkeys(self.ends.keys() & (self.assigned - self.paused), confluent_kafka.OFFSET_END)
        try:
            now = with_ends(self.client, known)
        except KafkaException as error:
            raise translate(error, "the topics", self._bootstrap, is_topic=False) from error
        self.ends = {place: end for place, end in self.ends.items() if now.get(place, end) <= end}

    def positions(self) -> dict[TopicPartition, int]:
        """How far librdkafka has handed out what it has: right where nothing of it is left in the buffer."""
        asked = [RdkafkaPartition(*place) for place in self.assigned]
        found = self.client.position(asked)
        return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    @property
    def moved(self) -> bool:
        """Whether a partition will go on elsewhere than librdkafka would."""
        return bool(self._moves or self.held)

    # -- records -------------------------------------------------------------------------------

    def fetch(self, most: int, wait_s: float = POLL_S) -> list[Record]:
        """The next records, at most this many; none if none come in time."""
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
        """Call the user's function from within librdkafka, which could not hand on what it raises: we do."""
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001  it is raised by whoever fetches or closes
            self._raised = self._raised or error

    def raise_what_callbacks_raised(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _resolved(self, place: TopicPartition, offset: int) -> int:
        """The offset, or what the group has committed if it stands for that."""
        if offset != confluent_kafka.OFFSET_STORED:
            return offset
        found = self.client.committed([RdkafkaPartition(*place)], timeout=COMMITTED_S)[0].offset
        return int(found) if found >= 0 else self._start

    def _go_back(self, first: Record | None) -> None:
        """What librdkafka has just given us is gone, and must come again; `first` is what we know of it.

        A partition of which nothing was handed out yet goes back to where it began.
        """
        handed_out = self.buffer.handed_out()
        if first is not None and first.error() is None:
            handed_out.setdefault(place_of(first), first.offset())
        began = dict.fromkeys(self.assigned, confluent_kafka.OFFSET_STORED) | self._begins | self.ends
        self._moves.plan_again(began | handed_out)
        self.ends.clear()

    def _sorted(self, found: Sequence[Record]) -> list[Record]:
        """The records alone. What is told beside them is taken note of, or raised: they are kept then."""
        records: list[Record] = []
        for record in found:
            error = record.error()
            elsewhere = self._moves.passes_over(record)
            if error is None:
                if not elsewhere:
                    records.append(record)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                if not elsewhere:
                    self.ends[place_of(record)] = record.offset()
            elif not self._harmless(error):
                self.buffer.keep(records)
                raise self._why(error, record)
        return records

    def _harmless(self, error: KafkaError) -> bool:
        if error.code() in _REJOINS or (self.patterns and error.code() in _NO_TOPIC):
            return True
        return not error.fatal() and bool(error.retriable())

    def _why(self, error: KafkaError, record: Record) -> ClientError:
        # FENCED_INSTANCE_ID is the only fatal error of the classic protocol; librdkafka hides its code.
        fatal = error.code() == KafkaError._FATAL  # noqa: SLF001
        if fatal and self._static_member is not None:
            return ClientError(f"another consumer is {self._static_member}")
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
            return ClientError(
                f"{record.topic()}-{record.partition()} has no record at the offset to begin with: "
                "seek to one that is there, or give start='earliest' or 'latest'"
            )
        return translate(
            error, record.topic() or "the topics", self._bootstrap, is_topic=record.topic() is not None
        )


_NO_TOPIC: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
_REJOINS: Final = {KafkaError._MAX_POLL_EXCEEDED}  # noqa: SLF001  it comes back by itself


def places_of(partitions: Iterable[RdkafkaPartition]) -> list[TopicPartition]:
    """The same partitions, in our word."""
    return [TopicPartition(each.topic, each.partition) for each in partitions]
