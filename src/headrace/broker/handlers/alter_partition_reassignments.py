"""AlterPartitionReassignments (key 45), v0-v1.

Behaviour: a partition moves to other brokers: it gets the new replicas, and loses the old ones when all the
           new ones are in sync. Without replicas, a move under way is cancelled.
Versions:  v1 may forbid another number of replicas.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_cluster
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.controller import model
from headrace.controller.model import INVALID_REPLICAS, Changes, ClusterModel, Refused
from headrace.controller.runner import TOLD_S, Controller, NotController
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_CODES = {
    model.UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    model.INVALID_REPLICAS: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    model.NO_MOVE: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    model.NOT_AVAILABLE: ErrorCode.REQUEST_TIMED_OUT,
    "replication factor": ErrorCode.INVALID_REPLICATION_FACTOR,
}


@handles(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, range(2), requires=on_cluster(Operation.ALTER), on_controller=True
)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    controller = context.broker.controller
    if controller is None:
        return _refused(ErrorCode.NOT_CONTROLLER)
    may_change = request.allow_replication_factor_change
    responses, turns = [], Turns()
    try:
        for topic in request.topics:
            partitions = []
            for entry in topic.partitions:
                partitions.append(await _move(controller, topic.name, entry, may_change=may_change))
                await turns.next()
            responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
            await turns.next()
    except NotController:
        return _refused(ErrorCode.NOT_CONTROLLER)
    except FAILURES as error:
        return _refused(error_code(error))
    await controller.told(min(request.timeout_ms / 1000, TOLD_S))
    return AlterPartitionReassignmentsResponse(
        responses=responses, allow_replication_factor_change=may_change
    )


async def _move(
    controller: Controller, topic: str, entry: ReassignablePartition, *, may_change: bool
) -> ReassignablePartitionResponse:
    key = TopicPartition(topic, entry.partition_index)

    def decide(cluster: ClusterModel) -> Changes:
        target = None if entry.replicas is None else tuple(entry.replicas)
        if target is not None and not may_change:
            partition = cluster.find(key)
            had = len(partition.replicas) - len(partition.adding)
            if len(target) != had:
                raise Refused("replication factor", f"{len(target)} replicas instead of {had}")
        return cluster.move(key, target)

    try:
        await controller.change(decide)
    except Refused as error:
        code = _CODES.get(error.reason, _CODES[INVALID_REPLICAS])
        return ReassignablePartitionResponse(
            partition_index=entry.partition_index, error_code=code, error_message=error_message(error)
        )
    return ReassignablePartitionResponse(partition_index=entry.partition_index)


def _refused(code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code, responses=[])
