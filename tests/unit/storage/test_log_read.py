"""Reads of a log by offset and by timestamp."""

import pytest

from headrace.protocol.batch import TimestampType, build_batch
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import ErrorCode
from headrace.storage.append.inspection import MAX_RECORDS
from headrace.storage.errors import OffsetOutOfRange
from headrace.storage.log import Log
from headrace.storage.time_lookup import FoundOffset
from support.clock import SettableClock
from support.logs import read_all
from support.records import TIMESTAMP, headers_of, make_batch
from unit.storage.log_contents import OpenLog, follow


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
