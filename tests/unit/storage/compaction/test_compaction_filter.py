"""What stays of a batch, decided without a file."""

import tracemalloc

import pytest

from headrace.protocol.batch import BatchHeader, TimestampType, assign_append_time, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.compaction.filter import (
    BYTES_PER_KEY,
    AbortedTxns,
    CompactionFilter,
    LastWrite,
    OffsetMap,
)
from headrace.storage.txn_index import AbortedTxn
from support.records import make_batch, make_marker

NOW_MS = 5000
RETENTION_MS = 1000


def filtering(
    newest: dict[bytes, int] | None = None,
    *,
    end_offset: int = 100,
    aborted: tuple[AbortedTxn, ...] = (),
    last_writes: dict[int, LastWrite] | None = None,
    now_ms: int = NOW_MS,
) -> CompactionFilter:
    offsets = OffsetMap(1000)
    for key, offset in (newest or {}).items():
        offsets.put(key, offset)
    offsets.end_offset = end_offset
    return CompactionFilter(
        offsets, AbortedTxns(aborted), last_writes or {}, now_ms=now_ms, delete_retention_ms=RETENTION_MS
    )


def kept_of(batch: bytearray, keeper: CompactionFilter) -> tuple[BatchHeader, list[Record]] | None:
    kept = keeper.keep(read_batch(batch), memoryview(batch))
    if kept is None:
        return None
    header = read_batch(kept)
    return header, list(decode_batch(kept, header))


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_that_loses_records_keeps_its_frame(compression: Compression) -> None:
    batch = make_batch(
        [b"old", b"new"],
        timestamps=[20, 10],
        base_offset=7,
        leader_epoch=3,
        compression=compression,
        producer_id=5,
        producer_epoch=2,
        base_sequence=40,
    )
    before = read_batch(batch)
    kept = kept_of(batch, filtering({b"k0": 50}))

    assert kept is not None
    header, records = kept
    assert records == [Record(b"k1", b"new", [], 10, 8)]
    assert header == before._replace(
        batch_length=header.batch_length,
        crc=header.crc,
        base_timestamp=header.base_timestamp,
        max_timestamp=10,
        records_count=1,
    )


def test_a_batch_that_loses_nothing_is_not_written_anew() -> None:
    batch = make_batch(3, compression=Compression.GZIP)
    view = memoryview(batch)
    assert filtering().keep(read_batch(batch), view) is view


def test_what_lies_at_or_above_the_end_is_not_looked_at() -> None:
    batch = make_batch([None, b"old"], base_offset=10)
    assert filtering({b"k1": 50}, end_offset=10).keep(read_batch(batch), memoryview(batch)) is not None
    assert kept_of(batch, filtering({b"k1": 50}, end_offset=10)) == (
        read_batch(batch),
        list(decode_batch(batch, read_batch(batch))),
    )


def test_a_batch_across_the_end_loses_only_what_lies_below_it_and_gets_no_horizon() -> None:
    batch = make_batch([b"old", b"old", None], base_offset=10)
    kept = kept_of(batch, filtering({b"k0": 50, b"k1": 51}, end_offset=11))

    assert kept is not None
    assert [record.offset for record in kept[1]] == [11, 12]
    assert kept[0].delete_horizon_ms is None


@pytest.mark.parametrize("timestamps", [[-1, -1], [0, 0], [900, 1000], [10**15, 5]])
def test_a_horizon_changes_no_timestamp(timestamps: list[int]) -> None:
    batch = make_batch([None, b"value"], timestamps=timestamps)
    kept = kept_of(batch, filtering())

    assert kept is not None
    assert kept[0].delete_horizon_ms == NOW_MS + RETENTION_MS
    assert kept[0].max_timestamp == max(timestamps)
    assert [record.timestamp for record in kept[1]] == timestamps


def test_a_horizon_changes_no_append_time() -> None:
    batch = make_batch([None, b"value"], timestamps=5)
    assign_append_time(batch, 0, len(batch), 777)
    kept = kept_of(batch, filtering())

    assert kept is not None
    assert kept[0].timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in kept[1]] == [777, 777]


def test_a_horizon_is_set_once() -> None:
    batch = make_batch([None, b"value"])
    first = filtering().keep(read_batch(batch), memoryview(batch))
    assert first is not None
    again = filtering(now_ms=NOW_MS + RETENTION_MS - 1).keep(read_batch(first), memoryview(first))
    assert again == first


def test_headers_survive_a_horizon() -> None:
    batch = encode_batch(
        [Record(b"k", None, [("a", b"1"), ("b", None)], 10), Record(b"l", b"v", [("c", b"")], 20)]
    )
    kept = kept_of(batch, filtering())
    assert kept is not None
    assert [record.headers for record in kept[1]] == [[("a", b"1"), ("b", None)], [("c", b"")]]


def test_the_last_write_of_a_known_producer_stays_as_an_empty_frame() -> None:
    batch = make_batch(
        2,
        base_offset=10,
        compression=Compression.ZSTD,
        producer_id=5,
        producer_epoch=1,
        base_sequence=2**31 - 1,
    )
    newest = {b"k0": 50, b"k1": 51}
    assert kept_of(batch, filtering(newest)) is None
    assert kept_of(batch, filtering(newest, last_writes={5: LastWrite(99, 1)})) is None

    kept = kept_of(batch, filtering(newest, last_writes={5: LastWrite(11, 1)}))
    assert kept is not None
    header, records = kept
    assert records == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 11, 0)


