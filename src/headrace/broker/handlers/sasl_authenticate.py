"""SaslAuthenticate (key 36), v0-v2.

Behaviour: carries one message of the mechanism that SaslHandshake has chosen. A failure is answered with
           SASL_AUTHENTICATION_FAILED after connection.failed.authentication.delay.ms, and the connection is
           closed. A client that has authenticated may do so again, as the same user, before its session ends
           (KIP-368).
Versions:  v1 session lifetime; v2 flexible.
"""

import asyncio

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.results import Result
from headrace.broker.security.authentication import refuse
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.security.sasl.exchange import AuthenticationFailed


@handles(ApiKey.SASL_AUTHENTICATE, range(3), requires=(), when_ready=False)
def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> Result:
    session = context.sasl
    if session is None:
        return Result(
            SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message="this listener does not use SASL",
                auth_bytes=b"",
            )
        )
    try:
        answer = session.respond(bytes(request.auth_bytes))
    except AuthenticationFailed as error:
        return Result(later=_refuse(error, context))
    return Result(SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=session.lifetime_ms))


async def _refuse(error: AuthenticationFailed, context: Context) -> SaslAuthenticateResponse:
    """Answer late, so that passwords cannot be tried quickly."""
    await asyncio.sleep(refuse(error, context.address, context.broker.meters, context.broker.config))
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error), auth_bytes=b""
    )
