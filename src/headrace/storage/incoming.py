"""Batches on their way into a log: taken apart as far as a broker looks, and checked."""

from typing import NamedTuple

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.storage.markers import read_end_marker
from headrace.storage.producer_state import EndMarker


class Batch(NamedTuple):
    """A batch on its way into the log, with the outcome if it is a transaction marker."""

    header: BatchHeader
    marker: EndMarker | None


def writable(data: Buffer) -> memoryview:
    """A view of `data` that can be written to; of a copy, if `data` cannot."""
    view = memoryview(data)
    return memoryview(bytearray(view)) if view.readonly else view


def read_batches(view: memoryview) -> list[Batch]:
    """Every batch in `view`, checked; what is not a whole number of batches raises CorruptMessage."""
    batches = []
    position = 0
    while position < len(view):
        header = read_batch(view, position)
        end = position + header.size
        marker = read_end_marker(view[position:end], header) if header.is_control else None
        batches.append(Batch(header, marker))
        position = end
    if not batches:
        raise InvalidRecord("there is no batch to append")
    return batches
