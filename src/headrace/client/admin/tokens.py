"""Delegation tokens (KIP-48): created, also for other users (KIP-373), renewed and expired.

TokenAdmin(Brokers("127.0.0.1:9092")).create(Principal("alice"))
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.client.errors import raise_for
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from headrace.protocol.schema.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.protocol.schema.renew_delegation_token import RenewDelegationTokenRequest
from headrace.security.principals import Principal

LONGEST: Final = -1  # the lifetime and the renewal period that brokers allow
_AT_ONCE: Final = -1  # the period with which a token is deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token with its HMAC, which is the password of whoever authenticates with it."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    issue_ms: int
    expiry_ms: int
    max_ms: int

    @property
    def password(self) -> str:
        """The password for SCRAM, with the token's id as user name."""
        return base64.b64encode(self.hmac).decode()


class TokenAdmin:
    """Creates, renews and expires tokens. Every call waits for its answer, or raises ClientError."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def create(
        self,
        owner: Principal | None = None,
        *,
        renewers: Sequence[Principal] = (),
        max_lifetime_ms: int = LONGEST,
    ) -> Token:
        """Return a new token of `owner`, or of the principal of this client.

        The caller has to compare the token's owner: brokers before KIP-373 ignore it.
        """
        answer = self._brokers.any(
            CreateDelegationTokenRequest(
                owner_principal_type="" if owner is None else owner.type,
                owner_principal_name="" if owner is None else owner.name,
                renewers=[
                    CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in renewers
                ],
                max_lifetime_ms=max_lifetime_ms,
            )
        )
        raise_for(answer.error_code)
        found = Principal(answer.principal_name, answer.principal_type)
        requester = Principal(answer.token_requester_principal_name, answer.token_requester_principal_type)
        return Token(
            token_id=answer.token_id,
            hmac=bytes(answer.hmac),
            owner=found,
            requester=requester if requester.name else found,
            issue_ms=answer.issue_timestamp_ms,
            expiry_ms=answer.expiry_timestamp_ms,
            max_ms=answer.max_timestamp_ms,
        )

    def renew(self, token: Token, period_ms: int = LONGEST) -> Token:
        """Return the token with its new expiry: `period_ms` from now, if brokers allow that."""
        answer = self._brokers.any(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms))
        raise_for(answer.error_code)
        return replace(token, expiry_ms=answer.expiry_timestamp_ms)

    def expire(self, token: Token) -> None:
        request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=_AT_ONCE)
        raise_for(self._brokers.any(request).error_code)
