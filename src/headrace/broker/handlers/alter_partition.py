"""AlterPartition (key 56), v2-v3: from leaders to the controller.

Behaviour: who is in sync from now on, as the leader proposes it, if it still leads and nothing has changed.
Versions:  v3 the epochs of the brokers, so that one that has restarted is not taken for its former self.
"""

import logging
from collections.abc import Iterator

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_code
from headrace.controller import model
from headrace.controller.model import Changes, ClusterModel, Refused
from headrace.controller.runner import NotController
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

logger = logging.getLogger(__name__)

_WITH_EPOCHS = 3
_CODES = {
    model.UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    model.STALE: ErrorCode.FENCED_LEADER_EPOCH,
    model.INVALID_UPDATE: ErrorCode.INVALID_UPDATE_VERSION,
    model.INELIGIBLE: ErrorCode.INELIGIBLE_REPLICA,
    model.INVALID_REPLICAS: ErrorCode.INVALID_REQUEST,
}


@handles(
    ApiKey.ALTER_PARTITION, range(2, 4), requires=on_cluster(Operation.CLUSTER_ACTION), inter_broker=True
)
async def alter_partition(request: AlterPartitionRequest, context: Context) -> AlterPartitionResponse:
    controller = context.broker.controller
    if controller is None:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    member = controller.model.members.get(request.broker_id)
    if member is None or member.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])
    refused: dict[TopicPartition, Refused] = {}

    def decide(cluster: ClusterModel) -> Changes:
        changes: Changes = {}
        for key, entry in _entries(request, context):
            try:
                changes |= cluster.alter(
                    key,
                    broker_id=request.broker_id,
                    leader_epoch=entry.leader_epoch,
                    version=entry.partition_epoch,
                    isr=_isr(entry, context.version),
                )
            except Refused as error:
                refused[key] = error
        return changes

    try:
        await controller.change(decide)
    except NotController:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    except Refused as error:  # a leader that asks to be replaced has not answered the StepDown
        logger.info("AlterPartition of broker %d is not carried out: %s", request.broker_id, error)
        return AlterPartitionResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, topics=[])
    except FAILURES as error:
        return AlterPartitionResponse(error_code=error_code(error), topics=[])
    answers: dict[bytes, list[AlterPartitionResponsePartitionData]] = {}
    for topic in request.topics:
        name = _name(topic.topic_id, context)
        answers[topic.topic_id] = [
            _answer(controller.model, TopicPartition(name, entry.partition_index), refused)
            for entry in topic.partitions
        ]
    return AlterPartitionResponse(
        topics=[
            AlterPartitionResponseTopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in answers.items()
        ]
    )


def _name(topic_id: bytes, context: Context) -> str:
    return context.broker.image.topic_names.get(topic_id, "")


def _entries(
    request: AlterPartitionRequest, context: Context
) -> Iterator[tuple[TopicPartition, AlterPartitionRequestPartitionData]]:
    for topic in request.topics:
        for entry in topic.partitions:
            yield TopicPartition(_name(topic.topic_id, context), entry.partition_index), entry


def _isr(entry: AlterPartitionRequestPartitionData, version: int) -> dict[int, int]:
    """The proposed set, with the epochs that the leader knows its members by."""
    if version < _WITH_EPOCHS:
        return dict.fromkeys(entry.new_isr, -1)
    return {each.broker_id: each.broker_epoch for each in entry.new_isr_with_epochs}


def _answer(
    cluster: ClusterModel, key: TopicPartition, refused: dict[TopicPartition, Refused]
) -> AlterPartitionResponsePartitionData:
    if key in refused:
        return AlterPartitionResponsePartitionData(
            partition_index=key.partition,
            error_code=_CODES[refused[key].reason],
            leader_id=-1,
            leader_epoch=-1,
            isr=[],
            partition_epoch=-1,
        )
    now = cluster.find(key)
    return AlterPartitionResponsePartitionData(
        partition_index=key.partition,
        leader_id=now.leader,
        leader_epoch=now.leader_epoch,
        isr=now.isr,
        partition_epoch=now.version,
    )
