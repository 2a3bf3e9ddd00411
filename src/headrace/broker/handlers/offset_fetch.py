"""OffsetFetch (key 9), v1-v10.

Behaviour: returns the committed offsets of groups, or -1. A member of a consumer group with a wrong member
           epoch gets STALE_MEMBER_EPOCH. A client that requires stable offsets gets UNSTABLE_OFFSET_COMMIT
           for partitions whose next offset is part of an open transaction. A broker that was the coordinator
           until a moment ago closes the connection.
Versions:  v2 all topics; v5 leader epochs; v6 flexible; v7 stable offsets only; v8 several groups; v9 member
           epochs; v10 topics by id.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from headrace.broker.coordinators.groups import GroupShard
from headrace.broker.coordinators.replies import respond_after
from headrace.broker.coordinators.shard import outcome
from headrace.broker.requests.dispatch import Context, CoordinatorMoved, HangUp, handles
from headrace.broker.requests.repeats import MAX_REPEATS, bounded_repeats
from headrace.broker.requests.requirements import on_groups, on_topics
from headrace.broker.results import Result
from headrace.broker.slices import STEP, Steps, each
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.coordinators.errors import NotCoordinator
from headrace.coordinators.group.offsets import Committed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import offset_fetch as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_TOP_LEVEL_ERROR, _SEVERAL_GROUPS, _BY_ID = 2, 8, 10
_NONE = Committed(-1, -1, "", -1)
_DESCRIBE: Final = on_groups(Operation.DESCRIBE)
_DESCRIBE_TOPIC: Final = on_topics(Operation.DESCRIBE)
_Offsets = Mapping[tuple[str, int], Committed]


class _RequestedTopic(NamedTuple):
    """A topic of the request, and its error."""

    name: str
    topic_id: bytes
    partitions: Sequence[int]
    problem: ErrorCode = ErrorCode.NONE


@handles(ApiKey.OFFSET_FETCH, range(1, 11), requires=(_DESCRIBE, _DESCRIBE_TOPIC))
def offset_fetch(request: api.OffsetFetchRequest, context: Context) -> Steps[Result]:
    shards: set[GroupShard] = set()  # that the response is read from
    if context.version < _SEVERAL_GROUPS:
        response = yield from _one_group(request, context, shards)
    else:
        groups = []
        for requested in (yield from bounded_repeats(request.groups, lambda group: group.group_id)):
            group = yield from _group(requested, context, shards, require_stable=request.require_stable)
            groups.append(group)
        response = api.OffsetFetchResponse(groups=groups)
    return (yield from _when_committed(response, shards))


def _when_committed(response: api.OffsetFetchResponse, shards: set[GroupShard]) -> Steps[Result]:
    """Return the response when every offset in it is committed to the log of its coordinator."""
    try:
        barriers = [barrier for shard in shards if (barrier := shard.barrier()) is not None]
    except FAILURES as error:
        raise HangUp(f"the group coordinator has moved while offsets were read: {error}") from error

    def build() -> Steps[api.OffsetFetchResponse]:
        yield
        for barrier in barriers:
            if (error := outcome(barrier)) is not None:
                raise HangUp(f"an offset that was read is not committed: {error}")
        return response

    return (yield from respond_after(barriers, build))


def _group(
    group: api.OffsetFetchRequestGroup, context: Context, shards: set[GroupShard], *, require_stable: bool
) -> Steps[api.OffsetFetchResponseGroup]:
    yield
    try:
        offsets = _offsets(group.group_id, group.member_id, group.member_epoch, context, shards)
        unstable = _stability(group.group_id, context, required=require_stable)
    except FAILURES as error:
        code = _refusal(error, group.group_id, context)
        return api.OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code)
    if group.topics is None:
        requested = _all(offsets, context)
    else:
        requested = yield from each(lambda topic: _requested(topic, context), group.topics)
    topics = []
    for topic in (yield from _bounded(requested)):

        def partition(index: int, topic: _RequestedTopic = topic) -> api.OffsetFetchResponsePartitions:
            problem = topic.problem or unstable(group.group_id, topic.name, index)
            found = _NONE if problem else offsets.get((topic.name, index), _NONE)
            return api.OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=problem,
            )

        partitions = yield from each(partition, topic.partitions)
        topics.append(
            api.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
    return api.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _one_group(
    request: api.OffsetFetchRequest, context: Context, shards: set[GroupShard]
) -> Steps[api.OffsetFetchResponse]:
    offsets: _Offsets = {}
    code = ErrorCode.NONE
    unstable = _stability(request.group_id, context, required=False)
    try:
        offsets = _offsets(request.group_id, None, -1, context, shards)
        unstable = _stability(request.group_id, context, required=request.require_stable)
    except FAILURES as error:
        code = _refusal(error, request.group_id, context)
    if code and context.version >= _TOP_LEVEL_ERROR:
        return api.OffsetFetchResponse(error_code=code)
    if request.topics is None:
        requested = _all(offsets, context)
    else:
        requested = yield from each(lambda topic: _requested(topic, context), request.topics)
    topics = []
    for topic in (yield from _bounded(requested)):

        def partition(index: int, topic: _RequestedTopic = topic) -> api.OffsetFetchResponsePartition:
            problem = code or topic.problem or unstable(request.group_id, topic.name, index)
            found = _NONE if problem else offsets.get((topic.name, index), _NONE)
            return api.OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=problem,
            )

        partitions = yield from each(partition, topic.partitions)
        topics.append(api.OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return api.OffsetFetchResponse(topics=topics)


def _refusal(error: Failure, group_id: str, context: Context) -> ErrorCode:
    """Return the error code of a group; CoordinatorMoved if its coordinator was here until a moment ago.

    librdkafka (2.16) never repeats an OffsetFetch after NOT_COORDINATOR, and does not read the partition
    until the next rebalance. After a connection that was closed it asks the new coordinator.
    """
    if isinstance(error, NotCoordinator) and context.broker.groups.has_just_moved(group_id):
        raise CoordinatorMoved(f"OffsetFetch of group {group_id}: {error}") from error
    return error_code(error)


def _bounded(requested: Sequence[_RequestedTopic]) -> Steps[Sequence[_RequestedTopic]]:
    """Return the topics, or each topic and partition once if more than MAX_REPEATS are repetitions.

    The metadata of an offset can be long, so repetitions could make the response very large.
    """
    merged: dict[tuple[str, bytes], tuple[ErrorCode, dict[int, None]]] = {}
    for number, topic in enumerate(requested):
        if not number % STEP:
            yield
        _, indexes = merged.setdefault((topic.name, topic.topic_id), (topic.problem, {}))
        indexes.update(dict.fromkeys(topic.partitions))
    count = sum(len(topic.partitions) for topic in requested)
    if count - sum(len(indexes) for _, indexes in merged.values()) <= MAX_REPEATS:
        return requested
    return [
        _RequestedTopic(name, topic_id, tuple(indexes), problem)
        for (name, topic_id), (problem, indexes) in merged.items()
    ]


def _offsets(
    group_id: str, member_id: str | None, epoch: int, context: Context, shards: set[GroupShard]
) -> _Offsets:
    context.require(_DESCRIBE, group_id)
    shard = context.broker.groups.shard(group_id)
    shards.add(shard)
    shard.machine.check_fetch(group_id, member_id, epoch)
    return shard.machine.offsets.of(group_id)


def _stability(group_id: str, context: Context, *, required: bool) -> Callable[[str, str, int], ErrorCode]:
    """Return a function that returns UNSTABLE_OFFSET_COMMIT for partitions with pending offsets."""
    if not required:
        return lambda _group_id, _topic, _index: ErrorCode.NONE
    pending = context.broker.groups.shard(group_id).machine.pending_offsets

    def unstable(group_id: str, topic: str, index: int) -> ErrorCode:
        is_pending = pending.contains(group_id, topic, index)
        return ErrorCode.UNSTABLE_OFFSET_COMMIT if is_pending else ErrorCode.NONE

    return unstable


def _all(offsets: _Offsets, context: Context) -> list[_RequestedTopic]:
    """Return every topic with offsets of the group that the principal may see.

    Requests by id get existing topics only.
    """
    topics = context.broker.image.topics
    committed = [
        _RequestedTopic(
            name, topics[name].topic_id if name in topics else b"", [index for _, index in partitions]
        )
        for name, partitions in groupby(sorted(offsets), key=lambda partition: partition[0])
        if context.may(_DESCRIBE_TOPIC, name)
    ]
    if context.version < _BY_ID:
        return committed
    return [topic for topic in committed if topic.topic_id]


def _requested(
    topic: api.OffsetFetchRequestTopic | api.OffsetFetchRequestTopics, context: Context
) -> _RequestedTopic:
    name, topic_id, indexes = topic.name, b"", topic.partition_indexes
    if context.version >= _BY_ID and isinstance(topic, api.OffsetFetchRequestTopics):
        topic_id = topic.topic_id
        if topic_id not in context.broker.image.topic_names:
            return _RequestedTopic("", topic_id, indexes, ErrorCode.UNKNOWN_TOPIC_ID)
        name = context.broker.image.topic_names[topic_id]
    if not context.may(_DESCRIBE_TOPIC, name):
        return _RequestedTopic(name, topic_id, indexes, context.denied(_DESCRIBE_TOPIC, name).code)
    return _RequestedTopic(name, topic_id, indexes)
