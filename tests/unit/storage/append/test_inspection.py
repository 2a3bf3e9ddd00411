"""Batches whose records are read before they are appended: what is refused, and what is too much to read."""

import random
import zlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headrace.protocol.batch import HEADER_SIZE, TimestampType, build_batch, read_batch
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import ErrorCode, InvalidRecord, KafkaError
from headrace.protocol.record_walk import MAX_NAMED
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.protocol.varint import encode_varint
from headrace.storage.append import inspection
from headrace.storage.append.inspection import (
    MAX_EXPECTED_OFFSET_RECORDS,
    MAX_HEADERS,
    MAX_RECORDS,
    QUICK_BYTES,
    PreparedBatch,
    is_quick,
    prepare,
    reads_records,
)
from headrace.storage.config import LogConfig
from support.records import TIMESTAMP, make_batch

NOW = TIMESTAMP
PLAIN = LogConfig()
VALIDATED = LogConfig(validate_records=True)
COMPACTED = LogConfig(compact=True)
BY_OFFSET = LogConfig(append_expected_offset=True)
GZIPPED = LogConfig(compression=Compression.GZIP)
READING = [VALIDATED, COMPACTED, BY_OFFSET, GZIPPED]


def refusal(data: bytes | bytearray, config: LogConfig) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        prepare(data, config, NOW)
    return refused.value


def body_of(*records: bytes) -> bytes:
    return b"".join(encode_varint(len(record)) + record for record in records)


def record(
    delta: int = 0,
    *,
    timestamp: int = 0,
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\0",
) -> bytes:
    """A record without its length: key, value and headers as they stand in the bytes."""
    return b"\0" + encode_varint(timestamp) + encode_varint(delta) + key + value + headers


def framed(body: bytes, count: int = 1, compression: Compression = Compression.NONE) -> bytearray:
    return build_batch(
        compress(compression, body),
        base_offset=0,
        last_offset_delta=count - 1,
        records_count=count,
        base_timestamp=NOW,
        max_timestamp=NOW,
        compression=compression,
    )


# -- what is wrong with records ------------------------------------------------------------------


@pytest.mark.parametrize("config", READING, ids=["validated", "compacted", "by offset", "compressed"])
@pytest.mark.parametrize(
    ("records", "index", "why"),
    [
        ([b"\xff" * 20], 0, "varint"),
        ([record(), record(0)], 1, "its offset delta is 0, expected 1"),
        ([record(1)], 0, "its offset delta is 1, expected 0"),
        ([record(), record(1, key=b"\x7ek")], 1, "its key"),
        ([record(key=b"\x03")], 0, "its key has length -2"),
        ([record(value=b"\x7ev")], 0, "its value reaches past its end"),
        ([record(value=b"\x05")], 0, "its value has length -3"),
        ([record(headers=b"")], 0, "its value reaches past its end"),
        ([record(headers=b"\x02")], 0, "it has 1 headers in 0 bytes"),
        ([record(headers=b"\x01aa")], 0, "it has -1 headers"),
        ([record(headers=b"\x02\x01\x00")], 0, "a header has a key of length -1"),
        ([record(headers=b"\x02\x7e\x00")], 0, "a header's key reaches past its end"),
        ([record(headers=b"\x02\x02a\x7e")], 0, "a header's value reaches past its end"),
        ([record(headers=b"\x02\x02a\x05")], 0, "a header has a value of length -3"),
        ([record(headers=b"\0more")], 0, "4 bytes follow its last header"),
    ],
)
def test_a_malformed_record_is_named(
    config: LogConfig, records: Sequence[bytes], index: int, why: str
) -> None:
    error = refusal(framed(body_of(*records), len(records)), config)

    assert isinstance(error, InvalidRecord), error
    ((named, said),) = error.record_errors
    assert named == index
    assert why in said


@pytest.mark.parametrize("config", READING, ids=["validated", "compacted", "by offset", "compressed"])
@pytest.mark.parametrize("compression", Compression)
def test_garbage_with_a_checksum_that_holds_is_refused(config: LogConfig, compression: Compression) -> None:
    if config.compression is compression:
        pytest.skip("a batch that is compressed as the topic has it is stored as it came")
    garbage = build_batch(
        b"\xfe\xca" * 50,
        base_offset=0,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=NOW,
        max_timestamp=NOW,
        compression=compression,
    )
    assert refusal(garbage, config).code is ErrorCode.INVALID_RECORD


