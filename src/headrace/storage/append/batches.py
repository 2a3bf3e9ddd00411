"""Batches before they are appended: their headers, and the transaction markers among them."""

from typing import NamedTuple

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.control_records import ControlRecordType, decode_control_key, decode_end_txn_marker
from headrace.protocol.errors import InvalidRecord, ProtocolError
from headrace.protocol.records import decode_batch
from headrace.storage.producers.state import EndMarker


def read_end_marker(batch: memoryview, header: BatchHeader) -> EndMarker | None:
    """Return the outcome in a control batch, or None if it is a control record of another kind.

    None is also returned for a batch of which compaction has left only the header, to keep the producer
    epoch.
    """
    if header.records_count == 0:
        return None
    record = next(decode_batch(batch, header), None)
    if record is None or record.key is None:
        raise InvalidRecord(
            "a control batch needs a record with version and type as its key (INVALID_RECORD)"
        )
    try:
        kind = decode_control_key(record.key)
        if kind not in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
            return None
        marker = decode_end_txn_marker(record.value or b"")
    except ProtocolError as error:
        raise InvalidRecord(str(error)) from error
    return EndMarker(commit=kind is ControlRecordType.COMMIT, coordinator_epoch=marker.coordinator_epoch)


class Batch(NamedTuple):
    """A batch to be appended, with its outcome if it is a transaction marker."""

    header: BatchHeader
    marker: EndMarker | None


def writable(data: Buffer) -> memoryview:
    """Return a writable view of `data`, or of a copy if `data` is read-only."""
    view = memoryview(data)
    return memoryview(bytearray(view)) if view.readonly else view


def read_batches(view: memoryview) -> list[Batch]:
    """Return every batch in `view`, checked; raise CorruptMessage if it has incomplete batches."""
    batches = []
    position = 0
    while position < len(view):
        header = read_batch(view, position)
        end = position + header.size
        marker = read_end_marker(view[position:end], header) if header.is_control else None
        batches.append(Batch(header, marker))
        position = end
    if not batches:
        raise InvalidRecord("there is no batch to append (INVALID_RECORD)")
    return batches
