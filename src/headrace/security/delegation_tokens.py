"""Delegation tokens (KIP-48): what a token says, who may change it, and how it is stored. Pure.

A token lets a client authenticate as its owner by SCRAM: the token id is the user name, and the HMAC of the
id under the cluster's secret key is the password. The HMAC is never stored.
"""

import base64
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.security.principals import USER, Principal

TOKENS: Final = "/delegation_token/tokens"
TOKEN_CHANGES: Final = "/delegation_token/token_changes"  # noqa: S105  a path
CHANGE_PREFIX: Final = "token_change_"
MAX_RENEWERS: Final = 1000  # of one token, which is one znode
_VERSION: Final = 3
_FIRST_WITH_REQUESTER: Final = 3
_ID_BYTES: Final = 16
_END_OF_TIME_MS: Final = 2**63 - 1


class TokensDisabled(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


class TokenNotFound(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class TokenOwnerMismatch(KafkaError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """The principal is neither the owner nor a renewer of the token."""


class TokenRequestNotAllowed(KafkaError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """The connection does not prove who the client is, or it was authenticated with a token itself."""


class TokenExpired(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_EXPIRED


class InvalidPrincipalType(KafkaError):
    code = ErrorCode.INVALID_PRINCIPAL_TYPE


class UnreadableToken(ValueError):
    """The content of a znode is not what Kafka writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token without its HMAC, which is what all brokers know."""

    token_id: str
    owner: Principal
    requester: Principal  # who has created the token, for itself or for another owner (KIP-373)
    renewers: tuple[Principal, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int

    def is_managed_by(self, principal: Principal) -> bool:
        """Return whether a principal may renew, expire and see the token."""
        return principal == self.owner or principal in self.renewers

    def is_expired(self, now_ms: int) -> bool:
        return min(self.expiry_ms, self.max_ms) < now_ms

    def encode(self) -> bytes:
        content = {
            "version": _VERSION,
            "owner": _sanitized(self.owner),
            "tokenRequester": _sanitized(self.requester),
            "renewers": [_sanitized(renewer) for renewer in self.renewers],
            "issueTimestamp": self.issue_ms,
            "maxTimestamp": self.max_ms,
            "expiryTimestamp": self.expiry_ms,
            "tokenId": self.token_id,
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "DelegationToken":
        """Return the token in the content of a znode, or raise UnreadableToken."""
        try:
            content: dict[str, Any] = json.loads(data)
            owner = _principal(content["owner"])
            has_requester = int(content["version"]) >= _FIRST_WITH_REQUESTER
            return cls(
                token_id=str(content["tokenId"]),
                owner=owner,
                requester=_principal(content["tokenRequester"]) if has_requester else owner,
                renewers=tuple(map(_principal, content["renewers"])),
                issue_ms=int(content["issueTimestamp"]),
                expiry_ms=int(content["expiryTimestamp"]),
                max_ms=int(content["maxTimestamp"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UnreadableToken(f"expected a delegation token, got {data[:200]!r}") from error


@dataclass(frozen=True, slots=True)
class TokenRules:
    max_lifetime_ms: int
    expiry_time_ms: int

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Sequence[Principal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> DelegationToken:
        """Return a new token. A lifetime that is not positive stands for the longest one."""
        if owner.type != USER:  # whoever authenticates with the token is User:NAME
            raise InvalidPrincipalType(f"an owner of type {owner.type[:100]!r}, expected {USER}")
        if len(renewers) > MAX_RENEWERS or any(renewer.type != USER for renewer in renewers):
            raise InvalidPrincipalType(f"expected at most {MAX_RENEWERS} renewers of type {USER}")
        longest_ms = self.max_lifetime_ms
        max_ms = _later(now_ms, min(max_lifetime_ms, longest_ms) if max_lifetime_ms > 0 else longest_ms)
        return DelegationToken(
            token_id=base64.urlsafe_b64encode(secrets.token_bytes(_ID_BYTES)).decode().rstrip("="),
            owner=owner,
            requester=requester,
            renewers=tuple(dict.fromkeys(renewers)),
            issue_ms=now_ms,
            expiry_ms=min(max_ms, _later(now_ms, self.expiry_time_ms)),
            max_ms=max_ms,
        )

    def renew(
        self, token: DelegationToken, principal: Principal, period_ms: int, now_ms: int
    ) -> DelegationToken:
        """Return the token with a later expiry. A period that is not positive stands for the longest one."""
        _ensure_valid(token, now_ms)
        _ensure_managed(token, principal)
        period_ms = min(period_ms, self.expiry_time_ms) if period_ms > 0 else self.expiry_time_ms
        return replace(token, expiry_ms=min(token.max_ms, _later(now_ms, period_ms)))

    def expire(
        self, token: DelegationToken, principal: Principal, period_ms: int, now_ms: int
    ) -> DelegationToken | None:
        """Return the token with another expiry; None if it is deleted at once, by a negative period."""
        _ensure_managed(token, principal)
        if period_ms < 0:
            return None
        _ensure_valid(token, now_ms)
        return replace(token, expiry_ms=min(token.max_ms, _later(now_ms, period_ms)))


def token_hmac(secret_key: bytes, token_id: str) -> bytes:
    return hmac.digest(secret_key, token_id.encode(), "sha512")


def token_password(secret_key: bytes, token_id: str) -> str:
    """Return the password with which a client authenticates by SCRAM."""
    return base64.b64encode(token_hmac(secret_key, token_id)).decode()


def _ensure_valid(token: DelegationToken, now_ms: int) -> None:
    if token.is_expired(now_ms):
        raise TokenExpired("the delegation token has expired (DELEGATION_TOKEN_EXPIRED)")


def _ensure_managed(token: DelegationToken, principal: Principal) -> None:
    if not token.is_managed_by(principal):
        raise TokenOwnerMismatch(
            f"{principal} is neither owner nor renewer of the token (DELEGATION_TOKEN_OWNER_MISMATCH)"
        )


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _END_OF_TIME_MS)


def _sanitized(principal: Principal) -> str:
    return quote(str(principal), safe="")


def _principal(text: str) -> Principal:
    return Principal.parse(unquote(text))
