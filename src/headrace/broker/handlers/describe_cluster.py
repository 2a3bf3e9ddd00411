"""DescribeCluster (key 60), v0-v2.

Behaviour: returns the live brokers of the client's listener, the controller and the cluster id.
Versions:  v1 endpoint type (controllers get MISMATCHED_ENDPOINT_TYPE: they are brokers); v2 fenced brokers
           (never any).
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_cluster as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import CLUSTER_NAME, Operation, Permission, ResourceType

_BROKERS = 1


_DESCRIBE: Final = Permission(Operation.DESCRIBE, ResourceType.CLUSTER)


@handles(ApiKey.DESCRIBE_CLUSTER, range(3), requires=())
def describe_cluster(request: api.DescribeClusterRequest, context: Context) -> api.DescribeClusterResponse:
    image = context.broker.image
    if request.endpoint_type != _BROKERS:
        return api.DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this endpoint is a broker's, not a controller's (MISMATCHED_ENDPOINT_TYPE)",
            cluster_id=image.cluster_id,
            brokers=(),
        )

    return api.DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            api.DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in image.nodes(context.listener.name)
        ],
        cluster_authorized_operations=authorized_cluster_operations(
            context, requested=request.include_cluster_authorized_operations
        ),
    )


def authorized_cluster_operations(context: Context, *, requested: bool) -> int:
    """Return the bit set of operations on the cluster, if requested; none without DESCRIBE, as in Kafka."""
    if requested and not context.may(_DESCRIBE):
        return 0
    return context.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME, requested=requested)
