"""FindCoordinator (key 10), v0-v6.

Behaviour: there are no coordinators on this broker yet: COORDINATOR_NOT_AVAILABLE, which clients retry.
Versions:  v1 transactions; v3 flexible; v4 several keys; v6 share groups.
"""

from headrace.broker.dispatch import Context, handles
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from headrace.protocol.schema.index import ApiKey

_SEVERAL_KEYS = 4
_WHY = "consumer groups and transactions are not there yet"


@handles(ApiKey.FIND_COORDINATOR, range(7))
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if context.version < _SEVERAL_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=_WHY, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=_WHY)
            for key in request.coordinator_keys
        ]
    )
