"""Whose a directory is: our own files, Kafka's of both layouts, and files that say nothing of the kind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.storage.errors import ForeignDirectory, StorageError
from headrace.storage.identity import (
    LOCK_FILE,
    META_PROPERTIES,
    PARTITION_METADATA,
    DirectoryLock,
    Identity,
    claim,
    read_identity,
    read_topic_id,
    write_topic_id,
)

US = Identity(7, "mBzjvcYsRcOKVfLgDrHGvQ")


def test_a_directory_without_an_owner_becomes_the_brokers(tmp_path: Path) -> None:
    assert read_identity(tmp_path) is None
    claim(tmp_path, US)
    assert read_identity(tmp_path) == US
    claim(tmp_path, US)


@pytest.mark.parametrize(
    "content",
    [
        "version=0\nbroker.id=7\ncluster.id=mBzjvcYsRcOKVfLgDrHGvQ\n",
        "#\n#Sat Jan 01 00:00:00 UTC 2026\nbroker.id=7\nversion=0\ncluster.id=mBzjvcYsRcOKVfLgDrHGvQ\n",
        "#\ncluster.id=mBzjvcYsRcOKVfLgDrHGvQ\nversion=1\ndirectory.id=6HrTJPcHTzSDnvsIUjcLmA\nnode.id=7\n",
        "version = 1\r\nnode.id = 7\r\ncluster.id = mBzjvcYsRcOKVfLgDrHGvQ\r\n",
    ],
)
def test_the_files_of_kafka_are_read(tmp_path: Path, content: str) -> None:
    (tmp_path / META_PROPERTIES).write_bytes(content.encode())
    assert read_identity(tmp_path) == US
    claim(tmp_path, US)
    assert (tmp_path / META_PROPERTIES).read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has version None, expected 0 or 1"),
        (b"version=2\nnode.id=7\ncluster.id=x\n", "has version '2', expected 0 or 1"),
        (b"version=0\nnode.id=7\ncluster.id=x\n", "does not name a broker.id and a cluster.id"),
        (b"version=1\nnode.id=7\n", "does not name a node.id and a cluster.id"),
        (b"version=1\nnode.id=seven\ncluster.id=x\n", "does not name a node.id and a cluster.id"),
        (b"\xff\xfe\x00", "is not a properties file"),
    ],
)
def test_a_file_that_names_no_owner_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / META_PROPERTIES).write_bytes(content)
    with pytest.raises(ForeignDirectory, match=sentence):
        claim(tmp_path, US)
    assert (tmp_path / META_PROPERTIES).read_bytes() == content


def test_a_topic_id_comes_back_as_it_was(tmp_path: Path) -> None:
    for topic_id in (bytes(16), bytes(range(16)), b"\xff" * 16, bytes(range(240, 256))):
        write_topic_id(tmp_path, topic_id)
        assert read_topic_id(tmp_path) == topic_id


def test_a_topic_id_is_written_as_kafka_does(tmp_path: Path) -> None:
    write_topic_id(tmp_path, bytes.fromhex("9c1cf2e95a4a4f64a7b5d6e8f0a1b2c3"))
    assert (tmp_path / PARTITION_METADATA).read_text() == "version: 0\ntopic_id: nBzy6VpKT2Sntdbo8KGyww"


def test_no_file_is_no_topic_id(tmp_path: Path) -> None:
    assert read_topic_id(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: 0\ntopic_id: \n",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAA",
        b"version: 0\ntopic_id: A",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\nmore: x",
        b"\xff\xff",
    ],
)
def test_a_topic_id_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PARTITION_METADATA).write_bytes(content)
    with pytest.raises(StorageError, match=r"partition\.metadata"):
        read_topic_id(tmp_path)


TRY = """
import sys
from pathlib import Path
from headrace.storage.errors import ForeignDirectory
from headrace.storage.identity import DirectoryLock
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
        with pytest.raises(ForeignDirectory, match="already in use by this process"):
            DirectoryLock(tmp_path / name)
    assert try_elsewhere(tmp_path / "logs").returncode == 1  # the refusals did not let go of it

    lock.release()
    DirectoryLock(tmp_path / "link").release()


def test_a_lock_that_a_dead_process_left_is_free(tmp_path: Path) -> None:
    assert try_elsewhere(tmp_path).returncode == 0
    assert (tmp_path / LOCK_FILE).exists()
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
    late_comer = os.open(tmp_path / LOCK_FILE, os.O_RDWR)
    lock.release()
    assert os.fstat(late_comer).st_ino == (tmp_path / LOCK_FILE).stat().st_ino
    os.close(late_comer)
