"""Envelope (key 58), v0: a client's request that another broker forwards to the controller.

Behaviour: the request is handled as if the client had sent it here, with its principal and its address.
           NOT_CONTROLLER if this broker is not the controller: the other broker looks for it again. Only
           brokers send it, and ApiVersions does not list it.
"""

from typing import Any

from headrace.broker.quotas.throttling import RequestUsage
from headrace.broker.requests.dispatch import HANDLERS, BrokerKey, Context, call, handles
from headrace.broker.requests.envelopes import client_address
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import free_later, in_slices
from headrace.protocol.api import decode_request_in_slices
from headrace.protocol.errors import ErrorCode, ProtocolError
from headrace.protocol.headers import decode_request_header, encode_response_header
from headrace.protocol.schema.envelope import EnvelopeRequest, EnvelopeResponse
from headrace.security.authorization import Operation
from headrace.security.principals import Principal


@handles(BrokerKey.ENVELOPE, range(1), requires=on_cluster(Operation.CLUSTER_ACTION), inter_broker=True)
async def envelope(request: EnvelopeRequest, context: Context) -> EnvelopeResponse:
    header, body = decode_request_header(memoryview(request.request_data))
    key, version = header.request_api_key, header.request_api_version
    handler = HANDLERS.get(key)
    if handler is None or not handler.on_controller:
        raise ProtocolError(f"API key {key} v{version} cannot be forwarded")
    if version not in handler.versions:  # another broker, of a later version, supports it
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.broker.is_controller:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    assert request.request_principal is not None, "brokers always name the principal"
    principal = Principal.decode(request.request_principal)
    quotas = context.broker.quotas
    usage = None
    if quotas.is_active:  # the broker that forwards the request charges its time, and mutes the client
        usage = RequestUsage(quotas, principal.name, header.client_id, key, 0)
    caller = context._replace(
        client_id=header.client_id,
        version=version,
        address=client_address(request),
        principal=principal,
        usage=usage,
    )
    structs: list[Any] = []
    inner = await in_slices(decode_request_in_slices(key, version, body, structs))
    response = await call(handler, inner, caller).response()
    buffers = await in_slices(response.encode_in_slices(version, structs))
    del inner, response
    free_later(structs, context.broker.loop)
    head = encode_response_header(key, version, header.correlation_id)
    return EnvelopeResponse(response_data=b"".join([head, *buffers]))
