"""UpdateMetadata (key 6), v8-v9: from the controller to brokers.

Behaviour: this broker leads, follows, creates and deletes replicas as the controller decides. A request of an
           earlier controller, or for an earlier registration of this broker, changes nothing.
Versions:  v9 the whole state in parts.
"""

from headrace.broker.requests.dispatch import BrokerKey, Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.between_brokers.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from headrace.security.authorization import Operation


@handles(
    BrokerKey.UPDATE_METADATA,
    range(8, 10),
    requires=on_cluster(Operation.CLUSTER_ACTION),
    inter_broker=True,
    when_ready=False,
)
async def update_metadata(request: UpdateMetadataRequest, context: Context) -> UpdateMetadataResponse:
    try:
        code = await context.broker.replicas.take(request)
    except FAILURES as error:
        code = error_code(error)
    return UpdateMetadataResponse(error_code=code)
