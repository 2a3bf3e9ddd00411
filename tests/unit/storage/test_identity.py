"""Whose a directory is: our own files, Kafka's of both layouts, and files that say nothing of the kind."""

from pathlib import Path

import pytest

from headrace.storage.errors import ForeignDirectory, StorageError
from headrace.storage.identity import (
    META_PROPERTIES,
    PARTITION_METADATA,
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
