"""AlterPartitionReassignments (key 45), v0-v1.

Behaviour: each partition gets the new replicas, and loses the old ones when all the new ones are in the ISR.
           Without replicas, the reassignment in progress is cancelled.
Versions:  v1 the client may forbid a change of the replication factor.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_code, error_fields
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import InvalidReplicationFactor, NotController
from headrace.protocol.schema import alter_partition_reassignments as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.model import Changes, ClusterModel
from headrace.replication.controller.runner import UPDATE_WAIT_S, Controller
from headrace.security.authorization import Operation


@handles(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, range(2), requires=on_cluster(Operation.ALTER), on_controller=True
)
async def alter_partition_reassignments(
    request: api.AlterPartitionReassignmentsRequest, context: Context
) -> api.AlterPartitionReassignmentsResponse:
    controller = context.broker.controller
    if controller is None:
        return api.AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, responses=[])
    may_change = request.allow_replication_factor_change
    responses, turns = [], Turns()
    try:
        for topic in request.topics:
            partitions = []
            for entry in topic.partitions:
                partitions.append(await _reassign(controller, topic.name, entry, may_change=may_change))
                await turns.next()
            responses.append(api.ReassignableTopicResponse(name=topic.name, partitions=partitions))
            await turns.next()
    except FAILURES as error:
        return api.AlterPartitionReassignmentsResponse(error_code=error_code(error), responses=[])
    await controller.propagated(min(request.timeout_ms / 1000, UPDATE_WAIT_S))
    return api.AlterPartitionReassignmentsResponse(
        responses=responses, allow_replication_factor_change=may_change
    )


async def _reassign(
    controller: Controller, topic: str, entry: api.ReassignablePartition, *, may_change: bool
) -> api.ReassignablePartitionResponse:
    key = TopicPartition(topic, entry.partition_index)

    def decide(cluster: ClusterModel) -> Changes:
        target = None if entry.replicas is None else tuple(entry.replicas)
        if target is not None and not may_change:
            partition = cluster.find(key)
            had = len(partition.replicas) - len(partition.adding)
            if len(target) != had:
                raise InvalidReplicationFactor(
                    f"{key}: {len(target)} replicas instead of {had}, and the request does not allow that"
                )
        return cluster.reassign(key, target)

    try:
        await controller.change(decide)
    except NotController:
        raise
    except KafkaError as error:
        return api.ReassignablePartitionResponse(partition_index=entry.partition_index, **error_fields(error))
    return api.ReassignablePartitionResponse(partition_index=entry.partition_index)
