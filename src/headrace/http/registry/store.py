"""The registry's state, kept up to date from its topic and changed by writing to it.

Reading asks the partition's leader for what is after our position, until that is the high watermark: then
all that was ever acknowledged is known, by one round trip. Writing is compare and append: a batch carries
the offset it expects, which is where our reading ended. If it gets that, what was decided is still true; if
not, the leader refuses it. So any gateway may write, and there is nobody to elect.

An append that was not answered may have happened. It may be sent again, as it is: at most one of the two can
get the offset. What stands there then tells whose it was.
"""

import logging
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

from headrace.client.errors import Retriable, Unreachable
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NoAnswer
from headrace.client.wire.retry import MAX_BACKOFF_S, Backoff, retry
from headrace.http.problems import Problem
from headrace.http.reach import SILENCE_S, Reach
from headrace.http.registry.asking import Appended, Led, Read, Rewritten, append, earliest, fetch
from headrace.http.registry.topic import SchemasTopic
from headrace.protocol.records import Record as KafkaRecord
from headrace.protocol.records import encode_batch
from headrace.registry.library import Library
from headrace.registry.record_json import BadRecord, decode, encode_key, encode_value
from headrace.registry.records import Record, RecordKey
from headrace.registry.state import State

logger = logging.getLogger(__name__)

PATIENCE_S: Final = (
    25.0  # with a topic between two leaders (a hung one counts as alive for 18 s), or short of replicas
)
_WAIT_MS: Final = 200  # for an append of somebody's that is not committed yet

Answer = TypeVar("Answer")


class Overtaken(Exception):
    """Somebody else has written meanwhile: read on, and decide again."""


class Written(NamedTuple):
    """A record as it stands in the log."""

    offset: int
    key: bytes | None
    value: bytes | None


