"""DescribeQuorum (key 55), v0-v2.

Behaviour: returns who coordinates the cluster, in KRaft's terms, for partition 0 of __cluster_metadata: the
           controller is the leader, its epoch the leader epoch, and the live brokers, any of which may
           become the controller, are the voters. There is no log of metadata: offsets and times are -1.
Versions:  v1 times of replicas; v2 error messages and nodes, with the endpoints of the client's listener.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_quorum as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_METADATA = "__cluster_metadata"
_UNKNOWN = -1


@handles(ApiKey.DESCRIBE_QUORUM, range(3), requires=on_cluster(Operation.DESCRIBE))
def describe_quorum(request: api.DescribeQuorumRequest, context: Context) -> api.DescribeQuorumResponse:
    topic = request.topics[0] if len(request.topics) == 1 else None
    if (
        topic is None
        or topic.topic_name != _METADATA
        or len(topic.partitions) != 1
        or topic.partitions[0].partition_index != 0
    ):
        return api.DescribeQuorumResponse(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"only {_METADATA}-0 has a quorum (UNKNOWN_TOPIC_OR_PARTITION)",
            topics=(),
        )
    image = context.broker.image
    partition = api.DescribeQuorumResponsePartitionData(
        partition_index=0,
        leader_id=image.controller_id,
        leader_epoch=context.broker.replicas.controller_epoch,
        high_watermark=_UNKNOWN,
        current_voters=[
            api.ReplicaState(replica_id=broker_id, log_end_offset=_UNKNOWN)
            for broker_id in sorted(image.brokers)
        ],
        observers=(),
    )
    return api.DescribeQuorumResponse(
        topics=[api.DescribeQuorumResponseTopicData(topic_name=_METADATA, partitions=[partition])],
        nodes=[
            api.Node(
                node_id=node.id,
                listeners=[api.Listener(name=context.listener.name, host=node.host, port=node.port)],
            )
            for node in image.nodes(context.listener.name)
        ],
    )
