"""Appends of leaders and followers, and when a log rolls a segment."""

import pytest

from headrace.protocol.batch import TimestampType, read_batch
from headrace.protocol.errors import CorruptMessage, ErrorCode, InvalidRecord
from headrace.storage.errors import OutOfOrderSequence, RecordListTooLarge
from headrace.storage.log import Appended, Log
from support.clock import SettableClock
from support.logs import files_in, read_all
from support.records import TIMESTAMP, headers_of, make_batch
from unit.storage.log_contents import OpenLog, bases, follow, offsets


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
