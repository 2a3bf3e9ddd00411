"""Leader epochs of batches, which no checksum covers: wrong ones are found after a crash and by checks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.protocol.errors import InvalidRecord
from headrace.storage.checks.damage import SegmentCheck
from headrace.storage.checks.verify import verify
from headrace.storage.epochs import FILE_NAME, EpochStart
from headrace.storage.errors import CorruptLog
from headrace.storage.log import Log
from headrace.storage.recovery import open_log
from support.clock import SettableClock
from support.logs import SMALL, open_test_log
from support.records import headers_of, make_batch, split_batches

EPOCH_POSITION = 12  # of its four bytes in a batch
EPOCHS = [4, 4, 4, 7, 7, 7]  # of the batches of one record each


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log with one segment, whose broker was killed."""
    directory = tmp_path / "logs" / "orders-0"
    log = open_test_log(directory)
    for epoch in EPOCHS:
        log.append(make_batch(), leader_epoch=epoch)
    log.release()
    return directory


def set_epoch(directory: Path, offset: int, epoch: int) -> None:
    path = directory / f"{0:020}.log"
    batches = [bytearray(each) for each in split_batches(path.read_bytes())]
    batches[offset][EPOCH_POSITION : EPOCH_POSITION + 4] = epoch.to_bytes(4, "big")
    path.write_bytes(b"".join(batches))


def reopen(directory: Path, *, recovery_point: int = 0, on_loss: Callable[[], None] = lambda: None) -> Log:
    return open_log(directory, SMALL, now_ms=SettableClock(), recovery_point=recovery_point, on_loss=on_loss)


WRONG = [
    (1, 3),  # lower than the epoch before it
    (0, 3),  # lower, and the first of its segment: only the checkpoint knows
    (2, 7),  # of an epoch that begins later
    (3, 4),  # of an epoch that has ended
    (1, 9),  # an epoch that the checkpoint does not have
]


@pytest.mark.parametrize(("offset", "epoch"), WRONG)
def test_a_wrong_epoch_of_a_batch_that_was_flushed_is_damage(
    directory: Path, offset: int, epoch: int
) -> None:
    set_epoch(directory, offset, epoch)
    before = (directory / f"{0:020}.log").read_bytes()

    with pytest.raises(CorruptLog, match=f"leader epoch is {epoch}, {FILE_NAME} says {EPOCHS[offset]}"):
        reopen(directory, recovery_point=6)

    assert (directory / f"{0:020}.log").read_bytes() == before


@pytest.mark.parametrize(("offset", "epoch"), [(1, 3), (2, 7), (1, 9), (4, 9), (4, 4)])
def test_a_log_is_truncated_to_before_a_batch_with_a_wrong_epoch_that_was_not_flushed(
    directory: Path, offset: int, epoch: int
) -> None:
    set_epoch(directory, offset, epoch)
    losses: list[None] = []

    log = reopen(directory, on_loss=lambda: losses.append(None))

    assert log.log_end_offset == offset
    assert losses
    assert [each.epoch for each in log.epochs.entries] == sorted({*EPOCHS[:offset]})
    assert [each.leader_epoch for each in headers_of(log.read(0, 10**6))] == EPOCHS[:offset]
    log.release()


def test_epochs_that_began_after_the_last_flush_may_be_missing_in_the_checkpoint(directory: Path) -> None:
    (directory / FILE_NAME).write_text("0\n1\n4 0\n")

    log = reopen(directory, recovery_point=3)

    assert log.log_end_offset == 6
    assert log.epochs.entries == (EpochStart(4, 0), EpochStart(7, 3))  # type: ignore[arg-type]
    log.release()


def test_an_epoch_whose_batches_are_gone_is_no_reason_to_doubt_the_next_ones(directory: Path) -> None:
    """Epoch 9 wrote offset 6, which a power failure took; the next leader has offset 6 of epoch 7."""
    (directory / FILE_NAME).write_text("0\n3\n4 0\n7 3\n9 6\n")
    log = reopen(directory)
    log.append_as_follower(make_batch(base_offset=6, leader_epoch=7))
    log.release()

    for recovery_point in (0, 7):
        log = reopen(directory, recovery_point=recovery_point)
        assert (log.log_end_offset, log.epochs.latest) == (7, 7)
        log.release()

    # As if the process had been killed after the append, before it wrote the checkpoint.
    (directory / FILE_NAME).write_text("0\n3\n4 0\n7 3\n9 6\n")
    log = reopen(directory, recovery_point=6)
    assert (log.log_end_offset, log.epochs.latest) == (7, 7)
    log.release()


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize(("offset", "epoch"), [(1, 3), (2, 7), (4, 4)])
def test_verify_and_a_check_find_a_wrong_epoch(
    directory: Path, offset: int, epoch: int, is_closed: bool
) -> None:
    log = reopen(directory)
    if is_closed:
        log.roll()
    log.close()
    assert not any(report.problems for report in verify(directory))
    set_epoch(directory, offset, epoch)

    damage = SegmentCheck(log.segments[0], 6, None, log.epochs.entries).run()
    problems = [problem for report in verify(directory) for problem in report.problems]

    assert damage is not None
    assert damage.from_offset == offset
    assert problems
    assert f"leader epoch is {epoch}" in problems[0] or f"leader epoch {epoch} cannot follow" in problems[0]


def test_a_follower_refuses_a_batch_of_an_earlier_epoch_than_the_last_one(directory: Path) -> None:
    log = reopen(directory)
    log.begin_epoch(9)  # as a leader, which has written nothing

    with pytest.raises(InvalidRecord, match=r"names leader epoch 4, .* that of the batch before 7"):
        log.append_as_follower(make_batch(base_offset=6, leader_epoch=4))
    log.append_as_follower(make_batch(base_offset=6, leader_epoch=7))

    assert (log.log_end_offset, log.epochs.latest) == (7, 7)
    log.release()
