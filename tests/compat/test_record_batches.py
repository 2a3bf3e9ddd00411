"""Record batches: what other people's clients encode we decode, and the other way round."""

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from compat.kafka_tools.written import WrittenDirectory
from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.control_records import ControlRecordType, decode_control_key, decode_end_txn_marker
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.config import LogConfig
from oracles.kafka_python import DefaultRecordBatch as KafkaPythonBatch
from oracles.kafka_python import DefaultRecordBatchBuilder as KafkaPythonBuilder
from oracles.kafka_python import MemoryRecords as KafkaPythonRecords
from support.logs import open_test_log, read_all
from support.records import make_marker, split_batches

EXAMPLES: Final = int(os.environ.get("HEADRACE_EXAMPLES", "100"))
ROOMY: Final = 2**30  # a builder takes no more records than fit its batch size
TIMESTAMP: Final = 1_700_000_000_000

clients = pytest.mark.parametrize(
    "builder", [KafkaPythonBuilder, AiokafkaBuilder], ids=["kafka-python", "aiokafka"]
)
readers = pytest.mark.parametrize(
    "reader", [KafkaPythonBatch, AiokafkaBatch], ids=["kafka-python", "aiokafka"]
)
compressions = pytest.mark.parametrize("compression", list(Compression), ids=lambda each: each.name.lower())

small_bytes = st.none() | st.binary(max_size=200)
record_headers = st.lists(st.tuples(st.text(max_size=20), small_bytes), max_size=3)
timestamps = st.integers(0, 2**62)
record_lists = st.lists(
    st.builds(Record, small_bytes, small_bytes, record_headers, timestamps), min_size=1, max_size=8
)
producers = st.fixed_dictionaries(
    {
        "transactional": st.booleans(),
        "producer_id": st.integers(0, 2**63 - 1),
        "producer_epoch": st.integers(0, 2**15 - 1),
        "base_sequence": st.integers(0, 2**31 - 1),
    }
)
NO_PRODUCER: Final = {"transactional": False, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}


def build(
    builder: Callable[..., Any],
    records: Sequence[Record],
    compression: Compression = Compression.NONE,
    producer: dict[str, Any] = NO_PRODUCER,
) -> bytes:
    """The batch that a client's own encoder makes of `records`."""
    batch = builder(
        magic=2,
        compression_type=int(compression),
        is_transactional=int(producer["transactional"]),
        producer_id=producer["producer_id"],
        producer_epoch=producer["producer_epoch"],
        base_sequence=producer["base_sequence"],
        batch_size=ROOMY,
    )
    for number, record in enumerate(records):
        taken = batch.append(number, record.timestamp, record.key, record.value, list(record.headers))
        assert taken is not None, f"record {number} of {len(records)} did not fit"
    return bytes(batch.build())


def read(reader: Callable[..., Any], batch: bytes | bytearray) -> list[Record]:
    """The records that a client's own decoder finds in `batch`, whose checksum it has verified."""
    opened = reader(bytes(batch))
    assert opened.validate_crc()
    return [as_record(record) for record in opened]


def as_record(record: Any) -> Record:
    return Record(record.key, record.value, list(record.headers), record.timestamp, record.offset)


def decode(batch: bytes | bytearray) -> list[Record]:
    return list(decode_batch(batch, read_batch(batch)))


def numbered(records: Sequence[Record], base_offset: int = 0) -> list[Record]:
    return [
        record._replace(headers=list(record.headers), offset=offset)
        for offset, record in enumerate(records, start=base_offset)
    ]


def compressible_records() -> list[Record]:
    """Every shape of record, and more than one block of every codec's framing: 300 KiB."""
    shapes = [
        Record(None, None, (), TIMESTAMP + 5),
        Record(b"", b"", [("", b"")], TIMESTAMP),
        Record(b"key", b"value", [("n", b"1"), ("n", None), ("ключ", b"\x00\xff")], TIMESTAMP - 3),
        Record(b"k" * 70_000, None, (), TIMESTAMP + 1),
    ]
    return shapes + [Record(b"%d" % n, b"line %d; " % n * 100, (), TIMESTAMP + n) for n in range(200)]


def incompressible_records() -> list[Record]:
    noise = random.Random(7).randbytes
    return [Record(noise(16), noise(50_000), [("noise", noise(100))], TIMESTAMP + n) for n in range(4)]


@clients
@compressions
def test_what_a_client_encodes_is_decoded(builder: Callable[..., Any], compression: Compression) -> None:
    records = compressible_records()

    batch = build(builder, records, compression)

    assert read_batch(batch).compression is compression
    assert decode(batch) == numbered(records)


@clients
@compressions
def test_what_a_client_encodes_can_be_appended_and_read_back(
    builder: Callable[..., Any], compression: Compression, tmp_path: Path
) -> None:
    records = compressible_records()
    producer = {"transactional": False, "producer_id": 7, "producer_epoch": 1, "base_sequence": 0}
    log = open_test_log(tmp_path, LogConfig())

    for _ in range(2):
        log.append(build(builder, records, compression), leader_epoch=3)
    sent = build(builder, records, compression, producer)
    first = log.append(sent, leader_epoch=3)
    retried = log.append(sent, leader_epoch=3)

    assert [decode(batch) for batch in read_all(log)] == [
        numbered(records, n * len(records)) for n in range(3)
    ]
    assert (retried.base_offset, retried.duplicate) == (first.base_offset, True)
    log.release()


