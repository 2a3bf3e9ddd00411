"""Which logs of a directory may have lost records: what a broker finds out by itself, before it registers."""

import json
import shutil
from pathlib import Path

import pytest

from headrace.protocol.ids import TopicPartition
from headrace.storage.checks.losses import BOOT
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.system import system_calls
from support.records import make_batch

US = Identity(1, "our-cluster")
ORDERS = TopicPartition("orders", 0)


@pytest.fixture(autouse=True)
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the boot id of the machine."""
    file = tmp_path / "boot_id"
    file.write_text("first\n")
    monkeypatch.setattr(system_calls, "_BOOT_ID", file)
    return file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def opened(path: Path) -> LogDirectory:
    return LogDirectory.open(path, US, config_of=lambda _topic: LogConfig(), now_ms=lambda: 0)


def killed(directory: LogDirectory) -> None:
    directory.release()


def confirmed(path: Path, *, records: int = 0) -> LogDirectory:
    """Return the directory of a broker that is registered, with so many records in a log."""
    directory = opened(path)
    directory.losses.registered(1)
    directory.losses.confirmed()
    if records:
        log = directory.create(ORDERS, bytes(16), LogConfig())
        for _ in range(records):
            log.append(make_batch(1, timestamps=0), leader_epoch=0)
        directory.high_watermarks[ORDERS] = records
    return directory


def found(path: Path) -> tuple[bool, set[TopicPartition]]:
    """Return what the next start finds."""
    directory = opened(path)
    try:
        return directory.losses.everywhere, set(directory.losses.partitions)
    finally:
        killed(directory)


NOTHING: tuple[bool, set[TopicPartition]] = (False, set())
EVERYWHERE: tuple[bool, set[TopicPartition]] = (True, set())


def test_a_killed_broker_has_lost_nothing_if_its_machine_ran_on(path: Path) -> None:
    killed(confirmed(path, records=3))

    assert found(path) == NOTHING


def test_an_unclean_stop_before_a_reboot_casts_doubt_on_every_log(path: Path, boot: Path) -> None:
    killed(confirmed(path))
    boot.write_text("second\n")

    assert found(path) == EVERYWHERE


def test_a_clean_stop_before_a_reboot_leaves_no_doubt(path: Path, boot: Path) -> None:
    confirmed(path).close()
    boot.write_text("second\n")

    assert found(path) == NOTHING


def test_doubt_outlives_a_kill_and_a_clean_stop_until_the_controller_knows(path: Path, boot: Path) -> None:
    killed(confirmed(path))
    boot.write_text("second\n")
    killed(opened(path))
    opened(path).close()

    directory = opened(path)
    assert directory.losses.everywhere
    directory.losses.confirmed()
    killed(directory)
    assert found(path) == NOTHING


def test_without_a_boot_id_only_a_clean_stop_is_beyond_doubt(path: Path, boot: Path) -> None:
    boot.unlink()
    confirmed(path).close()
    directory = opened(path)
    assert (directory.losses.everywhere, directory.losses.partitions) == (False, set())
    killed(directory)

    assert found(path) == EVERYWHERE


def test_a_truncation_in_recovery_casts_doubt_on_its_log_alone_over_any_number_of_starts(path: Path) -> None:
    killed(confirmed(path, records=3))
    with (path / "orders-0" / f"{0:020}.log").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")

    assert found(path) == (False, {ORDERS})
    assert found(path) == (False, {ORDERS})


def test_a_log_that_ends_before_its_high_watermark_has_lost_records(path: Path) -> None:
    directory = confirmed(path, records=3)
    directory.checkpoint()
    killed(directory)
    (path / "orders-0" / f"{0:020}.log").write_bytes(b"")

    assert found(path) == (False, {ORDERS})


def test_a_log_that_is_gone_has_lost_records_if_a_checkpoint_knows_it(path: Path) -> None:
    directory = confirmed(path, records=3)
    directory.checkpoint()
    killed(directory)
    shutil.rmtree(path / "orders-0")

    assert found(path) == (False, {ORDERS})


def test_a_log_that_was_deleted_has_lost_nothing(path: Path) -> None:
    directory = confirmed(path, records=3)
    directory.checkpoint()
    directory.delete(ORDERS)
    directory.checkpoint()
    killed(directory)

    assert found(path) == NOTHING


def test_a_log_that_cannot_be_opened_has_lost_records(path: Path) -> None:
    killed(confirmed(path, records=3))
    (path / "orders-0" / "partition.metadata").write_text("?")

    assert found(path) == (False, {ORDERS})


def test_a_copy_of_a_directory_in_use_may_lack_what_was_written_since(path: Path) -> None:
    directory = confirmed(path, records=3)
    shutil.copytree(path, path.with_name("copy"))
    killed(directory)
    shutil.rmtree(path)
    shutil.copytree(path.with_name("copy"), path)

    assert found(path) == EVERYWHERE


def test_a_moved_directory_has_lost_nothing(path: Path) -> None:
    killed(confirmed(path, records=3))

    assert found(path.rename(path.with_name("elsewhere"))) == NOTHING


def test_a_copy_from_before_the_last_registration_is_old_even_if_it_was_closed(path: Path) -> None:
    confirmed(path, records=3).close()
    directory = opened(path)
    directory.losses.compare_registrations(1)
    assert (directory.losses.everywhere, directory.losses.partitions) == (False, set())
    directory.close()

    directory = opened(path)
    directory.losses.compare_registrations(2)
    assert directory.losses.everywhere
    directory.close()
    assert found(path) == EVERYWHERE


def test_a_coordinator_that_was_emptied_says_nothing_about_the_directory(path: Path) -> None:
    confirmed(path).close()
    directory = opened(path)
    directory.losses.compare_registrations(0)

    assert (directory.losses.everywhere, directory.losses.partitions) == (False, set())
    directory.close()


@pytest.mark.parametrize(("content", "doubt"), [(b"first\n", NOTHING), (b"in doubt\n", EVERYWHERE)])
def test_the_file_of_version_0_1_is_understood(
    path: Path, content: bytes, doubt: tuple[bool, set[TopicPartition]]
) -> None:
    killed(confirmed(path))
    (path / BOOT).write_bytes(content)

    assert found(path) == doubt


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"boot": "first"}', b'{"identity": "?"}'])
def test_a_damaged_file_counts_as_none_after_an_unclean_stop(path: Path, content: bytes) -> None:
    killed(confirmed(path))
    (path / BOOT).write_bytes(content)

    assert found(path) == EVERYWHERE


def test_nothing_is_written_twice(path: Path) -> None:
    directory = confirmed(path)
    (path / BOOT).unlink()

    directory.losses.registered(1)
    directory.losses.confirmed()
    assert not (path / BOOT).exists()

    directory.losses.add([ORDERS])
    assert json.loads((path / BOOT).read_bytes())["partitions"] == ["orders-0"]
    directory.close()