class Store:
    """One at a time: whoever uses it holds a lock."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._topic = SchemasTopic(reach)
        self._start_over(None)

    def _start_over(self, topic_id: bytes | None) -> None:
        self.state = State()
        self.library = Library(self.state)
        self._topic_id = topic_id
        self._position = 0
        self._spelling: dict[RecordKey, bytes] = {}  # keys that another registry writes in another way

    # -- reading -------------------------------------------------------------------------------

    def catch_up(self, wait_ms: int = 0) -> list[Written]:
        """Read all that is committed by now; what is new is returned."""
        seen: list[Written] = []  # also by an attempt that comes to nothing
        self._patiently(lambda brokers: self._read_on(brokers, wait_ms, seen))
        return seen

    def _read_on(self, brokers: Brokers, wait_ms: int, seen: list[Written]) -> None:
        led = self._find(brokers)
        while led is not None:
            try:
                read = fetch(brokers, led, self._topic.name, self._position, 0 if seen else wait_ms)
            except Rewritten:
                logger.warning("the topic %s is not what it was: reading all of it", self._topic.name)
                self._start_over(led.topic_id)
                self._position = earliest(brokers, led, self._topic.name)
                continue
            seen += self._take_in(read)
            if self._position >= read.high_watermark:
                return

    def _find(self, brokers: Brokers) -> Led | None:
        led = self._topic.led(brokers)
        topic_id = None if led is None else led.topic_id
        if topic_id != self._topic_id:
            self._start_over(topic_id)
        return led

    def _take_in(self, read: Read) -> list[Written]:
        seen = []
        for record in read.records:
            if record.offset < self._position:
                continue  # a batch is given whole, also if we asked for its middle
            seen.append(Written(record.offset, record.key, record.value))
            self._apply(record)
        # Compaction leaves gaps: where nothing comes although there should be something, there is nothing.
        came = read.next_offset > self._position
        self._position = max(self._position, read.next_offset if came else read.high_watermark)
        return seen

    def _apply(self, record: KafkaRecord) -> None:
        try:
            found = decode(record.key, record.value)
        except BadRecord as error:
            logger.warning("%s, offset %d, is passed over: %s", self._topic.name, record.offset, error)
            return
        assert record.key is not None, record
        if record.key != encode_key(found.key):
            self._spelling[found.key] = record.key
        complaint = self.state.apply(found)
        if complaint is not None:
            logger.warning("%s, offset %d, is passed over: %s", self._topic.name, record.offset, complaint)

    # -- writing -------------------------------------------------------------------------------

    def write(self, records: Sequence[Record]) -> None:
        """Write what was decided by all that has been read; Overtaken if that is not all any more."""
        decided_by = self.state
        self._patiently(self._ensure_topic)
        self._topic.ensure_writable()
        if self.state is not decided_by:
            raise Overtaken
        expected = self._position
        wanted = [
            (self._spelling.get(each.key) or encode_key(each.key), encode_value(each)) for each in records
        ]
        batch = self._batch(wanted)
        deadline = time.monotonic() + PATIENCE_S
        in_doubt = False
        while True:
            outcome = self._append(batch)
            if outcome.base_offset == expected:
                for each in records:
                    self.state.apply(each)
                self._position = expected + len(records)
                return
            in_doubt |= outcome.in_doubt
            if self._stands(wanted, expected, self._look(deadline, outcome, in_doubt=in_doubt)):
                return
            if self._position != expected:
                raise Overtaken
            if outcome.refused and not in_doubt:
                self._topic.look_again()  # whether offsets are compared may have been changed
                raise Overtaken
            if time.monotonic() > deadline:
                raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, 50002, _unwritten(outcome, in_doubt=in_doubt))

    def _ensure_topic(self, brokers: Brokers) -> None:
        if self._find(brokers) is None:
            self._topic.create(brokers)
            self._topic.forget_leader()
            if self._find(brokers) is None:
                raise Retriable(f"the topic {self._topic.name} has been made, and is not there yet")

    def _batch(self, wanted: Sequence[tuple[bytes, bytes | None]]) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        records = [KafkaRecord(key, value, timestamp=now_ms) for key, value in wanted]
        return bytes(encode_batch(records, base_offset=self._position if self._topic.compares else 0))

    def _append(self, batch: bytes) -> Appended:
        try:
            with self._reach.brokers(SILENCE_S) as brokers:
                led = self._topic.led(brokers)
                if led is not None:
                    return append(brokers, led, self._topic.name, batch)
        except NoAnswer as error:
            self._topic.forget_leader()
            return Appended(in_doubt=True, why=str(error))
        except Unreachable as error:
            self._topic.forget_leader()
            return Appended(why=str(error))
        return Appended(why=f"the topic {self._topic.name} is gone")

    def _look(self, deadline: float, outcome: Appended, *, in_doubt: bool) -> list[Written]:
        """What is there now, after an append that did not go as it should have."""
        while True:
            try:
                return self.catch_up(_WAIT_MS)
            except Unreachable as error:
                if not in_doubt:
                    raise
                if time.monotonic() > deadline:
                    why = _unwritten(outcome, in_doubt=True)
                    raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, 50301, why) from error
            time.sleep(MAX_BACKOFF_S)

    def _stands(
        self, wanted: Sequence[tuple[bytes, bytes | None]], expected: int, seen: Sequence[Written]
    ) -> bool:
        """Whether it is our records that stand where they were to go."""
        if self._topic.compares:
            seen = [each for each in seen if expected <= each.offset < expected + len(wanted)]
            return [(each.key, each.value) for each in seen] == list(wanted)
        there = [(each.key, each.value) for each in seen]
        return all(each in there for each in wanted)  # wherever they have come to stand

    # -- patience ------------------------------------------------------------------------------

    def _patiently(self, ask: Callable[[Brokers], Answer]) -> Answer:
        """The answer, also if the topic needs a moment; Unreachable if it needs too long.

        A broker that hangs is not waited for, for it may lead no more: another is asked who does. They are
        the same `Brokers` for all attempts, which know who was silent.
        """
        with self._reach.brokers(SILENCE_S) as brokers:
            return retry(lambda: ask(brokers), Backoff(PATIENCE_S), before_retry=self._topic.forget_leader)


def _unwritten(outcome: Appended, *, in_doubt: bool) -> str:
    if in_doubt:
        return f"it is not known whether it has been written: {outcome.why}. Asking again does no harm"
    return f"it could not be written: {outcome.why}"