def test_an_empty_frame_stays_as_long_as_its_producer_is_known() -> None:
    batch = make_batch(1, base_offset=10, producer_id=5, producer_epoch=1, base_sequence=3)
    known = filtering({b"k0": 50}, last_writes={5: LastWrite(10, 1)})
    frame = known.keep(read_batch(batch), memoryview(batch))
    assert isinstance(frame, bytearray)

    assert known.keep(read_batch(frame), memoryview(frame)) == frame
    assert kept_of(frame, filtering()) is None


def test_a_marker_stays_while_records_of_its_transaction_were_there_and_its_time_after_that() -> None:
    data = make_batch(1, base_offset=1, transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    marker = make_marker(5, commit=True, base_offset=2)
    keeper = filtering({b"k0": 50})
    assert kept_of(data, keeper) is None
    view = memoryview(marker)
    assert keeper.keep(read_batch(marker), view) is view

    idle = filtering().keep(read_batch(marker), view)
    assert isinstance(idle, bytearray)
    assert read_batch(idle).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert kept_of(idle, filtering(now_ms=NOW_MS + RETENTION_MS - 1)) is not None
    assert kept_of(idle, filtering(now_ms=NOW_MS + RETENTION_MS)) is None


def test_a_marker_that_is_all_that_is_left_of_an_epoch_stays_as_an_empty_frame() -> None:
    marker = make_marker(5, commit=False, producer_epoch=3, base_offset=2)
    idle = filtering().keep(read_batch(marker), memoryview(marker))
    assert isinstance(idle, bytearray)
    known = {5: LastWrite(None, 3)}
    kept = kept_of(idle, filtering(now_ms=NOW_MS * 2, last_writes=known))

    assert kept is not None
    header, records = kept
    assert (header.is_control, header.producer_epoch, records) == (True, 3, [])
    newer = {5: LastWrite(None, 4)}
    assert kept_of(idle, filtering(now_ms=NOW_MS * 2, last_writes=newer)) is None


def test_the_index_keeps_the_aborted_transactions_whose_records_were_met() -> None:
    met = AbortedTxn(5, 1, 2, 3)
    idle = AbortedTxn(6, 0, 3, 4)
    keeper = filtering(aborted=(met, idle))
    data = make_batch(1, base_offset=1, transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    assert kept_of(data, keeper) is None
    kept_of(make_marker(5, commit=False, base_offset=2), keeper)
    kept_of(make_marker(6, commit=False, base_offset=3), keeper)

    assert keeper.take_aborted() == [met]
    assert keeper.take_aborted() == []


def test_only_the_batches_between_a_transactions_first_and_its_marker_are_aborted() -> None:
    aborted = AbortedTxns([AbortedTxn(5, 20, 25, 26), AbortedTxn(5, 10, 15, 16), AbortedTxn(6, 12, 30, 31)])

    def holds(producer_id: int, offset: int) -> bool:
        batch = make_batch(1, base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        return aborted.holding(read_batch(batch)) is not None

    assert [offset for offset in range(35) if holds(5, offset)] == [*range(10, 16), *range(20, 26)]
    assert [offset for offset in range(35) if holds(6, offset)] == [*range(12, 31)]
    assert not any(holds(7, offset) for offset in range(35))


def test_the_newest_offset_of_a_key_is_the_one_noted_last() -> None:
    offsets = OffsetMap(10)
    assert offsets.put(b"a", 1)
    assert offsets.put(b"b", 2)
    assert offsets.put(b"a", 3)

    assert [offsets.newest(key) for key in (b"a", b"b", b"c")] == [3, 2, None]
    assert len(offsets) == 2


def test_a_full_map_takes_the_keys_it_knows_and_no_others() -> None:
    offsets = OffsetMap(2)
    assert offsets.put(b"a", 1)
    assert offsets.put(b"b", 2)

    assert not offsets.put(b"c", 3)
    assert offsets.put(b"b", 4)
    assert [offsets.newest(key) for key in (b"a", b"b", b"c")] == [1, 4, None]
    assert len(offsets) == 2


def test_keys_of_every_length_are_told_apart() -> None:
    """Also those as long as a digest, and the empty one."""
    keys = [b"x" * length for length in range(64)] + [b"x" * length + b"y" for length in range(64)]
    offsets = OffsetMap(1000)
    for offset, key in enumerate(keys):
        offsets.put(key, offset)

    assert [offsets.newest(key) for key in keys] == list(range(128))


@pytest.mark.parametrize("count", [30_000, 43_000, 44_000, 90_000])  # before and after the table grows
@pytest.mark.parametrize("key", [b"%d", b"%09d-ten-more", b"a key of quite some length, %d, like a long URL"])
def test_a_key_takes_no_more_memory_than_announced(key: bytes, count: int) -> None:
    tracemalloc.start()
    try:
        offsets = OffsetMap(count)
        for number in range(count + 10):
            offsets.put(key % number, 2**40 + number)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(offsets) == count
    assert peak < count * BYTES_PER_KEY
