"""Reads of ranges that one task has: the records of all of them as Arrow batches.

Several ranges of one leader are requested together first. Those that its answers do not cover, or that have
an error, are left to a `Fetcher` of their own.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.client.errors import ClientError
from headrace.client.wire.connection import Address
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.fetcher import FIRST_VERSION_WITH_IDS, Fetcher, FetchOptions, bytes_of
from headrace.tables.reader.offsets import Range
from headrace.tables.reader.topic_ids import parse_topic_id

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.tables.reader.columns import Columns

REQUEST_BYTES: Final = 16 * 1024 * 1024
_GROWTH: Final = 4

logger = logging.getLogger(__name__)


def read_ranges(
    cluster: ClusterConnections,
    ranges: Sequence[Range],
    columns: "Columns",
    options: FetchOptions,
    *,
    topic_ids: Mapping[str, str],
    leader: Address | None,
) -> "Iterator[pa.RecordBatch]":
    """Yield the records of the ranges, one range after the other; `leader` leads all of them, if known."""
    answers: Iterable[tuple[Range, Any]] = ((each, None) for each in ranges)
    # The nearest replica of each partition may be another broker.
    is_combined = len(ranges) > 1 and leader is not None and not options.rack
    if is_combined and leader is not None:
        answers = _fetch_together(cluster, leader, ranges, topic_ids, options)
    for wanted, answer in answers:
        fetcher = Fetcher(
            cluster,
            wanted,
            topic_id=topic_ids.get(wanted.partition.topic),
            # A leader that did not answer for the ranges together is not asked again.
            leader=None if is_combined and answer is None else leader,
            answer=answer,
            options=options,
        )
        for data, header in fetcher:
            columns.add(data, header, fetcher.readable)
            if columns.is_full:
                yield columns.take()
    if columns.rows:
        yield columns.take()


def _fetch_together(
    cluster: ClusterConnections,
    leader: Address,
    ranges: Sequence[Range],
    topic_ids: Mapping[str, str],
    options: FetchOptions,
) -> Iterator[tuple[Range, Any]]:
    """Yield each range and the leader's answer for its partition; None if there is none.

    A partition whose records did not fit into a response is requested again, together with the others.
    """
    waiting = {each.partition: each for each in ranges}
    growth = 1
    while waiting:
        sizes = {each: min(options.max_bytes, growth * bytes_of(each.size)) for each in waiting.values()}
        request = _request(sizes, topic_ids, options)
        found = _fetch(cluster, leader, request, topic_ids)
        answered = {
            partition: answer
            for partition, answer in found.items()
            if partition in waiting and (answer.records or answer.error_code != ErrorCode.NONE)
        }
        if not answered:
            break
        for partition, answer in answered.items():
            yield waiting.pop(partition), answer
        growth *= _GROWTH  # a broker sends a batch that is larger than the maximum for one partition only
    for each in waiting.values():
        yield each, None


def _fetch(
    cluster: ClusterConnections, leader: Address, request: FetchRequest, topic_ids: Mapping[str, str]
) -> dict[TopicPartition, Any]:
    """Return the answers by topic and partition; none if the broker does not answer, or is too old."""
    try:
        connection = cluster.connect(leader)
        version = connection.version(request)
        if version < FIRST_VERSION_WITH_IDS and topic_ids:
            cluster.release(connection)
            return {}
        response = connection.receive(connection.send(request, version))
    except ClientError as error:
        logger.info("%s: ranges are fetched one by one: %s", leader, error)
        return {}
    cluster.release(connection)
    names = {parse_topic_id(each): topic for topic, each in topic_ids.items()}
    return {
        TopicPartition(topic.topic or names.get(topic.topic_id, ""), answer.partition_index): answer
        for topic in response.responses
        for answer in topic.partitions
    }


def _request(
    max_bytes: Mapping[Range, int], topic_ids: Mapping[str, str], options: FetchOptions
) -> FetchRequest:
    by_partition = {max_byte.partition: max_byte for max_byte in max_bytes}
    topics = [
        FetchTopic(
            topic=topic,
            topic_id=parse_topic_id(topic_ids.get(topic)),
            partitions=[
                FetchPartition(
                    partition=index,
                    fetch_offset=by_partition[TopicPartition(topic, index)].first,
                    partition_max_bytes=max_bytes[by_partition[TopicPartition(topic, index)]],
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(by_partition).items()
    ]
    return FetchRequest(
        max_wait_ms=options.max_wait_ms,
        min_bytes=1,
        max_bytes=REQUEST_BYTES,
        isolation_level=int(options.read_committed),
        topics=topics,
    )
