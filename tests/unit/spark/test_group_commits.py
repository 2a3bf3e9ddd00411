"""Offsets that are committed in the background: the newest, without a wait for the coordinator."""

import threading

from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition
from headrace.spark.group_commits import GroupCommits
from headrace.tables.reader.offsets import Offsets

ZERO = TopicPartition("orders", 0)


class _Coordinator:
    """Notes what is committed; holds every commit back until it is told to answer."""

    def __init__(self) -> None:
        self.committed: list[tuple[str, int]] = []
        self.asked = threading.Semaphore(0)
        self.answers = threading.Semaphore(0)
        self.fails = False

    def commit(self, group: str, offsets: Offsets) -> None:
        self.asked.release()
        self.answers.acquire()
        if self.fails:
            raise ClientError("no coordinator")
        self.committed.append((group, offsets[ZERO]))


def test_offsets_that_were_not_sent_yet_are_replaced_by_newer_ones() -> None:
    coordinator = _Coordinator()
    commits = GroupCommits("billing", coordinator.commit)
    commits.submit({ZERO: 1})
    coordinator.asked.acquire()
    for offset in (2, 3, 4):
        commits.submit({ZERO: offset})
    assert not commits.flush(timeout_s=0.0)
    coordinator.answers.release(2)

    assert commits.flush()
    assert coordinator.committed == [("billing", 1), ("billing", 4)]
    commits.close()


def test_the_same_offsets_are_committed_once() -> None:
    coordinator = _Coordinator()
    coordinator.answers.release(2)
    commits = GroupCommits("billing", coordinator.commit)
    for _ in range(3):
        commits.submit({ZERO: 7})
        assert commits.flush()

    assert coordinator.committed == [("billing", 7)]
    commits.close()


def test_a_commit_that_failed_is_repeated_when_the_query_is_at_the_same_offsets() -> None:
    coordinator = _Coordinator()
    coordinator.fails = True
    coordinator.answers.release(2)
    commits = GroupCommits("billing", coordinator.commit)
    commits.submit({ZERO: 7})
    assert commits.flush()
    coordinator.fails = False
    commits.submit({ZERO: 7})
    assert commits.flush()

    assert coordinator.committed == [("billing", 7)]
    commits.close()


def test_the_last_offsets_are_committed_before_the_end() -> None:
    coordinator = _Coordinator()
    coordinator.answers.release()
    commits = GroupCommits("billing", coordinator.commit)
    commits.submit({ZERO: 9})
    commits.close()

    assert coordinator.committed == [("billing", 9)]
