import struct

import pytest

from headrace.protocol.batch import read_batch
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import Record, encode_batch
from headrace.storage.append.batches import read_end_marker
from headrace.storage.producers.state import EndMarker
from support.records import make_marker


def control_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return encode_batch([Record(key, value, (), 0)], control=True, producer_id=1, producer_epoch=0)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_tells_the_outcome_and_the_coordinator(commit: bool) -> None:
    batch = make_marker(7, commit=commit, coordinator_epoch=12)

    assert read_end_marker(memoryview(batch), read_batch(batch)) == EndMarker(commit, coordinator_epoch=12)


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 99])
def test_other_control_records_are_no_markers(kind: int) -> None:
    batch = control_batch(struct.pack(">hh", 0, kind), None)

    assert read_end_marker(memoryview(batch), read_batch(batch)) is None


def test_fields_that_a_later_version_adds_are_skipped() -> None:
    batch = control_batch(struct.pack(">hhq", 1, 1, 9), struct.pack(">hiq", 1, 12, 9))

    assert read_end_marker(memoryview(batch), read_batch(batch)) == EndMarker(True, 12)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\x00\x00\x00", b""),
        (struct.pack(">hh", -1, 1), struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", 0, 1), None),
        (struct.pack(">hh", 0, 0), b"\x00\x00\x00"),
    ],
)
def test_a_control_record_that_cannot_be_is_refused(key: bytes | None, value: bytes | None) -> None:
    batch = control_batch(key, value)

    with pytest.raises(InvalidRecord):
        read_end_marker(memoryview(batch), read_batch(batch))
