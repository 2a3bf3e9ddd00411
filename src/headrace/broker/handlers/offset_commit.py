"""OffsetCommit (key 8), v2-v10.

Behaviour: commits the valid offsets of a request if the generation or member epoch is current, in batches of
           up to 500 partitions. A consumer without group membership commits to an empty group, with
           generation -1.
Versions:  v2-v4 retention time; v6 leader epochs; v7 static members; v8 flexible; v9 member epochs; v10
           topics by id.
"""

import asyncio
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, NamedTuple

from headrace.broker.coordinators.replies import respond_after
from headrace.broker.coordinators.shard import outcome
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_groups, on_topics
from headrace.broker.results import Result
from headrace.broker.slices import STEP, Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.group.offsets import Commit, Committed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import offset_commit as schema
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_BY_ID = 10
_NEVER_MS = 2**63 - 1
_READ: Final = on_groups(Operation.READ)
_READ_TOPIC: Final = on_topics(Operation.READ)
WRITTEN_TOGETHER = 500  # offsets in one batch; more would hold the event loop for too long


class _CheckedTopic(NamedTuple):
    """A topic of a request, with an error code for each partition (NONE if its offset can be committed)."""

    topic: schema.OffsetCommitRequestTopic
    name: str
    codes: list[ErrorCode]


_Offsets = dict[tuple[str, int], Committed]


@handles(ApiKey.OFFSET_COMMIT, range(2, 11), requires=(_READ, _READ_TOPIC))
def offset_commit(request: schema.OffsetCommitRequest, context: Context) -> Steps[Result]:
    topics = []
    for topic in request.topics:
        checked = yield from _check(topic, context)
        topics.append(checked)
    failed: dict[tuple[str, int], ErrorCode] = {}
    appended: list[tuple[_Offsets, asyncio.Future[Any]]] = []
    group_error = ErrorCode.NONE
    try:
        context.require(_READ, request.group_id)
        shard = context.broker.groups.shard(request.group_id)
        offsets = yield from _committable(topics, request.retention_time_ms, shard.now_ms)
        for part in _parts(offsets):
            try:
                appended.append((part, _commit(part, request, context)))
            except FAILURES as error:
                failed.update(dict.fromkeys(part, error_code(error)))
            yield
    except FAILURES as error:
        group_error = error_code(error)

    def build() -> Steps[schema.OffsetCommitResponse]:
        for part, reply in appended:
            error = outcome(reply)
            if error is not None:
                failed.update(dict.fromkeys(part, error.code))
        answers = []
        for topic, name, codes in topics:
            yield
            if topic.partitions:
                answers.append((yield from _answer(topic, name, codes, group_error, failed)))
        return schema.OffsetCommitResponse(topics=answers)

    return (yield from respond_after([reply for _, reply in appended], build))


def _parts(offsets: _Offsets) -> Iterator[_Offsets]:
    """Yield the offsets in parts that are appended together; an empty commit is one part, to be checked."""
    items = list(offsets.items())
    for start in range(0, len(items) or 1, WRITTEN_TOGETHER):
        yield dict(items[start : start + WRITTEN_TOGETHER])


def _commit(part: _Offsets, request: schema.OffsetCommitRequest, context: Context) -> "asyncio.Future[Any]":
    """Append a part. The group may have changed, or moved to another broker, since the last one."""
    commit = Commit(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        offsets=[(*partition, committed) for partition, committed in part.items()],
        version=context.version,
    )
    shard = context.broker.groups.shard(request.group_id)
    return shard.write(lambda machine, now_ms: machine.commit(commit, now_ms))


def _answer(
    topic: schema.OffsetCommitRequestTopic,
    name: str,
    codes: list[ErrorCode],
    group_error: ErrorCode,
    failed: Mapping[tuple[str, int], ErrorCode],
) -> Steps[schema.OffsetCommitResponseTopic]:
    def answer(
        checked: tuple[schema.OffsetCommitRequestPartition, ErrorCode],
    ) -> schema.OffsetCommitResponsePartition:
        index = checked[0].partition_index
        code = group_error or checked[1] or failed.get((name, index), ErrorCode.NONE)
        return schema.OffsetCommitResponsePartition(partition_index=index, error_code=code)

    partitions = yield from each(answer, zip(topic.partitions, codes, strict=True))
    return schema.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _check(topic: schema.OffsetCommitRequestTopic, context: Context) -> Steps[_CheckedTopic]:
    yield
    name: str | None = topic.name
    if context.version >= _BY_ID:
        name = context.broker.image.topic_names.get(topic.topic_id)
    if name is None:
        return _CheckedTopic(topic, "", [ErrorCode.UNKNOWN_TOPIC_ID] * len(topic.partitions))
    if not context.may(_READ_TOPIC, name):
        denied = context.denied(_READ_TOPIC, name)
        return _CheckedTopic(topic, name, [denied.code] * len(topic.partitions))
    known = context.broker.image.topics.get(name)
    partitions = () if known is None else known.replicas
    limit = context.broker.groups.limits.offset_metadata_max_bytes
    codes = yield from each(lambda partition: _error_code(partition, partitions, limit), topic.partitions)
    return _CheckedTopic(topic, name, codes)


def _error_code(
    partition: schema.OffsetCommitRequestPartition, known: Container[int], limit: int
) -> ErrorCode:
    if partition.partition_index not in known:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.committed_metadata and len(partition.committed_metadata) > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committable(topics: list[_CheckedTopic], retention_ms: int, now_ms: int) -> Steps[_Offsets]:
    """Return the offsets to commit; if a partition is repeated, its last offset counts."""
    expires_ms = -1 if retention_ms == -1 else min(now_ms + retention_ms, _NEVER_MS)
    offsets: _Offsets = {}
    for topic, name, codes in topics:
        yield
        for number, (partition, code) in enumerate(zip(topic.partitions, codes, strict=True)):
            if not number % STEP:
                yield
            if not code:
                offsets[name, partition.partition_index] = Committed(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    now_ms,
                    expires_ms,
                )
    return offsets
