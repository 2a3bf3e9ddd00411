"""CreateDelegationToken (key 38), v1-v3.

Behaviour: creates a token of the principal, or of another owner with CREATE_TOKENS on that user (KIP-373). It
           is valid on this broker when it answers, and on the others when they have read it from ZooKeeper.
           DELEGATION_TOKEN_REQUEST_NOT_ALLOWED over PLAINTEXT, over SSL without a client certificate, and for
           who has authenticated with a token.
Versions:  v2 flexible; v3 owners.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import create_delegation_token as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.security.delegation_tokens import TokenRequestNotAllowed, TokenRules
from headrace.security.listeners import SecurityProtocol
from headrace.security.principals import ANONYMOUS, USER, Principal

_CREATE_TOKENS: Final = Permission(Operation.CREATE_TOKENS, ResourceType.USER)


@handles(ApiKey.CREATE_DELEGATION_TOKEN, range(1, 4), requires=_CREATE_TOKENS)
async def create_delegation_token(
    request: api.CreateDelegationTokenRequest, context: Context
) -> api.CreateDelegationTokenResponse:
    owner = context.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_name, request.owner_principal_type or USER)
    try:
        ensure_allowed(context)
        if owner != context.principal:
            context.require(_CREATE_TOKENS, str(owner))
        store = context.broker.ensure_tokens()
        renewers = [Principal(renewer.principal_name, renewer.principal_type) for renewer in request.renewers]
        token = token_rules(context).create(
            owner, context.principal, renewers, request.max_lifetime_ms, context.broker.now_ms()
        )
        await context.broker.session.reconnected()
        await store.put(token)
    except FAILURES as error:
        return api.CreateDelegationTokenResponse(
            error_code=error_code(error),
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=context.principal.type,
            token_requester_principal_name=context.principal.name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
            token_id="",
            hmac=b"",
        )
    return api.CreateDelegationTokenResponse(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp_ms=token.issue_ms,
        expiry_timestamp_ms=token.expiry_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.token_id,
        hmac=store.hmac(token),
    )


def ensure_allowed(context: Context) -> None:
    """Raise TokenRequestNotAllowed if the connection does not prove who the client is."""
    by_token = context.sasl is not None and context.sasl.user is not None and context.sasl.user.by_token
    protocol = context.listener.security_protocol
    is_anonymous = protocol is SecurityProtocol.SSL and context.principal == ANONYMOUS
    if by_token or is_anonymous or protocol is SecurityProtocol.PLAINTEXT:
        raise TokenRequestNotAllowed(
            "delegation tokens need a client that has authenticated, and not with a token "
            "(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)"
        )


def token_rules(context: Context) -> TokenRules:
    config = context.broker.config
    return TokenRules(
        config.integer("delegation.token.max.lifetime.ms"), config.integer("delegation.token.expiry.time.ms")
    )
