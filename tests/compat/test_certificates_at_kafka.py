"""A gateway before Apache Kafka: certificates become delegation tokens, which librdkafka cannot use there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from cluster.waiting import until
from compat.guarded_kafka import GuardedKafka
from compat.kafka_tools.java import KafkaJava
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.gateway.serving import serve_in_thread
from headrace.protocol.schema.describe_delegation_token import DescribeDelegationTokenRequest
from headrace.security.tls import TlsSettings
from support.certificates import Authority
from wire.guarded import password

HOSTS: Final = ("127.0.0.1", "localhost")
CAROL: Final = "User:CN=carol"
ADMIN: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": password("admin"),
}


@pytest.fixture(scope="module")
def kafka(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with GuardedKafka(kafka_java, tmp_path_factory.mktemp("kafka"), (), scram=True) as running:
        for name in ("hers", "others"):
            running.admin.create_topics([NewTopic(name, 1, 1)])[name].result()
        allowed = AclBinding(
            ResourceType.TOPIC,
            "hers",
            ResourcePatternType.PREFIXED,
            CAROL,
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        running.admin.create_acls([allowed])[allowed].result()
        yield running


def owners_of_tokens(kafka: GuardedKafka) -> list[str]:
    with Brokers(ConnectionSettings(kafka.users_at, Security.of(ADMIN))) as brokers:
        found = brokers.any(DescribeDelegationTokenRequest(owners=None)).tokens
    return [f"{each.principal_type}:{each.principal_name}" for each in found]


def test_a_certificate_changes_topics_and_is_told_why_it_cannot_produce(
    kafka: GuardedKafka, tmp_path: Path
) -> None:
    authority, files = Authority("clients"), {}
    for name in ("gateway", "carol"):
        made = authority.certify(name, HOSTS)
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_text(made.key + made.certificate)
    ca = tmp_path / "ca.pem"
    ca.write_text(authority.certificate)
    tls = TlsSettings.of(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files["gateway"]),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
            "ssl.client.auth": "required",
        }
    )
    security = Security.of(ADMIN)
    with serve_in_thread(kafka.users_at, security=security, authentication=True, tls=tls) as served:

        def ask(method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
            return requests.request(
                method,
                f"{served.url}{path}",
                json=body,
                headers={"content-type": kind},
                verify=str(ca),
                cert=str(files["carol"]),
                timeout=60,
            )

        listed = ask("GET", "/topics")
        assert (listed.status_code, listed.json()) == (200, ["hers"])
        assert ask("GET", "/v3/clusters").status_code == 200
        new = {"name": "hers-too", "partitions": 1, "replicas": 1}
        assert ask("POST", "/api/v1/topics", new).status_code == 201
        assert ask("POST", "/api/v1/topics", new | {"name": "others-too"}).status_code == 403
        produced = ask(
            "POST", "/topics/hers", {"records": [{"value": 1}]}, "application/vnd.kafka.json.v2+json"
        )
        searched = ask("GET", "/api/v1/topics/hers/messages?last=1")
        consumer = ask("POST", "/consumers/hers", {"format": "json"}, "application/vnd.kafka.v2+json")
        for refused in (produced, searched, consumer):
            assert (refused.status_code, refused.json()["error_code"]) == (403, 40301), refused.text
            assert "tokenauth=true, which librdkafka cannot send" in refused.json()["message"]
        assert owners_of_tokens(kafka) == [CAROL]
    until("the token is deleted", lambda: owners_of_tokens(kafka) == [])
