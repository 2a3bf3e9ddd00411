"""UnregisterBroker (key 64), v0.

Behaviour: succeeds if a broker is not running and has no replicas. ZooKeeper removes a broker's registration
           with its session, so there is nothing else to remove.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from headrace.security.authorization import Operation


@handles(ApiKey.UNREGISTER_BROKER, range(1), requires=on_cluster(Operation.ALTER), on_controller=True)
def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    controller = context.broker.controller
    if controller is None:
        return _refused(ErrorCode.NOT_CONTROLLER, "another broker is the controller (NOT_CONTROLLER)")
    broker_id, cluster = request.broker_id, controller.model
    if broker_id in cluster.live:
        return _refused(ErrorCode.INVALID_REQUEST, f"broker {broker_id} is running: stop it first")
    left = cluster.with_replica_on(broker_id)
    if left:
        return _refused(
            ErrorCode.INVALID_REQUEST,
            f"{len(left)} partitions have a replica on broker {broker_id}: reassign them first",
        )
    return UnregisterBrokerResponse()


def _refused(code: ErrorCode, why: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=why)
