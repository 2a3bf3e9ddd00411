"""A consumer that the gateway keeps for a client. Any thread may call it; calls run one at a time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.moves import Moves, with_ends
from headrace.client.consumer.source import partitions_of
from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.librdkafka_errors import translate
from headrace.client.records.one_by_one import Record, record_of
from headrace.client.wire.connection_settings import Target, settings_for
from headrace.gateway.problems import DENIED, Problem
from headrace.protocol.ids import TopicPartition

ANSWER_S: Final = 10.0  # for the brokers to answer anything but a read
MAX_BYTES: Final = 64 * 1024 * 1024  # of the records in a response, or little more
NO_INSTANCE, ILLEGAL, UNREADABLE = 40403, 40903, 42203
_POLL_S: Final = 0.1
_BATCH: Final = 500  # messages taken from librdkafka at a time

Answer = TypeVar("Answer")


class Unreadable(Exception):
    """A record is not in the format that the consumer was created with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    format: str = "binary"
    auto_offset_reset: str = "latest"
    auto_commit: bool = True
    min_bytes: int = 1
    timeout_ms: int = 1000


class Instance:
    def __init__(self, target: Target, group: str, name: str, options: ConsumerOptions) -> None:
        self.options = options
        self.used_s = time.monotonic()
        self._group = group
        connection = settings_for(target)
        self._bootstrap = connection.bootstrap
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._ahead: deque[Message] = deque()  # received, but not yet returned to the client
        self._returned: dict[TopicPartition, int] = {}  # the next offset after what the client has got
        self._subscribed = self._assigned = False
        self._topics: set[str] = set()  # subscribed to by name
        # Why brokers refuse a topic, or the group (None): librdkafka reports it once, and retries for ever.
        self._denied: dict[str | None, ClientError] = {}
        self._has_coordinator = False
        self._consumer = Consumer(
            {
                **connection.librdkafka(),
                "log_level": 0,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": options.auto_offset_reset,
                "enable.auto.commit": options.auto_commit,
                "enable.partition.eof": True,  # Moves needs it: then a partition can seek
                "enable.auto.offset.store": False,  # only what the client has got counts as read
                "queued.min.messages": 10_000,
                "queued.max.messages.kbytes": 16 * 1024,
            }
        )
        self._moves = Moves(self._consumer)

    def interrupt(self) -> None:
        """End a waiting read, and refuse later ones."""
        self._closing.set()

    def close(self) -> None:
        self._closing.set()
        with self._lock:
            self._consumer.close()

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        if self._assigned:
            raise _illegal("partitions are assigned by hand: the consumer cannot subscribe")
        names = set(topics) if pattern is None else set()
        wanted = sorted(names) if pattern is None else [pattern if pattern.startswith("^") else f"^{pattern}"]
        self._call(
            lambda: self._consumer.subscribe(wanted, on_assign=self._on_assign, on_revoke=self._on_revoke)
        )
        self._subscribed, self._topics = True, names

    def unsubscribe(self) -> None:
        def unsubscribe() -> None:
            self._consumer.unsubscribe()
            self._consumer.unassign()
            self._subscribed = self._assigned = False
            self._topics = set()
            self._start_over()

        self._call(unsubscribe)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self._subscribed:
            raise _illegal("the consumer has subscribed: partitions cannot be assigned by hand")
        wanted = [RdkafkaPartition(*partition) for partition in partitions]

        def assign() -> None:
            self._consumer.assign(wanted)
            self._assigned = True
            self._start_over()
            self._moves.assigned(partitions_of(wanted))

        self._call(assign)

    def _start_over(self) -> None:
        self._ahead.clear()
        self._returned.clear()
        self._denied.clear()
        self._moves = Moves(self._consumer)

    def _on_assign(self, _consumer: object, partitions: list[RdkafkaPartition]) -> None:
        self._moves.assigned(partitions_of(partitions))
        self._has_coordinator = True
        for allowed in (None, *(partition.topic for partition in partitions)):
            self._denied.pop(allowed, None)

    def _on_revoke(self, _consumer: object, partitions: list[RdkafkaPartition]) -> None:
        self._moves.unassigned(partitions_of(partitions))
        for each in partitions_of(partitions):
            # The next member commits this partition: an older offset of ours would set it back.
            self._returned.pop(each, None)

    def assignment(self) -> list[TopicPartition]:
        found = self._call(self._consumer.assignment)
        return sorted(TopicPartition(each.topic, each.partition) for each in found)

    def subscription(self) -> list[str]:
        """Return the topics of the subscription; for a pattern, those of the assigned partitions."""
        if not self._subscribed:
            return []
        return sorted(self._topics or {each.topic for each in self.assignment()})

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets; OFFSET_BEGINNING and OFFSET_END are allowed."""

        def seek() -> None:
            assigned = {(each.topic, each.partition) for each in self._consumer.assignment()}
            for each in offsets:
                if tuple(each) not in assigned:
                    raise _illegal(f"{each} is not assigned to this consumer")
            self._ahead = deque(
                each for each in self._ahead if (each.topic(), each.partition()) not in offsets
            )
            for each, offset in with_ends(self._consumer, offsets).items():
                self._moves.plan(each, offset)
                self._returned.pop(each, None)

        self._call(seek)

    def read(
        self, timeout_ms: int | None, max_bytes: int | None, decode: Callable[[Record], Answer]
    ) -> list[Answer]:
        """Return the decoded records that have arrived, after waiting for some no longer than `timeout_ms`.

        A record that is Unreadable ends the list; as the first one it raises a Problem until the client
        seeks past it. If no record has arrived, and brokers refuse the group or a topic, the refusal is
        raised.
        """
        if not self._subscribed and not self._assigned:
            raise _illegal("the consumer has neither a subscription nor an assignment")
        most = min(max_bytes or MAX_BYTES, MAX_BYTES)
        timeout_s = (self.options.timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return self._call(lambda: self._gather(time.monotonic() + timeout_s, most, decode))

    def _gather(self, deadline_s: float, most: int, decode: Callable[[Record], Answer]) -> list[Answer]:
        records: list[Record] = []
        answers: list[Answer] = []
        size = 0
        while not self._closing.is_set():
            message = self._next(deadline_s, wait=size < self.options.min_bytes)
            if message is None:
                break
            length = len(message.key() or b"") + len(message.value() or b"")
            record = record_of(message)
            try:
                answer = decode(record)
            except Unreadable as error:
                self._ahead.appendleft(message)
                if not records:
                    partition = TopicPartition(record.topic, record.partition or 0)
                    go_on = f"to go on, set its position to {record.offset + 1}"
                    why = f"{partition} at offset {record.offset}: {error}; {go_on}"
                    raise Problem(UNREADABLE, why) from None
                break
            if records and size + length > most:
                self._ahead.appendleft(message)
                break
            size += length
            records.append(record)
            answers.append(answer)
        assigned = set(partitions_of(self._consumer.assignment()))
        for record in records:
            partition = TopicPartition(record.topic, record.partition or 0)
            if partition in assigned:
                self._returned[partition] = record.offset + 1
        if self.options.auto_commit and self._returned:
            self._consumer.store_offsets(offsets=_with_offsets(self._returned))
        if not answers:
            self._raise_denied()
        return answers

    def _next(self, deadline_s: float, *, wait: bool) -> Message | None:
        """Return the next message that is a record, if there is one or one arrives in time."""
        while not self._closing.is_set():
            if not self._ahead:
                self._moves.go()
                left_s = deadline_s - time.monotonic() if wait else 0
                first = self._consumer.poll(min(max(left_s, 0), _POLL_S))
                if first is not None:
                    self._keep(first, *self._consumer.consume(_BATCH, timeout=0))
                elif left_s <= 0:
                    return None
                continue
            message = self._ahead.popleft()
            error = message.error()
            if error is None:
                self._denied.pop(message.topic(), None)
                return message
            if error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
                raise translate(
                    error,
                    message.topic() or "the topic",
                    self._bootstrap,
                    is_topic=message.topic() is not None,
                )
        return None

    def _keep(self, *messages: Message) -> None:
        """Keep messages for the next read, and note what brokers refuse."""
        for message in messages:
            error, topic = message.error(), message.topic()
            if error is not None and error.code() in DENIED:
                what = f"group {self._group}" if topic is None else topic
                self._denied[topic] = translate(error, what, self._bootstrap, is_topic=topic is not None)
            elif not self._moves.passes_over(message):
                self._ahead.append(message)

    def _raise_denied(self) -> None:
        for refusal in self._denied.values():
            raise refusal

    def commit(self, offsets: Mapping[TopicPartition, int] | None) -> None:
        """Commit these next offsets, or those after all records that the client has got."""
        next_offsets = self._returned if offsets is None else offsets
        wanted = _with_offsets(next_offsets)
        if not wanted:
            return

        def commit() -> None:
            self._wait_for_coordinator()
            self._check(self._consumer.commit(offsets=wanted, asynchronous=False))

        try:
            self._call(commit)
        except NoSuchTopic:
            topics = sorted({partition.topic for partition in next_offsets})
            if len(topics) == 1:
                raise NoSuchTopic(topics[0]) from None
            names = ", ".join(topics[:10])
            raise NoSuchTopic(names, said=f"one of these topics does not exist: {names}") from None

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets that the group has committed for these partitions, where it has."""
        wanted = [RdkafkaPartition(*partition) for partition in partitions]

        def committed() -> list[RdkafkaPartition]:
            self._wait_for_coordinator()
            return self._check(self._consumer.committed(wanted, timeout=ANSWER_S))

        found = self._call(committed) if wanted else []
        return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _wait_for_coordinator(self) -> None:
        """Return when the group's coordinator has answered; raise the refusal if the group is denied.

        librdkafka looks for the coordinator for a minute, also if the brokers refuse to name it.
        """
        deadline_s = time.monotonic() + ANSWER_S
        while not self._has_coordinator:
            try:
                self._consumer.committed([], timeout=_POLL_S)
            except KafkaException as error:
                self._keep(*self._consumer.consume(_BATCH, timeout=0))
                self._raise_denied()
                if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > deadline_s:  # noqa: SLF001
                    raise
            else:
                self._has_coordinator = True

    def _check(self, partitions: list[RdkafkaPartition]) -> list[RdkafkaPartition]:
        """Return the partitions; raise the refusal if brokers deny one of them."""
        for partition in partitions:
            if partition.error is not None and partition.error.code() in DENIED:
                raise translate(partition.error, partition.topic, self._bootstrap)
        return partitions

    def _call(self, what: Callable[[], Answer]) -> Answer:
        self.used_s = time.monotonic()
        with self._lock:
            if self._closing.is_set():
                raise Problem(NO_INSTANCE, "this consumer has been deleted")
            try:
                return what()
            except KafkaException as error:
                raise translate(error, f"group {self._group}", self._bootstrap, is_topic=False) from error
            finally:
                self.used_s = time.monotonic()


def _with_offsets(offsets: Mapping[TopicPartition, int]) -> list[RdkafkaPartition]:
    return [RdkafkaPartition(*each, offset) for each, offset in offsets.items()]


def _illegal(why: str) -> Problem:
    return Problem(ILLEGAL, why)
