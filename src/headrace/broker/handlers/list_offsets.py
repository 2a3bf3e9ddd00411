"""ListOffsets (key 2), v1-v11.

Behaviour: earliest (-2), latest (-1), the first record at or after a time, the youngest record (-3).
           Latest is the high watermark, or the last stable offset for a reader of committed records; a new
           leader that does not know yet what is committed says so. Any replica answers the replica id -2,
           for its own log's end.
Versions:  v2 isolation levels; v4 leader epochs; v6 flexible; v7 youngest record; v8 earliest local (-4), v9
           latest tiered (-5), v11 earliest pending upload (-6): with no tiered storage, earliest and nothing.
"""

from collections import Counter

from headrace.broker.dispatch import Context, handles
from headrace.broker.errors import InvalidRequest
from headrace.broker.partition import Isolation, Partition
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.storage.time_lookup import FoundOffset

_LATEST, _EARLIEST, _YOUNGEST, _EARLIEST_LOCAL = -1, -2, -3, -4
_ANY_REPLICA = -2
_NOTHING = FoundOffset(-1, -1, -1)


@handles(ApiKey.LIST_OFFSETS, range(1, 12))
def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    isolation = Isolation.READ_COMMITTED if request.isolation_level == 1 else Isolation.READ_UNCOMMITTED
    times = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _of_this_replica(topic.name, entry, context)
                    if request.replica_id == _ANY_REPLICA
                    else _answer(
                        topic.name, entry, isolation, context, times[topic.name, entry.partition_index]
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _answer(
    topic: str, entry: ListOffsetsPartition, isolation: Isolation, context: Context, times: int
) -> ListOffsetsPartitionResponse:
    try:
        if times > 1:
            raise InvalidRequest(f"{topic}-{entry.partition_index} is named {times} times in one request")
        partition = context.broker.partition(topic, entry.partition_index)
        partition.ensure_leader(entry.current_leader_epoch)
        context.broker.ensure_lease(partition)  # a leader of the past would name an end of the past
        if entry.timestamp == _LATEST and not partition.knows_what_is_committed:
            raise OffsetNotAvailable(f"{partition.id} has a new leader that waits for its followers")
        found = _look_up(partition, entry.timestamp, isolation)
    except FAILURES as error:
        return ListOffsetsPartitionResponse(
            partition_index=entry.partition_index, error_code=error_code(error)
        )
    return ListOffsetsPartitionResponse(
        partition_index=entry.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


class OffsetNotAvailable(KafkaError):
    code = ErrorCode.OFFSET_NOT_AVAILABLE


def _of_this_replica(
    topic: str, entry: ListOffsetsPartition, context: Context
) -> ListOffsetsPartitionResponse:
    """How far this broker's own log goes, whoever leads: what a controller asks before an election."""
    try:
        log = context.broker.partition(topic, entry.partition_index).log
    except FAILURES as error:
        return ListOffsetsPartitionResponse(
            partition_index=entry.partition_index, error_code=error_code(error)
        )
    return ListOffsetsPartitionResponse(
        partition_index=entry.partition_index,
        offset=log.log_end_offset,
        leader_epoch=log.epochs.at(max(log.log_end_offset - 1, 0)),
    )


def _look_up(partition: Partition, timestamp: int, isolation: Isolation) -> FoundOffset:
    end = partition.end_offset(isolation)
    if timestamp == _LATEST:
        return FoundOffset(-1, end, partition.leader_epoch)
    if timestamp in {_EARLIEST, _EARLIEST_LOCAL}:
        start = partition.log.log_start_offset
        return FoundOffset(-1, start, partition.log.epochs.at(start))
    if timestamp == _YOUNGEST:
        found = partition.log.offset_of_max_timestamp()
    elif timestamp >= 0:
        found = partition.find(timestamp)
    else:
        return _NOTHING
    return found if found is not None and found.offset < end else _NOTHING
