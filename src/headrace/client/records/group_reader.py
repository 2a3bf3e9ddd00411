"""A reader as a member of a consumer group, for `headrace consume --group`."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.errors import ClientError, NoSuchTopic, check_reachable, translate
from headrace.client.records.one_by_one import BATCH, POLL_S, TIMEOUT_S, Record, record_of
from headrace.protocol.ids import TopicPartition

IDLE_AFTER_S: Final = 15.0  # without an assignment: in the consumer protocol nobody says that none will come


class Ends:
    """The partitions of one member that are not read to their end."""

    def __init__(self, now_s: float, *, incremental: bool, more_to_come: bool = False) -> None:
        self._open: set[TopicPartition] = set()
        self._incremental = incremental  # or all is revoked before anything is assigned
        self._more_to_come = more_to_come  # for a while what is assigned first may not be all
        self._settled = False
        self._idle_from_s = now_s + IDLE_AFTER_S

    def assigned(self, places: Iterable[TopicPartition]) -> None:
        """Add partitions that were assigned."""
        self._open.update(places)
        self._settled = True

    def revoked(self, places: Iterable[TopicPartition]) -> None:
        """Remove partitions that were revoked."""
        self._open.difference_update(places)
        self._settled = self._incremental

    def reached(self, place: TopicPartition) -> None:
        """Note that a partition is read to its end."""
        self._open.discard(place)

    def all_reached(self, now_s: float) -> bool:
        """Whether all partitions are read to their end, or none was assigned for IDLE_AFTER_S."""
        settled = self._settled and not self._more_to_come
        return not self._open and (settled or now_s >= self._idle_from_s)


COMMIT_EVERY_MS: Final = 1000  # what a member that is killed has done in this time is done again by another
SESSION_TIMEOUT_MS: Final = 10_000  # so soon others take over from one that was killed; classic protocol only
CLIENT_ID: Final = "headrace"
FOR_PATTERNS: Final = {
    "topic.blacklist": "^__consumer_offsets$,^__transaction_state$",
    "topic.metadata.refresh.interval.ms": 5000,  # how soon a new topic that matches is found
}


class GroupReader:
    """Reads the partitions that are assigned to this member, from the group's committed offsets.

    with GroupReader("127.0.0.1:9092", "billing", ["orders"], from_beginning=True) as reader:
        for records in reader.batches():
            …
            reader.done(records)

    Only what is done is committed, at least once a second and when the block is left, whatever ended it.
    A record may therefore come twice, but none is left out. A topic may be a regular expression: '^orders'.
    With the classic protocol `on_idle` is called when no partition falls to this member.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: Sequence[str],
        *,
        from_beginning: bool,
        stop_at_end: bool = False,
        protocol: Literal["classic", "consumer"] = "classic",
        instance_id: str | None = None,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        if not group:  # librdkafka would abort the process
            raise ClientError("a group needs a name")
        check_reachable(bootstrap)
        self._bootstrap = bootstrap
        self._group = group
        self._stopping = False
        self._patterns = [topic for topic in topics if _is_pattern(topic)]
        self._instance_id = instance_id
        self._incremental = protocol == "consumer"
        self._ends = self._awaited(topics) if stop_at_end else None
        self._on_idle = on_idle
        self._begun: set[TopicPartition] = set()  # partitions of which a record has come
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "client.id": CLIENT_ID,
                "group.id": group,
                "group.protocol": protocol,
                **({"session.timeout.ms": SESSION_TIMEOUT_MS} if protocol == "classic" else {}),
                **({} if instance_id is None else {"group.instance.id": instance_id}),
                "auto.offset.reset": "earliest" if from_beginning else "latest",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": COMMIT_EVERY_MS,
                "enable.auto.offset.store": False,  # what is committed is what `done` was told
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50 if stop_at_end else 500,
                **(FOR_PATTERNS if self._patterns else {}),
            },
            logger=_quiet(),
        )
        try:
            self._subscribe(topics)
        except ClientError:
            self._consumer.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Commit done records and leave the group, so that others take over at once."""
        try:
            self._commit()
        except KafkaException as refusal:
            if error is None:  # or there is something worse to tell
                why = translate(refusal, f"group {self._group}", self._bootstrap, is_topic=False)
                raise ClientError(f"{why}; what was read last will come again") from refusal
        finally:
            self._consumer.close()

    def batches(self) -> Iterator[list[Record]]:
        """Yield records, several at a time, until `stop`, or to the end with `stop_at_end`."""
        while not self._stopping and not self._at_end():
            first = self._consumer.poll(POLL_S)
            if first is None:
                continue
            more = self._consumer.consume(BATCH, timeout=0)
            records = list(self._sort([first, *more]))
            if records:
                yield records

    def done(self, records: Iterable[Record]) -> None:
        """Commit all up to these records; call it when they are processed."""
        reached = {
            TopicPartition(record.topic, record.partition or 0): record.offset + 1 for record in records
        }
        for place, offset in reached.items():
            self._store(place, offset)

    def stop(self) -> None:
        """Make `batches` end soon. May be called by a signal handler."""
        self._stopping = True

    def _store(self, place: TopicPartition, offset: int) -> None:
        """Store an offset for the next commit."""
        # It may be another's partition by now: what we have done with it will be done again there.
        with suppress(KafkaException):
            self._consumer.store_offsets(offsets=[RdkafkaPartition(*place, offset)])

    def _commit(self) -> None:
        try:
            committed = self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._NO_OFFSET:  # noqa: SLF001  nothing is new since the last time
                return
            raise
        for each in committed:
            if each.error is not None:
                raise KafkaException(each.error)

    def _sort(self, messages: Iterable[Message]) -> Iterator[Record]:
        for message in messages:
            error = message.error()
            if error is None:
                self._begun.add(TopicPartition(message.topic(), message.partition()))
                yield record_of(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                self._reached_end(message)
            elif error.code() in _REJOINS or (self._patterns and error.code() in _NO_TOPIC):
                continue
            elif error.fatal() or not error.retriable():
                raise self._why(error, message)

    def _reached_end(self, message: Message) -> None:
        """Note the end of a partition; if it had nothing to read, commit its end for the group.

        Otherwise a later member that begins at the end would skip records written meanwhile.
        """
        place = TopicPartition(message.topic(), message.partition())
        if place not in self._begun:
            self._store(place, message.offset())
        if self._ends is not None:
            self._ends.reached(place)

    def _why(self, error: KafkaError, message: Message) -> ClientError:
        # FENCED_INSTANCE_ID is the only fatal error of the classic protocol; librdkafka hides its code.
        fatal = error.code() == KafkaError._FATAL  # noqa: SLF001
        if fatal and self._instance_id is not None and not self._incremental:
            return ClientError(f"another consumer is instance {self._instance_id} of group {self._group}")
        return translate(
            error,
            message.topic() or f"group {self._group}",
            self._bootstrap,
            is_topic=message.topic() is not None,
        )

    def _subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe; NoSuchTopic for a topic that does not exist. A pattern may match none yet."""
        try:
            there = self._consumer.list_topics(timeout=TIMEOUT_S).topics
            for topic in topics:
                if not _is_pattern(topic) and topic not in there:
                    raise NoSuchTopic(topic)
            self._consumer.subscribe(
                list(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
        except KafkaException as error:
            if self._patterns and error.args[0].code() == KafkaError._INVALID_ARG:  # noqa: SLF001
                raise ClientError(f"not a regular expression: {' '.join(self._patterns)}") from error
            raise translate(error, self._group, self._bootstrap, is_topic=False) from error

    def _awaited(self, topics: Sequence[str]) -> Ends:
        # Kafka's brokers match patterns by and by, and meanwhile assign what is named.
        some_later = self._incremental and 0 < len(self._patterns) < len(topics)
        return Ends(time.monotonic(), incremental=self._incremental, more_to_come=some_later)

    def _at_end(self) -> bool:
        return self._ends is not None and self._ends.all_reached(time.monotonic())

    def _assigned(self, _consumer: Consumer, partitions: Sequence[RdkafkaPartition]) -> None:
        if not partitions and not self._incremental:  # otherwise it means that there is nothing more
            self._on_idle()
        if self._ends is not None:
            self._ends.assigned(_places(partitions))

    def _revoked(self, _consumer: Consumer, partitions: Sequence[RdkafkaPartition]) -> None:
        self._begun.difference_update(_places(partitions))
        if self._ends is not None:
            self._ends.revoked(_places(partitions))


def _places(partitions: Iterable[RdkafkaPartition]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]


def _quiet() -> logging.Logger:
    """Return a logger without output: librdkafka would write fatal errors to stderr, which we report."""
    logger = logging.getLogger("headrace.client.librdkafka")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger


def _is_pattern(topic: str) -> bool:
    return topic.startswith("^")


_NO_TOPIC: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
_REJOINS: Final = {KafkaError._MAX_POLL_EXCEEDED}  # noqa: SLF001  whoever reads our output took minutes
