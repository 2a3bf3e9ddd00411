import contextlib
import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.batch import HEADER_SIZE, BatchHeader, assign_append_time, build_batch, read_batch
from headrace.protocol.compression import Buffer, Compression
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import (
    Record,
    decode_batch,
    encode_batch,
    keys_and_values,
    raw_records,
    rebase_timestamp,
    with_headers,
)
from headrace.protocol.varint import encode_varint

RICH = [
    Record(b"key", b"value", [("a", b"1"), ("ä", None), ("", b"")], 1000),
    Record(None, None, (), 900),
    Record(b"", b"", (), 2**40),
    Record(b"k" * 100, b"v" * 300, [("h" * 70, b"x" * 70)], 1000),
]

records_strategy = st.lists(
    st.builds(
        Record,
        key=st.none() | st.binary(max_size=80),
        value=st.none() | st.binary(max_size=80),
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
        timestamp=st.integers(-1, 2**62),
    ),
    min_size=1,
    max_size=6,
)


def decoded(batch: Buffer) -> list[Record]:
    return list(decode_batch(batch, read_batch(batch)))


def batch_of_body(body: bytes, count: int = 1) -> bytearray:
    return build_batch(
        body,
        base_offset=0,
        last_offset_delta=max(0, count - 1),
        records_count=count,
        base_timestamp=0,
        max_timestamp=0,
    )


