from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.storage.epochs import FILE_NAME, LeaderEpochs
from headrace.storage.log import Log
from support.records import make_batch


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    """Epoch 1 from offset 5, epoch 3 from offset 10."""
    epochs = LeaderEpochs(tmp_path)
    epochs.assign(1, 5)
    epochs.assign(3, 10)
    return epochs


def test_epochs_are_on_disk_in_kafkas_format_at_once(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / FILE_NAME).read_text() == "0\n2\n1 5\n3 10\n"
    assert LeaderEpochs(tmp_path).entries == epochs.entries == ((1, 5), (3, 10))


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, (0, 5)),  # older than all that is left: its follower goes on from the start
        (1, (1, 10)),
        (2, (1, 10)),
        (3, (3, 15)),
        (4, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch(epochs: LeaderEpochs, epoch: int, expected: tuple[int, int]) -> None:
    assert epochs.end_of(epoch, 15) == expected


def test_nothing_is_known_without_epochs(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path)

    assert epochs.latest == epochs.at(0) == -1
    assert epochs.end_of(0, 15) == (-1, -1)


@pytest.mark.parametrize(("offset", "epoch"), [(0, -1), (4, -1), (5, 1), (9, 1), (10, 3), (99, 3)])
def test_the_epoch_that_wrote_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.at(offset) == epoch


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
def test_known_and_older_epochs_change_nothing(epochs: LeaderEpochs, epoch: int) -> None:
    epochs.assign(epoch, 20)

    assert epochs.entries == ((1, 5), (3, 10))


@pytest.mark.parametrize(
    ("start", "left"), [(11, ((1, 5), (3, 10), (4, 11))), (10, ((1, 5), (4, 10))), (2, ((4, 2),))]
)
def test_an_epoch_without_records_that_lasted_is_forgotten(
    epochs: LeaderEpochs, start: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs.assign(4, start)

    assert epochs.entries == left


@pytest.mark.parametrize(
    ("offset", "left"), [(99, ((1, 5), (3, 10))), (11, ((1, 5), (3, 10))), (10, ((1, 5),)), (5, ())]
)
def test_truncating_the_end(
    epochs: LeaderEpochs, tmp_path: Path, offset: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs.truncate_from_end(offset)

    assert epochs.entries == LeaderEpochs(tmp_path).entries == left


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (0, ((1, 5), (3, 10))),
        (5, ((1, 5), (3, 10))),
        (7, ((1, 7), (3, 10))),
        (10, ((3, 10),)),
        (12, ((3, 12),)),
    ],
)
def test_truncating_the_start(
    epochs: LeaderEpochs, tmp_path: Path, offset: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs.truncate_from_start(offset)

    assert epochs.entries == LeaderEpochs(tmp_path).entries == left


def test_clearing_forgets_everything(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.clear()

    assert epochs.entries == LeaderEpochs(tmp_path).entries == ()


@pytest.mark.parametrize(
    "content",
    ["", "0\n", "0\n2\n1 5\n", "1\n1\n1 5\n", "0\nx\n", "0\n1\n1\n", "0\n1\n1 5 9\n", "0\n1\nx y\n"],
)
def test_a_file_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)

    epochs = LeaderEpochs(tmp_path)

    assert epochs.lost
    assert epochs.entries == ()


def test_bytes_that_are_no_text_are_as_good_as_no_file(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\xff\xfe")

    assert LeaderEpochs(tmp_path).lost


def test_an_epoch_reaches_the_disk_before_the_recovery_point_passes_it(
    open_log: Callable[..., Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log()
    log.begin_epoch(4)
    log.append(make_batch(3), leader_epoch=4)
    log.flush()
    points: list[int] = []
    monkeypatch.setattr("headrace.storage.epochs.sync_file", lambda _path: points.append(log.recovery_point))

    log.begin_epoch(5)
    log.append(make_batch(2), leader_epoch=5)
    assert points == []
    log.flush()
    log.append(make_batch(2), leader_epoch=5)
    log.flush()

    assert points == [3]
    assert log.recovery_point == 7


def test_epochs_that_are_forgotten_are_so_on_the_disk_at_once(
    epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(
        "headrace.storage.epochs.write_lines", lambda _path, _lines, *, sync: synced.append(sync)
    )

    epochs.assign(5, 20)
    epochs.truncate_from_end(15)
    epochs.assign(6, 20)
    epochs.assign(7, 20)
    assert synced == [False, True, False, False]

    epochs.assign(4, 20)  # otherwise a power failure could bring epoch 7 back, after batches of epoch 4
    assert synced[4:] == [True]


def test_an_epoch_without_batches_is_in_memory_only(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.begin(4, 20)
    epochs.begin(5, 20)
    assert epochs.entries == ((1, 5), (3, 10), (5, 20))
    assert LeaderEpochs(tmp_path).entries == ((1, 5), (3, 10))
    assert epochs.is_unwritten

    epochs.write()
    assert LeaderEpochs(tmp_path).entries == epochs.entries
    assert not epochs.is_unwritten


def test_epochs_outside_a_log_that_is_opened_are_dropped_without_a_write(
    epochs: LeaderEpochs, tmp_path: Path
) -> None:
    epochs.keep_within(7, 10)
    assert epochs.entries == ((1, 7),)
    assert LeaderEpochs(tmp_path).entries == ((1, 5), (3, 10))


@pytest.mark.parametrize(("epoch", "is_durable"), [(2, True), (3, True), (4, False)])
def test_an_epoch_that_was_dropped_cannot_come_back(
    epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch, epoch: int, is_durable: bool
) -> None:
    epochs.keep_within(0, 10)
    synced: list[bool] = []
    monkeypatch.setattr(
        "headrace.storage.epochs.write_lines", lambda _path, _lines, *, sync: synced.append(sync)
    )
    epochs.assign(epoch, 10)
    assert synced == [is_durable]
