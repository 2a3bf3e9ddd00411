"""How far a consumer is: what is committed, and moving to and fro."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    KafkaError,
    KafkaException,
)
from confluent_kafka import (
    TopicPartition as RdkafkaPartition,
)

from headrace.background import BackgroundThread
from headrace.client.consumer.buffer import Record, place_of
from headrace.client.consumer.message import Message
from headrace.client.consumer.moves import with_ends
from headrace.client.consumer.source import Source
from headrace.client.errors import ClientError, Unreachable, translate
from headrace.protocol.ids import TopicPartition


class LastCommit:
    """In a thread of its own. Whoever has waited enough leaves it there, with the client to be closed."""

    def __init__(self, commit: Callable[[], object], close: Callable[[], object]) -> None:
        self.left = False
        self._commit, self._close = commit, close
        self._error: Exception | None = None
        self._over = False
        self._lock = Lock()
        self._thread = BackgroundThread(self._run, name="headrace-commit", stop=None)

    def run(self, timeout_s: float) -> bool:
        """Commit, and close; False if that was not over in time, and is left behind."""
        self._thread.start()
        try:
            self._thread.join(timeout_s)
        finally:  # also at Ctrl-C
            with self._lock:
                self.left = not self._over
            if not self.left:
                self._close()
        if self._error is not None:
            raise self._error
        return not self.left

    def _run(self) -> None:
        try:
            self._commit()
        except Exception as error:  # noqa: BLE001  it is raised by whoever waits
            self._error = error
        with self._lock:
            self._over = True
        if self.left:
            self._close()


TIMEOUT_S: Final = 30.0
CLOSE_S: Final = 5.0  # for the last commit

Answer = TypeVar("Answer")


class Offsets:
    """Of one consumer. What is stored is committed by librdkafka by and by, and by `commit` at once."""

    def __init__(self, source: Source, group: str | None, bootstrap: str, *, automatic: bool) -> None:
        self._source = source
        self._client = source.client
        self._buffer = source.buffer
        self._group = group
        self._bootstrap = bootstrap
        self._automatic = automatic
        self._stored: dict[TopicPartition, int] = {}
        self._said: dict[TopicPartition, int] = {}  # what `commit` was for
        self._sure: dict[TopicPartition, int] = {}  # what a broker has taken of it
        self._held, self._paused = source.held, source.paused
        self._last: LastCommit | None = None

    def again(self, refused: Callable[[Record], bool]) -> None:
        """Somebody iterates anew: the record in work is not done, unless it was committed or raised."""

        def is_done(record: Record) -> bool:
            return record.offset() < self._said.get(place_of(record), 0) or refused(record)

        self._buffer.again(is_done)
        if self._paused:
            self._held |= self._buffer.drop(self._paused)

    def settle(self) -> None:
        """What was handed out is done."""
        count, places = self._buffer.whole, self._source.assigned
        quicker = count > 10 * len(places) and not self._source.moved
        known = self._source.positions() if quicker else None
        reached = self._buffer.settle(known)
        if self._automatic:
            self.store(reached)

    def finish(self) -> None:
        """Commit what is done but for the record in work, if that is our task, and close the client."""
        if not self._automatic:
            self._client.close()
            return
        self.store(self._buffer.done())
        self._last = LastCommit(lambda: self._commit(None, wait=True), self._client.close)
        if not self._last.run(CLOSE_S):
            raise Unreachable(
                f"no broker at {self._bootstrap} has taken the offsets of group {self._group} within "
                f"{CLOSE_S:.0f} s; what was read last may come again"
            )

    @property
    def left(self) -> bool:
        """Whether the client was left behind, and will be closed by and by."""
        return self._last is not None and self._last.left

    def commit(self, message: Message[Any, Any] | None, *, wait: bool) -> dict[TopicPartition, int]:
        """Commit what was handed out, or all up to this message."""
        if self._group is None:
            raise ClientError("this consumer has no group to commit for: make it with group=NAME")
        if message is None:
            reached = self._buffer.handed_out()
            reached = {place: at for place, at in reached.items() if at != self._sure.get(place)}
        else:
            reached = {TopicPartition(message.topic, message.partition): message.offset + 1}
        for place in reached.keys() - self._source.assigned:
            raise ClientError(f"{place} is another's by now: who reads it will read this record again")
        self.store(reached)
        done = self._commit(reached, wait=wait) if reached else {}
        self._said |= reached
        if wait:
            self._sure |= reached
        return done

    def leave(self, places: Sequence[TopicPartition]) -> None:
        """These are another's now."""
        for place in places:
            for known in (self._stored, self._said, self._sure, self._held):
                known.pop(place, None)
            self._paused.discard(place)
        self._source.lost(places)

    def move(self, place: TopicPartition, offset: int) -> None:
        """Go on there, and let that be committed, also if it is before what was."""
        offset = self.ask(place.topic, lambda: with_ends(self._client, {place: offset}))[place]
        for known in (self._stored, self._said, self._sure):
            known.pop(place, None)
        if place in self._held:
            self._held[place] = offset
            self._buffer.forget({place})
        else:
            self._source.seek(place, offset)

    def pause(self, places: Sequence[TopicPartition]) -> None:
        """What was fetched of these and not handed out is fetched again after `resume`."""
        self._held |= self._buffer.drop(set(places))
        self._paused.update(places)
        self.ask("the partitions", lambda: self._client.pause([RdkafkaPartition(*each) for each in places]))

    def resume(self, places: Sequence[TopicPartition]) -> None:
        """Go on where they were paused."""
        self.ask("the partitions", lambda: self._client.resume([RdkafkaPartition(*each) for each in places]))
        self._paused.difference_update(places)
        for place in places:
            if place in self._held:
                self._source.go_on(place, self._held.pop(place))

    def committed(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What the group has committed; None for what it has not."""
        asked = [RdkafkaPartition(*place) for place in places]
        found = self.ask("the offsets", lambda: self._client.committed(asked, timeout=TIMEOUT_S))
        return {
            TopicPartition(each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in found
        }

    def lag(self, *, from_start: bool) -> dict[TopicPartition, int]:
        """What is not handed out yet; where nothing was, what is not committed."""
        far: dict[TopicPartition, int | None] = {**self._source.sent_to(), **self._buffer.handed_out()}
        unknown = [place for place in self._source.assigned if far.get(place, OFFSET_STORED) == OFFSET_STORED]
        far |= dict.fromkeys(unknown) if self._group is None else self.committed(unknown)
        lags = {}
        for place in sorted(self._source.assigned):
            low, high = self._watermarks(place)
            start = low if from_start else high
            at = {None: start, OFFSET_BEGINNING: low, OFFSET_END: high}.get(far[place], far[place])
            lags[place] = max(0, high - (at or 0))
        return lags

    def position(self) -> dict[TopicPartition, int]:
        """The next offset of each partition of which that is known."""
        known = {**self._source.sent_to(), **self._buffer.handed_out()}
        return {place: offset for place, offset in known.items() if offset >= 0}

    def ask(self, what: str, question: Callable[[], Answer], *, is_topic: bool = False) -> Answer:
        """Return librdkafka's answer, or raise its error as a ClientError about `what`."""
        try:
            return question()
        except KafkaException as error:
            raise translate(error, what, self._bootstrap, is_topic=is_topic) from error

    def _watermarks(self, place: TopicPartition) -> tuple[int, int]:
        asked = RdkafkaPartition(*place)
        low, high = self.ask(
            place.topic,
            lambda: self._client.get_watermark_offsets(asked, timeout=TIMEOUT_S),
            is_topic=True,
        )
        return low, high

    def store(self, reached: dict[TopicPartition, int]) -> None:
        """Have librdkafka commit these offsets soon, unless they are before what is stored already."""
        new = {place: at for place, at in reached.items() if at > self._stored.get(place, -1)}
        if not new:
            return
        self._stored |= new
        # One may be another's by now: what we have done with it will be done again there.
        with suppress(KafkaException):
            self._client.store_offsets(offsets=[RdkafkaPartition(*place, at) for place, at in new.items()])

    def _commit(self, reached: dict[TopicPartition, int] | None, *, wait: bool) -> dict[TopicPartition, int]:
        """Commit this, or what is stored."""
        what: dict[str, Any] = {}
        if reached is not None:
            what["offsets"] = [RdkafkaPartition(*place, at) for place, at in reached.items()]
        try:
            committed = self._client.commit(asynchronous=not wait, **what)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._NO_OFFSET:  # noqa: SLF001  nothing is new
                return {}
            raise self._why(error) from error
        for each in committed or ():
            if each.error is not None:
                raise self._why(each.error)
        done = [each for each in committed or () if each.offset >= 0]  # of others nothing was handed out
        return {TopicPartition(each.topic, each.partition): each.offset for each in done}

    def _why(self, error: KafkaException | KafkaError) -> ClientError:
        why = translate(error, f"group {self._group}", self._bootstrap, is_topic=False)
        return ClientError(f"{why}; nothing was committed, and what was read last will come again")
