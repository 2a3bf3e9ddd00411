"""kafka-acls.sh, as an administrator of Headrace and of Apache Kafka would use it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.kafka_tools.java import KafkaJava
from wire.guarded import guarded_cluster, user
from wire.secured import SecuredCluster

Shell = Callable[..., str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("acls"), brokers=1) as running:
        yield running


@pytest.fixture
def kafka_acls(cluster: SecuredCluster, kafka_java: KafkaJava, tmp_path: Path) -> Shell:
    admin = user(cluster, "admin")
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{admin["sasl.username"]}" password="{admin["sasl.password"]}";'
    )
    config = tmp_path / "admin.properties"
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")

    def run(*arguments: str) -> str:
        common = ["--bootstrap-server", cluster.bootstrap, "--command-config", str(config)]
        command = kafka_java.command("org.apache.kafka.tools.AclCommand", *common, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    return run


def test_acls_are_added_listed_and_removed(kafka_acls: Shell) -> None:
    alice = ["--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"]
    prefixed = ["--topic", "team-", "--resource-pattern-type", "prefixed"]

    assert "User:alice" in kafka_acls("--add", *alice)
    kafka_acls("--add", "--deny-principal", "User:bob", "--operation", "Write", *prefixed)
    listed = kafka_acls("--list")
    assert "name=orders, patternType=LITERAL" in listed
    assert "name=team-, patternType=PREFIXED" in listed
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=DENY)" in listed

    kafka_acls("--remove", *alice, "--force")
    assert "name=orders" not in kafka_acls("--list")
    assert "User:bob" in kafka_acls("--list", "--topic", "team-7", "--resource-pattern-type", "match")
