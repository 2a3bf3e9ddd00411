"""Record batches as Arrow columns: the same records that `decode_batch` finds, whatever they are."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.batch import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    assign_append_time,
    build_batch,
    read_batch,
)
from headrace.protocol.compression import Compression
from headrace.protocol.errors import CorruptMessage, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.tables.reader.columns import TARGET_BYTES, TYPES, Columns
from headrace.tables.reader.offsets import Range

ALL: Final = tuple(TYPES)
ORDERS: Final = TopicPartition("orders", 3)
WHOLE: Final = Range(ORDERS, 0, 2**62)
FIRST: Final = 100  # offset of what the tests write
PACKED: Final = [each for each in Compression if each is not Compression.NONE]
BYTES: Final = st.none() | st.binary(max_size=40)
HEADERS: Final = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)
RECORDS: Final = st.builds(Record, BYTES, BYTES, HEADERS, st.integers(-1, 2**42))
BATCHES: Final = st.lists(
    st.tuples(st.lists(RECORDS, min_size=1, max_size=12), st.sampled_from(Compression), st.booleans()),
    min_size=1,
    max_size=4,
)

Written = list[tuple[bytes, BatchHeader]]


def write(batches: Sequence[tuple[Sequence[Record], Compression, bool]]) -> Written:
    """Batches one after the other; those with a flag have the broker's timestamps."""
    found: Written = []
    offset = FIRST
    for records, compression, is_append_time in batches:
        batch = encode_batch(records, base_offset=offset, compression=compression)
        if is_append_time:
            assign_append_time(batch, 0, len(batch), 1_700_000_000_000 + offset)
        found.append((bytes(batch), read_batch(batch)))
        offset += len(records)
    return found


def gather(
    written: Written, *, names: Sequence[str] = ALL, first: int = 0, last: int = 2**62
) -> list[dict[str, Any]]:
    columns = Columns(names)
    for batch, header in written:
        columns.add(batch, header, Range(ORDERS, first, last))
    table = columns.take()
    table.validate(full=True)
    assert table.schema.names == list(names)
    assert table.schema.types == [TYPES[name] for name in names]
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def expected(written: Written, *, first: int = 0, last: int = 2**62) -> list[dict[str, Any]]:
    """What Spark's Kafka source has in its columns, by the decoder that the broker uses."""
    return [
        {
            "key": each.key,
            "value": each.value,
            "topic": "orders",
            "partition": 3,
            "offset": each.offset,
            "timestamp": pa.scalar(each.timestamp * 1000, TYPES["timestamp"]).as_py(),
            "timestampType": int(header.timestamp_type is TimestampType.LOG_APPEND_TIME),
            "headers": [{"key": key, "value": value} for key, value in each.headers] or None,
        }
        for batch, header in written
        for each in decode_batch(batch, header)
        if first <= each.offset < last
    ]


@settings(deadline=None)
@given(BATCHES)
def test_columns_have_what_the_batches_have(batches: list[Any]) -> None:
    written = write(batches)

    assert gather(written) == expected(written)


@settings(deadline=None)
@given(BATCHES, st.integers(FIRST - 5, FIRST + 50), st.integers(0, 50))
def test_offsets_that_are_not_wanted_are_left_out_at_both_ends(
    batches: list[Any], first: int, size: int
) -> None:
    written = write(batches)

    assert gather(written, first=first, last=first + size) == expected(
        written, first=first, last=first + size
    )


@settings(deadline=None)
@given(BATCHES, st.lists(st.sampled_from(ALL), unique=True, min_size=1))
def test_columns_that_are_chosen_are_those_of_all(batches: list[Any], names: list[str]) -> None:
    written = write(batches)

    assert gather(written, names=names) == [{name: row[name] for name in names} for row in expected(written)]


def test_columns_grow_over_large_batches_and_begin_anew() -> None:
    records = [Record(b"k%d" % n, b"v" * (n % 70), [("h", b"%d" % n)] * (n % 3), n) for n in range(22_000)]
    written = write([(records, Compression.ZSTD, flag) for flag in (True, False, True, False)])
    columns = Columns(ALL)
    rows: list[dict[str, Any]] = []
    pieces: list[int] = []
    for batch, header in written:
        columns.add(batch, header, WHOLE)
        if columns.is_full or header is written[-1][1]:
            pieces.append(columns.rows)
            rows += columns.take().to_pylist()

    assert pieces == [66_000, 22_000]
    assert rows == expected(written)


def test_columns_of_several_partitions_say_where_each_row_is_from() -> None:
    written = write([([Record(b"%d" % n, None, [], n) for n in range(4)], Compression.NONE, False)])
    partitions = [ORDERS, TopicPartition("orders", 11), TopicPartition("pré", 0), ORDERS]
    columns = Columns(("topic", "partition", "offset"))
    for count, partition in enumerate(partitions):  # the first has no row
        for batch, header in written:
            columns.add(batch, header, Range(partition, FIRST, FIRST + count))
    table = columns.take()
    table.validate(full=True)

    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (*partition, FIRST + n) for count, partition in enumerate(partitions) for n in range(count)
    ]
    assert columns.take().to_pylist() == []


