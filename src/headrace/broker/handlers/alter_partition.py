"""AlterPartition (key 56), v2-v3: from leaders to the controller.

Behaviour: the ISR becomes what the leader proposes, if it still leads and the partition epoch is current.
Versions:  v3 broker epochs, so that a broker that has restarted since its last fetch does not join the ISR.
"""

import logging
from itertools import chain

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import alter_partition as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.model import Changes, ClusterModel
from headrace.security.authorization import Operation

logger = logging.getLogger(__name__)

_WITH_EPOCHS = 3


@handles(
    ApiKey.ALTER_PARTITION, range(2, 4), requires=on_cluster(Operation.CLUSTER_ACTION), inter_broker=True
)
async def alter_partition(request: api.AlterPartitionRequest, context: Context) -> api.AlterPartitionResponse:
    controller = context.broker.controller
    if controller is None:
        return api.AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    member = controller.model.members.get(request.broker_id)
    if member is None or member.epoch != request.broker_epoch:
        return api.AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])
    names, refused = context.broker.image.topic_names, dict[TopicPartition, KafkaError]()
    requested = {
        topic.topic_id: [
            (TopicPartition(names.get(topic.topic_id, ""), entry.partition_index), entry)
            for entry in topic.partitions
        ]
        for topic in request.topics
    }

    def decide(cluster: ClusterModel) -> Changes:
        changes: Changes = {}
        for key, entry in chain.from_iterable(requested.values()):
            try:
                changes |= cluster.alter_isr(
                    key,
                    broker_id=request.broker_id,
                    leader_epoch=entry.leader_epoch,
                    version=entry.partition_epoch,
                    # With the broker epochs that the leader knows; -1: not known.
                    isr={member.broker_id: member.broker_epoch for member in entry.new_isr_with_epochs}
                    if context.version >= _WITH_EPOCHS
                    else dict.fromkeys(entry.new_isr, -1),
                )
            except KafkaError as error:
                refused[key] = error
        return changes

    try:
        await controller.change(decide)
    except FAILURES as error:  # LeaderNotSteppedDown included: a leader may ask to be replaced
        logger.info("AlterPartition of broker %d was not carried out: %s", request.broker_id, error)
        return api.AlterPartitionResponse(error_code=error_code(error), topics=[])
    return api.AlterPartitionResponse(
        topics=[
            api.AlterPartitionResponseTopicData(
                topic_id=topic_id, partitions=[_answer(controller.model, key, refused) for key, _ in entries]
            )
            for topic_id, entries in requested.items()
        ]
    )


def _answer(
    cluster: ClusterModel, key: TopicPartition, refused: dict[TopicPartition, KafkaError]
) -> api.AlterPartitionResponsePartitionData:
    if key in refused:
        return api.AlterPartitionResponsePartitionData(
            partition_index=key.partition,
            error_code=refused[key].code,
            leader_id=-1,
            leader_epoch=-1,
            isr=[],
            partition_epoch=-1,
        )
    now = cluster.find(key)
    return api.AlterPartitionResponsePartitionData(
        partition_index=key.partition,
        leader_id=now.leader,
        leader_epoch=now.leader_epoch,
        isr=now.isr,
        partition_epoch=now.version,
    )
