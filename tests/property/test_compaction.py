"""Any history, compacted in any number of passes, is what a naive compaction of a plain list leaves."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.protocol.batch import TimestampType
from headrace.protocol.compression import Compression
from headrace.protocol.records import Record, encode_batch
from headrace.storage.compaction.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.log import Appended, Log
from headrace.storage.recovery import open_log
from oracles.naive_compaction import NaiveBatch, NaiveLog, decoded
from support.clock import SettableClock
from support.logs import memory_directory, read_all
from support.records import make_marker

EXAMPLES = 60 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
RETENTION_MS = 1000
NO_PRODUCER = -1
PLAIN_PRODUCERS = (1, 2)
TRANSACTIONAL_PRODUCERS = (11, 12, 13)
KEYS = (b"a", b"b", b"c", b"", b"a key that is longer than a digest", b"d")

Values: TypeAlias = Sequence[tuple[bytes | None, bytes | None, int]]  # key, value and age of each record


class History:
    """A log and a plain list, told the same things."""

    def __init__(self, directory: Path, timestamp_type: TimestampType) -> None:
        self.directory = directory
        self.clock = SettableClock()
        self.config = LogConfig(
            segment_bytes=1200,
            index_interval_bytes=150,
            message_timestamp_type=timestamp_type,
            delete_retention_ms=RETENTION_MS,
        )
        self.log = open_log(directory, self.config, now_ms=self.clock)
        self.naive = NaiveLog()
        self.first_dirty = 0
        self._epochs: dict[int, int] = {}
        self._sequences: dict[int, int] = {}
        self._open: dict[int, int] = {}  # producer to the number of its transaction
        self._txns = 0

    # -- what may happen -----------------------------------------------------------------------

    def append(self, producer: int, values: Values, compression: Compression) -> None:
        if self.config.compact:
            values = [(key or b"", value, age) for key, value, age in values]
        records = [
            Record(key, value, [("h", b"x")] if value else (), self.clock.now_ms - age)
            for key, value, age in values
        ]
        transactional = producer in TRANSACTIONAL_PRODUCERS
        batch = encode_batch(
            records,
            compression=compression,
            transactional=transactional,
            producer_id=producer,
            producer_epoch=self._epochs.setdefault(producer, 0) if producer != NO_PRODUCER else -1,
            base_sequence=self._sequences.get(producer, 0) if producer != NO_PRODUCER else -1,
        )
        self._sequences[producer] = self._sequences.get(producer, 0) + len(values)
        if transactional and producer not in self._open:
            self._open[producer] = self._txns
            self._txns += 1
        written = self._written(self.log.append(batch, leader_epoch=0))
        self.naive.append(written, self._open.get(producer))

    def end_transaction(self, producer: int, commit: bool, fence: bool) -> None:
        """Also without a transaction to end; `fence` raises the epoch, as a coordinator does on a timeout."""
        if fence:
            self._epochs[producer] = self._epochs.get(producer, 0) + 1
            self._sequences[producer] = 0
        epoch = self._epochs.setdefault(producer, 0)
        marker = make_marker(producer, commit=commit, producer_epoch=epoch, timestamp=self.clock.now_ms)
        written = self._written(self.log.append_internal(marker, leader_epoch=0))
        self.naive.end_transaction(written, self._open.pop(producer, None), commit=commit)

    def roll(self) -> None:
        self.log.roll()

    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    def become_compacted(self) -> None:
        self.config = self.log.config = replace(self.config, compact=True, delete=False)

    def compact(self, max_keys: int) -> None:
        self.become_compacted()
        stable = self.log.last_stable_offset(self.log.log_end_offset)
        bases = [segment.base_offset for segment in self.log.segments]
        end = max([base for base in bases if base <= stable], default=0)
        untouched = self._bytes_from(end)
        plan = plan_compaction(self.log, first_dirty_offset=self.first_dirty, up_to_offset=stable)
        if plan is None:
            assert not [batch for batch in self.naive.batches if self.first_dirty <= batch.base_offset < end]
            return
        compacted = run_compaction(plan, max_keys=max_keys, stop=lambda: False)
        first_dirty = install(self.log, compacted)
        expected = self.naive.compact(
            first_dirty=self.first_dirty,
            end=end,
            max_keys=max_keys,
            now_ms=self.clock.now_ms,
            retention_ms=RETENTION_MS,
        )
        assert first_dirty == expected > self.first_dirty
        assert self._bytes_from(end) == untouched
        self.first_dirty = first_dirty
        self.check()

    def reopen(self, *, clean: bool, without_snapshots: bool) -> None:
        """Stop or crash, and come back."""
        before = _producers(self.log)
        if clean:
            self.log.close()
        else:
            self.log.release()
        if without_snapshots:
            for path in self.directory.glob("*.snapshot"):
                path.unlink()
        recovery_point = self.log.recovery_point
        end = self.log.log_end_offset
        self.log = open_log(
            self.directory, self.config, now_ms=self.clock, clean=clean, recovery_point=recovery_point
        )
        assert self.log.log_end_offset == end
        assert _producers(self.log) == before
        self.check()

    # -- what must hold ------------------------------------------------------------------------

    def check(self) -> None:
        assert [decoded(batch) for batch in read_all(self.log)] == self.naive.batches
        assert not list(self.directory.glob("*.cleaned")) + list(self.directory.glob("*.swap"))
        everything_ended = not self._open
        if everything_ended:
            values = {key: value for key, value in self.naive.committed.items() if value is not None}
            assert _committed_values(self.log) == values

    def _written(self, appended: Appended) -> NaiveBatch:
        return decoded(self.log.read(appended.base_offset, 1))

    def _bytes_from(self, offset: int) -> list[bytes]:
        return [segment.path.read_bytes() for segment in self.log.segments if segment.base_offset >= offset]


def _producers(log: Log) -> dict[int, tuple[int, int | None, int | None, int | None]]:
    """Of each producer the epoch, its last sequence and offset, and where its open transaction began."""
    return {
        state.producer_id: (
            state.epoch,
            state.recent[-1].last_sequence if state.recent else None,
            state.recent[-1].last_offset if state.recent else None,
            state.txn_first_offset,
        )
        for state in log.producers
    }


def _committed_values(log: Log) -> dict[bytes, bytes]:
    """What a consumer of committed records ends up with, by the rules that Kafka's consumer follows."""
    starting = sorted(log.aborted_transactions(0, log.log_end_offset), key=lambda txn: txn.first_offset)
    aborting: set[int] = set()
    values: dict[bytes, bytes] = {}
    for batch in map(decoded, read_all(log)):
        producer = batch.producer[0]
        while starting and starting[0].first_offset <= batch.last_offset:
            aborting.add(starting.pop(0).producer_id)
        if batch.is_control:
            is_abort = bool(batch.records) and batch.records[0].key == bytes(4)
            aborting -= {producer} if is_abort else set()
        elif not (batch.is_transactional and producer in aborting):
            for record in batch.records:
                if record.key is None:
                    continue
                if record.value is None:
                    values.pop(record.key, None)
                else:
                    values[record.key] = record.value
    return values


