"""The checks themselves: each finds what it is there to find, and nothing in a history that is well."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cluster.checks import problems
from cluster.ledger import Ledger, Record, Slot
from cluster.replicas import differences, misplaced
from support.logs import open_test_log
from support.records import make_batch

A0, A1, B0 = Record("a", 0), Record("a", 1), Record("b", 0)
LOG = {Slot(0, 0): A0, Slot(0, 1): A1, Slot(1, 0): B0}


def history(log: Mapping[Slot, Record] = LOG) -> Ledger:
    """A ledger in which everything in `log` was sent, acknowledged and read."""
    ledger = Ledger()
    ledger.sent = {"a": 2, "b": 1}
    for slot, record in log.items():
        ledger.acknowledge(slot, record)
        ledger.process(slot, record)
    return ledger


def test_a_history_that_is_well_has_no_problems() -> None:
    assert problems(history(), LOG) == []


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ({Slot(0, 0): A0, Slot(1, 0): B0}, "LOST"),
        ({**LOG, Slot(0, 1): B0}, "LOST"),
        ({**LOG, Slot(0, 2): A1}, "TWICE"),
        ({**LOG, Slot(0, 2): A0}, "OUT OF ORDER"),
        ({**LOG, Slot(1, 1): A1}, "OUT OF ORDER"),
        ({**LOG, Slot(0, 2): Record("a", 2)}, "UNKNOWN"),
        ({**LOG, Slot(0, 3): Record("a", 2)}, "GAPS"),
        ({**LOG, Slot(1, 1): Record("b", 1)}, "UNREAD"),
    ],
)
def test_a_log_that_is_not_what_was_promised_is_found(log: Mapping[Slot, Record], word: str) -> None:
    assert any(line.startswith(word) for line in problems(history(), log))


def test_a_record_that_was_read_and_is_gone_is_found() -> None:
    ledger = history()
    ledger.process(Slot(1, 1), Record("b", 1))
    assert problems(ledger, LOG) == [
        "UNREAL: Record(key='b', number=1) was read at Slot(partition=1, offset=1), where there is None"
    ]


def test_a_record_acknowledged_without_a_place_has_to_be_somewhere() -> None:
    ledger = history()
    ledger.acknowledge_somewhere(A1)
    assert problems(ledger, LOG) == []
    ledger.acknowledge_somewhere(Record("b", 7))
    assert problems(ledger, LOG) == ["LOST: Record(key='b', number=7) was acknowledged and is nowhere"]


def test_a_commit_that_went_back_is_found() -> None:
    ledger = history()
    ledger.commit(0, 2)
    floor = ledger.committed()
    ledger.saw_committed(0, 2, floor, "somebody")
    assert ledger.problems == []
    ledger.saw_committed(0, 1, floor, "somebody")
    assert ledger.problems == ["somebody found partition 0 committed up to 1, after 2"]


def test_two_replicas_that_differ_are_found(tmp_path: Path) -> None:
    for broker, values in (("one", [b"a", b"b"]), ("other", [b"a", b"c"])):
        log = open_test_log(tmp_path / broker / "t-0")
        for value in values:
            log.append(make_batch([value]), leader_epoch=3)
        log.close()

    assert differences([tmp_path / "one"]) == []
    assert differences([tmp_path / "one", tmp_path / "other"]) == [
        "DIFFERENT: t-0 of one and of other from batch 1 on: has 1-1 of epoch 3 and has 1-1 of epoch 3"
    ]


def test_replicas_that_are_missing_or_were_to_go_are_found(tmp_path: Path) -> None:
    for path in ("one/t-0", "one/t-1", "other/t-0"):
        log = open_test_log(tmp_path / path)
        log.append(make_batch([b"a"]), leader_epoch=0)
        log.close()
    directories = {1: tmp_path / "one", 2: tmp_path / "other"}

    assert list(misplaced(directories, {"t-0": (1, 2), "t-1": (1,), "empty-0": (1, 2)})) == []
    assert list(misplaced(directories, {"t-0": (1, 2), "t-1": (2,)})) == [
        "STRAY: broker 1 still has t-1",
        "MISSING: broker 2 has no t-1",
    ]