@readers
@compressions
@pytest.mark.parametrize("records", [compressible_records(), incompressible_records()], ids=["text", "noise"])
def test_what_we_encode_is_decoded_by_a_client(
    reader: Callable[..., Any], compression: Compression, records: list[Record]
) -> None:
    batch = encode_batch(records, base_offset=1000, compression=compression)

    assert read_batch(batch).compression is compression
    assert read(reader, batch) == numbered(records, 1000)


@clients
@settings(max_examples=EXAMPLES, deadline=None)
@given(records=record_lists, producer=st.just(NO_PRODUCER) | producers)
def test_an_uncompressed_batch_has_the_bytes_that_a_client_gives_it(
    builder: Callable[..., Any], records: list[Record], producer: dict[str, Any]
) -> None:
    theirs = build(builder, records, producer=producer)
    placeholder = read_batch(theirs).leader_epoch  # it is the broker's to set: one writes 0, one -1

    assert encode_batch(records, leader_epoch=placeholder, **producer) == theirs


@readers
@settings(max_examples=EXAMPLES, deadline=None)
@given(records=record_lists, compression=st.sampled_from(Compression), base_offset=st.integers(0, 2**62))
def test_any_batch_of_ours_is_decoded_by_a_client(
    reader: Callable[..., Any], records: list[Record], compression: Compression, base_offset: int
) -> None:
    batch = encode_batch(records, base_offset=base_offset, compression=compression)

    assert read(reader, batch) == numbered(records, base_offset) == decode(batch)


@clients
@settings(max_examples=EXAMPLES, deadline=None)
@given(records=record_lists, compression=st.sampled_from(Compression))
def test_any_batch_of_a_client_is_decoded(
    builder: Callable[..., Any], records: list[Record], compression: Compression
) -> None:
    assert decode(build(builder, records, compression)) == numbered(records)


@pytest.mark.parametrize("memory_records", [KafkaPythonRecords, AiokafkaRecords])
def test_a_client_walks_from_batch_to_batch_through_what_a_log_returns(
    memory_records: Callable[..., Any], tmp_path: Path
) -> None:
    log = open_test_log(tmp_path, LogConfig())
    sent = [[Record(b"k", b"%d" % n, (), TIMESTAMP + n)] * (n + 1) for n in range(10)]
    for n, records in enumerate(sent):
        log.append(encode_batch(records, compression=Compression(n % 5)), leader_epoch=0)

    fetched = memory_records(log.read(0, 2**20))
    log.release()

    found = []
    while fetched.has_next():
        batch = fetched.next_batch()
        assert batch.validate_crc()
        found += [as_record(record) for record in batch]
    assert found == numbered([record for records in sent for record in records])


@pytest.mark.parametrize("commit", [True, False])
def test_our_transaction_markers_are_control_records_to_kafka_python(commit: bool) -> None:
    batch = KafkaPythonBatch(make_marker(7, commit=commit, producer_epoch=2, base_offset=42))

    assert batch.validate_crc()
    assert (batch.is_control_batch, batch.is_transactional, batch.producer_id) == (True, True, 7)
    (marker,) = batch
    assert (marker.offset, marker.commit, marker.abort) == (42, commit, not commit)


def test_the_markers_that_kafka_wrote_are_decoded(kafka_written_directory: WrittenDirectory) -> None:
    markers = control_batches(kafka_written_directory, "transactions")

    outcomes: dict[int, list[ControlRecordType]] = {}
    for header, record in markers:
        assert record.key is not None
        assert record.value is not None
        outcomes.setdefault(header.producer_id, []).append(decode_control_key(record.key))
        assert decode_end_txn_marker(record.value).coordinator_epoch == 0
        assert (header.is_transactional, header.base_sequence, header.records_count) == (True, -1, 1)
    commit, abort = ControlRecordType.COMMIT, ControlRecordType.ABORT
    assert sorted(outcomes.values()) == [[abort], [commit, abort, commit, abort, commit]]


def test_our_markers_have_the_bytes_that_kafka_gives_them(kafka_written_directory: WrittenDirectory) -> None:
    for header, record in control_batches(kafka_written_directory, "transactions"):
        ours = make_marker(
            header.producer_id,
            commit=record.key == b"\0\0\0\1",
            producer_epoch=header.producer_epoch,
            timestamp=header.base_timestamp,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
        )
        assert read_batch(ours) == header


def control_batches(written: WrittenDirectory, topic: str) -> list[tuple[BatchHeader, Record]]:
    logs = sorted(written.partition(topic).glob("*.log"))
    batches = [batch for log in logs for batch in split_batches(log.read_bytes())]
    return [
        (header, record)
        for batch in batches
        if (header := read_batch(batch)).is_control
        for record in decode_batch(batch, header)
    ]
