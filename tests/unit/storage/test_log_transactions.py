"""Aborted transactions of a log, and its last stable offset."""

import pytest

from headrace.storage.log import Log
from headrace.storage.txn_index import AbortedTxn
from support.records import make_marker
from unit.storage.log_contents import OpenLog, in_txn


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
