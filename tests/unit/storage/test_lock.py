"""One owner per directory, in this process and in others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.storage.errors import ForeignDirectory
from headrace.storage.lock import FILE_NAME, DirectoryLock

TRY = """
import sys
from pathlib import Path
from headrace.storage.errors import ForeignDirectory
from headrace.storage.lock import DirectoryLock
try:
    DirectoryLock(Path(sys.argv[1]))
except ForeignDirectory as refusal:
    sys.exit(str(refusal))
"""


def try_elsewhere(directory: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", TRY, str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_another_process_is_kept_out_until_the_lock_is_released(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    refused = try_elsewhere(tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"{tmp_path} is in use by another process: stop it first")

    lock.release()
    assert try_elsewhere(tmp_path).returncode == 0


def test_this_process_is_kept_out_by_any_name_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    lock = DirectoryLock(tmp_path / "logs")
    for name in ("logs", "link", "logs/../logs"):
        with pytest.raises(ForeignDirectory, match="in use by this process already"):
            DirectoryLock(tmp_path / name)
    assert try_elsewhere(tmp_path / "logs").returncode == 1  # the refusals did not let go of it

    lock.release()
    DirectoryLock(tmp_path / "link").release()


def test_a_lock_that_a_dead_process_left_is_free(tmp_path: Path) -> None:
    assert try_elsewhere(tmp_path).returncode == 0
    assert (tmp_path / FILE_NAME).exists()
    DirectoryLock(tmp_path).release()


def test_releasing_twice_does_not_take_the_lock_from_its_next_owner(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.release()
    following = DirectoryLock(tmp_path)
    lock.release()
    assert try_elsewhere(tmp_path).returncode == 1
    following.release()


def test_the_file_outlives_the_lock(tmp_path: Path) -> None:
    """Were it removed, one process could lock the removed file and another a new one of its name."""
    lock = DirectoryLock(tmp_path)
    late_comer = os.open(tmp_path / FILE_NAME, os.O_RDWR)
    lock.release()
    assert os.fstat(late_comer).st_ino == (tmp_path / FILE_NAME).stat().st_ino
    os.close(late_comer)
