"""BrokerHeartbeat (key 63), v0-v2: from a broker that is shutting down to the controller.

Behaviour: other replicas become leaders of what the broker leads, as far as they can. The broker may stop
           when it leads nothing that another replica could lead. Whether a broker is alive is decided by
           its ZooKeeper session, not by this request.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.BROKER_HEARTBEAT, range(3), requires=on_cluster(Operation.CLUSTER_ACTION), inter_broker=True)
async def broker_heartbeat(request: BrokerHeartbeatRequest, context: Context) -> BrokerHeartbeatResponse:
    controller = context.broker.controller
    if controller is None:
        return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER, should_shut_down=False)
    if not request.want_shut_down:
        return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
    try:
        done = await controller.controlled_shutdown(request.broker_id, request.broker_epoch)
    except FAILURES as error:
        return BrokerHeartbeatResponse(error_code=error_code(error), should_shut_down=False)
    await controller.propagated(1.0)
    return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=done)
