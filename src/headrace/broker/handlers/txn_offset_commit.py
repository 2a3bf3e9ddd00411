"""TxnOffsetCommit (key 28), v0-v6.

Behaviour: commits offsets of a group as part of a transaction. They take effect when the transaction is
           committed. The member and generation are checked if the request has them (KIP-447). Every offset of
           the request is accepted, or none.
Versions:  v2 leader epochs; v3 flexible, member and generation; v4 TRANSACTION_ABORTABLE; v5 the group
           coordinator adds its partition to the transaction, without AddOffsetsToTxn; v6 topics by id,
           GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
"""

import asyncio
from itertools import repeat
from typing import Any, Final

from headrace.broker.coordinators.groups import GroupShard
from headrace.broker.coordinators.transaction_verification import refusal_of
from headrace.broker.errors import LeadershipInterrupted
from headrace.broker.handlers.offset_commit import CheckedTopic, Offsets, check, commits, committable
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_groups, on_topics, on_transactional_ids
from headrace.broker.slices import Steps, each, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.decision import Producer
from headrace.coordinators.errors import CoordinatorLoading
from headrace.coordinators.group.offsets import Commit
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import txn_offset_commit as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_ABORTABLE, _IMPLICIT_PARTITIONS, _BY_ID = 4, 5, 6
_WRITE: Final = on_transactional_ids(Operation.WRITE)
_READ: Final = on_groups(Operation.READ)
_READ_TOPIC: Final = on_topics(Operation.READ)


@handles(ApiKey.TXN_OFFSET_COMMIT, range(7), requires=(_WRITE, _READ, _READ_TOPIC))
async def txn_offset_commit(
    request: api.TxnOffsetCommitRequest, context: Context
) -> api.TxnOffsetCommitResponse:
    group_error, checked = ErrorCode.NONE, list[CheckedTopic]()
    try:
        context.require(_WRITE, request.transactional_id)
        context.require(_READ, request.group_id)
        checked = await in_slices(check(request, context, by_id=context.version >= _BY_ID))
        offsets = await in_slices(committable(checked, context.broker.now_ms()))
        await _commit(offsets, request, context)
    except FAILURES as error:
        group_error = error_code(error)
    return api.TxnOffsetCommitResponse(topics=await in_slices(_results(request, checked, group_error)))


def _results(
    request: api.TxnOffsetCommitRequest, checked: list[CheckedTopic], group_error: ErrorCode
) -> Steps[list[api.TxnOffsetCommitResponseTopic]]:
    def result(
        partition: tuple[api.TxnOffsetCommitRequestPartition, ErrorCode],
    ) -> api.TxnOffsetCommitResponsePartition:
        return api.TxnOffsetCommitResponsePartition(
            partition_index=partition[0].partition_index, error_code=partition[1] or group_error
        )

    topics = []
    for number, topic in enumerate(request.topics):
        codes = checked[number].codes if checked else repeat(ErrorCode.NONE)
        partitions = yield from each(result, zip(topic.partitions, codes, strict=False))
        topics.append(
            api.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
    return topics


async def _commit(offsets: Offsets, request: api.TxnOffsetCommitRequest, context: Context) -> None:
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
    offsets: Offsets,
    request: api.TxnOffsetCommitRequest,
    context: Context,
    verification: Verification | None,
) -> None:
    producer = Producer(request.producer_id, request.producer_epoch)

    def append(commit: Commit) -> "asyncio.Future[Any]":
        return shard.write(
            lambda machine, now_ms: machine.commit_in_transaction(commit, producer, now_ms), verification
        )

    replies = []
    for _, commit in commits(offsets, request, context):
        replies.append(append(commit))
        await asyncio.sleep(0)
    for reply in replies:
        await reply
