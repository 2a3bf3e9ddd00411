"""ListOffsets (key 2), v1-v11.

Behaviour: earliest (-2), latest (-1), the first record at or after a timestamp, the record with the largest
           timestamp (-3). Latest is the high watermark, or the last stable offset with read_committed; a new
           leader whose high watermark is not known yet answers OFFSET_NOT_AVAILABLE. Any replica answers a
           request with replica id -2, with its own log end offset.
Versions:  v2 isolation levels; v4 leader epochs; v6 flexible; v7 largest timestamp; v8 earliest local (-4),
           v9 latest tiered (-5), v11 earliest pending upload (-6). Without tiered storage, -4 is the earliest
           offset, and -5 and -6 return no offset.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.broker.replicas.committed_log import Isolation
from headrace.broker.replicas.partition import Partition
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.results import Result
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema import list_offsets as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.storage.time_lookup import FoundOffset

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL = -1, -2, -3, -4
_ANY_REPLICA = -2
_NO_OFFSET = FoundOffset(-1, -1, -1)
_DESCRIBE: Final = on_topics(Operation.DESCRIBE)
_CLUSTER_ACTION: Final = Permission(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)


class _Lookup(NamedTuple):
    """A lookup by timestamp, which reads records; its response belongs in `replies` at `position`."""

    partition: Partition
    entry: api.ListOffsetsPartition
    replies: list[api.ListOffsetsPartitionResponse]
    position: int


@handles(ApiKey.LIST_OFFSETS, range(1, 12), requires=(_DESCRIBE, _CLUSTER_ACTION))
def list_offsets(request: api.ListOffsetsRequest, context: Context) -> Steps[Result]:
    isolation = Isolation.READ_COMMITTED if request.isolation_level == 1 else Isolation.READ_UNCOMMITTED
    times: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        yield
        for number, entry in enumerate(topic.partitions):
            if not number % STEP:
                yield
            times[topic.name, entry.partition_index] += 1
    topics = []
    lookups: list[_Lookup] = []
    for topic in request.topics:
        yield
        replies: list[api.ListOffsetsPartitionResponse] = []
        for number, entry in enumerate(topic.partitions):
            if not number % STEP:
                yield
            if request.replica_id == _ANY_REPLICA:
                replies.append(_of_this_replica(topic.name, entry, context))
                continue
            named = times[topic.name, entry.partition_index]
            answer = _answer(topic.name, entry, isolation, context, named)
            if isinstance(answer, Partition):
                lookups.append(_Lookup(answer, entry, replies, len(replies)))
                answer = api.ListOffsetsPartitionResponse(partition_index=entry.partition_index)
            replies.append(answer)
        topics.append(api.ListOffsetsTopicResponse(name=topic.name, partitions=replies))
    response = api.ListOffsetsResponse(topics=topics)
    if lookups:
        return Result(later=_look_up(response, lookups, isolation, context))
    return Result(response)


def _answer(
    topic: str, entry: api.ListOffsetsPartition, isolation: Isolation, context: Context, times: int
) -> api.ListOffsetsPartitionResponse | Partition:
    """Return the response for a partition, or the partition itself if records have to be read for it."""
    try:
        if times > 1:
            raise InvalidRequest(
                f"{topic}-{entry.partition_index} occurs {times} times in one request (INVALID_REQUEST)"
            )
        context.require(_DESCRIBE, topic)
        partition = context.broker.partition(topic, entry.partition_index)
        _ensure_answering(partition, entry, context)
        if entry.timestamp == _LATEST:
            if not partition.knows_what_is_committed:
                raise OffsetNotAvailable(
                    f"{partition.id}: the new leader does not know the high watermark yet "
                    "(OFFSET_NOT_AVAILABLE)"
                )
            found = FoundOffset(-1, partition.end_offset(isolation), partition.leader_epoch)
        elif entry.timestamp in {_EARLIEST, _EARLIEST_LOCAL}:
            start = partition.log.log_start_offset
            found = FoundOffset(-1, start, partition.log.epochs.at(start))
        elif entry.timestamp >= 0 or entry.timestamp == _MAX_TIMESTAMP:
            return partition
        else:
            found = _NO_OFFSET
    except FAILURES as error:
        return _refused(entry, error)
    return _found(entry, found)


def _ensure_answering(partition: Partition, entry: api.ListOffsetsPartition, context: Context) -> None:
    partition.ensure_leader(entry.current_leader_epoch)
    context.broker.ensure_lease(partition)  # a stale leader would return an old offset


async def _look_up(
    response: api.ListOffsetsResponse, lookups: Sequence[_Lookup], isolation: Isolation, context: Context
) -> api.ListOffsetsResponse:
    """Return the response, completed by the lookups by timestamp."""
    for partition, entry, replies, position in lookups:
        timestamp = None if entry.timestamp == _MAX_TIMESTAMP else entry.timestamp
        try:
            found = await partition.find(timestamp, context.broker.inspections.threads.run)
            _ensure_answering(partition, entry, context)  # the leader may have changed during the read
        except FAILURES as error:
            replies[position] = _refused(entry, error)
            continue
        if found is None or found.offset >= partition.end_offset(isolation):
            found = _NO_OFFSET
        replies[position] = _found(entry, found)
    return response


def _found(entry: api.ListOffsetsPartition, found: FoundOffset) -> api.ListOffsetsPartitionResponse:
    return api.ListOffsetsPartitionResponse(
        partition_index=entry.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _refused(entry: api.ListOffsetsPartition, error: Failure) -> api.ListOffsetsPartitionResponse:
    return api.ListOffsetsPartitionResponse(
        partition_index=entry.partition_index, error_code=error_code(error)
    )


class OffsetNotAvailable(KafkaError):
    code = ErrorCode.OFFSET_NOT_AVAILABLE


def _of_this_replica(
    topic: str, entry: api.ListOffsetsPartition, context: Context
) -> api.ListOffsetsPartitionResponse:
    """Return the log end offset of this broker's replica, which a controller requests before an election."""
    try:
        if not context.may(_CLUSTER_ACTION):
            context.require(_DESCRIBE, topic)
        log = context.broker.partition(topic, entry.partition_index).log
    except FAILURES as error:
        return _refused(entry, error)
    return api.ListOffsetsPartitionResponse(
        partition_index=entry.partition_index,
        offset=log.log_end_offset,
        leader_epoch=log.epochs.at(max(log.log_end_offset - 1, 0)),
    )
