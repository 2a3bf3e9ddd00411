"""Delegation tokens: how long they are valid, who may change them, and what ZooKeeper has of them."""

from dataclasses import replace

import pytest

from headrace.protocol.errors import KafkaError
from headrace.security.delegation_tokens import (
    MAX_RENEWERS,
    DelegationToken,
    InvalidPrincipalType,
    TokenExpired,
    TokenOwnerMismatch,
    TokenRules,
    UnreadableToken,
    token_password,
)
from headrace.security.principals import Principal

ALICE, BOB, CAROL = Principal("alice"), Principal("bob"), Principal("ca,rol=:")
NOW_MS = 1_000_000
RULES = TokenRules(max_lifetime_ms=1000, expiry_time_ms=100)


def token(max_lifetime_ms: int = -1) -> DelegationToken:
    return RULES.create(ALICE, ALICE, [BOB, CAROL, BOB], max_lifetime_ms, NOW_MS)


@pytest.mark.parametrize(
    ("asked_ms", "expiry_ms", "max_ms"), [(-1, 100, 1000), (0, 100, 1000), (50, 50, 50), (9999, 100, 1000)]
)
def test_a_token_lives_as_long_as_was_asked_for_but_not_longer_than_allowed(
    asked_ms: int, expiry_ms: int, max_ms: int
) -> None:
    made = token(asked_ms)

    assert (made.expiry_ms, made.max_ms) == (NOW_MS + expiry_ms, NOW_MS + max_ms)
    assert not made.is_expired(NOW_MS + expiry_ms)
    assert made.is_expired(NOW_MS + expiry_ms + 1)


def test_every_token_has_an_id_of_its_own_and_each_renewer_once() -> None:
    assert token().token_id != token().token_id
    assert token().renewers == (BOB, CAROL)


@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_owner_and_renewers_renew_a_token_up_to_its_end(principal: Principal) -> None:
    renewed = RULES.renew(token(), principal, 10, NOW_MS + 50)
    assert renewed.expiry_ms == NOW_MS + 60
    assert RULES.renew(token(), principal, -1, NOW_MS + 50).expiry_ms == NOW_MS + 150
    last = replace(token(), expiry_ms=NOW_MS + 990)
    assert RULES.renew(last, principal, -1, NOW_MS + 990).expiry_ms == NOW_MS + 1000


@pytest.mark.parametrize(
    ("principal", "now_ms", "error"),
    [
        (Principal("mallory"), NOW_MS, TokenOwnerMismatch),
        (Principal("alice", type="Group"), NOW_MS, TokenOwnerMismatch),
        (ALICE, NOW_MS + 101, TokenExpired),
    ],
)
def test_nobody_else_renews_a_token_and_nobody_one_that_has_expired(
    principal: Principal, now_ms: int, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        RULES.renew(token(), principal, 10, now_ms)
    with pytest.raises(error):
        RULES.expire(token(), principal, 10, now_ms)


def test_a_token_expires_when_it_is_told_to_or_at_once() -> None:
    expired = RULES.expire(token(), BOB, 7, NOW_MS)
    assert expired is not None
    assert expired.expiry_ms == NOW_MS + 7
    assert RULES.expire(token(), BOB, -1, NOW_MS + 500) is None  # also after it has expired


@pytest.mark.parametrize(
    ("owner", "renewers"),
    [
        (ALICE, [Principal("staff", type="Group")]),
        (Principal("staff", type="Group"), []),
        (ALICE, [BOB] * (MAX_RENEWERS + 1)),
    ],
)
def test_owners_and_renewers_are_users(owner: Principal, renewers: list[Principal]) -> None:
    with pytest.raises(InvalidPrincipalType):
        RULES.create(owner, ALICE, renewers, -1, NOW_MS)


def test_a_token_is_stored_as_kafka_stores_it() -> None:
    made = replace(token(), token_id="abc", requester=BOB)

    assert made.encode() == (
        b'{"version":3,"owner":"User%3Aalice","tokenRequester":"User%3Abob",'
        b'"renewers":["User%3Abob","User%3Aca%2Crol%3D%3A"],"issueTimestamp":1000000,'
        b'"maxTimestamp":1001000,"expiryTimestamp":1000100,"tokenId":"abc"}'
    )
    assert DelegationToken.decode(made.encode()) == made


def test_a_token_of_an_older_kafka_was_requested_by_its_owner() -> None:
    data = replace(token(), requester=BOB).encode().replace(b'"version":3', b'"version":2')

    assert DelegationToken.decode(data).requester == ALICE


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"version":3,"owner":7}', b"\xff"])
def test_content_that_is_no_token_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableToken):
        DelegationToken.decode(data)


def test_the_password_is_the_hmac_of_the_id() -> None:
    assert token_password(b"key", "id").startswith("aSA7IkWyB8Yv")
