"""SeedReplica (key 10002), v0: from a broker of the same node that has a new replica.

Behaviour: links the closed segments below the high watermark into the sender's staging directory, and answers
           with the offsets that they hold. The active segment is closed first, and the high watermark gets a
           second to reach its end. An error code makes the sender fetch every record from the leader instead.
"""

from headrace.broker.replicas.seed_source import seed_for
from headrace.broker.requests.dispatch import BrokerKey, Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_fields, error_message
from headrace.protocol.between_brokers.seed_replica import SeedReplicaRequest, SeedReplicaResponse
from headrace.protocol.errors import ErrorCode
from headrace.security.authorization import Operation


@handles(BrokerKey.SEED_REPLICA, range(1), requires=on_cluster(Operation.CLUSTER_ACTION), inter_broker=True)
async def seed_replica(request: SeedReplicaRequest, context: Context) -> SeedReplicaResponse:
    broker = context.broker
    try:
        seed = await seed_for(
            request,
            node=broker.config.node,
            image=broker.image,
            partitions=broker.partitions,
            logs=broker.logs,
        )
    except FAILURES as error:
        return SeedReplicaResponse(**error_fields(error))
    except OSError as error:
        return SeedReplicaResponse(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=error_message(error)
        )
    return SeedReplicaResponse(log_start_offset=seed.log_start_offset, end_offset=seed.end_offset)
