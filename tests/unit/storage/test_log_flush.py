"""Logs that are flushed, closed and opened again."""

import os
from pathlib import Path

import pytest

from headrace.storage.config import LogConfig
from headrace.storage.errors import OutOfOrderSequence
from headrace.storage.log import Log
from support.clock import SettableClock
from support.logs import files_in, read_all
from support.records import TIMESTAMP, make_batch, make_marker
from unit.storage.log_contents import OpenLog, bases, in_txn, offsets


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
