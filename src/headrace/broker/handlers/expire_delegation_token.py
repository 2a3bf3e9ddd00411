"""ExpireDelegationToken (key 40), v1-v2.

Behaviour: the owner, or a renewer, lets a token expire at another time, or deletes it at once with a negative
           period. Clients that have authenticated with it stay connected until it would have expired.
Versions:  v2 flexible.
"""

from headrace.broker.handlers.create_delegation_token import ensure_allowed, token_rules
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import expire_delegation_token as api
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.EXPIRE_DELEGATION_TOKEN, range(1, 3), requires=())
async def expire_delegation_token(
    request: api.ExpireDelegationTokenRequest, context: Context
) -> api.ExpireDelegationTokenResponse:
    broker = context.broker
    try:
        ensure_allowed(context)
        store = broker.ensure_tokens()
        known, now_ms = store.find(bytes(request.hmac)), broker.now_ms()
        token = token_rules(context).expire(known, context.principal, request.expiry_time_period_ms, now_ms)
        await broker.session.reconnected()
        if token is None:
            await store.delete(known.token_id)
        else:
            await store.put(token)
    except FAILURES as error:
        return api.ExpireDelegationTokenResponse(error_code=error_code(error), expiry_timestamp_ms=-1)
    return api.ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms if token is None else token.expiry_ms)
