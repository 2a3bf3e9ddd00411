"""TxnOffsetCommit (key 28), v0-v6.

Behaviour: commits offsets of a group as part of a transaction. They take effect when the transaction is
           committed. The member and generation are checked if the request has them (KIP-447). Every offset of
           the request is accepted, or none.
Versions:  v2 leader epochs; v3 flexible, member and generation; v4 TRANSACTION_ABORTABLE; v5 the group
           coordinator adds its partition to the transaction, without AddOffsetsToTxn; v6 topics by id,
           GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
"""

import asyncio
from collections.abc import Container
from functools import partial
from typing import Any, Final

from headrace.broker.coordinators.groups import GroupShard
from headrace.broker.coordinators.transaction_verification import refusal_of
from headrace.broker.errors import LeadershipInterrupted
from headrace.broker.handlers.offset_commit import WRITTEN_TOGETHER
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_groups, on_topics, on_transactional_ids
from headrace.broker.slices import Steps, Turns, each, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.decision import Producer
from headrace.coordinators.errors import CoordinatorLoading
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.decision import Decision
from headrace.coordinators.group.offsets import Commit, Committed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import txn_offset_commit as schema
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_ABORTABLE, _IMPLICIT_PARTITIONS, _BY_ID = 4, 5, 6
_WRITE: Final = on_transactional_ids(Operation.WRITE)
_READ: Final = on_groups(Operation.READ)
_READ_TOPIC: Final = on_topics(Operation.READ)

_Offsets = dict[tuple[str, int], Committed]
_Codes = dict[tuple[str | bytes, int], ErrorCode]


@handles(ApiKey.TXN_OFFSET_COMMIT, range(7), requires=(_WRITE, _READ, _READ_TOPIC))
async def txn_offset_commit(
    request: schema.TxnOffsetCommitRequest, context: Context
) -> schema.TxnOffsetCommitResponse:
    group_error, refused = ErrorCode.NONE, _Codes()
    try:
        context.require(_WRITE, request.transactional_id)
        context.require(_READ, request.group_id)
        offsets, refused = await _checked(request, context)
        await _commit(offsets, request, context)
    except FAILURES as error:
        group_error = error_code(error)
    return schema.TxnOffsetCommitResponse(topics=await in_slices(_results(request, refused, group_error)))


def _results(
    request: schema.TxnOffsetCommitRequest, refused: _Codes, group_error: ErrorCode
) -> Steps[list[schema.TxnOffsetCommitResponseTopic]]:
    topics = []
    for topic in request.topics:

        def result(
            partition: schema.TxnOffsetCommitRequestPartition, sent_as: str | bytes = _sent_as(topic)
        ) -> schema.TxnOffsetCommitResponsePartition:
            index = partition.partition_index
            return schema.TxnOffsetCommitResponsePartition(
                partition_index=index, error_code=refused.get((sent_as, index), group_error)
            )

        partitions = yield from each(result, topic.partitions)
        topics.append(
            schema.TxnOffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return topics


def _sent_as(topic: schema.TxnOffsetCommitRequestTopic) -> str | bytes:
    """Return the name of a topic, or the id if the request has only that."""
    return topic.name or topic.topic_id


async def _checked(request: schema.TxnOffsetCommitRequest, context: Context) -> tuple[_Offsets, _Codes]:
    """Return the offsets that can be committed, and the error codes of the others."""
    image = context.broker.image
    limit = context.broker.groups.limits.offset_metadata_max_bytes
    offsets: _Offsets = {}
    refused: _Codes = {}
    turns, now_ms = Turns(), context.broker.now_ms()
    for topic in request.topics:
        await turns.next()
        name = image.topic_names.get(topic.topic_id) if context.version >= _BY_ID else topic.name
        denied = ErrorCode.NONE
        known: Container[int] = ()
        if name is None:
            denied = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.may(_READ_TOPIC, name):
            denied = context.denied(_READ_TOPIC, name).code
        elif name in image.topics:
            known = image.topics[name].replicas
        for partition in topic.partitions:
            key = (_sent_as(topic), partition.partition_index)
            if denied or name is None:
                refused[key] = denied
            elif partition.partition_index not in known:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.committed_metadata and len(partition.committed_metadata) > limit:
                refused[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[name, partition.partition_index] = Committed(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    now_ms,
                )
            await turns.next()
    return offsets, refused


async def _commit(offsets: _Offsets, request: schema.TxnOffsetCommitRequest, context: Context) -> None:
    """Append the offsets once the transaction coordinator has confirmed the group's partition."""
    broker = context.broker
    producer = Producer(request.producer_id, request.producer_epoch)
    shard = broker.groups.shard(request.group_id)
    partition = shard.partition
    verification = broker.transactions.verifier.required(
        partition, request.transactional_id, producer, adds=context.version >= _IMPLICIT_PARTITIONS
    )
    if verification is None:
        await _append(shard, offsets, request, context, None)
        return
    try:
        error = await verification.answer()
        if error is not None:
            # The errors of the transaction coordinator would make the client look for the group coordinator.
            raise refusal_of(
                error, knows_abortable=context.version >= _ABORTABLE, retried_as=CoordinatorLoading
            )
        shard = broker.groups.shard(request.group_id)  # it may have moved meanwhile
        await _append(shard, offsets, request, context, verification)
    except LeadershipInterrupted as error:  # clients do not expect NOT_LEADER_OR_FOLLOWER from a coordinator
        raise CoordinatorLoading(str(error)) from error
    finally:
        broker.transactions.verifier.release(partition, verification)


async def _append(
    shard: GroupShard,
    offsets: _Offsets,
    request: schema.TxnOffsetCommitRequest,
    context: Context,
    verification: Verification | None,
) -> None:
    producer = Producer(request.producer_id, request.producer_epoch)
    items = list(offsets.items())
    replies: list[asyncio.Future[Any]] = []
    for start in range(0, len(items) or 1, WRITTEN_TOGETHER):
        commit = Commit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            offsets=[(*key, committed) for key, committed in items[start : start + WRITTEN_TOGETHER]],
            version=context.version,
        )
        replies.append(shard.write(partial(_decide, commit, producer), verification))
        await asyncio.sleep(0)
    for reply in replies:
        await reply


def _decide(commit: Commit, producer: Producer, machine: GroupCoordinator, now_ms: int) -> Decision:
    return machine.commit_in_transaction(commit, producer, now_ms)
