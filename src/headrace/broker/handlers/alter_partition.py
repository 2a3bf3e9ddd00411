"""AlterPartition (key 56), v2-v3: from leaders to the controller.

Behaviour: who is in sync from now on, as the leader proposes it, if it still leads and nothing has changed.
Versions:  v3 the epochs of the brokers, so that one that has restarted is not taken for its former self.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.controller import model
from headrace.controller.model import Changes, ClusterModel, Key, Refused
from headrace.controller.runner import Controller, NotController
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from headrace.protocol.schema.index import ApiKey

_WITH_EPOCHS = 3
_CODES = {
    model.UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    model.STALE: ErrorCode.FENCED_LEADER_EPOCH,
    model.INVALID_UPDATE: ErrorCode.INVALID_UPDATE_VERSION,
    model.INELIGIBLE: ErrorCode.INELIGIBLE_REPLICA,
}


@handles(ApiKey.ALTER_PARTITION, range(2, 4))
async def alter_partition(request: AlterPartitionRequest, context: Context) -> AlterPartitionResponse:
    controller = context.broker.membership.controller
    if controller is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    member = controller.model.members.get(request.broker_id)
    if member is None or member.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])
    try:
        topics = [
            AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    await _alter(controller, topic.topic_id, entry, request.broker_id, context)
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    except NotController:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    except FAILURES as error:
        return AlterPartitionResponse(error_code=error_code(error), topics=[])
    return AlterPartitionResponse(topics=topics)


async def _alter(
    controller: Controller,
    topic_id: bytes,
    entry: AlterPartitionRequestPartitionData,
    broker_id: int,
    context: Context,
) -> AlterPartitionResponsePartitionData:
    key = Key(context.broker.image.topic_names.get(topic_id, ""), entry.partition_index)
    isr = {each.broker_id: each.broker_epoch for each in entry.new_isr_with_epochs}
    if context.version < _WITH_EPOCHS:
        isr = dict.fromkeys(entry.new_isr, -1)

    def decide(cluster: ClusterModel) -> Changes:
        return cluster.alter(
            key,
            broker_id=broker_id,
            leader_epoch=entry.leader_epoch,
            version=entry.partition_epoch,
            isr=isr,
        )

    try:
        await controller.change(decide)
        now = controller.model.find(key)
    except Refused as error:
        return AlterPartitionResponsePartitionData(
            partition_index=entry.partition_index,
            error_code=_CODES[error.reason],
            leader_id=-1,
            leader_epoch=-1,
            isr=[],
            partition_epoch=-1,
        )
    return AlterPartitionResponsePartitionData(
        partition_index=entry.partition_index,
        leader_id=now.leader,
        leader_epoch=now.leader_epoch,
        isr=now.isr,
        partition_epoch=now.version,
    )
