"""SaslHandshake (key 17), v0-v1.

Behaviour: begins an authentication with the mechanism that the client has chosen. A mechanism that the
           listener does not accept is answered with UNSUPPORTED_SASL_MECHANISM and the accepted ones, and the
           connection is closed. On a listener without SASL the answer is ILLEGAL_SASL_STATE.
Versions:  v0 is followed by messages of the mechanism without a Kafka request around them, v1 by
           SaslAuthenticate.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@handles(ApiKey.SASL_HANDSHAKE, range(2), requires=(), when_ready=False)
def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    session = context.sasl
    if session is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    accepted = session.choose(request.mechanism, raw=context.version == 0)
    return SaslHandshakeResponse(
        error_code=ErrorCode.NONE if accepted else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=session.mechanisms,
    )
