"""Logs that lose records at their end or at their start."""

import pytest

from headrace.storage.errors import OffsetOutOfRange, OutOfOrderSequence
from headrace.storage.log import Log
from support.logs import read_all
from support.records import make_batch
from unit.storage.log_contents import OpenLog, bases, follow, offsets


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
        assert sorted(path.suffix for path in log.directory.iterdir()) == ["", ".index", ".log", ".timeindex"]

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
