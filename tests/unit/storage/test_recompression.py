"""Topics with a compression of their own: batches are kept in it, whatever they came in."""

from collections.abc import Callable
from operator import attrgetter

import pytest
from crc32c import crc32c

from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Compression
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.errors import MessageTooLarge
from headrace.storage.log import Appended, Log
from support.logs import read_all
from support.records import TIMESTAMP

OpenLog = Callable[..., Log]

RECORDS = [
    Record(b"tea", b"green " * 40, [("from", b"uji"), ("to", None)], timestamp=TIMESTAMP),
    Record(None, None, [], timestamp=TIMESTAMP + 7),
]


def batch(compression: Compression, records: list[Record] = RECORDS) -> bytes:
    return bytes(encode_batch(records, compression=compression))


def sequenced(compression: Compression) -> bytes:
    """A batch of an idempotent producer's."""
    return bytes(
        encode_batch(RECORDS, compression=compression, producer_id=5, producer_epoch=1, base_sequence=0)
    )


@pytest.mark.parametrize("wanted", Compression, ids=attrgetter("name"))
@pytest.mark.parametrize("sent", Compression, ids=attrgetter("name"))
def test_batches_are_kept_in_the_topics_compression(
    open_log: OpenLog, sent: Compression, wanted: Compression
) -> None:
    log = open_log(compression=wanted)
    log.append(batch(Compression.NONE), leader_epoch=3)

    assert log.append(batch(sent), leader_epoch=3) == Appended(2, 3, -1)

    _, kept = read_all(log)
    header = read_batch(memoryview(kept))  # which checks the checksum
    assert (header.compression, header.base_offset, header.leader_epoch) == (wanted, 2, 3)
    assert (header.base_timestamp, header.max_timestamp) == (TIMESTAMP, TIMESTAMP + 7)
    found = [record._replace(offset=0) for record in decode_batch(kept, header)]
    assert found == [record._replace(offset=0) for record in RECORDS]


@pytest.mark.parametrize("sent", Compression, ids=attrgetter("name"))
def test_without_one_they_are_kept_as_they_came(open_log: OpenLog, sent: Compression) -> None:
    log = open_log()
    log.append(batch(sent), leader_epoch=0)

    (kept,) = read_all(log)
    assert kept[21:] == batch(sent)[21:], "from the attributes on"


def test_a_batch_that_is_sent_again_is_known(open_log: OpenLog) -> None:
    log = open_log(compression=Compression.GZIP)
    log.append(sequenced(Compression.ZSTD), leader_epoch=0)

    again = log.append(sequenced(Compression.ZSTD), leader_epoch=0)

    assert again == Appended(0, 1, -1, duplicate=True)
    header = read_batch(memoryview(read_all(log)[0]))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 0)


def test_what_cannot_be_unpacked_is_refused_and_not_written(open_log: OpenLog) -> None:
    log = open_log(compression=Compression.NONE)
    broken = encode_batch(RECORDS, compression=Compression.GZIP)
    header = read_batch(memoryview(broken))
    from_elsewhere = bytearray(encode_batch(RECORDS))  # not packed at all, and says that it is
    from_elsewhere[21:23] = header.attributes.to_bytes(2, "big")
    _seal(from_elsewhere)

    with pytest.raises(InvalidRecord, match="gzip data is broken"):
        log.append(from_elsewhere, leader_epoch=0)
    assert read_all(log) == []


def test_what_is_too_large_once_it_is_unpacked_is_refused(open_log: OpenLog) -> None:
    log = open_log(compression=Compression.NONE, max_message_bytes=1000)
    large = [Record(None, bytes(2000), timestamp=TIMESTAMP)]

    with pytest.raises(MessageTooLarge):
        log.append(batch(Compression.ZSTD, large), leader_epoch=0)
    assert read_all(log) == []


def _seal(data: bytearray) -> None:
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
