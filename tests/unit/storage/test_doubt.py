"""Whether a log directory may have lost records: after another boot, until the others have heard of it."""

from pathlib import Path

import pytest

from headrace.storage import directory as module
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity

US = Identity(1, "our-cluster")


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> list[bytes | None]:
    """The machine's boot, which a test can change by putting another one in place."""
    current: list[bytes | None] = [b"first"]
    monkeypatch.setattr(module, "_boot_id", lambda: current[0])
    return current


def opened(path: Path) -> LogDirectory:
    return LogDirectory.open(path, US, config_of=lambda _topic: LogConfig(), now_ms=lambda: 0)


def killed(directory: LogDirectory) -> None:
    directory.release()


def test_a_killed_broker_has_lost_nothing_if_its_machine_ran_on(tmp_path: Path, boot: list[bytes]) -> None:
    directory = opened(tmp_path)
    directory.remember_boot()
    killed(directory)

    again = opened(tmp_path)
    assert not again.may_have_lost
    again.close()
    assert boot == [b"first"]


def test_a_power_cut_casts_doubt(tmp_path: Path, boot: list[bytes]) -> None:
    directory = opened(tmp_path)
    directory.remember_boot()
    killed(directory)
    boot[0] = b"second"

    again = opened(tmp_path)
    assert again.may_have_lost
    again.close()


def test_doubt_outlives_a_kill_and_a_clean_stop_until_others_have_heard_of_it(
    tmp_path: Path, boot: list[bytes]
) -> None:
    directory = opened(tmp_path)
    directory.remember_boot()
    killed(directory)
    boot[0] = b"second"
    killed(opened(tmp_path))
    opened(tmp_path).close()

    directory = opened(tmp_path)
    assert directory.may_have_lost
    directory.remember_boot()
    directory.close()
    again = opened(tmp_path)
    assert not again.may_have_lost
    again.close()


def test_a_clean_stop_before_another_boot_leaves_no_doubt(tmp_path: Path, boot: list[bytes]) -> None:
    directory = opened(tmp_path)
    directory.remember_boot()
    directory.close()
    boot[0] = b"second"

    again = opened(tmp_path)
    assert not again.may_have_lost
    again.close()


def test_where_boots_have_no_names_only_a_clean_stop_is_beyond_doubt(
    tmp_path: Path, boot: list[bytes | None]
) -> None:
    boot[0] = None
    directory = opened(tmp_path)
    directory.remember_boot()
    directory.close()
    directory = opened(tmp_path)
    assert not directory.may_have_lost
    directory.remember_boot()
    killed(directory)

    again = opened(tmp_path)
    assert again.may_have_lost
    again.close()
