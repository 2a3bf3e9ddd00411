"""A consumer that the gateway keeps for a client: asked by threads, one at a time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consuming.moves import Moves, with_ends
from headrace.client.consuming.source import places_of
from headrace.client.errors import NoSuchTopic, translate
from headrace.client.records.one_by_one import Record, record_of
from headrace.http.problems import Problem
from headrace.protocol.ids import TopicPartition

ANSWER_S: Final = 10.0  # for the brokers to answer what is not a read
MOST_BYTES: Final = 64 * 1024 * 1024  # of the records in an answer, or little more
NO_INSTANCE, ILLEGAL, UNREADABLE = 40403, 40903, 42203
_POLL_S: Final = 0.1
_BATCH: Final = 500  # messages taken from librdkafka at a time

Answer = TypeVar("Answer")


class Unreadable(Exception):
    """A record is not in the format that the consumer was made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an instance is made with."""

    format: str = "binary"
    auto_offset_reset: str = "latest"
    auto_commit: bool = True
    min_bytes: int = 1
    timeout_ms: int = 1000


class Instance:
    """One consumer of one client's."""

    def __init__(self, bootstrap: str, group: str, name: str, wanted: Wanted) -> None:
        self.wanted = wanted
        self.used_s = time.monotonic()
        self._group = group
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._ahead: deque[Message] = deque()  # what has come and was not given to the client yet
        self._handed_over: dict[TopicPartition, int] = {}  # the next offset of each partition
        self._subscribed = self._assigned = False
        self._topics: set[str] = set()  # that were subscribed to by name
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": wanted.auto_offset_reset,
                "enable.auto.commit": wanted.auto_commit,
                "enable.partition.eof": True,  # which is how we know that a partition can be moved
                "enable.auto.offset.store": False,  # only what a client was sent counts as read
                "queued.min.messages": 10_000,
                "queued.max.messages.kbytes": 16 * 1024,
            }
        )
        self._moves = Moves(self._consumer)

    def interrupt(self) -> None:
        """A read that waits comes to an end; there will be no other."""
        self._closing.set()

    def close(self) -> None:
        self._closing.set()
        with self._lock:
            self._consumer.close()

    # -- what is read --------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        if self._assigned:
            raise Problem(HTTPStatus.CONFLICT, ILLEGAL, "partitions are assigned: there is no subscribing")
        named = set(topics) if pattern is None else set()
        wanted = sorted(named) if pattern is None else [pattern if pattern.startswith("^") else f"^{pattern}"]
        self._call(lambda: self._consumer.subscribe(wanted, on_assign=self._gained, on_revoke=self._revoked))
        self._subscribed, self._topics = True, named

    def unsubscribe(self) -> None:
        self._call(self._let_go)

    def _let_go(self) -> None:
        self._consumer.unsubscribe()
        self._consumer.unassign()
        self._subscribed = self._assigned = False
        self._topics = set()
        self._moves = Moves(self._consumer)
        self._ahead.clear()
        self._handed_over.clear()

    def assign(self, places: Iterable[TopicPartition]) -> None:
        if self._subscribed:
            raise Problem(HTTPStatus.CONFLICT, ILLEGAL, "topics are subscribed to: there is no assigning")
        wanted = [RdkafkaPartition(*place) for place in places]
        self._call(lambda: self._begin(wanted))

    def _begin(self, wanted: list[RdkafkaPartition]) -> None:
        self._consumer.assign(wanted)
        self._assigned = True
        self._ahead.clear()
        self._handed_over.clear()
        self._moves = Moves(self._consumer)
        self._moves.assigned(places_of(wanted))

    def _gained(self, _consumer: object, partitions: list[RdkafkaPartition]) -> None:
        self._moves.assigned(places_of(partitions))

    def _revoked(self, _consumer: object, partitions: list[RdkafkaPartition]) -> None:
        self._moves.unassigned(places_of(partitions))
        for place in places_of(partitions):
            # Whoever has it next commits it: an older offset of ours would take them back.
            self._handed_over.pop(place, None)

    def assignment(self) -> list[TopicPartition]:
        found = self._call(self._consumer.assignment)
        return sorted(TopicPartition(each.topic, each.partition) for each in found)

    def subscription(self) -> list[str]:
        """The topics that were subscribed to; of a pattern, those that it has led to."""
        if not self._subscribed:
            return []
        return sorted(self._topics or {place.topic for place in self.assignment()})

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on there; below zero are Kafka's words for beginning and end."""

        def move() -> None:
            there = {(each.topic, each.partition) for each in self._consumer.assignment()}
            for place in offsets:
                if tuple(place) not in there:
                    raise Problem(HTTPStatus.CONFLICT, ILLEGAL, f"{place} is not assigned to this consumer")
            self._ahead = deque(
                each for each in self._ahead if (each.topic(), each.partition()) not in offsets
            )
            for place, offset in with_ends(self._consumer, offsets).items():
                self._moves.plan(place, offset)
                self._handed_over.pop(place, None)

        self._call(move)

    def read(
        self, timeout_ms: int | None, max_bytes: int | None, show: Callable[[Record], Answer]
    ) -> list[Answer]:
        """What has come, as `show` has it, waiting for some no longer than that.

        A record that is Unreadable ends the answer; as the first, it is a Problem until one seeks past it.
        """
        if not self._subscribed and not self._assigned:
            raise Problem(HTTPStatus.CONFLICT, ILLEGAL, "nothing is subscribed to or assigned")
        most = min(max_bytes or MOST_BYTES, MOST_BYTES)
        timeout_s = (self.wanted.timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return self._call(lambda: self._gather(time.monotonic() + timeout_s, most, show))

    def _gather(self, deadline_s: float, most: int, show: Callable[[Record], Answer]) -> list[Answer]:
        records: list[Record] = []
        answers: list[Answer] = []
        size = 0
        while not self._closing.is_set():
            message = self._next(deadline_s, wait=size < self.wanted.min_bytes)
            if message is None:
                break
            length = len(message.key() or b"") + len(message.value() or b"")
            record = record_of(message)
            try:
                answer = show(record)
            except Unreadable as error:
                self._ahead.appendleft(message)
                if not records:
                    raise _unreadable(record, error) from None
                break
            if records and size + length > most:
                self._ahead.appendleft(message)
                break
            size += length
            records.append(record)
            answers.append(answer)
        self._hand_over(records)
        return answers

    def _next(self, deadline_s: float, *, wait: bool) -> Message | None:
        """The next message that is one, if there is any, or comes in time."""
        while not self._closing.is_set():
            if not self._ahead:
                self._moves.go()
                left_s = deadline_s - time.monotonic() if wait else 0
                first = self._consumer.poll(min(max(left_s, 0), _POLL_S))
                if first is not None:
                    come = (first, *self._consumer.consume(_BATCH, timeout=0))
                    self._ahead.extend(each for each in come if not self._moves.passes_over(each))
                elif left_s <= 0:
                    return None
                continue
            message = self._ahead.popleft()
            error = message.error()
            if error is None:
                return message
            if error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
                raise translate(
                    error,
                    message.topic() or "the topic",
                    self._bootstrap,
                    is_topic=message.topic() is not None,
                )
        return None

    def _hand_over(self, records: Iterable[Record]) -> None:
        ours = set(places_of(self._consumer.assignment()))
        for record in records:
            place = TopicPartition(record.topic, record.partition or 0)
            if place in ours:
                self._handed_over[place] = record.offset + 1
        if self.wanted.auto_commit and self._handed_over:
            store = [RdkafkaPartition(*place, offset) for place, offset in self._handed_over.items()]
            self._consumer.store_offsets(offsets=store)

    # -- what is committed ---------------------------------------------------------------------

    def commit(self, offsets: Mapping[TopicPartition, int] | None) -> None:
        """Commit these next offsets, or all that a client was sent."""
        next_offsets = self._handed_over if offsets is None else offsets
        wanted = [RdkafkaPartition(*place, offset) for place, offset in next_offsets.items()]
        if not wanted:
            return
        try:
            self._call(lambda: self._consumer.commit(offsets=wanted, asynchronous=False))
        except NoSuchTopic:
            topics = sorted({place.topic for place in next_offsets})
            if len(topics) == 1:
                raise NoSuchTopic(topics[0]) from None
            named = ", ".join(topics[:10])
            raise NoSuchTopic(named, said=f"there is no topic by one of these names: {named}") from None

    def committed(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What the group has committed for these, where it has."""
        asked = [RdkafkaPartition(*place) for place in places]
        found = self._call(lambda: self._consumer.committed(asked, timeout=ANSWER_S)) if asked else []
        return {TopicPartition(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _call(self, what: Callable[[], Answer]) -> Answer:
        self.used_s = time.monotonic()
        with self._lock:
            if self._closing.is_set():
                raise Problem(HTTPStatus.NOT_FOUND, NO_INSTANCE, "this consumer was deleted meanwhile")
            try:
                return what()
            except KafkaException as error:
                raise translate(error, f"group {self._group}", self._bootstrap, is_topic=False) from error
            finally:
                self.used_s = time.monotonic()


def _unreadable(record: Record, error: Unreadable) -> Problem:
    place = TopicPartition(record.topic, record.partition or 0)
    said = f"{place} at offset {record.offset}: {error}; to go on, set its position to {record.offset + 1}"
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, UNREADABLE, said)
