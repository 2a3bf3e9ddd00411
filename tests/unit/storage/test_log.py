import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.protocol.batch import TimestampType, build_batch, read_batch
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import CorruptMessage, ErrorCode, InvalidRecord
from headrace.storage.config import LogConfig
from headrace.storage.errors import OffsetOutOfRange, OutOfOrderSequence, RecordListTooLarge
from headrace.storage.inspection import MAX_RECORDS
from headrace.storage.log import Appended, Log
from headrace.storage.time_lookup import FoundOffset
from headrace.storage.txn_index import AbortedTxn
from headrace.testing.clock import SettableClock
from headrace.testing.logs import files_in, read_all
from headrace.testing.records import TIMESTAMP, headers_of, make_batch, make_marker

OpenLog = Callable[..., Log]


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def offsets(log: Log) -> list[tuple[int, int]]:
    return [(header.base_offset, header.last_offset) for header in map(read_batch, read_all(log))]


def follow(log: Log, *spans: tuple[int, int]) -> None:
    """Append batches of these first and last offsets, as a follower does."""
    for first, last in spans:
        log.append_as_follower(make_batch(last - first + 1, base_offset=first, leader_epoch=0))


class TestAppend:
    def test_offsets_are_given_in_order(self, log: Log) -> None:
        answers = [log.append(make_batch(count), leader_epoch=4) for count in (3, 1, 2)]

        assert answers == [Appended(0, 2, -1), Appended(3, 3, -1), Appended(4, 5, -1)]
        assert log.log_end_offset == 6
        assert offsets(log) == [(0, 2), (3, 3), (4, 5)]
        assert {header.leader_epoch for header in map(read_batch, read_all(log))} == {4}

    def test_the_callers_buffer_is_changed_in_place(self, log: Log) -> None:
        log.append(make_batch(2), leader_epoch=0)
        batch = make_batch()
        log.append(batch, leader_epoch=9)

        assert read_all(log)[-1] == bytes(batch)
        assert read_batch(batch)[:3] == (2, len(batch) - 12, 9)

    def test_a_read_only_buffer_is_left_alone(self, log: Log) -> None:
        log.append(make_batch(2), leader_epoch=0)
        batch = bytes(make_batch())
        log.append(memoryview(batch), leader_epoch=9)

        assert batch == make_batch()
        assert read_batch(read_all(log)[-1])[:3] == (2, len(batch) - 12, 9)

    def test_a_refused_batch_leaves_nothing_behind(self, log: Log) -> None:
        log.append(make_batch(), leader_epoch=0)
        damaged = make_batch()
        damaged[-1] ^= 1
        before = files_in(log.directory, ".log")

        with pytest.raises(CorruptMessage):
            log.append(damaged, leader_epoch=0)

        assert files_in(log.directory, ".log") == before
        assert log.append(make_batch(), leader_epoch=0).base_offset == 1

    def test_a_batch_larger_than_a_segment_is_refused(self, open_log: OpenLog) -> None:
        log = open_log(segment_bytes=100)

        with pytest.raises(RecordListTooLarge) as refusal:
            log.append(make_batch([bytes(100)]), leader_epoch=0)
        assert refusal.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
        assert log.size == 0

    def test_append_time_is_the_brokers(self, open_log: OpenLog, clock: SettableClock) -> None:
        log = open_log(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
        clock.advance(1234)

        answer = log.append(make_batch(2, timestamps=5), leader_epoch=0)

        (header,) = headers_of(log.read(0, 1000))
        assert answer.log_append_time_ms == header.max_timestamp == TIMESTAMP + 1234
        assert header.timestamp_type is TimestampType.LOG_APPEND_TIME

    def test_a_duplicate_is_answered_with_its_first_offsets(self, log: Log) -> None:
        batch = bytes(make_batch(3, producer_id=7, producer_epoch=0, base_sequence=0))
        log.append(make_batch(), leader_epoch=0)
        log.append(batch, leader_epoch=0)
        log.append(make_batch(), leader_epoch=0)

        assert log.append(batch, leader_epoch=0) == Appended(1, 3, -1, duplicate=True)
        assert log.log_end_offset == 5
        assert offsets(log) == [(0, 0), (1, 3), (4, 4)]

    def test_a_duplicate_is_answered_with_its_first_append_time(
        self, open_log: OpenLog, clock: SettableClock
    ) -> None:
        log = open_log(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
        batch = bytes(make_batch(producer_id=7, producer_epoch=0, base_sequence=0))
        log.append(batch, leader_epoch=0)
        clock.advance(50)

        assert log.append(batch, leader_epoch=0) == Appended(0, 0, TIMESTAMP, duplicate=True)

    def test_a_gap_in_a_producers_sequence_is_refused(self, log: Log) -> None:
        log.append(make_batch(3, producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=0)

        with pytest.raises(OutOfOrderSequence):
            log.append(make_batch(producer_id=7, producer_epoch=0, base_sequence=4), leader_epoch=0)

    def test_the_brokers_own_batches_may_come_several_at_once(self, log: Log) -> None:
        assert log.append_internal(make_batch(2) + make_batch(3), leader_epoch=1) == Appended(0, 4, -1)
        assert offsets(log) == [(0, 1), (2, 4)]

    @pytest.mark.parametrize("data", [b"", bytes(make_batch())[:-1], bytes(make_batch()) + b"x"])
    def test_what_is_not_whole_batches_is_refused(self, log: Log, data: bytes) -> None:
        for append in (log.append_as_follower, lambda data: log.append_internal(data, leader_epoch=0)):
            with pytest.raises((CorruptMessage, InvalidRecord)):
                append(data)
        assert log.size == 0


class TestFollower:
    def test_offsets_and_epochs_stay_as_they_are(self, log: Log) -> None:
        sent = make_batch(2, base_offset=5, leader_epoch=3) + make_batch(1, base_offset=9, leader_epoch=4)

        assert log.append_as_follower(bytes(sent)) == Appended(5, 9, -1)
        assert b"".join(read_all(log)) == sent
        assert log.log_end_offset == 10
        assert log.epochs.entries == ((3, 5), (4, 9))

    @pytest.mark.parametrize("first", [0, 1, 2])
    def test_offsets_that_are_taken_are_refused(self, log: Log, first: int) -> None:
        follow(log, (0, 2))

        with pytest.raises(InvalidRecord, match="cannot follow offset 2"):
            follow(log, (first, first + 5))

    def test_batches_that_overlap_each_other_are_refused(self, log: Log) -> None:
        with pytest.raises(InvalidRecord, match="cannot follow offset 2"):
            log.append_as_follower(make_batch(3) + make_batch(3, base_offset=2))
        assert log.size == 0

    def test_a_segment_holds_no_offsets_further_apart_than_four_bytes_say(self, log: Log) -> None:
        far = 2**31 + 5
        follow(log, (0, 0), (far, far), (far * 3, far * 3))

        assert bases(log) == [0, far, far * 3]
        assert offsets(log) == [(0, 0), (far, far), (far * 3, far * 3)]

    def test_an_empty_segment_gives_way_to_one_that_can_hold_the_offset(self, log: Log) -> None:
        follow(log, (2**40, 2**40))

        assert bases(log) == [2**40]
        assert [path.name for path in log.directory.glob("*.log")] == [f"{2**40:020d}.log"]

    def test_batches_too_far_apart_for_one_segment_are_refused(self, log: Log) -> None:
        with pytest.raises(InvalidRecord, match="one segment"):
            log.append_as_follower(make_batch() + make_batch(base_offset=2**31))
        assert log.size == 0


class TestRoll:
    def test_by_size(self, open_log: OpenLog) -> None:
        batch = make_batch([bytes(400)])
        log = open_log(segment_bytes=2 * len(batch))
        for _ in range(5):
            log.append(batch[:], leader_epoch=0)

        assert bases(log) == [0, 2, 4]

    def test_by_the_records_time(self, open_log: OpenLog) -> None:
        log = open_log(segment_ms=1000)
        for timestamp in (0, 1000, 1001, 500, 2002):
            log.append(make_batch(timestamps=timestamp), leader_epoch=0)

        assert bases(log) == [0, 2, 4]

    def test_by_the_time_of_the_first_record_that_is_still_there(self, open_log: OpenLog) -> None:
        log = open_log(segment_ms=1000)
        log.append(make_batch(timestamps=0), leader_epoch=0)
        log.truncate_to(0)
        for timestamp in (5000, 6000, 6001):
            log.append(make_batch(timestamps=timestamp), leader_epoch=0)

        assert bases(log) == [0, 2]

    def test_by_the_clock_where_records_have_no_time(self, open_log: OpenLog, clock: SettableClock) -> None:
        log = open_log(segment_ms=1000)
        for waited in (0, 1000, 1, 1000):
            clock.advance(waited)
            log.append(make_batch(timestamps=-1), leader_epoch=0)

        assert bases(log) == [0, 2]

    def test_by_a_full_index(self, open_log: OpenLog) -> None:
        log = open_log(index_interval_bytes=0, segment_index_bytes=36)
        for number in range(9):
            log.append(make_batch(timestamps=number), leader_epoch=0)

        assert bases(log) == [0, 3, 6]

    def test_an_empty_segment_is_not_rolled(self, log: Log) -> None:
        log.roll()
        log.append(make_batch(), leader_epoch=0)
        log.roll()
        log.roll()

        assert bases(log) == [0, 1]

    def test_the_indexes_of_a_closed_segment_are_complete(self, open_log: OpenLog) -> None:
        log = open_log(index_interval_bytes=0)
        for timestamp in (10, 30, 20):
            log.append(make_batch(timestamps=timestamp), leader_epoch=0)
        log.roll()

        assert list(log.segments[0].time_index) == [(30, 1)]
        assert [relative for relative, _ in log.segments[0].offset_index] == [1, 2]
        assert len(files_in(log.directory, ".index")[f"{0:020d}.index"]) == 16


class TestRead:
    @pytest.fixture
    def log(self, open_log: OpenLog) -> Log:
        """Batches [0-2] [3-3] [4-8], then in a second segment [9-10]."""
        log = open_log()
        for count in (3, 1, 5):
            log.append(make_batch(count), leader_epoch=0)
        log.roll()
        log.append(make_batch(2), leader_epoch=0)
        return log

    @pytest.mark.parametrize(
        ("offset", "first"), [(0, 0), (1, 0), (2, 0), (3, 3), (4, 4), (6, 4), (8, 4), (9, 9), (10, 9)]
    )
    def test_starts_with_the_batch_that_holds_the_offset(self, log: Log, offset: int, first: int) -> None:
        assert headers_of(log.read(offset, 10**6))[0].base_offset == first

    def test_is_empty_at_the_end(self, log: Log) -> None:
        assert log.read(11, 10**6) == b""

    @pytest.mark.parametrize("offset", [-1, 12])
    def test_outside_of_the_log_is_refused(self, log: Log, offset: int) -> None:
        with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is not within 0 to 11") as refusal:
            log.read(offset, 10)
        assert refusal.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    def test_before_the_logs_start_is_refused(self, log: Log) -> None:
        log.delete_records_before(4)

        with pytest.raises(OffsetOutOfRange):
            log.read(3, 10)
        assert headers_of(log.read(4, 10))[0].base_offset == 4

    @pytest.mark.parametrize("less", [0, 1])
    def test_returns_whole_batches_up_to_the_limit(self, log: Log, less: int) -> None:
        sizes = [len(batch) for batch in read_all(log)]

        data = log.read(0, sizes[0] + sizes[1] - less)

        assert [header.base_offset for header in headers_of(data)] == [0, 3][: 2 - less]

    @pytest.mark.parametrize("max_bytes", [-5, 0, 1, 60, 61, 62])
    def test_returns_one_batch_whatever_its_size_if_asked_so(self, log: Log, max_bytes: int) -> None:
        assert [header.base_offset for header in headers_of(log.read(4, max_bytes))] == [4]
        assert log.read(4, max_bytes, at_least_one=False) == b""

    @pytest.mark.parametrize(
        ("max_offset", "expected"),
        [
            (0, []),
            (2, []),
            (3, [0]),
            (4, [0, 3]),
            (8, [0, 3]),
            (9, [0, 3, 4]),
            (10, [0, 3, 4]),
            (99, [0, 3, 4]),
        ],
    )
    def test_stops_before_the_batch_that_reaches_the_maximum(
        self, log: Log, max_offset: int, expected: list[int]
    ) -> None:
        data = log.read(1, 10**6, max_offset=max_offset)

        assert [header.base_offset for header in headers_of(data)] == expected

    def test_goes_on_where_it_stopped_after_appends_rolls_and_truncations(self, log: Log) -> None:
        assert headers_of(log.read(9, 10**6))[-1].next_offset == 11
        log.append(make_batch(), leader_epoch=0)
        assert [header.base_offset for header in headers_of(log.read(11, 10**6))] == [11]
        log.roll()
        log.append(make_batch(), leader_epoch=0)
        assert [header.base_offset for header in headers_of(log.read(12, 10**6))] == [12]
        log.truncate_to(11)
        log.append(make_batch([b"other"]), leader_epoch=0)
        assert b"other" in bytes(log.read(11, 10**6))

    def test_skips_what_compaction_left_out(self, open_log: OpenLog) -> None:
        log = open_log()
        log.truncate_fully(0)
        follow(log, (2, 3), (10, 12))
        log.roll()
        follow(log, (40, 41))

        firsts = [headers_of(log.read(offset, 10**6))[0].base_offset for offset in (0, 3, 4, 11, 13, 39, 41)]
        assert firsts == [2, 2, 10, 10, 40, 40, 40]


class TestTime:
    @pytest.fixture
    def log(self, open_log: OpenLog) -> Log:
        log = open_log(index_interval_bytes=0)
        for timestamps in ([10, 30, 20], [5], [40, 15], [40], [35]):
            log.append(make_batch(len(timestamps) * [b"v"], timestamps=timestamps), leader_epoch=2)
            if timestamps == [40, 15]:
                log.roll()
        return log

    @pytest.mark.parametrize(
        ("timestamp", "found"),
        [(0, (10, 0)), (10, (10, 0)), (11, (30, 1)), (30, (30, 1)), (31, (40, 4)), (40, (40, 4))],
    )
    def test_finds_the_first_record_of_that_time_or_later(
        self, log: Log, timestamp: int, found: tuple[int, int]
    ) -> None:
        assert log.offset_for_timestamp(timestamp) == FoundOffset(*found, leader_epoch=2)

    def test_finds_nothing_past_the_youngest(self, log: Log) -> None:
        assert log.offset_for_timestamp(41) is None

    def test_does_not_find_deleted_records(self, log: Log) -> None:
        log.delete_records_before(5)

        assert log.offset_for_timestamp(12) == FoundOffset(15, 5, 2)
        assert log.offset_for_timestamp(16) == FoundOffset(40, 6, 2)

    def test_finds_the_first_of_the_youngest(self, log: Log) -> None:
        assert log.offset_of_max_timestamp() == FoundOffset(40, 4, 2)

    @pytest.mark.parametrize(("start", "found"), [(5, (40, 6)), (6, (40, 6)), (7, (35, 7))])
    def test_finds_the_youngest_of_those_that_are_left(
        self, log: Log, start: int, found: tuple[int, int]
    ) -> None:
        log.delete_records_before(start)

        assert log.offset_of_max_timestamp() == FoundOffset(*found, leader_epoch=2)

    @pytest.mark.parametrize("compression", Compression)
    def test_a_batch_that_cannot_be_read_is_found_by_its_header(
        self, log: Log, compression: Compression
    ) -> None:
        garbage = build_batch(
            b"\xff" * 40,
            base_offset=0,
            last_offset_delta=2,
            records_count=3,
            base_timestamp=50,
            max_timestamp=60,
            compression=compression,
        )
        log.append(garbage, leader_epoch=2)
        log.append(make_batch(1, timestamps=70), leader_epoch=2)

        assert log.offset_for_timestamp(55) == FoundOffset(60, 8, 2)
        assert log.offset_for_timestamp(61) == FoundOffset(70, 11, 2)
        assert log.offset_of_max_timestamp() == FoundOffset(70, 11, 2)
        log.delete_records_before(9)
        assert log.offset_for_timestamp(55) == FoundOffset(60, 9, 2)

    def test_a_batch_of_more_records_than_are_read_is_found_by_its_header(self, log: Log) -> None:
        count = MAX_RECORDS + 1
        body = compress(Compression.ZSTD, b"\x0c\0\0\0\1\1\0" * count)
        log.append(
            build_batch(
                body,
                base_offset=0,
                last_offset_delta=count - 1,
                records_count=count,
                base_timestamp=50,
                max_timestamp=60,
                compression=Compression.ZSTD,
            ),
            leader_epoch=2,
        )

        assert log.offset_for_timestamp(55) == FoundOffset(60, 8, 2)

    def test_finds_nothing_in_an_empty_log(self, open_log: OpenLog) -> None:
        log = open_log()
        assert log.offset_of_max_timestamp() is None
        assert log.offset_for_timestamp(0) is None

    def test_finds_records_in_compressed_batches_stamped_by_the_broker(
        self, open_log: OpenLog, clock: SettableClock
    ) -> None:
        log = open_log(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
        for _ in range(3):
            clock.advance(10)
            log.append(make_batch(2, timestamps=0, compression=Compression.ZSTD), leader_epoch=0)

        assert log.offset_for_timestamp(TIMESTAMP + 11) == FoundOffset(TIMESTAMP + 20, 2, 0)


def in_txn(producer_id: int, sequence: int) -> bytearray:
    return make_batch(
        2, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    )


class TestTransactions:
    @pytest.fixture
    def log(self, open_log: OpenLog) -> Log:
        """Producer 1: [0-1] [4-5] aborted at 6. Producer 2: [2-3] aborted at 9. 3: [7-8] committed at 10."""
        log = open_log()
        log.append(in_txn(1, 0), leader_epoch=0)
        log.append(in_txn(2, 0), leader_epoch=0)
        log.append(in_txn(1, 2), leader_epoch=0)
        log.append_internal(make_marker(1, commit=False), leader_epoch=0)
        log.append(in_txn(3, 0), leader_epoch=0)
        log.roll()
        log.append_internal(make_marker(2, commit=False), leader_epoch=0)
        log.append_internal(make_marker(3, commit=True), leader_epoch=0)
        return log

    ONE = AbortedTxn(1, 0, 6, last_stable_offset=2)
    TWO = AbortedTxn(2, 2, 9, last_stable_offset=7)

    @pytest.mark.parametrize(
        ("start", "end", "expected"),
        [
            (0, 11, [ONE, TWO]),
            (0, 2, [ONE]),
            (0, 3, [ONE, TWO]),
            (6, 7, [ONE, TWO]),
            (7, 11, [TWO]),
            (9, 11, [TWO]),
            (10, 11, []),
        ],
    )
    def test_the_aborted_ones_with_records_in_a_range(
        self, log: Log, start: int, end: int, expected: list[AbortedTxn]
    ) -> None:
        assert log.aborted_transactions(start, end) == expected

    def test_are_the_same_after_a_crash(self, log: Log, open_log: OpenLog) -> None:
        log.release()
        for path in log.directory.glob("*.txnindex"):
            path.write_bytes(b"torn")

        assert open_log().aborted_transactions(0, 11) == [self.ONE, self.TWO]

    def test_a_torn_index_is_no_reason_to_forget_them(self, log: Log) -> None:
        log.truncate_to(9)
        log.active.release()
        index = log.segments[0].offset_index
        index.path.write_bytes(b"torn")
        index._stored = None

        log.truncate_to(8)

        assert log.aborted_transactions(0, 7) == [self.ONE]

    @pytest.mark.parametrize(
        ("high_watermark", "stable"), [(0, 0), (3, 0), (6, 0), (7, 2), (9, 2), (10, 7), (11, 11)]
    )
    def test_the_last_stable_offset_waits_for_outcomes_that_are_replicated(
        self, log: Log, high_watermark: int, stable: int
    ) -> None:
        assert log.last_stable_offset(high_watermark) == stable

    def test_the_last_stable_offset_is_not_before_the_logs_start(self, open_log: OpenLog) -> None:
        log = open_log()
        log.append(in_txn(1, 0), leader_epoch=0)
        log.append(in_txn(1, 2), leader_epoch=0)
        log.delete_records_before(3)

        assert log.last_stable_offset(4) == 3

    def test_the_outcome_that_is_cut_off_is_open_again(self, log: Log) -> None:
        log.truncate_to(9)

        assert log.last_stable_offset(9) == 2
        assert log.aborted_transactions(0, 9) == [self.ONE]


class TestTruncate:
    @pytest.fixture
    def log(self, open_log: OpenLog) -> Log:
        """[10-10] [11-30] in one segment, [31-99] in the next."""
        log = open_log()
        log.truncate_fully(10)
        follow(log, (10, 10), (11, 30))
        log.roll()
        follow(log, (31, 99))
        return log

    @pytest.mark.parametrize(
        ("offset", "left", "end"),
        [
            (200, [(10, 10), (11, 30), (31, 99)], 100),
            (100, [(10, 10), (11, 30), (31, 99)], 100),
            (99, [(10, 10), (11, 30)], 31),
            (35, [(10, 10), (11, 30)], 31),
            (31, [(10, 10), (11, 30)], 31),
            (30, [(10, 10)], 11),
            (12, [(10, 10)], 11),
            (11, [(10, 10)], 11),
            (10, [], 10),
            (4, [], 4),
        ],
    )
    def test_drops_every_batch_that_reaches_the_offset(
        self, log: Log, offset: int, left: list[tuple[int, int]], end: int
    ) -> None:
        log.truncate_to(offset)

        assert offsets(log) == left
        assert log.log_end_offset == end
        assert log.append(make_batch(), leader_epoch=0).base_offset == end

    def test_ends_where_opening_again_finds_the_end(self, open_log: OpenLog) -> None:
        log = open_log()
        follow(log, (0, 9), (20, 29))

        log.truncate_to(15)

        assert log.log_end_offset == 10
        log.release()
        assert open_log().log_end_offset == 10

    def test_brings_producers_and_epochs_back_to_that_point(self, log: Log, open_log: OpenLog) -> None:
        log = open_log()
        log.truncate_fully(0)
        for sequence in range(4):
            batch = make_batch(producer_id=7, producer_epoch=0, base_sequence=sequence)
            log.append(batch, leader_epoch=sequence)
            log.roll()

        log.truncate_to(2)

        assert log.epochs.entries == ((0, 0), (1, 1))
        with pytest.raises(OutOfOrderSequence, match="expected 2"):
            log.append(make_batch(producer_id=7, producer_epoch=0, base_sequence=4), leader_epoch=4)
        batch = make_batch(producer_id=7, producer_epoch=0, base_sequence=2)
        assert log.append(batch, leader_epoch=4).base_offset == 2

    def test_fully_starts_over_anywhere(self, log: Log) -> None:
        log.truncate_fully(1000)

        assert (log.log_start_offset, log.log_end_offset, log.size) == (1000, 1000, 0)
        assert bases(log) == [1000]
        assert log.epochs.entries == ()
        assert len(log.producers) == 0
        assert log.has_deleted_files

        log.unlink_deleted()
        assert sorted(path.suffix for path in log.directory.iterdir()) == [
            "",
            ".index",
            ".log",
            ".timeindex",
        ]

    def test_the_recovery_point_is_never_past_the_end(self, log: Log) -> None:
        log.flush()
        assert log.recovery_point == 100
        log.truncate_to(31)
        assert log.recovery_point == 31


class TestDelete:
    @pytest.fixture
    def log(self, open_log: OpenLog) -> Log:
        """Four records, each in a segment and an epoch of its own, then an empty segment."""
        log = open_log()
        for epoch in range(4):
            log.append(make_batch(), leader_epoch=epoch)
            log.roll()
        return log

    def test_records_before_an_offset(self, log: Log) -> None:
        log.delete_records_before(2)

        assert log.log_start_offset == 2
        assert offsets(log) == [(2, 2), (3, 3)]
        assert log.epochs.entries == ((2, 2), (3, 3))

    def test_the_logs_start_never_goes_back(self, log: Log) -> None:
        log.delete_records_before(2)
        log.delete_records_before(1)

        assert log.log_start_offset == 2

    @pytest.mark.parametrize("offset", [-1, 5])
    def test_outside_of_the_log_is_refused(self, log: Log, offset: int) -> None:
        with pytest.raises(OffsetOutOfRange):
            log.delete_records_before(offset)

    @pytest.mark.parametrize("count", [0, 1, 3, 4])
    def test_the_oldest_segments(self, log: Log, count: int) -> None:
        log.delete_oldest_segments(count)

        assert log.log_start_offset == count
        assert bases(log) == [0, 1, 2, 3, 4][count:]
        assert sorted(int(path.stem) for path in log.directory.glob("*.log")) == bases(log)
        assert offsets(log) == [(number, number) for number in range(count, 4)]

    @pytest.mark.parametrize("empty", [True, False])
    def test_every_segment(self, log: Log, empty: bool) -> None:
        if not empty:
            log.append(make_batch(), leader_epoch=9)

        log.delete_oldest_segments(len(log.segments))

        assert bases(log) == [log.log_end_offset]
        assert log.log_start_offset == log.log_end_offset == (4 if empty else 5)
        log.append(make_batch(), leader_epoch=9)
        assert len(read_all(log)) == 1


class TestLife:
    def test_a_flush_moves_the_recovery_point(self, log: Log) -> None:
        log.append(make_batch(3), leader_epoch=0)
        assert log.recovery_point == 0
        log.flush()
        assert log.recovery_point == 3

    def test_a_flush_of_closed_segments_moves_the_recovery_point_to_the_active_one(self, log: Log) -> None:
        log.append(make_batch([b"a"]), leader_epoch=0)
        unflushed = [log.has_unflushed_segments]
        log.roll()
        log.append(make_batch([b"b"]), leader_epoch=0)
        unflushed.append(log.has_unflushed_segments)

        log.flush_closed()

        assert [*unflushed, log.has_unflushed_segments] == [False, True, False]
        assert (log.recovery_point, log.log_end_offset) == (1, 2)

    def test_so_many_messages_are_flushed_at_once(self, open_log: OpenLog) -> None:
        log = open_log(flush_messages=5)
        log.append(make_batch(4), leader_epoch=0)
        assert log.recovery_point == 0
        log.append(make_batch(1), leader_epoch=0)
        assert log.recovery_point == 5

    def test_a_flush_is_due_once_its_time_has_passed(self, open_log: OpenLog, clock: SettableClock) -> None:
        log = open_log(flush_ms=100)
        due = [log.flush_is_due]
        clock.advance(200)
        due.append(log.flush_is_due)  # there is nothing to flush yet
        log.append(make_batch(), leader_epoch=0)
        due.append(log.flush_is_due)
        log.flush()
        log.append(make_batch(), leader_epoch=0)
        for waited in (99, 1):
            clock.advance(waited)
            due.append(log.flush_is_due)

        assert due == [False, False, True, False, True]

    @pytest.mark.parametrize("flushed", [False, True])
    def test_a_flush_syncs_every_file_of_closed_segments(
        self, log: Log, monkeypatch: pytest.MonkeyPatch, flushed: bool
    ) -> None:
        log.append(in_txn(1, 0), leader_epoch=0)
        log.append_internal(make_marker(1, commit=False), leader_epoch=0)
        if flushed:
            log.flush()  # the records; the indexes are written out when the segment is closed
        log.roll()
        log.append(make_batch(), leader_epoch=0)
        synced = []
        real = os.fdatasync

        def recording(descriptor: int) -> None:
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
            real(descriptor)

        monkeypatch.setattr(os, "fdatasync", recording)
        log.flush()

        first, second = f"{0:020d}", f"{3:020d}"
        assert sorted(synced) == sorted(
            [f"{first}{suffix}" for suffix in (".index", ".log", ".timeindex", ".txnindex")]
            + [f"{second}.log"]
        )

    def test_a_clean_stop_needs_no_scan(self, log: Log, open_log: OpenLog) -> None:
        for number in range(40):
            log.append(
                make_batch([bytes(80)], producer_id=7, producer_epoch=0, base_sequence=number),
                leader_epoch=number // 10,
            )
        expected, epochs = read_all(log), log.epochs.entries
        log.close()
        first = min(log.directory.glob("*.log"))
        first.write_bytes(bytes(first.stat().st_size))  # a scan would notice

        again = open_log(clean=True)

        assert again.epochs.entries == epochs
        assert (again.log_end_offset, again.recovery_point) == (40, 40)
        again.delete_records_before(bases(again)[1])
        assert read_all(again) == expected[bases(again)[1] :]
        with pytest.raises(OutOfOrderSequence, match="expected 40"):
            again.append(make_batch(producer_id=7, producer_epoch=0, base_sequence=50), leader_epoch=9)

    def test_indexes_that_were_closed_after_the_last_flush_are_made_again(
        self, log: Log, open_log: OpenLog
    ) -> None:
        log.append(in_txn(1, 0), leader_epoch=0)
        log.append_internal(make_marker(1, commit=False, timestamp=TIMESTAMP + 9), leader_epoch=0)
        log.flush()
        log.roll()
        log.release()
        indexes = files_in(log.directory, ".index", ".timeindex", ".txnindex")
        for name in indexes:  # a power cut: names are there, content is not
            (log.directory / name).write_bytes(b"")

        again = open_log(recovery_point=log.recovery_point)

        assert [txn.last_offset for txn in again.aborted_transactions(0, 3)] == [2]
        assert files_in(log.directory, ".index", ".timeindex", ".txnindex") == indexes

    def test_a_missing_index_does_not_keep_the_records_from_being_flushed(
        self, log: Log, open_log: OpenLog
    ) -> None:
        log.append(make_batch(), leader_epoch=0)
        log.roll()
        log.close()
        (log.directory / f"{0:020d}.index").unlink()

        again = open_log(clean=True)
        again.append(make_batch(), leader_epoch=0)
        again.flush()

        assert again.recovery_point == 2

    def test_lost_epochs_are_read_off_the_batches(self, log: Log, open_log: OpenLog) -> None:
        for epoch in (1, 1, 4, 6):
            log.append(make_batch(2), leader_epoch=epoch)
        log.close()
        (log.directory / "leader-epoch-checkpoint").write_bytes(b"\xff\x00")

        assert open_log(clean=True).epochs.entries == ((1, 0), (4, 4), (6, 6))
        (log.directory / "leader-epoch-checkpoint").unlink()
        assert open_log(clean=True, log_start_offset=5).epochs.entries == ((4, 5), (6, 6))

    def test_files_of_interrupted_work_are_cleaned_away(self, log: Log, open_log: OpenLog) -> None:
        log.append(make_batch(), leader_epoch=0)
        log.close()
        stray = [
            log.directory / name
            for name in (
                f"{0:020d}.log.cleaned",
                f"{5:020d}.log.deleted",
                f"{5:020d}.index",
                f"{5:020d}.timeindex",
                f"{5:020d}.txnindex",
                f"{5:020d}.snapshot.tmp",
                f"{5:020d}.index.swap",
            )
        ]
        for path in stray:
            path.write_bytes(b"x")

        again = open_log()

        assert not any(path.exists() for path in stray)
        assert offsets(again) == [(0, 0)]

    def test_a_new_log_starts_where_it_is_told(self, open_log: OpenLog) -> None:
        log = open_log(log_start_offset=42)

        assert (log.log_start_offset, log.log_end_offset) == (42, 42)
        assert log.append(make_batch(), leader_epoch=0).base_offset == 42

    def test_defaults_are_kafkas(self) -> None:
        config = LogConfig()

        assert config.segment_bytes == 1_073_741_824
        assert config.segment_ms == config.retention_ms == 604_800_000
        assert config.max_message_bytes == 1_048_588
        assert config.index_interval_bytes == 4096
        assert config.segment_index_bytes == 10_485_760
