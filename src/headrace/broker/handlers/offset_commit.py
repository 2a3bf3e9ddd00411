"""OffsetCommit (key 8), v2-v10.

Behaviour: commits the valid offsets of a request if the generation or member epoch is current, in batches of
           up to 500 partitions. A consumer without group membership commits to an empty group, with
           generation -1.
Versions:  v2-v4 retention time; v6 leader epochs; v7 static members; v8 flexible; v9 member epochs; v10
           topics by id.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
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
from headrace.protocol.schema import offset_commit as api
from headrace.protocol.schema import txn_offset_commit as in_transaction
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_BY_ID = 10
_NEVER_MS = 2**63 - 1
_READ: Final = on_groups(Operation.READ)
_READ_TOPIC: Final = on_topics(Operation.READ)
_WRITTEN_TOGETHER = 500  # offsets in one batch; more would hold the event loop for too long

AnyRequest = api.OffsetCommitRequest | in_transaction.TxnOffsetCommitRequest
AnyTopic = api.OffsetCommitRequestTopic | in_transaction.TxnOffsetCommitRequestTopic
Offsets = dict[tuple[str, int], Committed]


class CheckedTopic(NamedTuple):
    """A topic of a request, with an error code for each partition (NONE if its offset can be committed)."""

    topic: AnyTopic
    name: str
    codes: list[ErrorCode]


@handles(ApiKey.OFFSET_COMMIT, range(2, 11), requires=(_READ, _READ_TOPIC))
def offset_commit(request: api.OffsetCommitRequest, context: Context) -> Steps[Result]:
    topics = yield from check(request, context, by_id=context.version >= _BY_ID)
    failed: dict[tuple[str, int], ErrorCode] = {}
    appended: list[tuple[Offsets, asyncio.Future[Any]]] = []
    group_error = ErrorCode.NONE
    try:
        context.require(_READ, request.group_id)
        now_ms = context.broker.groups.shard(request.group_id).now_ms
        offsets = yield from committable(topics, now_ms, request.retention_time_ms)
        for part, commit in commits(offsets, request, context):
            try:
                appended.append((part, _append(commit, context)))
            except FAILURES as error:
                failed.update(dict.fromkeys(part, error_code(error)))
            yield
    except FAILURES as error:
        group_error = error_code(error)

    def build() -> Steps[api.OffsetCommitResponse]:
        for part, reply in appended:
            error = outcome(reply)
            if error is not None:
                failed.update(dict.fromkeys(part, error.code))
        answers = []
        for topic, name, codes in topics:
            yield
            if topic.partitions:
                answers.append((yield from _answer(topic, name, codes, group_error, failed)))
        return api.OffsetCommitResponse(topics=answers)

    return (yield from respond_after([reply for _, reply in appended], build))


def _append(commit: Commit, context: Context) -> "asyncio.Future[Any]":
    """Append a part. The group may have changed, or moved to another broker, since the last one."""
    shard = context.broker.groups.shard(commit.group_id)
    return shard.write(lambda machine, now_ms: machine.commit(commit, now_ms))


def _answer(
    topic: AnyTopic,
    name: str,
    codes: list[ErrorCode],
    group_error: ErrorCode,
    failed: Mapping[tuple[str, int], ErrorCode],
) -> Steps[api.OffsetCommitResponseTopic]:
    def answer(checked: tuple[Any, ErrorCode]) -> api.OffsetCommitResponsePartition:
        index = checked[0].partition_index
        code = group_error or checked[1] or failed.get((name, index), ErrorCode.NONE)
        return api.OffsetCommitResponsePartition(partition_index=index, error_code=code)

    partitions = yield from each(answer, zip(topic.partitions, codes, strict=True))
    return api.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def check(request: AnyRequest, context: Context, *, by_id: bool) -> Steps[list[CheckedTopic]]:
    """Return the topics of a request with the error code of each partition."""
    image, limit = context.broker.image, context.broker.groups.limits.offset_metadata_max_bytes

    def code_of(partition: Any) -> ErrorCode:
        if not image.has_partition(name, partition.partition_index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.committed_metadata and len(partition.committed_metadata) > limit:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    checked = []
    for topic in request.topics:
        yield
        name = image.topic_names.get(topic.topic_id, "") if by_id else topic.name
        if by_id and not name:
            codes = [ErrorCode.UNKNOWN_TOPIC_ID] * len(topic.partitions)
        elif not context.may(_READ_TOPIC, name):
            codes = [context.denied(_READ_TOPIC, name).code] * len(topic.partitions)
        else:
            codes = yield from each(code_of, topic.partitions)
        checked.append(CheckedTopic(topic, name, codes))
    return checked


def committable(topics: list[CheckedTopic], now_ms: int, retention_ms: int = -1) -> Steps[Offsets]:
    """Return the offsets to commit; if a partition is repeated, its last offset counts."""
    expires_ms = -1 if retention_ms == -1 else min(now_ms + retention_ms, _NEVER_MS)
    offsets: Offsets = {}
    for topic, name, codes in topics:
        yield
        partitions: Sequence[Any] = topic.partitions
        for number, (partition, code) in enumerate(zip(partitions, codes, strict=True)):
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


def commits(offsets: Offsets, request: AnyRequest, context: Context) -> Iterator[tuple[Offsets, Commit]]:
    """Yield the offsets in parts that are appended together; an empty commit is one part, to be checked."""
    items = list(offsets.items())
    for start in range(0, len(items) or 1, _WRITTEN_TOGETHER):
        part = items[start : start + _WRITTEN_TOGETHER]
        yield (
            dict(part),
            Commit(
                group_id=request.group_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                generation=request.generation_id_or_member_epoch,
                offsets=[(*partition, committed) for partition, committed in part],
                version=context.version,
            ),
        )