def test_records_that_do_not_fill_the_batch_are_refused() -> None:
    whole = body_of(record(), record(1))

    assert "9 bytes follow the last of 1 records" in str(refusal(framed(whole, 1), VALIDATED))
    for cut in range(1, len(whole)):
        assert refusal(framed(whole[:-cut], 2), VALIDATED).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("config", [PLAIN, *READING])
@pytest.mark.parametrize("compression", Compression)
def test_sound_records_are_accepted(config: LogConfig, compression: Compression) -> None:
    records = [
        Record(b"k", b"v", [("name", b"value"), ("", None)], NOW),
        Record(b"", None, (), NOW + 3),
        Record(b"k" * 300, b"v" * 70_000, [("n" * 200, b"x" * 200)], NOW - 500),
    ]
    batch = prepare(encode_batch(records, compression=compression), config, NOW)

    found = decode_batch(batch.data, read_batch(batch.data))
    assert [each._replace(offset=-1, headers=tuple(each.headers)) for each in found] == [
        each._replace(headers=tuple(each.headers)) for each in records
    ]


# -- each invalid record is named ----------------------------------------------------------------


@pytest.mark.parametrize("compression", Compression)
def test_every_record_without_a_key_is_named(compression: Compression) -> None:
    records = [Record(b"k" if number % 3 else None, b"v", (), NOW) for number in range(8)]

    error = refusal(encode_batch(records, compression=compression), COMPACTED)

    assert isinstance(error, InvalidRecord)
    why = "a compacted topic cannot accept a record without a key"
    assert error.record_errors == [(0, why), (3, why), (6, why)]
    assert str(error) == f"record 0 of the batch: {why} (and 2 more invalid records)"


def test_so_many_invalid_records_are_named_and_the_rest_is_counted() -> None:
    records = [Record(None, b"v", (), NOW)] * (MAX_NAMED + 5)

    error = refusal(encode_batch(records), COMPACTED)

    assert len(error.record_errors) == MAX_NAMED
    assert f"{MAX_NAMED + 4} more" in str(error)


def test_every_record_whose_time_is_too_far_from_now_is_named() -> None:
    config = replace(VALIDATED, message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
    times = [NOW, NOW - 101, -1, NOW + 50, NOW - 100, NOW - 500]
    records = [Record(b"k", b"v", (), each) for each in times]

    error = refusal(encode_batch(records), config)

    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 5]


def test_the_clients_times_do_not_matter_where_the_broker_sets_them() -> None:
    config = replace(
        VALIDATED, message_timestamp_type=TimestampType.LOG_APPEND_TIME, message_timestamp_before_max_ms=100
    )

    assert prepare(make_batch(2, timestamps=[NOW, 5]), config, NOW).header.records_count == 2


def test_a_max_timestamp_that_is_wrong_is_corrected() -> None:
    """Retention and lookups by time go by it; Kafka corrects it as well."""
    body = body_of(record(timestamp=7), record(1, timestamp=-3))

    batch = prepare(framed(body, 2), VALIDATED, NOW)

    assert (batch.header.max_timestamp, read_batch(batch.data).max_timestamp) == (NOW + 7, NOW + 7)


def test_names_of_headers_must_be_text_where_others_decide_by_the_records() -> None:
    bad = framed(body_of(record(headers=b"\x02\x02\xff\x00")))

    prepare(bytes(bad), VALIDATED, NOW)
    assert "UTF-8" in str(refusal(bad, BY_OFFSET))


# -- too much to read ----------------------------------------------------------------------------


def test_more_records_than_the_broker_reads_are_too_large() -> None:
    """A million records in less than two kilobytes; a Java producer splits a batch that is too large."""
    bomb = framed(body_of(record()) * 1_000_000, 1_000_000, Compression.ZSTD)

    error = refusal(bomb, COMPACTED)

    assert len(bomb) < 2000
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert str(error).startswith(f"the batch has 1,000,000 records, {MAX_RECORDS:,} is the most")