def test_large_headers_fill_columns_as_large_values_do() -> None:
    content = bytes(1 << 20)
    records = [Record(None, None, [("h", content)], 0)]
    columns = Columns(ALL)
    while not columns.is_full:
        columns.add(*write([(records, Compression.NONE, False)])[0], WHOLE)

    assert columns.rows == TARGET_BYTES // len(content)


def test_the_frame_of_a_batch_without_records_has_none() -> None:
    for compression in Compression:
        assert gather([made(b"", count=0, compression=compression)]) == []


def test_a_header_whose_key_is_no_text_is_shown_as_java_shows_it() -> None:
    body = record(headers=b"\x02" + b"\x04\xffk" + b"\x02v")

    assert [row["headers"] for row in gather([made(body)])] == [[{"key": "\ufffdk", "value": b"v"}]]


# -- what no client writes ---------------------------------------------------------------------


def record(*, key: bytes = b"\x01", value: bytes = b"\x01", headers: bytes = b"\x00") -> bytes:
    """A record of no key, no value and no headers, or of what is given instead."""
    body = b"\x00\x00\x00" + key + value + headers
    return bytes([2 * len(body)]) + body


def made(
    body: bytes, *, count: int = 1, compression: Compression = Compression.NONE
) -> tuple[bytes, BatchHeader]:
    """A batch around these bytes, packed or not, whose checksum is right."""
    batch = build_batch(
        body,
        base_offset=FIRST,
        last_offset_delta=max(count - 1, 0),
        records_count=count,
        base_timestamp=0,
        max_timestamp=0,
        compression=compression,
    )
    return bytes(batch), read_batch(batch)


HOSTILE: Final = {
    "nothing": b"",
    "too short": b"\x0a\x00\x00\x00\x01\x01",
    "a length past the end": b"\x7e" + record()[1:],
    "a negative length": b"\x0b" + record()[1:],
    "a length without an end": b"\xff" * 30,
    "a key past the end": record(key=b"\x64"),
    "a key of the most that a number can be": record(key=b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    "a value past the end": record(value=b"\x64"),
    "headers past the end": record(headers=b"\x06"),
    "a negative number of headers": record(headers=b"\x01"),
    "a header without a key": record(headers=b"\x02\x01\x01"),
    "a header's key past the end": record(headers=b"\x02\x64\x01"),
    "a header's value past the end": record(headers=b"\x02\x00\x64"),
    "bytes after the headers": record(headers=b"\x00\x00\x00"),
    "bytes after the records": record() + b"\x00" * 3,
    "an offset past the batch": b"\x0c\x00\x00\x08\x01\x01\x00",
    "an offset before the batch": b"\x0c\x00\x00\x01\x01\x01\x00",
    "a timestamp without an end": b"\x1a\x00" + b"\x80" * 12,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_malformed_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptMessage, match=r"orders-3: the batch at offset 100 cannot be read: "):
        gather([made(body)])


@pytest.mark.parametrize("count", [2, 3, 2**31 - 1, -1, -(2**31)])
def test_a_batch_that_claims_records_it_does_not_have_is_refused(count: int) -> None:
    with pytest.raises(CorruptMessage):
        gather([made(record(), count=count)])


@settings(deadline=None, max_examples=300)
@given(st.lists(RECORDS, min_size=1, max_size=5), st.data())
def test_a_record_that_was_tampered_with_is_refused_or_read_as_the_decoder_reads_it(
    records: list[Record], data: st.DataObject
) -> None:
    """The checksum of the batch is right: whoever made it made it so."""
    body = bytearray(encode_batch(records)[HEADER_SIZE:])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    written = [made(bytes(body), count=len(records))]

    check_against_the_decoder(written)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60), st.integers(0, 8))
def test_bytes_of_any_kind_are_refused_or_read_as_the_decoder_reads_them(body: bytes, count: int) -> None:
    check_against_the_decoder([made(body, count=count)])


def check_against_the_decoder(written: Written) -> None:
    try:
        wanted = expected(written)
    except (KafkaError, OverflowError, pa.ArrowInvalid):
        wanted = None
    try:
        found = gather(written)
    except CorruptMessage:
        assert wanted is None
        return
    except (OverflowError, pa.ArrowInvalid):
        return  # a year that no calendar has
    if wanted is not None:
        assert found == wanted


@settings(deadline=None)
@given(st.sampled_from(PACKED), st.binary(max_size=80))
def test_data_that_cannot_be_unpacked_is_refused(compression: Compression, data: bytes) -> None:
    with pytest.raises(CorruptMessage, match="orders-3: "):
        gather([made(data, compression=compression)])