values = st.lists(
    st.tuples(
        st.sampled_from((*KEYS, None)),
        st.sampled_from((b"", b"v", b"some longer value", b"z" * 120, None)),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=5,
)
appends = st.tuples(
    st.just("append"),
    st.sampled_from((NO_PRODUCER, *PLAIN_PRODUCERS, *TRANSACTIONAL_PRODUCERS)),
    values,
    st.sampled_from(Compression),
)
ends = st.tuples(
    st.just("end"),
    st.sampled_from(TRANSACTIONAL_PRODUCERS),
    st.booleans(),
    st.sampled_from((False, False, True)),
)
steps = st.one_of(
    appends,
    appends,
    appends,
    ends,
    ends,
    st.just(("roll",)),
    st.tuples(st.just("wait"), st.sampled_from((1, 500, 1000))),
    st.tuples(st.just("compact"), st.sampled_from((1, 2, 3, 1000))),
    st.tuples(st.just("reopen"), st.booleans(), st.booleans()),
)


@contextmanager
def _history(timestamp_type: TimestampType) -> Iterator[History]:
    with memory_directory() as directory:
        history = History(Path(directory), timestamp_type)
        try:
            yield history
        finally:
            history.log.release()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(steps, min_size=5, max_size=60), timestamp_type=st.sampled_from(TimestampType))
def test_compaction_leaves_what_a_naive_one_leaves(
    steps: list[tuple[object, ...]], timestamp_type: TimestampType
) -> None:
    with _history(timestamp_type) as history:
        for step in steps:
            _take(history, step)
        for producer in TRANSACTIONAL_PRODUCERS:
            history.end_transaction(producer, commit=producer % 2 == 0, fence=False)
        for _ in range(4):
            history.roll()
            history.compact(max_keys=1000)
            history.wait(RETENTION_MS)
        history.reopen(clean=False, without_snapshots=True)


def _take(history: History, step: tuple[object, ...]) -> None:
    match step:
        case "append", int(producer), list(values), Compression() as compression:
            history.append(producer, values, compression)
        case "end", int(producer), bool(commit), bool(fence):
            history.end_transaction(producer, commit, fence)
        case ("roll",):
            history.roll()
        case "wait", int(milliseconds):
            history.wait(milliseconds)
        case "compact", int(max_keys):
            history.compact(max_keys)
        case "reopen", bool(clean), bool(without_snapshots):
            history.reopen(clean=clean, without_snapshots=without_snapshots)
        case _:
            raise AssertionError(step)
