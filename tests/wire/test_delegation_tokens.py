"""Delegation tokens over the wire: created at one broker, used at another."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from headrace.protocol.schema.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.protocol.schema.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.protocol.schema.renew_delegation_token import RenewDelegationTokenRequest
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.delegation_tokens import token_password
from headrace.security.sasl.exchange import SCRAM_SHA_256
from headrace.security.sasl.scram import ScramClient
from wire.guarded import CLIENTS, TOKEN_SECRET, address, guarded_cluster, log_in
from wire.raw import RawClient
from wire.secured import SecuredCluster

VERSION = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("tokens"), brokers=2) as running:
        yield running


@pytest.fixture
def alice(cluster: SecuredCluster) -> Iterator[RawClient]:
    with RawClient(address(cluster, CLIENTS)) as client:
        yield log_in(client, "alice")


def create(client: RawClient, owner: str = "", renewer: str = "bob", **some: Any) -> Any:
    renewers = [CreatableRenewers(principal_type="User", principal_name=renewer)]
    owners = {"owner_principal_type": "User", "owner_principal_name": owner} if owner else {}
    request = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1, **owners, **some)
    return client.ask(request, VERSION)


def enter(
    cluster: SecuredCluster, token_id: str, password: str, *, broker: int = 0, extension: bool = True
) -> Any:
    """Authenticate with a token; return the last answer, and the connection."""
    scram = ScramClient(SCRAM_SHA_256, token_id, password, is_token=extension)
    client = RawClient(address(cluster, CLIENTS, broker))
    client.ask(SaslHandshakeRequest(mechanism=SCRAM_SHA_256), 1)
    challenge = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first().encode()), 2).auth_bytes
    proof = scram.prove(bytes(challenge).decode()).encode()
    return client.ask(SaslAuthenticateRequest(auth_bytes=proof), 2), client


def enters(cluster: SecuredCluster, token: Any, *, broker: int = 0) -> bool:
    answer, client = enter(cluster, token.token_id, password_of(token), broker=broker)
    client.close()
    return bool(answer.error_code == ErrorCode.NONE)


def password_of(token: Any) -> str:
    return token_password(TOKEN_SECRET.encode(), token.token_id)


def tokens_of(client: RawClient, *owners: str) -> list[str]:
    wanted = [DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in owners]
    answer = client.ask(DescribeDelegationTokenRequest(owners=wanted or None), VERSION)
    assert answer.error_code == ErrorCode.NONE
    return [each.token_id for each in answer.tokens]


def test_a_token_opens_every_broker_to_its_owner(cluster: SecuredCluster, alice: RawClient) -> None:
    token = create(alice)
    assert token.error_code == ErrorCode.NONE
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")

    assert enters(cluster, token)
    until("the other broker knows the token", lambda: enters(cluster, token, broker=1))
    answer, client = enter(cluster, token.token_id, "wrong")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    client.close()


def test_librdkafka_is_the_owner_of_a_token_without_the_extension(
    cluster: SecuredCluster, alice: RawClient
) -> None:
    token = create(alice)
    answer, client = enter(cluster, token.token_id, password_of(token), extension=False)
    assert (answer.error_code, answer.session_lifetime_ms > 0) == (ErrorCode.NONE, True)
    refused = create(client)  # by_token, as with the extension
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert refused.principal_name == "alice"
    client.close()
    answer, client = enter(cluster, token.token_id, "wrong", extension=False)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    client.close()

    by_token = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": token.token_id,
        "sasl.password": password_of(token),
    }
    until("every broker knows the token", lambda: enters(cluster, token, broker=1))
    admin = AdminClient(cluster.settings(by_token))
    found = admin.describe_cluster(request_timeout=30).result()
    assert len(found.nodes) == 2


def test_a_session_ends_with_its_token_and_creates_no_others(
    cluster: SecuredCluster, alice: RawClient
) -> None:
    token = create(alice)

    answer, client = enter(cluster, token.token_id, password_of(token))

    assert 0 < answer.session_lifetime_ms <= 86_400_000
    assert create(client).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    client.close()


def test_owner_and_renewers_see_renew_and_expire_a_token(cluster: SecuredCluster, alice: RawClient) -> None:
    token = create(alice)
    with RawClient(address(cluster, CLIENTS)) as client:
        bob = log_in(client, "bob")
        assert token.token_id in tokens_of(bob)
        assert token.token_id in tokens_of(bob, "alice")
        renewed = bob.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5000), 2)
        assert renewed.error_code == ErrorCode.NONE
        assert renewed.expiry_timestamp_ms < token.expiry_timestamp_ms

        expired = bob.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
        assert expired.error_code == ErrorCode.NONE
    assert not enters(cluster, token)
    assert token.token_id not in tokens_of(alice)
    again = alice.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5000), 2)
    assert again.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_others_neither_see_nor_change_a_token(cluster: SecuredCluster, alice: RawClient) -> None:
    token = create(alice, renewer="carol")

    with RawClient(address(cluster, CLIENTS)) as client:
        bob = log_in(client, "bob")
        assert token.token_id not in tokens_of(bob)
        renewed = bob.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5000), 2)
        assert renewed.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        refused = create(bob, owner="alice")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


def test_a_super_user_creates_tokens_for_others(cluster: SecuredCluster, alice: RawClient) -> None:
    with RawClient(address(cluster, CLIENTS)) as client:
        token = create(log_in(client, "admin"), owner="alice")

    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "admin")
    assert token.token_id in tokens_of(alice)
    assert enters(cluster, token)
