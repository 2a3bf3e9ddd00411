"""Transaction markers: the control batches by which a coordinator ends a transaction in a log."""

import struct

from headrace.protocol.batch import BatchHeader
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import decode_batch
from headrace.storage.producer_state import EndMarker

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1


def read_end_marker(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """The outcome a control batch carries, or None if it is a control record of another kind.

    None as well if compaction has left only the frame of a batch, for the sake of the producer's epoch.
    """
    if header.records_count == 0:
        return None
    record = next(decode_batch(batch, header), None)
    if record is None or record.key is None or len(record.key) < _KEY.size:
        raise InvalidRecord("a control batch needs a record with a version and a type as its key")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecord(f"a control record of version {version}")
    if kind not in {_ABORT, _COMMIT}:
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise InvalidRecord("a transaction marker needs a version and a coordinator epoch as its value")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndMarker(commit=kind == _COMMIT, coordinator_epoch=coordinator_epoch)
