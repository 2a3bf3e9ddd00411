"""RenewDelegationToken (key 39), v1-v2.

Behaviour: the owner, or a renewer, lets a token expire later, up to the end of its lifetime.
Versions:  v2 flexible.
"""

from headrace.broker.handlers.create_delegation_token import ensure_allowed, token_rules
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import renew_delegation_token as api
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.RENEW_DELEGATION_TOKEN, range(1, 3), requires=())
async def renew_delegation_token(
    request: api.RenewDelegationTokenRequest, context: Context
) -> api.RenewDelegationTokenResponse:
    broker = context.broker
    try:
        ensure_allowed(context)
        store = broker.ensure_tokens()
        token = token_rules(context).renew(
            store.find(bytes(request.hmac)), context.principal, request.renew_period_ms, broker.now_ms()
        )
        await broker.session.reconnected()
        await store.put(token)
    except FAILURES as error:
        return api.RenewDelegationTokenResponse(error_code=error_code(error), expiry_timestamp_ms=-1)
    return api.RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiry_ms)
