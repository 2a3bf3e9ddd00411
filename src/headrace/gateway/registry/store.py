"""The registry's state, read from the schemas topic and changed by appends to it.

Reading fetches from the leader until the high watermark is reached: then every acknowledged record is known,
after one round trip. An append carries the offset that it expects, which is where reading ended, and the
leader refuses it if another record has taken that offset. So a decision is only written while it is still
valid, any gateway may write, and no gateway has to be elected.

An append without a response may have happened. It can be repeated as it is, since only one of the two can get
the offset; the record at that offset then shows whose it is.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from headrace.client.errors import Retriable, Unreachable
from headrace.client.wire.requests import EARLIEST
from headrace.client.wire.retry import MAX_BACKOFF_S, Backoff, retry
from headrace.gateway.problems import Problem
from headrace.gateway.reach import Reach
from headrace.gateway.registry.topic import Leader, SchemasTopic
from headrace.protocol.records import Record as KafkaRecord
from headrace.protocol.records import encode_batch
from headrace.registry.reader import LogRecord, SchemasReader, read_fetched
from headrace.registry.record_json import encode_key, encode_value
from headrace.registry.records import Record

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 25.0  # for an election (a hung leader counts as alive for 18 s), or for replicas in sync
_WAIT_MS: Final = 200  # for an append of another gateway that is not committed yet

Answer = TypeVar("Answer")


class Store:
    """The state and its topic. The caller holds a lock."""

    def __init__(self, reach: Reach) -> None:
        self._topic = SchemasTopic(reach)
        self.reader = SchemasReader()

    def catch_up(self, wait_ms: int = 0) -> list[LogRecord]:
        """Read up to the high watermark, and return the new records."""
        seen: list[LogRecord] = []  # an attempt that fails in the middle has applied records, too
        self._retry(lambda: self._read_on(wait_ms, seen))
        return seen

    def _read_on(self, wait_ms: int, seen: list[LogRecord]) -> None:
        leader = self._find_leader()
        while leader is not None:
            fetched = self._topic.fetch(leader, self.reader.position, 0 if seen else wait_ms)
            if fetched is None:
                logger.warning("the log of %s has been replaced: reading all of it", self._topic.name)
                self.reader.start_over(leader.topic_id)
                self.reader.position = self._topic.offset(leader, EARLIEST)
                continue
            seen.extend(self.reader.apply(read_fetched(fetched.records or b""), fetched.high_watermark))
            if self.reader.position >= fetched.high_watermark:
                return

    def _find_leader(self) -> Leader | None:
        leader = self._topic.leader()
        topic_id = None if leader is None else leader.topic_id
        if topic_id != self.reader.topic_id:
            self.reader.start_over(topic_id)
        return leader

    def write(self, records: Sequence[Record]) -> bool:
        """Append a decision that was made by the current state, and apply it.

        Return False, having written nothing, if another gateway has written since: catch up and decide again.
        """
        reader = self.reader
        decided_by, expected = reader.state, reader.position
        self._retry(self._ensure_topic)
        self._topic.ensure_writable()
        if reader.state is not decided_by:
            return False
        wanted = [
            (reader.foreign_keys.get(record.key) or encode_key(record.key), encode_value(record))
            for record in records
        ]
        now_ms = time.time_ns() // 1_000_000
        batch = bytes(
            encode_batch(
                [KafkaRecord(key, value, timestamp=now_ms) for key, value in wanted],
                base_offset=expected if self._topic.compares else 0,
            )
        )
        deadline_s = time.monotonic() + TIMEOUT_S
        uncertain = False
        while True:
            result = self._topic.append(batch)
            if result.base_offset == expected:
                for record in records:
                    reader.state.apply(record)
                reader.position = expected + len(records)
                return True
            uncertain |= result.uncertain
            why = f"it could not be written: {result.why}"
            if uncertain:
                why = f"it is not known whether it has been written: {result.why}. A retry does no harm"
            if self._is_written(wanted, expected, self._read_back(deadline_s, why, uncertain=uncertain)):
                return True
            if reader.position != expected:
                return False
            if result.conflict and not uncertain:
                self._topic.refresh()  # the setting that compares offsets may have changed
                return False
            if time.monotonic() > deadline_s:
                raise Problem(50002, why)

    def _ensure_topic(self) -> None:
        if self._find_leader() is None:
            self._topic.create()
            self._topic.forget_leader()
            if self._find_leader() is None:
                raise Retriable(
                    f"the topic {self._topic.name} has been created, but brokers do not know it yet"
                )

    def _read_back(self, deadline_s: float, why: str, *, uncertain: bool) -> list[LogRecord]:
        """Return the records that are in the log now, after an append that was not acknowledged."""
        while True:
            try:
                return self.catch_up(_WAIT_MS)
            except Unreachable as error:
                if not uncertain:
                    raise
                if time.monotonic() > deadline_s:
                    raise Problem(50301, why) from error
            time.sleep(MAX_BACKOFF_S)

    def _is_written(
        self, wanted: Sequence[tuple[bytes, bytes | None]], expected: int, seen: Sequence[LogRecord]
    ) -> bool:
        """Return whether our records are in the log, at the expected offset if the topic compares it."""
        if self._topic.compares:
            seen = [record for record in seen if expected <= record.offset < expected + len(wanted)]
            return [(record.key, record.value) for record in seen] == list(wanted)
        written = [(record.key, record.value) for record in seen]
        return all(record in written for record in wanted)

    def _retry(self, attempt: Callable[[], Answer]) -> Answer:
        """Return the result of `attempt`, repeated with a backoff; raise Unreachable after TIMEOUT_S."""
        return retry(attempt, Backoff(TIMEOUT_S), before_retry=self._topic.forget_leader)
