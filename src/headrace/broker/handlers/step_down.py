"""StepDown (key 10001), v0: from the controller to a leader that another replica will replace.

Behaviour: the leader rejects writes to these partitions, waits until the next leader has every record, and
           agrees. A partition whose next leader does not catch up in time is not agreed to, and accepts
           writes again. A partition that was agreed to accepts writes again when a controller sends a later
           state in which this broker leads.
"""

from headrace.broker.replicas import stepping_down
from headrace.broker.requests.dispatch import BrokerKey, Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.between_brokers.step_down import AgreedPartition, StepDownRequest, StepDownResponse
from headrace.protocol.errors import ErrorCode
from headrace.security.authorization import Operation


@handles(
    BrokerKey.STEP_DOWN,
    range(1),
    requires=on_cluster(Operation.CLUSTER_ACTION),
    inter_broker=True,
    when_ready=False,
)
async def step_down(request: StepDownRequest, context: Context) -> StepDownResponse:
    replicas = context.broker.replicas
    stale = replicas.check_sender(request.controller_epoch, request.broker_epoch)
    if stale is not ErrorCode.NONE:
        return StepDownResponse(error_code=stale, agreed=[])
    agreed = await stepping_down.step_down(
        replicas.partitions,
        request.partitions,
        controller_epoch=request.controller_epoch,
        timeout_s=request.timeout_ms / 1000,
    )
    return StepDownResponse(
        agreed=[
            AgreedPartition(topic_name=partition.id.topic, partition_index=partition.id.partition)
            for partition in agreed
        ]
    )
