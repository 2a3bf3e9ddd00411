"""Checkpoint files: Kafka's bytes, and what is made of damaged ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.ids import TopicPartition
from headrace.storage.checkpoints import (
    CorruptCheckpoint,
    OffsetCheckpoint,
    read_lines,
    read_offsets,
    write_lines,
    write_offsets,
)

ORDERS = TopicPartition("orders", 0)
OFFSETS = {
    TopicPartition("orders", 0): 1204,
    TopicPartition("orders", 1): 998,
    TopicPartition("a-b.c", 12): 0,
}


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    write_offsets(tmp_path / "checkpoint", OFFSETS)
    assert (tmp_path / "checkpoint").read_bytes() == b"0\n3\norders 0 1204\norders 1 998\na-b.c 12 0\n"
    assert read_offsets(tmp_path / "checkpoint") == OFFSETS


def test_nothing_is_written_as_nothing(tmp_path: Path) -> None:
    write_offsets(tmp_path / "checkpoint", {})
    assert (tmp_path / "checkpoint").read_bytes() == b"0\n0\n"
    assert read_offsets(tmp_path / "checkpoint") == {}


def test_no_file_is_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "checkpoint") == {}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    for _ in range(2):
        write_lines(tmp_path / "checkpoint", ["1 2", "3 4"])
        write_lines(tmp_path / "checkpoint", ["5 6"])
    assert read_lines(tmp_path / "checkpoint") == ["5 6"]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"0\n", "is not a checkpoint file"),
        (b"0\nmany\n", "is not a checkpoint file"),
        (b"\xff\xff\n0\n", "is not a checkpoint file"),
        (b"1\n0\n", "has version '1', expected 0"),
        (b"0\n2\norders 0 5\n", "announces 2 entries and has 1"),
        (b"0\n1\norders 0 5\norders 1 5\n", "announces 1 entries and has 2"),
        (b"0\n1\norders 0\n", "'orders 0' is not a topic, a partition and an offset"),
        (b"0\n1\norders 0 x\n", "'orders 0 x' is not a topic, a partition and an offset"),
        (b"0\n1\n\n", "'' is not a topic, a partition and an offset"),
    ],
)
def test_a_damaged_file_is_told_from_an_empty_one(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "checkpoint").write_bytes(content)
    with pytest.raises(CorruptCheckpoint, match=sentence):
        read_offsets(tmp_path / "checkpoint")


def test_a_file_torn_at_any_byte_never_reads_as_other_partitions(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    write_offsets(path, OFFSETS)
    whole = path.read_bytes()
    for size in range(1, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptCheckpoint):
            read_offsets(path)


@given(content=st.binary(max_size=60))
def test_any_bytes_are_a_checkpoint_or_a_corrupt_one(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "checkpoint-of-any-bytes"
    path.write_bytes(content)
    try:
        read_offsets(path)
    except CorruptCheckpoint as error:
        assert str(path) in str(error)  # noqa: PT017  either outcome is right


class TestOffsetCheckpoint:
    def test_it_is_written_after_a_change_and_not_before_another(self, tmp_path: Path) -> None:
        path = tmp_path / "offsets"
        offsets = OffsetCheckpoint(path, {})
        offsets[ORDERS] = 5
        offsets.prepare()()
        assert read_offsets(path) == {ORDERS: 5}

        path.unlink()
        offsets[ORDERS] = 5
        offsets.prepare()()
        assert not path.exists()

        del offsets[ORDERS]
        offsets.prepare()()
        assert read_offsets(path) == {}
        assert path.exists()

    def test_a_file_that_could_not_be_read_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "offsets"
        path.write_text("garbage")
        OffsetCheckpoint(path, {}).prepare()()
        assert read_offsets(path) == {}

    def test_of_two_prepared_writes_the_later_one_wins(self, tmp_path: Path) -> None:
        offsets = OffsetCheckpoint(tmp_path / "offsets", {})
        offsets[ORDERS] = 5
        earlier = offsets.prepare()
        offsets[ORDERS] = 6
        later = offsets.prepare()
        later()
        earlier()
        assert read_offsets(tmp_path / "offsets") == {ORDERS: 6}

    def test_a_write_that_has_failed_is_repeated(self, tmp_path: Path) -> None:
        offsets = OffsetCheckpoint(tmp_path / "missing" / "offsets", {ORDERS: 5})
        with pytest.raises(FileNotFoundError):
            offsets.prepare()()
        (tmp_path / "missing").mkdir()
        offsets.prepare()()
        assert read_offsets(tmp_path / "missing" / "offsets") == {ORDERS: 5}
