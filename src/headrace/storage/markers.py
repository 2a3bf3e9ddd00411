"""Transaction markers: the control batches by which a coordinator ends a transaction in a log."""

from headrace.protocol.batch import BatchHeader
from headrace.protocol.control_records import ControlRecordType, decode_control_key, decode_end_txn_marker
from headrace.protocol.errors import InvalidRecord, ProtocolError
from headrace.protocol.records import decode_batch
from headrace.storage.producer_state import EndMarker


def read_end_marker(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """The outcome a control batch carries, or None if it is a control record of another kind.

    None as well if compaction has left only the frame of a batch, for the sake of the producer's epoch.
    """
    if header.records_count == 0:
        return None
    record = next(decode_batch(batch, header), None)
    if record is None or record.key is None:
        raise InvalidRecord("a control batch needs a record with a version and a type as its key")
    try:
        kind = decode_control_key(record.key)
        if kind not in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
            return None
        marker = decode_end_txn_marker(record.value or b"")
    except ProtocolError as error:
        raise InvalidRecord(str(error)) from error
    return EndMarker(commit=kind is ControlRecordType.COMMIT, coordinator_epoch=marker.coordinator_epoch)