def sized(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@given(records_strategy, st.sampled_from(Compression), st.integers(0, 2**50))
def test_records_come_back_as_they_went_in(
    records: list[Record], compression: Compression, base_offset: int
) -> None:
    batch = encode_batch(records, base_offset=base_offset, compression=compression)

    expected = [
        record._replace(offset=base_offset + delta, headers=list(record.headers))
        for delta, record in enumerate(records)
    ]
    assert decoded(batch) == expected


@given(records_strategy)
def test_compaction_sees_the_same_records(records: list[Record]) -> None:
    batch = encode_batch(records, base_offset=10)
    header = read_batch(batch)

    raw = list(raw_records(batch, header))

    assert [(r.offset, r.timestamp, r.key) for r in raw] == [
        (10 + delta, r.timestamp, r.key) for delta, r in enumerate(records)
    ]
    assert [r.has_value for r in raw] == [r.value is not None for r in records]
    rewritten = b"".join(rebase_timestamp(r, header.base_timestamp) for r in raw)
    assert rewritten == batch[HEADER_SIZE:]


@given(records_strategy, st.sampled_from(Compression))
def test_keys_and_values_are_those_of_the_records(records: list[Record], compression: Compression) -> None:
    batch = encode_batch(records, compression=compression)

    assert list(keys_and_values(batch, read_batch(batch))) == [(r.key, r.value) for r in records]


@given(records_strategy, st.sampled_from(Compression), st.sets(st.sampled_from(["", "a", "ü"]), min_size=1))
def test_wanted_headers_are_those_of_the_records(
    records: list[Record], compression: Compression, names: set[str]
) -> None:
    records = [*records, Record(b"k", b"v", [(each, b"1") for each in ("a", "", "ü", "a")], 7)]
    batch = encode_batch(records, compression=compression)
    wanted = {name.encode() for name in names}

    assert [
        (key, value, list(found)) for key, value, found in with_headers(batch, read_batch(batch), wanted)
    ] == [
        (r.key, r.value, [(name.encode(), value) for name, value in r.headers if name in names])
        for r in records
    ]


def test_a_header_is_found_wherever_the_batch_is_cut_to_be_searched() -> None:
    for size in range((1 << 20) - 60, (1 << 20) + 1):
        batch = encode_batch([Record(None, b"_" * size, [("__wanted", b"1")], 7)])
        ((_, _, found),) = with_headers(batch, read_batch(batch), [b"__wanted"])

        assert found == [(b"__wanted", b"1")]


def test_millions_of_headers_are_not_looked_at() -> None:
    many = Record(None, None, [("x", None)] * 1000, 7)
    batch = encode_batch([many, Record(None, None, [("wanted", b"")], 7)], compression=Compression.ZSTD)
    header = read_batch(batch)

    assert len(list(with_headers(batch, header, [b"unheard of"], max_headers=10))) == 2
    assert len(list(with_headers(batch, header, [b"wanted"], max_headers=1001))) == 2
    with pytest.raises(InvalidRecord, match="more than 1,000 headers"):
        list(with_headers(batch, header, [b"wanted"], max_headers=1000))


@given(records_strategy, st.integers(-1, 2**62))
def test_a_record_told_from_another_base_keeps_its_time(records: list[Record], base: int) -> None:
    batch = encode_batch(records)
    raw = list(raw_records(batch, read_batch(batch)))

    moved = build_batch(
        b"".join(rebase_timestamp(record, base) for record in raw),
        base_offset=0,
        last_offset_delta=len(raw) - 1,
        records_count=len(raw),
        base_timestamp=base,
        max_timestamp=max(record.timestamp for record in records),
    )

    assert decoded(moved) == decoded(batch)


def test_the_header_carries_the_largest_timestamp_and_the_first() -> None:
    header = read_batch(encode_batch(RICH))

    assert (header.base_timestamp, header.max_timestamp) == (1000, 2**40)
    assert (header.records_count, header.last_offset_delta) == (4, 3)


def test_timestamps_may_lie_as_far_apart_as_64_bits_allow() -> None:
    records = [Record(None, b"", (), timestamp) for timestamp in (0, 2**63 - 1, -(2**63), -1)]

    assert [record.timestamp for record in decoded(encode_batch(records))] == [
        record.timestamp for record in records
    ]


def test_a_batch_stamped_by_the_broker_gives_every_record_that_time() -> None:
    batch = encode_batch(RICH)
    assign_append_time(batch, 0, len(batch), 123)

    header = read_batch(batch)
    assert {record.timestamp for record in decode_batch(batch, header)} == {123}
    assert {record.timestamp for record in raw_records(batch, header)} == {123}


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(InvalidRecord):
        encode_batch([])


def test_records_in_front_of_other_data_are_read_to_the_end_of_their_batch() -> None:
    batch = encode_batch(RICH)

    assert list(decode_batch(batch + b"more", read_batch(batch))) == decoded(batch)


Reader = Callable[[Buffer, BatchHeader], Iterable[object]]


def headers_too(batch: Buffer, header: BatchHeader) -> Iterable[object]:
    return with_headers(batch, header, [b""])  # which is found everywhere


READERS = pytest.mark.parametrize("reader", [decode_batch, raw_records])
EVERY_READER = pytest.mark.parametrize("reader", [decode_batch, raw_records, keys_and_values, headers_too])


@EVERY_READER
@pytest.mark.parametrize("compression", Compression)
def test_a_body_cut_anywhere_is_refused(reader: Reader, compression: Compression) -> None:
    batch = encode_batch(RICH, compression=compression)
    header = read_batch(batch)

    for end in range(HEADER_SIZE, len(batch)):
        with pytest.raises(InvalidRecord):
            list(reader(batch[:end], header))


@EVERY_READER
@pytest.mark.parametrize("compression", Compression)
def test_a_damaged_body_is_refused_or_read_and_nothing_else(reader: Reader, compression: Compression) -> None:
    batch = encode_batch(RICH * 5, compression=compression)
    header = read_batch(batch)
    chance = random.Random(1)

    for place in range(HEADER_SIZE, len(batch)):
        damaged = bytearray(batch)
        damaged[place] ^= chance.randrange(1, 256)
        damaged[chance.randrange(HEADER_SIZE, len(batch))] = chance.randrange(256)
        with contextlib.suppress(InvalidRecord):
            list(reader(damaged, header))


@EVERY_READER
@given(body=st.binary(max_size=60), count=st.integers(-2, 8))
def test_any_bytes_as_a_body_are_refused_or_read(reader: Reader, body: bytes, count: int) -> None:
    batch = batch_of_body(body, count)
    with contextlib.suppress(InvalidRecord):
        list(reader(batch, read_batch(batch)))


@READERS
@pytest.mark.parametrize(
    ("body", "count"),
    [
        (sized(b"\x00\x00\x00\x01\x01\x00"), 2),  # a record less than announced
        (sized(b"\x00\x00\x00\x01\x01\x00") * 2, 1),  # a record more
        (b"\x01", 1),  # a negative size
        (sized(b"\x00\x00\x00\x01\x01"), 1),  # one byte too small for any record
        (sized(b"\x00\x00\x00" + encode_varint(50) + b"\x01\x00"), 1),  # a key past the record
        (sized(b"\x00\x00\x00\x01" + encode_varint(50) + b"\x00"), 1),  # a value past the record
        # the timestamp runs on into the next record
        (sized(b"\x00\x80\x80\x80\x80\x80") + sized(b"\x00\x00\x00\x01\x01\x00"), 2),
        # the value's length, a negative one, ends in the next record
        (sized(b"\x00\x00\x00\x01\x81\x80") + sized(b"\x00\x00\x00\x01\x01\x00"), 2),
        (sized(b"\x00\x00\x02\x01\x01\x00"), 1),  # an offset past the batch's last
        (sized(b"\x00\x00\x01\x01\x01\x00"), 1),  # an offset before its first
    ],
    ids=str,
)
def test_records_that_do_not_add_up_are_refused(reader: Reader, body: bytes, count: int) -> None:
    batch = batch_of_body(body, count)

    with pytest.raises(InvalidRecord):
        list(reader(batch, read_batch(batch)))


@READERS
@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_a_timestamp_that_64_bits_cannot_hold_is_refused(reader: Reader, base: int, delta: int) -> None:
    batch = build_batch(
        sized(b"\x00" + encode_varint(delta) + b"\x00\x01\x01\x00"),
        base_offset=0,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=base,
        max_timestamp=base,
    )

    with pytest.raises(InvalidRecord, match="timestamp"):
        list(reader(batch, read_batch(batch)))


@pytest.mark.parametrize(
    "headers",
    [
        encode_varint(-1),  # a negative count
        encode_varint(2**31 - 1),  # more than there are bytes
        encode_varint(1) + encode_varint(-1) + encode_varint(-1),  # a header without a key
        encode_varint(1) + encode_varint(1) + b"\xff" + encode_varint(-1),  # a key that is no text
        encode_varint(1) + encode_varint(9) + b"a" + encode_varint(-1),  # a key past the record
        encode_varint(0) + b"!",  # bytes after the last
    ],
    ids=bytes.hex,
)
def test_headers_that_cannot_be_are_refused(headers: bytes) -> None:
    batch = batch_of_body(sized(b"\x00\x00\x00\x01\x01" + headers))

    with pytest.raises(InvalidRecord):
        decoded(batch)


@pytest.mark.parametrize("compression", [c for c in Compression if c is not Compression.NONE])
def test_a_batch_that_unpacks_to_more_than_allowed_is_refused(compression: Compression) -> None:
    batch = encode_batch([Record(None, bytes(1_000_000))], compression=compression)

    with pytest.raises(InvalidRecord, match="more than 999999 bytes"):
        list(decode_batch(batch, read_batch(batch), max_bytes=999_999))
