"""Reads of ranges that one task has: the records of all of them as Arrow batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.client.wire.connection import Address
from headrace.tables.reader.cluster import Cluster
from headrace.tables.reader.combined_fetch import fetch_together
from headrace.tables.reader.errors import OnLoss, fail_on_loss
from headrace.tables.reader.fetcher import FETCH_BYTES, FETCH_WAIT_MS, POLL_TIMEOUT_S, Fetcher
from headrace.tables.reader.offsets import Range

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.tables.reader.columns import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """How ranges are fetched."""

    read_committed: bool = False
    max_bytes: int = FETCH_BYTES
    max_wait_ms: int = FETCH_WAIT_MS
    timeout_s: float = POLL_TIMEOUT_S
    rack: str = ""
    on_loss: OnLoss = fail_on_loss


def read_ranges(
    cluster: Cluster,
    ranges: Sequence[Range],
    columns: "Columns",
    options: FetchOptions,
    *,
    topic_ids: Mapping[str, str],
    leader: Address | None,
) -> "Iterator[pa.RecordBatch]":
    """Yield the records of the ranges, one range after the other; `leader` leads all of them, if known."""
    for fetcher in _fetchers(cluster, ranges, options, topic_ids, leader):
        for data, header in fetcher:
            columns.add(data, header, fetcher.readable)
            if columns.is_full:
                yield columns.take()
    if columns.rows:
        yield columns.take()


def _fetchers(
    cluster: Cluster,
    ranges: Sequence[Range],
    options: FetchOptions,
    topic_ids: Mapping[str, str],
    leader: Address | None,
) -> Iterator[Fetcher]:
    """Yield what fetches the ranges, one after the other."""
    answers: Iterable[tuple[Range, Any]] = ((each, None) for each in ranges)
    # The nearest replica of each partition may be another broker.
    is_combined = len(ranges) > 1 and leader is not None and not options.rack
    if is_combined and leader is not None:
        answers = fetch_together(
            cluster,
            leader,
            ranges,
            topic_ids,
            max_bytes=options.max_bytes,
            max_wait_ms=options.max_wait_ms,
            read_committed=options.read_committed,
        )
    for wanted, answer in answers:
        yield Fetcher(
            cluster,
            wanted,
            topic_id=topic_ids.get(wanted.partition.topic),
            # A leader that did not answer for the ranges together is not asked again.
            leader=None if is_combined and answer is None else leader,
            answer=answer,
            read_committed=options.read_committed,
            on_loss=options.on_loss,
            max_bytes=options.max_bytes,
            max_wait_ms=options.max_wait_ms,
            timeout_s=options.timeout_s,
            rack=options.rack,
        )
