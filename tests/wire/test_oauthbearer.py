"""A listener with OAUTHBEARER: clients bring tokens, and the broker follows the keys that sign them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, Producer

from cluster.waiting import until
from headrace.client.admin.admin import Admin
from headrace.client.errors import Refused
from wire.issuer import Issuer, listener_settings
from wire.requests import fresh_name
from wire.secured import SecuredCluster, secured_cluster

TIMEOUT_S: Final = 30


@pytest.fixture(scope="module")
def cluster(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("oauth"), listener_settings(issuer), brokers=1) as made:
        yield made


def settings(cluster: SecuredCluster, token: str) -> dict[str, Any]:
    user = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (token, time.time() + 300),
    }
    return cluster.settings(user)


def test_confluent_kafka_and_our_admin_enter_with_a_token(cluster: SecuredCluster, issuer: Issuer) -> None:
    topic = fresh_name("tokens")
    with Admin(cluster.bootstrap, settings(cluster, issuer.token())) as admin:
        admin.create_topic(topic, partitions=1, replicas=1)
    errors: list[Any] = []
    producer = Producer(settings(cluster, issuer.token()))
    producer.produce(topic, b"1", on_delivery=lambda error, _: errors.append(error))

    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None]


def test_aiokafka_enters_with_a_token(cluster: SecuredCluster, issuer: Issuer) -> None:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return issuer.token()

    async def run() -> int:
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        ) as producer:
            return int((await producer.send_and_wait(fresh_name("tokens"), b"1")).offset)

    assert asyncio.run(asyncio.wait_for(run(), TIMEOUT_S)) == 0


@pytest.mark.parametrize("claims", [{"exp": 1}, {"aud": "billing"}, {"iss": "https://other.example"}])
def test_a_token_that_is_not_valid_is_refused(
    cluster: SecuredCluster, issuer: Issuer, claims: dict[str, Any]
) -> None:
    errors: list[KafkaError] = []
    made = settings(cluster, issuer.token(**claims)) | {"error_cb": errors.append}
    producer = Producer(made)

    def is_refused() -> bool:
        producer.poll(0.1)
        return any(each.code() == KafkaError._AUTHENTICATION for each in errors)

    until("the client is refused", is_refused)


def test_a_new_key_of_the_issuer_is_learned(cluster: SecuredCluster, issuer: Issuer) -> None:
    issuer.renew("second")

    def is_accepted() -> bool:
        with suppress(Refused), Admin(cluster.bootstrap, settings(cluster, issuer.token())) as admin:
            admin.list_topics()
            return True
        return False

    until("a token of the new key is accepted", is_accepted, timeout_s=60)