def test_a_batch_that_others_decide_by_has_fewer_records() -> None:
    prepare(make_batch(MAX_EXPECTED_OFFSET_RECORDS), BY_OFFSET, NOW)

    error = refusal(make_batch(MAX_EXPECTED_OFFSET_RECORDS + 1), BY_OFFSET)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("config", READING, ids=["validated", "compacted", "by offset", "compressed"])
def test_more_headers_than_the_broker_reads_are_too_large(config: LogConfig) -> None:
    """One record of a few kilobytes with eight million headers."""
    count = 8_000_000
    bomb = framed(body_of(record(headers=encode_varint(count) + b"\0\1" * count)), 1, Compression.ZSTD)

    error = refusal(bomb, config)

    assert len(bomb) < 3000
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"more than {MAX_HEADERS:,} record headers" in str(error)


@pytest.mark.parametrize("compression", [each for each in Compression if each], ids=lambda each: each.name)
def test_a_batch_that_unpacks_to_more_than_the_broker_reads_is_too_large(compression: Compression) -> None:
    value = bytes(inspection.MAX_INSPECTED_BYTES)
    bomb = encode_batch([Record(b"k", value, (), NOW)], compression=compression)
    config = replace(VALIDATED, max_message_bytes=2**22)

    error = refusal(bomb, config)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "unpacks to more than" in str(error)
    prepare(bomb, replace(config, max_message_bytes=2**25), NOW)  # an operator may want so large ones


def test_recompression_ends_when_the_result_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not compress is not compressed to its end: the result would be refused."""
    done = 0

    def counting(compression: Compression, data: bytes, **options: object) -> object:
        progress = options["progress"]

        def noted(size: int) -> None:
            nonlocal done
            done = max(done, size)
            progress(size)  # type: ignore[operator]

        return compress(compression, data, progress=noted)

    monkeypatch.setattr(inspection, "compress", counting)
    noise = random.Random(1).randbytes(2**18)
    batch = encode_batch([Record(b"k", noise * 20, (), NOW)], compression=Compression.ZSTD)
    limit = len(batch)  # gzip does not see that the noise is repeated, zstd does

    assert refusal(batch, replace(GZIPPED, max_message_bytes=limit)).code is ErrorCode.MESSAGE_TOO_LARGE
    assert limit - HEADER_SIZE < done < limit + 2**19


def test_recompression_has_so_much_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MAX_CPU_S", -1.0)

    error = refusal(make_batch(3, compression=Compression.ZSTD), GZIPPED)

    assert error.code is ErrorCode.INVALID_RECORD
    assert "CPU time" in str(error)


def test_gzip_takes_as_long_as_kafkas_level_does() -> None:
    """Two letters in random order: level 9 takes thirty times as long as level 6, for one percent less."""
    data = bytes(random.Random(1).choices(b"ab", k=200_000))

    assert len(compress(Compression.GZIP, data)) == len(_deflated(data, 6)) != len(_deflated(data, 9))
    assert zlib.decompress(compress(Compression.GZIP, data), wbits=31) == data


def _deflated(data: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, wbits=31)
    return packer.compress(data) + packer.flush()


# -- who reads records, and where ----------------------------------------------------------------


def test_only_topics_that_require_it_have_their_records_read() -> None:
    plain, packed = make_batch(3), make_batch(3, compression=Compression.GZIP)

    assert not PLAIN.reads_records
    assert [reads_records(plain, each) for each in (VALIDATED, COMPACTED, BY_OFFSET, GZIPPED)] == [True] * 4
    assert not reads_records(packed, GZIPPED), "it is compressed as the topic has it"
    assert not reads_records(plain[:60], VALIDATED), "it is no batch"


def test_a_small_batch_that_is_not_compressed_is_quick() -> None:
    small = make_batch(3)

    assert is_quick(small)
    assert is_quick(small[:40])
    assert not is_quick(make_batch(3, compression=Compression.ZSTD)), "it may unpack to anything"
    assert not is_quick(make_batch([bytes(QUICK_BYTES)]))


def test_a_batch_is_prepared_for_the_configuration_it_was_checked_by() -> None:
    data = make_batch(3, compression=Compression.ZSTD)

    batch = prepare(data, GZIPPED, NOW)

    assert batch == PreparedBatch(batch.data, batch.header, GZIPPED, len(data))
    assert batch.header.compression is Compression.GZIP
