"""The log against a plain list of batches, through appends, cuts, rolls, deletions, restarts and crashes.

HEADRACE_EXAMPLES=200 asks for more stories than the default few, and for longer ones.
"""

import os
import random
import struct
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.protocol.batch import BatchHeader, TimestampType, add_sequence, assign_append_time, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.records import decode_batch
from headrace.storage.config import LogConfig
from headrace.storage.log import Appended
from headrace.storage.open_files import OpenFiles
from headrace.storage.producers.state import AppendedBatch, ProducerState
from headrace.storage.time_lookup import FoundOffset
from support.clock import SettableClock
from support.logs import memory_directory, one_open_file, open_test_log, read_all
from support.records import make_batch, make_marker, split_batches

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
PRODUCERS = (1, 2, 3)
REMEMBERED = 5
NOW = 1_000_000


class Stored(NamedTuple):
    """A batch of the model: its bytes as they must stand in the log, and their header."""

    data: bytes
    header: BatchHeader


@dataclass
class Writer:
    """What must be known of a producer, worked out from the batches alone."""

    epoch: int = -1
    recent: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    txn_first_offset: int | None = None

    def enter(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.recent.clear()


def writers_of(batches: list[Stored]) -> dict[int, Writer]:
    writers: dict[int, Writer] = {}
    for _, header in batches:
        if header.producer_id < 0:
            continue
        writer = writers.setdefault(header.producer_id, Writer())
        writer.enter(header.producer_epoch)
        if header.is_control:
            writer.txn_first_offset = None
            continue
        last_sequence = add_sequence(header.base_sequence, header.last_offset_delta)
        writer.recent.append(
            AppendedBatch(
                header.base_sequence,
                last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
        )
        if header.is_transactional and writer.txn_first_offset is None:
            writer.txn_first_offset = header.base_offset
    return writers


class Aborted(NamedTuple):
    producer_id: int
    marker: int
    offsets: tuple[int, ...]  # the last offsets of its batches


def aborted_in(batches: list[Stored]) -> list[Aborted]:
    aborted = []
    open_offsets: dict[int, list[int]] = {}
    for data, header in batches:
        if header.is_control:
            offsets = open_offsets.pop(header.producer_id, [])
            (marker,) = decode_batch(data, header)
            assert marker.key is not None
            if offsets and struct.unpack(">hh", marker.key)[1] == 0:
                aborted.append(Aborted(header.producer_id, header.base_offset, tuple(offsets)))
        elif header.is_transactional:
            open_offsets.setdefault(header.producer_id, []).append(header.last_offset)
    return aborted


batch_options = st.fixed_dictionaries(
    {
        "values": st.lists(st.integers(0, 250).map(bytes), min_size=1, max_size=4),
        "compression": st.sampled_from(Compression),
    }
)
times = st.integers(NOW - 3000, NOW + 3000) | st.just(-1)


class LogMachine(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([900, 2000, 10**6]),
        interval=st.sampled_from([0, 100, 500]),
        index_bytes=st.sampled_from([36, 10**6]),
        stamped=st.booleans(),
        few_files=st.booleans(),
    )
    def start(
        self, *, segment_bytes: int, interval: int, index_bytes: int, stamped: bool, few_files: bool
    ) -> None:
        self.files = one_open_file() if few_files else OpenFiles()
        self.temporary = memory_directory()
        self.directory = Path(self.temporary.name) / "orders-0"
        self.clock = SettableClock(NOW)
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            segment_ms=4000,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            max_message_bytes=segment_bytes,
            message_timestamp_type=TimestampType(int(stamped)),
        )
        self.batches: list[Stored] = []
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.leader_epoch = 0
        self.log = open_test_log(self.directory, self.config, now_ms=self.clock, files=self.files)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
            self.temporary.cleanup()

    # -- appends -------------------------------------------------------------------------------

    @rule(options=batch_options, timestamp=times)
    def append(self, options: dict[str, object], timestamp: int) -> None:
        self._append(make_batch(timestamps=timestamp, **options))  # type: ignore[arg-type]

    @rule(
        options=batch_options,
        timestamp=times,
        producer_id=st.sampled_from(PRODUCERS),
        transactional=st.booleans(),
        bump=st.booleans(),
        first_sequence=st.sampled_from([0, 2**31 - 2]),
    )
    def append_with_a_producer(
        self,
        *,
        options: dict[str, object],
        timestamp: int,
        producer_id: int,
        transactional: bool,
        bump: bool,
        first_sequence: int,
    ) -> None:
        """Go on with the next sequence; a producer the log need not know any more begins a new epoch."""
        known = writers_of(self._kept()).get(producer_id)
        ever = writers_of(self.batches).get(producer_id)
        if ever is None:
            epoch, sequence = 0, first_sequence
        elif known is None or not known.recent or bump:
            epoch, sequence = ever.epoch + 1, 0
        else:
            epoch, sequence = known.epoch, add_sequence(known.recent[-1].last_sequence, 1)
        in_transaction = ever is not None and ever.txn_first_offset is not None
        self._append(
            make_batch(
                timestamps=timestamp,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=transactional or in_transaction,
                **options,  # type: ignore[arg-type]
            )
        )

    @rule(producer_id=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        writer = writers_of(self.batches).get(producer_id)
        if writer is not None:
            marker = make_marker(
                producer_id, commit=commit, producer_epoch=writer.epoch, timestamp=self.clock.now_ms
            )
            appended = self.log.append_internal(marker, leader_epoch=self.leader_epoch)
            self._expect_appended(bytes(marker), appended)

    @rule(producer_id=st.sampled_from(PRODUCERS))
    def retry(self, producer_id: int) -> None:
        """What the log remembers is answered with its first offsets, and changes nothing."""
        for state in self.log.producers:
            if state.producer_id == producer_id:
                for written in state.recent:
                    self._retry(written.base_offset)

    def _retry(self, base_offset: int) -> None:
        (original,) = (batch for batch in self.batches if batch.header.base_offset == base_offset)
        data = bytearray(original.data)
        struct.pack_into(">q", data, 0, 0)
        answer = self.log.append(data, leader_epoch=self.leader_epoch)
        assert answer.duplicate
        assert (answer.base_offset, answer.last_offset) == (base_offset, original.header.last_offset)

    @rule(parts=st.lists(st.tuples(batch_options, times, st.integers(0, 30)), min_size=1, max_size=3))
    def append_as_follower(self, parts: list[tuple[dict[str, object], int, int]]) -> None:
        """Batches as a leader sends them, with the gaps that its compaction left."""
        sent = []
        offset = self.end_offset
        for options, timestamp, gap in parts:
            data = bytes(
                make_batch(
                    timestamps=timestamp,
                    base_offset=offset + gap,
                    leader_epoch=self.leader_epoch,
                    **options,  # type: ignore[arg-type]
                )
            )
            sent.append(Stored(data, read_batch(data)))
            offset = sent[-1].header.next_offset
        together = b"".join(batch.data for batch in sent)
        if len(together) <= self.config.segment_bytes:
            appended = self.log.append_as_follower(together)
            assert appended == Appended(sent[0].header.base_offset, offset - 1, -1)
            self.batches += sent
            self.end_offset = offset

    def _append(self, batch: bytearray) -> None:
        if len(batch) <= self.config.max_message_bytes:
            self._expect_appended(bytes(batch), self.log.append(bytes(batch), leader_epoch=self.leader_epoch))

    def _expect_appended(self, sent: bytes, appended: Appended) -> None:
        data = bytearray(sent)
        struct.pack_into(">q", data, 0, self.end_offset)
        struct.pack_into(">i", data, 12, self.leader_epoch)
        append_time = -1
        if self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_time = self.clock.now_ms
            assign_append_time(data, 0, len(data), append_time)
        header = read_batch(data)
        assert appended == Appended(self.end_offset, header.last_offset, append_time)
        self.batches.append(Stored(bytes(data), header))
        self.end_offset = header.next_offset

    # -- time, leaders, flushes ----------------------------------------------------------------

    @rule(milliseconds=st.integers(0, 3000))
    def wait(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @rule()
    def change_leader(self) -> None:
        self.leader_epoch += 1

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed_offset = self.end_offset

    @rule()
    def roll(self) -> None:
        self.log.roll()

    # -- cuts ----------------------------------------------------------------------------------

    @rule(where=st.floats(0, 1), within=st.integers(-3, 3))
    def truncate_to(self, where: float, within: int) -> None:
        offset = max(0, self._somewhere(where) + within)
        fully = offset < self.log.segments[0].base_offset
        self.log.truncate_to(offset)
        self._forget_from(offset)
        if fully:
            self.batches.clear()
            self.end_offset = self.start_offset = offset
        assert self.log.log_end_offset <= max(offset, self.end_offset)
        self.end_offset = min(self.end_offset, self.log.log_end_offset)
        self._check_end()
        self._clamp()

    @rule(where=st.floats(0, 1.2))
    def truncate_fully(self, where: float) -> None:
        offset = self._somewhere(where)
        self.log.truncate_fully(offset)
        self.batches.clear()
        self.end_offset = self.start_offset = offset
        self._clamp()

    @rule(where=st.floats(0, 1), within=st.integers(0, 2))
    def delete_records_before(self, where: float, within: int) -> None:
        offset = min(self._somewhere(where) + within, self.end_offset)
        self.log.delete_records_before(offset)
        self.start_offset = max(self.start_offset, offset)

    @rule(count=st.integers(0, 4))
    def delete_oldest_segments(self, count: int) -> None:
        count = min(count, len(self.log.segments))
        bases = [*(segment.base_offset for segment in self.log.segments), self.end_offset]
        self.log.delete_oldest_segments(count)
        self.start_offset = max(self.start_offset, bases[count])

    def _somewhere(self, where: float) -> int:
        first = self.log.segments[0].base_offset
        return int(first + where * (self.end_offset - first))

    def _forget_from(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.header.last_offset < offset]
        self.end_offset = min(self.end_offset, offset)

    def _check_end(self) -> None:
        """The end is after the last batch, or where the empty newest segment begins."""
        ends = [batch.header.next_offset for batch in self.batches[-1:]]
        assert self.end_offset == max([*ends, self.log.active.base_offset])

    def _clamp(self) -> None:
        self.start_offset = min(self.start_offset, self.end_offset)
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    # -- restarts ------------------------------------------------------------------------------

    @rule(damage=st.integers(0, 2**32))
    def restart(self, damage: int) -> None:
        self.log.close()
        self._damage_indexes(random.Random(damage))
        self._reopen(clean=True, recovery_point=self.end_offset)
        self.flushed_offset = self.end_offset

    @precondition(lambda self: self.batches)
    @rule(
        surviving=st.floats(0, 1),
        torn=st.floats(0, 0.99),
        garbage=st.binary(max_size=70) | st.just(bytes(100)),
        keep_later=st.booleans(),
        distrust=st.booleans(),
        damage=st.integers(0, 2**32),
    )
    def crash(
        self, *, surviving: float, torn: float, garbage: bytes, keep_later: bool, distrust: bool, damage: int
    ) -> None:
        """Lose any part of what was not flushed, and whatever else a crash may take with it."""
        self.log.release()
        base_offsets = [segment.base_offset for segment in self.log.segments]
        survivors = self._tear(base_offsets, surviving, torn, garbage, keep_later)
        gone = len(self.batches) - survivors
        if gone:
            self.batches = self.batches[:-gone]
        self._damage_indexes(random.Random(damage))
        self._damage_snapshots(random.Random(damage))
        self._reopen(clean=False, recovery_point=0 if distrust else self.flushed_offset)
        self.end_offset = self.log.log_end_offset
        self._check_end()
        self._clamp()
        if distrust:
            self.flushed_offset = 0

    def _tear(
        self, base_offsets: list[int], surviving: float, torn: float, garbage: bytes, keep_later: bool
    ) -> int:
        """Cut the files inside a batch that was not flushed; return how many batches are left whole."""
        safe_below = max(self.flushed_offset, base_offsets[0])
        flushed = sum(batch.header.last_offset < safe_below for batch in self.batches)
        survivors = flushed + round(surviving * (len(self.batches) - flushed))
        lost = self.batches[survivors : survivors + 1]
        cut = lost[0].header.base_offset if lost else self.end_offset
        base = max(base for base in base_offsets if base <= cut)
        path = self.directory / f"{base:020d}.log"
        content = path.read_bytes()
        start = sum(
            len(data) for data in split_batches(content) if read_batch(data).base_offset < cut
        )  # where the first batch that is lost begins
        part = int(torn * len(lost[0].data)) if lost else 0
        if part and garbage and lost[0].data[part] == garbage[0]:
            garbage = bytes([garbage[0] ^ 1]) + garbage[1:]  # it must not go on as the batch does
        path.write_bytes(content[: start + part] + garbage)
        if not (keep_later and (part or garbage)):
            for later in base_offsets:
                if later > base:
                    (self.directory / f"{later:020d}.log").unlink()
        return survivors

    def _damage_indexes(self, chance: random.Random) -> None:
        """Delete or overwrite some indexes, and now and then the epochs.

        Cut at an entry, a time index looks sound: that cannot be noticed without a scan.
        """
        for path in self.directory.glob("*index"):
            kind = chance.randrange(6)
            if path.suffix == ".txnindex":
                continue
            if kind == 0:
                path.unlink()
            elif kind == 1:
                path.write_bytes(chance.randbytes(path.stat().st_size))
            elif kind == 2:
                path.write_bytes(path.read_bytes() + chance.randbytes(chance.randrange(1, 8)))
        epochs = self.directory / "leader-epoch-checkpoint"
        kind = chance.randrange(6)
        if epochs.exists() and kind == 0:
            epochs.unlink()
        elif epochs.exists() and kind == 1:
            epochs.write_bytes(epochs.read_bytes()[:-2] + b"?")

    def _damage_snapshots(self, chance: random.Random) -> None:
        for path in self.directory.glob("*.snapshot"):
            kind = chance.randrange(4)
            if kind == 0:
                path.unlink()
            elif kind == 1:
                path.write_bytes(path.read_bytes()[: chance.randrange(10)])

    def _reopen(self, *, clean: bool, recovery_point: int) -> None:
        self.log = open_test_log(
            self.directory,
            self.config,
            now_ms=self.clock,
            recovery_point=recovery_point,
            log_start_offset=self.start_offset,
            clean=clean,
            files=self.files,
        )

    # -- what must hold ------------------------------------------------------------------------

    def _kept(self) -> list[Stored]:
        return [batch for batch in self.batches if batch.header.last_offset >= self.start_offset]

    @invariant()
    def the_ends_are_where_the_model_has_them(self) -> None:
        assert not self.log.damaged
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start_offset, self.end_offset)
        assert self.log.recovery_point == self.flushed_offset

    @invariant()
    def every_batch_is_there_byte_for_byte(self) -> None:
        expected = [batch.data for batch in self._kept()]
        assert read_all(self.log) == expected
        assert read_all(self.log, max_bytes=300) == expected

    @rule(
        where=st.floats(0, 1),
        max_bytes=st.integers(0, 1500),
        below=st.none() | st.floats(0, 1),
        at_least_one=st.booleans(),
    )
    def read(self, where: float, max_bytes: int, below: float | None, at_least_one: bool) -> None:
        span = self.end_offset - self.start_offset
        offset = self.start_offset + int(where * span)
        limit = None if below is None else self.start_offset + int(below * span)
        data = self.log.read(offset, max_bytes, max_offset=limit, at_least_one=at_least_one)
        assert bytes(data) == self._expected_read(offset, max_bytes, limit, at_least_one)

    def _expected_read(self, offset: int, max_bytes: int, limit: int | None, at_least_one: bool) -> bytes:
        wanted = [
            batch
            for batch in self.batches
            if batch.header.last_offset >= offset and (limit is None or batch.header.last_offset < limit)
        ]
        if not wanted or offset == limit:
            return b""
        bases = [segment.base_offset for segment in self.log.segments]  # a read stays in one segment
        home = max(base for base in bases if base <= wanted[0].header.base_offset)
        next_base = min([base for base in bases if base > home], default=2**63)
        expected = b""
        for data, header in wanted:
            fits = len(expected) + len(data) <= max_bytes or (not expected and at_least_one)
            if not fits or header.base_offset >= next_base:
                break
            expected += data
        return expected

    @invariant()
    def times_are_found_as_by_looking_at_every_record(self) -> None:
        records = [
            FoundOffset(record.timestamp, record.offset, header.leader_epoch)
            for data, header in self._kept()
            for record in decode_batch(data, header)
            if record.offset >= self.start_offset
        ]
        known = sorted({record.timestamp for record in records})
        for timestamp in {0, *known[:3], *known[-3:], *(time + 1 for time in known[-2:])}:
            expected = next((record for record in records if record.timestamp >= timestamp), None)
            assert self.log.offset_for_timestamp(timestamp) == expected
        youngest = max(records, key=lambda record: record.timestamp, default=None)
        assert self.log.offset_of_max_timestamp() == youngest

    @invariant()
    def producers_are_as_the_batches_say(self) -> None:
        """Of producers whose records are all deleted the log may know as much as it likes, or nothing."""
        kept, ever = writers_of(self._kept()), writers_of(self.batches)
        states = {state.producer_id: state for state in self.log.producers}
        assert kept.keys() <= states.keys() <= ever.keys()
        for producer_id, state in states.items():
            self._check_producer(state, kept.get(producer_id, Writer()), ever[producer_id])
        open_since = [s.txn_first_offset for s in states.values() if s.txn_first_offset is not None]
        stable = min([max(min(open_since), self.start_offset)] if open_since else [self.end_offset])
        assert self.log.last_stable_offset(self.end_offset) == min(stable, self.end_offset)

    def _check_producer(self, state: ProducerState, kept: Writer, ever: Writer) -> None:
        assert state.epoch == ever.epoch
        # A snapshot keeps the last batch only, and the producer's last time instead of the batch's.
        recent = [written[:4] for written in state.recent]
        assert recent == [written[:4] for written in ever.recent][len(ever.recent) - len(recent) :]
        assert state.recent or not kept.recent
        if kept.txn_first_offset is not None:
            assert ever.txn_first_offset is not None
            assert state.txn_first_offset is not None
            assert ever.txn_first_offset <= state.txn_first_offset <= kept.txn_first_offset
        elif state.txn_first_offset is not None:
            assert state.txn_first_offset == ever.txn_first_offset or not kept.recent

    @invariant()
    def epochs_are_as_the_batches_say(self) -> None:
        kept = self._kept()
        for _, header in kept:
            assert self.log.epochs.at(max(header.base_offset, self.start_offset)) == header.leader_epoch
            ends = (later.base_offset for _, later in kept if later.leader_epoch > header.leader_epoch)
            end = self.log.epochs.end_of(header.leader_epoch, self.end_offset)
            assert end == (header.leader_epoch, next(ends, self.end_offset))

    @invariant()
    def aborted_transactions_are_found_as_by_looking_at_every_marker(self) -> None:
        """One whose records are all deleted may be named or not."""
        aborted = aborted_in(self.batches)
        bounds = sorted({self.start_offset, *(txn.marker for txn in aborted[-2:]), self.end_offset})
        for start in bounds:
            found = self.log.aborted_transactions(start, self.end_offset)
            names = [(txn.producer_id, txn.last_offset) for txn in found]
            assert len(names) == len(set(names))
            assert set(names) <= {(txn.producer_id, txn.marker) for txn in aborted}
            must = {
                (txn.producer_id, txn.marker)
                for txn in aborted
                if txn.marker >= start and max(txn.offsets) >= self.start_offset
            }
            assert must <= set(names)


LogMachine.TestCase.settings = settings(
    max_examples=60 * EXAMPLES,
    stateful_step_count=20 + EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLogMachine = LogMachine.TestCase
