"""Compactions that meet damage, I/O errors and crashes."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.protocol.batch import build_batch, read_header
from headrace.protocol.compression import Compression
from headrace.protocol.errors import KafkaError
from headrace.protocol.records import raw_records
from headrace.protocol.varint import encode_varint
from headrace.storage.append.inspection import MAX_RECORDS
from headrace.storage.compaction.cleaner import install, run_compaction
from headrace.storage.errors import CorruptLog, LogOffline
from headrace.storage.log import Log
from support.logs import COMPACTED, compact, open_test_log, pairs_in, put, read_all
from support.records import TIMESTAMP, headers_of
from unit.storage.compactions import fill, planned, ran
from unit.storage.log_contents import OpenLog


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(COMPACTED)


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_that_cannot_be_read_is_kept_and_logged_once(
    log: Log, compression: Compression, caplog: pytest.LogCaptureFixture
) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    log.append_internal(_undecodable(compression), leader_epoch=0)
    put(log, (b"a", b"2"))
    log.roll()
    unreadable = read_all(log)[1]

    clean_to = compact(log)
    put(log, (b"b", b"2"))
    log.roll()
    compact(log, first_dirty_offset=clean_to or 0)

    kept, *others = read_all(log)  # both keys of the first batch were written again
    assert kept == unreadable
    assert [headers_of(each)[0].base_offset for each in others] == [3, 4]
    where = f"offsets 2 to 2 ({log.segments[0].path}, byte 79)"
    why = why_unreadable(compression)
    assert caplog.messages == [f"compaction keeps the batch at {where}, whose records cannot be read: {why}"]


def why_unreadable(compression: Compression) -> str:
    data = _undecodable(compression)
    with pytest.raises(KafkaError) as unreadable:
        list(raw_records(data, read_header(data)))
    return str(unreadable.value)


def test_a_batch_of_more_records_than_memory_allows_is_kept(log: Log) -> None:
    count = MAX_RECORDS + 1
    body = b"".join(_smallest_record(number) for number in range(count))
    log.config = replace(log.config, compact=False, max_message_bytes=2**22, segment_bytes=2**22)
    log.append(
        build_batch(
            body,
            base_offset=0,
            last_offset_delta=count - 1,
            records_count=count,
            base_timestamp=TIMESTAMP,
            max_timestamp=TIMESTAMP,
        ),
        leader_epoch=0,
    )
    log.roll()
    before = read_all(log)

    compact(log)

    assert read_all(log) == before


def _smallest_record(number: int) -> bytes:
    body = b"\0\0" + encode_varint(number) + b"\x00\x01\x00"  # an empty key and no value
    return encode_varint(len(body)) + body


def test_a_flipped_bit_is_reported_and_not_hidden_under_a_new_checksum(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    position = log.active.size
    put(log, (b"a", b"2"), (b"c", b"value"))
    log.roll()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[data.index(b"value")] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptLog, match="checksum") as damage:
        run_compaction(planned(log), max_keys=1000, stop=lambda: False)
    assert (damage.value.path, damage.value.position) == (path, position)
    assert path.read_bytes() == data


def test_an_io_error_while_segments_are_swapped_takes_the_log_offline(log: Log) -> None:
    fill(log)
    compacted = ran(log)
    in_the_way = log.directory / "00000000000000000000.log.swap"
    in_the_way.mkdir()

    with pytest.raises(LogOffline, match="could not compact"):
        install(log, compacted)
    with pytest.raises(LogOffline):
        log.read(0, 1)

    in_the_way.rmdir()
    reopened = open_test_log(log.directory, COMPACTED)
    assert committed(reopened) == {b"a": b"active", b"b": b"b2", b"c": b"c2"}
    reopened.release()


@contextmanager
def copied_at_every_step(
    directory: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Path]]:
    """Copies of `directory` as it was before each rename and each removal, and at the end."""
    taken: list[Path] = []

    def take() -> None:
        taken.append(copies / str(len(taken)))
        shutil.copytree(directory, taken[-1])

    def replace_after_copy(source: Path, target: Path) -> None:
        take()
        Path(source).rename(target)

    def unlink_after_copy(path: Path, *, dir_fd: int | None = None) -> None:
        take()
        os.remove(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_after_copy)
        patch.setattr(os, "unlink", unlink_after_copy)
        yield taken
    take()


def committed(log: Log) -> dict[bytes | None, bytes | None]:
    """What a reader of committed records ends up with; the transactions of `fill` are all aborted."""
    aborted = {
        offset
        for batch in read_all(log)
        if (header := read_header(batch)).is_transactional and not header.is_control
        for txn in log.aborted_transactions(header.base_offset, header.next_offset)
        if txn.producer_id == header.producer_id
        for offset in range(header.base_offset, header.next_offset)
    }
    return {key: value for offset, key, value in pairs_in(log) if offset not in aborted}


def test_a_crash_at_any_step_of_installing_leaves_old_or_new_segments_and_loses_no_value(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one more crash at any step of the opening after it."""
    log.config = replace(COMPACTED, segment_bytes=700)  # two groups
    fill(log)
    old = pairs_in(log)
    aborted_before = log.aborted_transactions(0, 15)
    compacted = ran(log)
    assert len(compacted.groups) == 2
    with copied_at_every_step(log.directory, tmp_path / "first", monkeypatch) as crashes:
        install(log, compacted)
    new = pairs_in(log)
    values = committed(log)
    aborted_after = log.aborted_transactions(0, 15)
    outcomes = set()

    assert len(crashes) > 20
    for crash in crashes:
        before_recovery = tmp_path / "second" / crash.name
        with copied_at_every_step(crash, before_recovery, monkeypatch) as second_crashes:
            open_test_log(crash, COMPACTED, recovery_point=16).release()
        for copy in [crash, *second_crashes]:
            reopened = open_test_log(copy, COMPACTED, recovery_point=16)
            found = pairs_in(reopened)
            assert set(new) <= set(found) <= set(old)
            assert committed(reopened) == values
            assert set(aborted_after) <= set(reopened.aborted_transactions(0, 15)) <= set(aborted_before)
            assert not [path for path in copy.iterdir() if path.suffix in {".cleaned", ".swap"}]
            outcomes.add(tuple(found))
            reopened.release()
    assert {tuple(old), tuple(new)} <= outcomes


def _undecodable(compression: Compression) -> bytearray:
    return build_batch(
        b"\xff" * 40,
        base_offset=0,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
        compression=compression,
    )
