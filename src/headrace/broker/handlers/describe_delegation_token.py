"""DescribeDelegationToken (key 41), v1-v3.

Behaviour: returns the tokens of the given owners, or all tokens, that the principal owns, may renew, or may
           describe: with DESCRIBE on the token, or with DESCRIBE_TOKENS on its owner.
Versions:  v2 flexible; v3 requesters.
"""

from typing import Final

from headrace.broker.handlers.create_delegation_token import ensure_allowed
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import describe_delegation_token as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.security.principals import Principal

_DESCRIBE: Final = Permission(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
_DESCRIBE_TOKENS: Final = Permission(Operation.DESCRIBE_TOKENS, ResourceType.USER)


@handles(ApiKey.DESCRIBE_DELEGATION_TOKEN, range(1, 4), requires=(_DESCRIBE, _DESCRIBE_TOKENS))
def describe_delegation_token(
    request: api.DescribeDelegationTokenRequest, context: Context
) -> Steps[api.DescribeDelegationTokenResponse]:
    try:
        ensure_allowed(context)
        store = context.broker.ensure_tokens()
    except FAILURES as error:
        return api.DescribeDelegationTokenResponse(error_code=error_code(error), tokens=())
    wanted = None
    if request.owners is not None:
        wanted = {Principal(owner.principal_name, owner.principal_type) for owner in request.owners}
    tokens = []
    for number, token in enumerate(store):
        if not number % STEP:
            yield
        is_wanted = wanted is None or not wanted.isdisjoint({token.owner, *token.renewers})
        if is_wanted and (
            token.is_managed_by(context.principal)
            or context.may(_DESCRIBE, token.token_id)
            or context.may(_DESCRIBE_TOKENS, str(token.owner))
        ):
            tokens.append(
                api.DescribedDelegationToken(
                    principal_type=token.owner.type,
                    principal_name=token.owner.name,
                    token_requester_principal_type=token.requester.type,
                    token_requester_principal_name=token.requester.name,
                    issue_timestamp=token.issue_ms,
                    expiry_timestamp=token.expiry_ms,
                    max_timestamp=token.max_ms,
                    token_id=token.token_id,
                    hmac=store.hmac(token),
                    renewers=[
                        api.DescribedDelegationTokenRenewer(
                            principal_type=renewer.type, principal_name=renewer.name
                        )
                        for renewer in token.renewers
                    ],
                )
            )
    return api.DescribeDelegationTokenResponse(tokens=tokens)
