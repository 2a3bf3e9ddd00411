import pytest

from headrace.protocol.control_records import (
    ControlRecordType,
    EndTxnMarker,
    decode_control_key,
    decode_end_txn_marker,
    encode_control_key,
    encode_end_txn_marker,
)
from headrace.protocol.errors import ProtocolError


@pytest.mark.parametrize("record_type", [kind for kind in ControlRecordType if kind >= 0])
def test_a_key_is_read_as_it_was_written(record_type: ControlRecordType) -> None:
    assert decode_control_key(encode_control_key(record_type)) is record_type


def test_a_commit_has_the_bytes_that_kafka_gives_it() -> None:
    assert encode_control_key(ControlRecordType.COMMIT) == bytes.fromhex("0000 0001")
    assert encode_end_txn_marker(EndTxnMarker(coordinator_epoch=7)) == bytes.fromhex("0000 00000007")


def test_a_type_newer_than_we_are_is_unknown() -> None:
    assert decode_control_key(bytes.fromhex("0000 0063")) is ControlRecordType.UNKNOWN


def test_what_a_newer_version_adds_is_ignored() -> None:
    assert decode_control_key(bytes.fromhex("0001 0000 ffff")) is ControlRecordType.ABORT
    marker = decode_end_txn_marker(bytes.fromhex("0001 00000007 ffff"))
    assert marker == EndTxnMarker(coordinator_epoch=7)


@pytest.mark.parametrize("data", ["", "0000", "000000", "ffff0000"])
def test_bytes_that_are_no_key_are_refused(data: str) -> None:
    with pytest.raises(ProtocolError, match="the key of a control record"):
        decode_control_key(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["", "0000", "0000000000", "ffff00000007"])
def test_bytes_that_are_no_marker_are_refused(data: str) -> None:
    with pytest.raises(ProtocolError, match="an end-of-transaction marker"):
        decode_end_txn_marker(bytes.fromhex(data))
