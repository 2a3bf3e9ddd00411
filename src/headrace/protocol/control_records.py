"""Control records, which brokers write to a log, and not producers.

Their key is a version and a type; the value of an ABORT or COMMIT has its own version. As
in consumer protocols, fields that a newer version adds are ignored.
"""

import struct
from enum import IntEnum
from typing import Final

from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.end_txn_marker import EndTxnMarker

__all__ = [
    "ControlRecordType",
    "EndTxnMarker",
    "decode_control_key",
    "decode_end_txn_marker",
    "encode_control_key",
    "encode_end_txn_batch",
    "encode_end_txn_marker",
]

_VERSION: Final = 0
_KEY: Final = struct.Struct(">hh")  # version, type
_MARKER: Final = struct.Struct(">hi")  # version, coordinator epoch


class ControlRecordType(IntEnum):
    """The type of a control record. UNKNOWN stands for those of KRaft and newer ones."""

    ABORT = 0
    COMMIT = 1
    UNKNOWN = -1


def encode_control_key(record_type: ControlRecordType) -> bytes:
    return _KEY.pack(_VERSION, record_type)


def decode_control_key(key: Buffer) -> ControlRecordType:
    """Decode the key of a control record; raise ProtocolError if it is malformed."""
    version, number = _read(_KEY, key, "the key of a control record")
    if version < _VERSION:
        raise ProtocolError(f"the key of a control record has version {version}")
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


def encode_end_txn_marker(marker: EndTxnMarker) -> bytes:
    return _MARKER.pack(_VERSION, marker.coordinator_epoch)


def decode_end_txn_marker(value: Buffer) -> EndTxnMarker:
    """Decode the value of an ABORT or COMMIT; raise ProtocolError if it is malformed."""
    version, coordinator_epoch = _read(_MARKER, value, "an end-of-transaction marker")
    if version < _VERSION:
        raise ProtocolError(f"an end-of-transaction marker has version {version}")
    return EndTxnMarker(coordinator_epoch=coordinator_epoch)


def encode_end_txn_batch(
    producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, timestamp: int
) -> bytearray:
    """Return a control batch with the marker that ends a transaction."""
    key = encode_control_key(ControlRecordType.COMMIT if commit else ControlRecordType.ABORT)
    value = encode_end_txn_marker(EndTxnMarker(coordinator_epoch=coordinator_epoch))
    return encode_batch(
        [Record(key, value, timestamp=timestamp)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def _read(layout: struct.Struct, data: Buffer, what: str) -> tuple[int, int]:
    if len(data) < layout.size:
        raise ProtocolError(f"{what} has {len(data)} bytes, not {layout.size}")
    first, second = layout.unpack_from(data)
    return first, second
