"""TLS settings that are changed while a broker runs: Headrace and Apache Kafka accept and refuse the same."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat.kafka_tools.java import KafkaJava
from compat.secured_kafka import STORE_PASSWORD, Files, SecuredKafka
from support.certificates import Authority
from wire.secured import SecuredCluster, secured_cluster

TIMEOUT_S: Final = 30
CHANGES: Final = {
    "the same names": {"ssl.keystore.location": "renewed.pem"},
    "another subject": {"ssl.keystore.location": "other-subject.pem"},
    "another host": {"ssl.keystore.location": "other-host.pem"},
    "no file": {"ssl.keystore.location": "missing.pem"},
    "an empty file": {"ssl.keystore.location": "empty.pem"},
    "a key of another certificate": {"ssl.keystore.location": "mixed.pem"},
    "an unknown type": {"ssl.keystore.type": "CASSETTE"},
    "a wrong password": {"ssl.truststore.password": "guessed"},
    "no truststore": {"ssl.truststore.location": "missing.pem"},
}
ACCEPTED: Final = {"the same names"}
STRICTER: Final = {"a key of another certificate"}  # Kafka accepts it, and then no client can connect


@pytest.fixture(scope="module")
def directory(secured_files: Files) -> Path:
    """Keystores that take the place of the broker's."""
    root = Path(secured_files.server).parent
    hosts = ["127.0.0.1", "localhost"]
    authority = Authority("the test's next authority")
    renewed, other = authority.certify("broker", hosts), authority.certify("other", hosts)
    (root / "renewed.pem").write_text(renewed.key + renewed.certificate)
    (root / "other-subject.pem").write_text(other.key + other.certificate)
    elsewhere = authority.certify("broker", ["elsewhere.example"])
    (root / "other-host.pem").write_text(elsewhere.key + elsewhere.certificate)
    (root / "mixed.pem").write_text(other.key + renewed.certificate)
    return root


@pytest.fixture(scope="module")
def cluster(secured_files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    settings = {
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CLIENTS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": secured_files.server,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": secured_files.truststore,
        "ssl.truststore.password": STORE_PASSWORD,
        "listener.name.clients.ssl.client.auth": "requested",
    }
    with secured_cluster(tmp_path_factory.mktemp("dynamic-tls"), settings, brokers=1) as made:
        yield made


def change(bootstrap: str, more: dict[str, Any], broker: str, configs: dict[str, str]) -> int:
    """Return the error code of an IncrementalAlterConfigs request that only validates."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **more})
    (done,) = admin.incremental_alter_configs([resource], validate_only=True).values()
    try:
        done.result(TIMEOUT_S)
    except KafkaException as error:
        return int(error.args[0].code())
    return int(KafkaError.NO_ERROR)


def with_paths(configs: dict[str, str], listener: str, directory: Path) -> dict[str, str]:
    return {
        f"listener.name.{listener}.{name}": str(directory / value) if name.endswith(".location") else value
        for name, value in configs.items()
    }


@pytest.mark.parametrize("case", CHANGES)
def test_the_same_changes_are_accepted(
    cluster: SecuredCluster, secured_kafka: SecuredKafka, secured_files: Files, directory: Path, case: str
) -> None:
    tls = {"security.protocol": "SSL", "ssl.ca.location": secured_files.words["ca"]}
    ours = change(cluster.bootstrap, tls, "1", with_paths(CHANGES[case], "clients", directory))
    kafkas = change(secured_kafka.bootstrap, {}, "1", with_paths(CHANGES[case], "mutual", directory))

    assert (ours == kafkas) == (case not in STRICTER)
    assert (ours == KafkaError.NO_ERROR) == (case in ACCEPTED)


def test_kafka_configs_says_why_a_keystore_is_refused(
    cluster: SecuredCluster, kafka_java: KafkaJava, secured_files: Files, directory: Path, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    ca = secured_files.words["ca"]
    config.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n")
    command = kafka_java.command(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", cluster.bootstrap, "--command-config", str(config)),
        *("--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config"),
        f"listener.name.clients.ssl.keystore.location={directory / 'mixed.pem'}",
    )
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert refused.returncode == 1
    assert "InvalidRequestException: ssl.keystore.location" in refused.stdout + refused.stderr
    assert "whose private key does not belong to its first certificate" in refused.stdout + refused.stderr
