"""ListPartitionReassignments (key 46), v0.

Behaviour: the reassignments in progress, of the partitions in the request, or of all.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import partitions_once
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import Steps
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import list_partition_reassignments as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(
    ApiKey.LIST_PARTITION_REASSIGNMENTS, range(1), requires=on_cluster(Operation.DESCRIBE), on_controller=True
)
def list_partition_reassignments(
    request: api.ListPartitionReassignmentsRequest, context: Context
) -> Steps[api.ListPartitionReassignmentsResponse]:
    controller = context.broker.controller
    if controller is None:
        return api.ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    moves = controller.model.reassignments()
    if request.topics is not None:
        asked = yield from partitions_once(
            ((topic.name, topic.partition_indexes) for topic in request.topics), set(moves).__contains__
        )
        moves = [key for key in moves if key in asked]
    by_topic: dict[str, list[api.OngoingPartitionReassignment]] = {}
    for key in moves:
        partition = controller.model.find(key)
        by_topic.setdefault(key.topic, []).append(
            api.OngoingPartitionReassignment(
                partition_index=key.partition,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
        )
    return api.ListPartitionReassignmentsResponse(
        topics=[
            api.OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ]
    )
