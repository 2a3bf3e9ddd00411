"""State derived from a log's batches: leader epochs, producers and transactions.

An append calls `take_in` for each batch that it has written. Recovery and truncation call `replay`,
which calls it for each batch in the log.
"""

from typing import NamedTuple

from headrace.protocol.batch import BatchHeader
from headrace.storage.append.batches import read_end_marker
from headrace.storage.epochs import LeaderEpochs
from headrace.storage.producers.producers import Producers
from headrace.storage.producers.state import EndMarker
from headrace.storage.segment import Segment
from headrace.storage.txn_index import AbortedTxn


class Derived(NamedTuple):
    """State derived from a log's batches."""

    epochs: LeaderEpochs
    producers: Producers


def take_in(
    derived: Derived, header: BatchHeader, marker: EndMarker | None, now_ms: int | None = None
) -> AbortedTxn | None:
    """Update the state for an appended batch; return the transaction that it aborted, if any.

    Without `now_ms` the batch was appended at some time before.
    """
    epochs, producers = derived
    if header.leader_epoch > epochs.latest:
        epochs.assign(header.leader_epoch, header.base_offset)
    return take_in_producer(producers, header, marker, now_ms)


def take_in_producer(
    producers: Producers, header: BatchHeader, marker: EndMarker | None, now_ms: int | None = None
) -> AbortedTxn | None:
    """Update the producers for a batch; return the transaction that it aborted, if any."""
    aborted = None
    if header.has_producer:
        completed = producers.record(header, marker, now_ms)
        if completed is not None and completed.aborted:
            still_open = producers.first_open_offset()
            last_stable_offset = header.next_offset if still_open is None else still_open
            aborted = AbortedTxn(
                completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
            )
    producers.next_offset = header.next_offset
    return aborted


def replay(derived: Derived, segments: list[Segment]) -> None:
    """Update the state for all batches from `producers.next_offset` on, but not the segments' indexes."""
    producers = derived.producers
    known = [segment for segment in segments if segment.base_offset <= producers.next_offset]
    for segment in segments[max(0, len(known) - 1) :]:
        scanner = segment.scanner()
        for position, header in scanner.headers(segment.position_of(producers.next_offset)):
            marker = read_end_marker(scanner.batch(position, header), header) if header.is_control else None
            take_in(derived, header, marker)
