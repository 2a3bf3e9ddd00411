"""Forwarding: a client's request in Kafka's Envelope, with the principal and the address of the client."""

import asyncio
import ipaddress
from typing import Final

from headrace.broker.requests.dispatch import Context, HangUp
from headrace.broker.results import Encoded
from headrace.broker.slices import Steps, in_slices
from headrace.protocol.errors import ErrorCode
from headrace.protocol.headers import decode_response_header, encode_request_header
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.envelope import EnvelopeRequest
from headrace.protocol.schema.request_header import RequestHeader

ENVELOPE_VERSIONS: Final = range(1)
_TIMEOUT_S: Final = 60.0
_RETRY_S: Final = 0.05  # after a broker that is no longer the controller has answered
_CORRELATION_ID: Final = 0  # of the request inside, which is the only one of its envelope


async def forward(request: Message, context: Context) -> Encoded:
    """Return the controller's response to a client's request, which keeps its principal and address.

    A controller of an earlier version may not support the version of the request: the connection is closed,
    and the client learns the controller's versions when it connects again (`handlers/api_versions`).
    """
    key, controller = request.__api_key__, context.broker.controller_client
    assert key is not None, request
    envelope = await in_slices(sealed(request, context))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _TIMEOUT_S
    while True:
        try:
            controller.choose(key, range(context.version, context.version + 1))
            response = await controller.ask(envelope, ENVELOPE_VERSIONS, timeout_s=_TIMEOUT_S)
        except (PeerGone, NotController) as error:
            raise HangUp(f"the controller has not answered: {error}") from error
        if response.error_code != ErrorCode.NOT_CONTROLLER:
            break
        if loop.time() > deadline:
            raise HangUp("the controller cannot be reached (NOT_CONTROLLER)")
        await asyncio.sleep(_RETRY_S)
    if response.error_code or response.response_data is None:
        raise HangUp(f"the controller refuses a forwarded request: {ErrorCode(response.error_code).name}")
    _, body = decode_response_header(key, context.version, memoryview(response.response_data))
    return Encoded([body])


def sealed(request: Message, context: Context) -> Steps[EnvelopeRequest]:
    """Return the envelope that carries `request` to the controller."""
    key = request.__api_key__
    assert key is not None, request
    header = RequestHeader(
        request_api_key=key,
        request_api_version=context.version,
        correlation_id=_CORRELATION_ID,
        client_id=context.client_id,
    )
    body = yield from request.encode_in_slices(context.version)
    frame = [encode_request_header(header), *body]
    try:
        address = ipaddress.ip_address(context.address).packed
    except ValueError:  # a connection without an IP address
        address = b""
    return EnvelopeRequest(
        request_data=b"".join(frame),
        request_principal=context.principal.encode(),
        client_host_address=address,
    )


def client_address(envelope: EnvelopeRequest) -> str:
    """Return the address of the client whose request is inside."""
    packed = envelope.client_host_address
    return str(ipaddress.ip_address(packed)) if packed else ""
